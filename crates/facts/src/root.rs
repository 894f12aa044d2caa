//! Where facts are read: the live machine, or a tree recorded from one.
//!
//! A tree is a directory that holds the files by their own paths (`DIR/proc/version`),
//! and a manifest, `DIR/noisefloor-tree.json`, that says why others could not be read
//! when it was made. In a tree written by hand the manifest may be missing: a file that
//! is not there was then not there on the machine.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind};
use crate::fact::{Unknown, Why};

/// The manifest's name in a recorded tree.
const MANIFEST: &str = "noisefloor-tree.json";
/// More than any file facts are read from; a tree may hold anything.
const BYTES_MAX: u64 = 16 << 20;
/// More than what one CPU has to say in `/proc/cpuinfo`.
const HEAD_MAX: u64 = 8 << 10;
/// The longest record `/dev/kmsg` gives (`PRINTK_MESSAGE_MAX`, `CONSOLE_EXT_LOG_MAX`).
const RECORD_MAX: usize = 8192;
/// How much of the kernel's messages is read; a boot's are a tenth of it.
const LOG_MAX: usize = 1 << 20;

/// What a recorded tree says beside its files.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Manifest {
    format: u32,
    unreadable: BTreeMap<String, Unknown>,
}

#[derive(Debug)]
enum Base {
    Live,
    Tree { dir: PathBuf, unreadable: BTreeMap<String, Unknown> },
}

/// Where facts are read, and everything that was read there so far.
#[derive(Debug)]
pub struct Root {
    base: Base,
    seen: RefCell<BTreeMap<String, Result<Vec<u8>, Unknown>>>,
}

impl Root {
    /// The machine this runs on.
    pub fn live() -> Self {
        Self { base: Base::Live, seen: RefCell::default() }
    }

    /// A tree recorded by [`Root::record`], or written by hand.
    ///
    /// # Errors
    /// `Kind::Tree` where the directory cannot be read or holds no kernel's files, or
    /// its manifest is not one.
    pub fn tree(dir: &Path) -> Result<Self, Error> {
        let refuse = |text: String| Error::new(Kind::Tree, dir, text);
        let list = fs::read_dir(dir).map_err(|error| refuse(error.to_string()))?;
        drop(list);
        if !["proc/version", "proc/sys/kernel/osrelease"]
            .iter()
            .any(|f| dir.join(f).is_file())
        {
            let text = "not a recorded tree: it has neither proc/version nor \
                        proc/sys/kernel/osrelease (make one with noisefloor facts --record DIR)";
            return Err(refuse(text.to_owned()));
        }
        let manifest = match fs::read(dir.join(MANIFEST)) {
            Ok(bytes) => serde_json::from_slice::<Manifest>(&bytes)
                .map_err(|error| refuse(format!("{MANIFEST}: {error}")))?,
            Err(error) if error.kind() == ErrorKind::NotFound => Manifest::default(),
            Err(error) => return Err(refuse(format!("{MANIFEST}: {error}"))),
        };
        let base = Base::Tree { dir: dir.to_owned(), unreadable: manifest.unreadable };
        Ok(Self { base, seen: RefCell::default() })
    }

    /// Whether this is the machine this runs on.
    pub fn is_live(&self) -> bool {
        matches!(self.base, Base::Live)
    }

    /// A file's bytes.
    ///
    /// # Errors
    /// Why the file could not be read.
    pub fn bytes(&self, path: &str) -> Result<Vec<u8>, Unknown> {
        if let Some(seen) = self.seen.borrow().get(path).filter(|seen| !may_be_head(seen))
        {
            return seen.clone();
        }
        let found = self.fetch(path, BYTES_MAX);
        self.seen.borrow_mut().insert(path.to_owned(), found.clone());
        found
    }

    /// A file's text; bytes that are not UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// Why the file could not be read.
    pub fn text(&self, path: &str) -> Result<String, Unknown> {
        Ok(String::from_utf8_lossy(&self.bytes(path)?).into_owned())
    }

