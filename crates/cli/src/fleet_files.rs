//! The files of a fleet: found in folders, and read in parallel, each reduced at once to what the fleet needs.
//!
//! A file that cannot be read is a doubt with a count, and the others are read. Large recordings are read one at a
//! time, so that the memory does not depend on their number.

use std::collections::HashMap;
use std::error::Error;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use history::History;
use summary::{Fleet, FleetDoubt, FleetDoubtCode, FleetLabels, FleetRun};
use units::{chain, printable};

use crate::inputs::is_named;
use crate::outcome::Failure;
use crate::progress_line::ProgressLine;

/// The ending of histories.
const HISTORY: &str = "db";
/// What a file of SQLite begins with.
const DATABASE: &[u8] = b"SQLite format 3\0";
/// Recordings from this size on are read one at a time.
const LARGE: u64 = 32 << 20;
/// Progress is shown so often.
const PERIOD: Duration = Duration::from_millis(500);

/// A file, and the node whose it is.
#[derive(Debug)]
struct NodeFile {
    node: String,
    path: PathBuf,
    /// The numbers of its device and its inode: equal for links.
    identity: (u64, u64),
}

/// The files of a fleet, and the names that have none.
#[derive(Debug, Default)]
pub(crate) struct FleetFiles {
    files: Vec<NodeFile>,
    doubts: Vec<FleetDoubt>,
}

/// What was read.
#[derive(Debug)]
pub(crate) struct ReadFleet {
    pub(crate) fleet: Fleet,
    pub(crate) doubts: Vec<FleetDoubt>,
}

/// Why a file was left out.
type LeftOut = (FleetDoubtCode, String);

impl FleetFiles {
    /// The files of these folders, and these files.
    pub(crate) fn find(places: &[PathBuf]) -> Self {
        let mut found = Self::default();
        for place in places {
            match place.is_dir() {
                true => found.folder(place),
                false => found.file(place, None),
            }
        }
        found.without_links();
        found
    }

    /// Without further names of a file: links, also of folders. The one that is nearest to the top remains.
    fn without_links(&mut self) {
        let depth = |file: &NodeFile| file.path.components().count();
        self.files.sort_by(|a, b| (depth(a), &a.path).cmp(&(depth(b), &b.path)));
        self.files.dedup_by(|a, b| a.path == b.path);
        let mut seen: HashMap<(u64, u64), PathBuf> = HashMap::new();
        let doubts = &mut self.doubts;
        self.files.retain(|file| match seen.get(&file.identity) {
            None => seen.insert(file.identity, file.path.clone()).is_none(),
            Some(first) => {
                let name = format!("{} (of {})", shown(&file.path), shown(first));
                FleetDoubt::add(doubts, FleetDoubtCode::Duplicate, "", &name);
                false
            }
        });
    }

    /// A folder with a file or a folder for each node.
    fn folder(&mut self, folder: &Path) {
        let Some(entries) = self.entries(folder) else { return };
        let before = (self.files.len(), self.doubts.len());
        for path in entries {
            match path.is_dir() {
                true => self.node_folder(&path),
                false if is_read(&path) => self.file(&path, None),
                false => {}
            }
        }
        if (self.files.len(), self.doubts.len()) == before {
            self.leave_out(folder, (FleetDoubtCode::Empty, String::new()));
        }
    }

    /// A folder with the files of one node.
    fn node_folder(&mut self, folder: &Path) {
        let name = folder.file_name().map_or_else(String::new, name);
        let Some(entries) = self.entries(folder) else { return };
        let own: Vec<PathBuf> =
            entries.into_iter().filter(|path| is_read(path)).collect();
        if own.is_empty() {
            self.leave_out(folder, (FleetDoubtCode::Empty, String::new()));
        }
        for path in own {
            self.file(&path, Some(&name));
        }
    }

    /// The entries of a folder; `None` if they cannot be read.
    fn entries(&mut self, folder: &Path) -> Option<Vec<PathBuf>> {
        let listed = fs::read_dir(folder).and_then(|entries| {
            entries
                .map(|entry| entry.map(|entry| entry.path()))
                .collect::<Result<Vec<_>, _>>()
        });
        match listed {
            Ok(entries) => Some(entries),
            Err(why) => {
                self.leave_out(folder, (FleetDoubtCode::Unreadable, chain(&why)));
                None
            }
        }
    }

    /// A regular file. Others are left out: a FIFO could wait for ever.
    fn file(&mut self, path: &Path, node: Option<&str>) {
        match fs::metadata(path) {
            Err(why) => self.leave_out(path, (FleetDoubtCode::Unreadable, chain(&why))),
            Ok(about) if about.is_file() => {
                let node = node.map_or_else(|| node_name(path), str::to_owned);
                let identity = (about.dev(), about.ino());
                self.files.push(NodeFile { node, path: path.to_owned(), identity });
            }
            Ok(about) => {
                let what = if about.is_dir() { "a folder" } else { "no regular file" };
                self.leave_out(path, (FleetDoubtCode::NoFile, what.to_owned()));
            }
        }
    }

    fn leave_out(&mut self, path: &Path, (code, why): LeftOut) {
        FleetDoubt::add(&mut self.doubts, code, &why, &shown(path));
    }