    /// The beginning of a file that says what matters first and can be long, as text.
    /// Such files are made while they are read, CPU by CPU: the rest would cost time.
    ///
    /// # Errors
    /// Why the file could not be read.
    pub(crate) fn head(&self, path: &str) -> Result<String, Unknown> {
        let mut seen = self.seen.borrow_mut();
        let found =
            seen.entry(path.to_owned()).or_insert_with(|| self.fetch(path, HEAD_MAX));
        found.clone().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The bytes of `/dev/kmsg` as far as it goes now. That file never ends: reading it
    /// as any other would wait for the kernel's next message. Messages that come after
    /// the first mebibyte are left out; what facts look for is said at boot.
    ///
    /// # Errors
    /// Why the file could not be read.
    pub(crate) fn kernel_log(&self, path: &str) -> Result<Vec<u8>, Unknown> {
        if let Some(seen) = self.seen.borrow().get(path) {
            return seen.clone();
        }
        let found = match self.is_live() {
            true => records(path).map_err(|error| self.reason(path, &error.into())),
            false => self.fetch(path, BYTES_MAX),
        };
        self.seen.borrow_mut().insert(path.to_owned(), found.clone());
        found
    }

    /// Whether the file is there; `Err` where even that may not be known. The file is
    /// not read: in a recorded tree an empty one stands for it.
    ///
    /// # Errors
    /// Why it is not known whether the file is there.
    pub fn exists(&self, path: &str) -> Result<bool, Unknown> {
        let found = match fs::symlink_metadata(self.place(path)) {
            Ok(_) => Ok(Vec::new()),
            Err(error) => Err(self.reason(path, &error)),
        };
        self.seen.borrow_mut().entry(path.to_owned()).or_insert_with(|| found.clone());
        match found {
            Ok(_) => Ok(true),
            Err(unknown) if unknown.code == Why::Absent => Ok(false),
            Err(unknown) => Err(unknown),
        }
    }

    /// The names in a directory, sorted.
    ///
    /// # Errors
    /// Why the directory could not be read.
    pub fn list(&self, path: &str) -> Result<Vec<String>, Unknown> {
        let entries =
            fs::read_dir(self.place(path)).map_err(|error| self.reason(path, &error))?;
        let names =
            entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort();
        Ok(names)
    }

    /// Writes everything that was read here so far as a tree below `dir`, which must not
    /// exist yet or be empty. `redact` is asked for each file's bytes as they may be kept.
    ///
    /// # Errors
    /// `Kind::Record` where a file cannot be written.
    pub fn record(
        &self,
        dir: &Path,
        redact: impl Fn(&str, &[u8]) -> Vec<u8>,
    ) -> Result<(), Error> {
        if fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(Error::new(Kind::Record, dir, "the directory is not empty"));
        }
        let mut manifest = Manifest { format: 1, unreadable: BTreeMap::new() };
        for (path, found) in self.seen.borrow().iter() {
            match found {
                Ok(bytes) => write(&below(dir, path), &redact(path, bytes))?,
                Err(unknown) if unknown.code == Why::Absent => {}
                Err(unknown) => {
                    manifest.unreadable.insert(path.clone(), unknown.clone());
                }
            }
        }
        let text = serde_json::to_string_pretty(&manifest)
            .map_err(|error| Error::new(Kind::Record, dir, error.to_string()))?;
        write(&dir.join(MANIFEST), (text + "\n").as_bytes())
    }

    fn place(&self, path: &str) -> PathBuf {
        match &self.base {
            Base::Live => PathBuf::from(path),
            Base::Tree { dir, .. } => below(dir, path),
        }
    }

    fn fetch(&self, path: &str, bytes_max: u64) -> Result<Vec<u8>, Unknown> {
        let place = self.place(path);
        if !self.is_live() && fs::metadata(&place).is_ok_and(|meta| !meta.is_file()) {
            let text = format!("{path}: not a plain file in the recorded tree");
            return Err(Unknown::new(Why::Garbage, text));
        }
        let file = fs::File::open(place).map_err(|error| self.reason(path, &error))?;
        let mut bytes = Vec::new();
        let read = file.take(bytes_max).read_to_end(&mut bytes);
        read.map_err(|error| self.reason(path, &error))?;
        Ok(bytes)
    }