    /// Reads all files, of histories so many of the newest entries.
    pub(crate) fn read(self, newest: usize, quiet: bool) -> ReadFleet {
        let (next, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (fleet, left_out) = (Mutex::new(Fleet::default()), Mutex::new(Vec::new()));
        let large = Mutex::new(());
        let read = || {
            while let Some((at, file)) = take(&self.files, &next) {
                match reduced(file, newest, &large) {
                    Ok(runs) => {
                        let (mut fleet, shown) = (locked(&fleet), shown(&file.path));
                        runs.into_iter()
                            .for_each(|(node, run)| fleet.add(&node, &shown, run));
                    }
                    Err(why) => locked(&left_out).push((at, why)),
                }
                ended.fetch_add(1, Ordering::Relaxed);
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let mut line = ProgressLine::new(quiet);
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..threads).map(|_| scope.spawn(read)).collect();
            while line.is_shown() && !readers.iter().all(|one| one.is_finished()) {
                std::thread::park_timeout(PERIOD);
                let (ended, all) = (ended.load(Ordering::Relaxed), self.files.len());
                line.draw(&format!("reading, {ended} of {all} files"));
            }
            line.clear();
        });
        let mut doubts = self.doubts;
        let mut left_out = left_out.into_inner().unwrap_or_else(PoisonError::into_inner);
        left_out.sort_by_key(|(at, _)| *at);
        for (at, (code, why)) in left_out {
            FleetDoubt::add(&mut doubts, code, &why, &shown(&self.files[at].path));
        }
        let fleet = fleet.into_inner().unwrap_or_else(PoisonError::into_inner);
        ReadFleet { fleet, doubts }
    }
}

impl ReadFleet {
    /// The failure if no file could be read.
    pub(crate) fn nothing(&self) -> Failure {
        let reasons = report::fleet_doubts(&self.doubts);
        let reasons: String = reasons.iter().map(|why| format!("\n  {why}")).collect();
        Failure::usage(format!("no recording could be read{reasons}"))
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The next file that no thread reads yet.
fn take<'a>(files: &'a [NodeFile], next: &AtomicUsize) -> Option<(usize, &'a NodeFile)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    Some((at, files.get(at)?))
}

/// The recordings of a file, reduced, each with its node.
fn reduced(
    file: &NodeFile,
    newest: usize,
    large: &Mutex<()>,
) -> Result<Vec<(String, FleetRun)>, LeftOut> {
    if is_database(&file.path) {
        let of_history = History::open_read_only(&file.path)
            .and_then(|history| history.newest(newest));
        let entries =
            of_history.map_err(|why| of_error(code_of_history(why.kind()), &why))?;
        let of = |entry: history::Entry| {
            let run = FleetRun::of(&entry.kind, &entry.run);
            let node = Some(entry.machine).filter(|machine| !machine.is_empty());
            (node.unwrap_or_else(|| file.node.clone()), run)
        };
        return Ok(entries.into_iter().map(of).collect());
    }
    let is_large = fs::metadata(&file.path).is_ok_and(|about| about.len() >= LARGE);
    let _one_at_a_time = is_large.then(|| locked(large));
    let recording = imports::load(&file.path)
        .map_err(|why| of_error(code_of_recording(why.kind()), &why))?;
    Ok(vec![(file.node.clone(), FleetRun::of_recording(&recording))])
}

/// The reason of a file that cannot be read; those that name a place in the file differ for each.
fn of_error(code: FleetDoubtCode, why: &(dyn Error + 'static)) -> LeftOut {
    let is_alike = code == FleetDoubtCode::Unreadable;
    let cause = why.source().filter(|_| is_alike);
    (code, cause.map_or_else(String::new, chain))
}

fn code_of_recording(kind: recording::Kind) -> FleetDoubtCode {
    use recording::Kind;
    match kind {
        Kind::Read | Kind::Write => FleetDoubtCode::Unreadable,
        Kind::Truncated => FleetDoubtCode::Truncated,
        Kind::Foreign => FleetDoubtCode::Foreign,
        Kind::Newer => FleetDoubtCode::Newer,
        Kind::Corrupt => FleetDoubtCode::Corrupt,
        Kind::NoSeries => FleetDoubtCode::NoSeries,
    }
}

fn code_of_history(kind: history::Kind) -> FleetDoubtCode {
    use history::Kind;
    match kind {
        Kind::Damaged | Kind::NoEntry => FleetDoubtCode::Corrupt,
        Kind::Newer => FleetDoubtCode::Newer,
        Kind::Access | Kind::Busy | Kind::Full => FleetDoubtCode::Unreadable,
    }
}

/// Whether a file of that name is read in a folder.
fn is_read(path: &Path) -> bool {
    is_named(path) || path.extension() == Some(OsStr::new(HISTORY))
}

/// Whether it is a history, by its first bytes.
fn is_database(path: &Path) -> bool {
    use std::io::Read;
    let mut head = Vec::new();
    let read = fs::File::open(path)
        .and_then(|file| file.take(DATABASE.len() as u64).read_to_end(&mut head));
    read.is_ok() && head == DATABASE
}

/// The node of a file: its name without the ending, up to `@`.
fn node_name(path: &Path) -> String {
    let stem = path.file_stem().map_or_else(String::new, name);
    match stem.split_once('@') {
        Some((node, _)) if !node.is_empty() => node.to_owned(),
        _ => stem,
    }
}

fn name(of: &OsStr) -> String {
    of.to_string_lossy().into_owned()
}

fn shown(path: &Path) -> String {
    printable(&path.to_string_lossy()).into_owned()
}

/// The labels in a file.
pub(crate) fn labels(file: &Path) -> Result<FleetLabels, Failure> {
    let shown = shown(file);
    let failed =
        |why: String| Failure::usage(format!("--labels: failed to read {shown}: {why}"));
    let text = recording::read_text(file).map_err(|why| failed(chain(&why)))?;
    FleetLabels::parse(&text).map_err(|why| failed(chain(&why)))
}