    /// Turns an error of the file system into the reason why something is not known.
    fn reason(&self, path: &str, error: &std::io::Error) -> Unknown {
        if let Base::Tree { unreadable, .. } = &self.base {
            if let Some(unknown) = unreadable.get(path) {
                return unknown.clone();
            }
        }
        let (code, text) = match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => {
                (Why::Absent, format!("{path} is not there"))
            }
            ErrorKind::PermissionDenied if rustix::process::geteuid().is_root() => {
                let text = "refused even to root: lockdown, or a capability is missing";
                (Why::Lockdown, format!("{path} is {text}"))
            }
            ErrorKind::PermissionDenied => {
                (Why::NeedsRoot, format!("{path} may be read by root only"))
            }
            _ => (Why::Absent, format!("{path}: {error}")),
        };
        Unknown::new(code, text)
    }
}

/// Reads record after record until there is none left.
fn records(path: &str) -> Result<Vec<u8>, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    let mut bytes = Vec::new();
    let mut record = [0; RECORD_MAX];
    while bytes.len() < LOG_MAX {
        match rustix::io::read(&file, &mut record) {
            Ok(0) | Err(Errno::AGAIN) => break,
            Ok(length) => bytes.extend_from_slice(&record[..length]),
            // A record was overwritten before it was read; the next read goes on.
            Err(Errno::PIPE | Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

/// Whether what was read may be only a file's beginning.
fn may_be_head(found: &Result<Vec<u8>, Unknown>) -> bool {
    found.as_ref().is_ok_and(|bytes| bytes.len() as u64 == HEAD_MAX)
}

/// A machine's path below a tree's directory.
fn below(dir: &Path, path: &str) -> PathBuf {
    dir.join(path.trim_start_matches('/'))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let failed =
        |error: std::io::Error| Error::new(Kind::Record, path, error.to_string());
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    fs::write(path, bytes).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a recorded tree answers as the machine it was recorded from, refusals
    /// included.
    #[test]
    fn a_tree_answers_as_the_machine_did() {
        let machine = tempfile::tempdir().unwrap();
        write(&below(machine.path(), "/proc/version"), b"Linux version 6.1\n").unwrap();
        let refused = Unknown::new(Why::NeedsRoot, "/proc/timer_list: root only");
        let manifest = Manifest {
            format: 1,
            unreadable: [("/proc/timer_list".to_owned(), refused.clone())].into(),
        };
        let text = serde_json::to_vec(&manifest).unwrap();
        write(&machine.path().join(MANIFEST), &text).unwrap();
        let first = Root::tree(machine.path()).unwrap();
        let ask = |root: &Root| {
            ["/proc/version", "/proc/timer_list", "/proc/nothing"]
                .map(|path| root.text(path))
        };
        let answers = ask(&first);
        assert_eq!(answers[1], Err(refused));

        let copy = tempfile::tempdir().unwrap();
        first.record(copy.path(), |_, bytes| bytes.to_vec()).unwrap();
        assert_eq!(ask(&Root::tree(copy.path()).unwrap()), answers);
    }

    /// Check that a directory that holds no kernel's files is refused by name.
    #[test]
    fn refuses_what_is_no_tree() {
        let dir = tempfile::tempdir().unwrap();
        let error = Root::tree(dir.path()).unwrap_err().to_string();
        assert!(error.contains("not a recorded tree"), "{error}");
        assert!(Root::tree(Path::new("/nonexistent/tree")).is_err());
    }

    /// Check that having read a file's beginning does not cut off what is read later.
    #[test]
    fn a_beginning_is_not_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let whole = "x".repeat(20_000);
        write(&below(dir.path(), "/proc/version"), whole.as_bytes()).unwrap();
        let root = Root::tree(dir.path()).unwrap();
        let head = root.head("/proc/version").unwrap();
        assert!(head.len() < whole.len() && whole.starts_with(&head));
        assert_eq!(root.text("/proc/version").unwrap(), whole);
    }

    /// Check that a directory in a file's place is an answer, not a failure.
    #[test]
    fn a_directory_is_no_file() {
        let dir = tempfile::tempdir().unwrap();
        write(&below(dir.path(), "/proc/version"), b"x").unwrap();
        fs::create_dir(dir.path().join("proc/stat")).unwrap();
        let root = Root::tree(dir.path()).unwrap();
        assert_eq!(root.text("/proc/stat").unwrap_err().code, Why::Garbage);
    }

    /// Check that nothing is written over a directory that is in use.
    #[test]
    fn records_into_empty_directories_only() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("mine"), "x").unwrap();
        assert!(Root::live().record(dir.path(), |_, bytes| bytes.to_vec()).is_err());
    }
}
