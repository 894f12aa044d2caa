//! The C libraries as C and C++ programs see them: the programs are compiled against the headers
//! with warnings as errors, linked with the shared libraries or the static ones, and run.
//!
//! The programs check themselves; what takes more than one of them is checked here. A program is
//! linked with the libraries whose headers it includes.
#![forbid(unsafe_code)]
#![expect(clippy::unwrap_used, reason = "a test may fail")]

#[path = "../../cli/tests/shared/settings_lock.rs"]
mod settings_lock;

use std::collections::BTreeSet;
use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use settings_lock::lock_settings;
use tempfile::TempDir;

const RT_RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";

/// A C library.
struct Library {
    name: &'static str,
    header: &'static str,
    /// The folder of its crate, from that of this one.
    folder: &'static str,
}

const NOISEFLOOR: Library =
    Library { name: "noisefloor", header: "noisefloor.h", folder: "." };
const TIF: Library = Library { name: "tif", header: "tif_helper.h", folder: "../tif" };

impl Library {
    /// Those whose headers a C program includes.
    fn used_by(program: &str) -> Vec<Self> {
        let is_used = |library: &Self| {
            program.contains(&format!("\"{}\"", library.header))
                || program.contains(&format!("<{}>", library.header))
        };
        [NOISEFLOOR, TIF].into_iter().filter(is_used).collect()
    }

    fn folder(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(self.folder)
    }

    /// The file that cargo has built beside this program.
    fn file(&self, ending: &str) -> PathBuf {
        let folder = env::current_exe().unwrap().parent().unwrap().to_owned();
        let name = format!("lib{}.{ending}", self.name);
        let found = [folder.join(&name), folder.join("..").join(&name)];
        found.into_iter().find(|file| file.exists()).unwrap()
    }

    /// The functions that its header declares.
    fn declared(&self) -> BTreeSet<String> {
        let file = self.folder().join("include").join(self.header);
        let text = fs::read_to_string(file).unwrap();
        let is_function = |line: &&str| !line.starts_with(' ') && line.ends_with(");");
        let before =
            text.lines().filter(is_function).filter_map(|line| line.split('(').next());
        let names = before.filter_map(|line| line.rsplit([' ', '*']).next());
        names.map(str::to_owned).collect()
    }

    /// The global symbols that a file of the library defines; `None`, and why, if there is no
    /// `nm`.
    fn defined(&self, ending: &str, option: &str) -> Option<BTreeSet<String>> {
        let mut nm = Command::new("nm");
        let nm = nm.args(["-P", "--defined-only", option]).arg(self.file(ending));
        let Ok(output) = nm.output() else {
            println!("skipped: exports: there is no nm");
            return None;
        };
        assert!(output.status.success(), "{}", text(&output.stderr));
        let lines = text(&output.stdout);
        let words = lines.lines().filter_map(|line| line.split_once(' '));
        Some(words.map(|(name, _)| name.to_owned()).collect())
    }
}

/// How a program is compiled and linked.
#[derive(Debug, Clone, Copy)]
enum Way {
    SharedC,
    /// With the static library, and the C library shared.
    StaticC,
    /// With static libraries only.
    WhollyStaticC,
    SharedCpp,
}

impl Way {
    /// The compiler; `None`, and why, if there is none.
    fn compiler(self, test: &str) -> Option<Command> {
        let (name, standard) = match self {
            Self::SharedC | Self::StaticC | Self::WhollyStaticC => ("cc", "-std=c11"),
            Self::SharedCpp => ("c++", "-std=c++17"),
        };
        if Command::new(name).arg("--version").output().is_err() {
            println!("skipped: {test}: there is no {name}");
            return None;
        }
        let mut compiler = Command::new(name);
        compiler.args([standard, "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1"]);
        if matches!(self, Self::SharedCpp) {
            compiler.args(["-x", "c++"]);
        }
        Some(compiler)
    }
}

/// A folder with a program in it.
struct Built {
    folder: TempDir,
}

impl Built {
    /// Compiles a program; `None` if there is no compiler.
    fn new(source: &str, way: Way) -> Option<Self> {
        let mut compiler = way.compiler(source)?;
        let folder = tempfile::tempdir().unwrap();
        let file = NOISEFLOOR.folder().join("tests/programs").join(source);
        let libraries = Library::used_by(&fs::read_to_string(&file).unwrap());
        for library in &libraries {
            compiler.arg("-I").arg(library.folder().join("include"));
        }
        compiler.arg(file).args(["-x", "none", "-o"]).arg(folder.path().join("program"));
        match way {
            Way::StaticC => {
                compiler.args(static_libraries(&libraries, folder.path(), source)?)
            }
            Way::WhollyStaticC if !has_static_libc() => {
                println!("skipped: {source}: there is no libc.a");
                return None;
            }
            Way::WhollyStaticC => {
                let libraries = static_libraries(&libraries, folder.path(), source)?;
                compiler.arg("-static").args(libraries)
            }
            Way::SharedC | Way::SharedCpp => {
                for library in &libraries {
                    for ending in ["so", "so.0"] {
                        let name = format!("lib{}.{ending}", library.name);
                        symlink(library.file("so"), folder.path().join(name)).unwrap();
                    }
                    compiler.arg(format!("-l{}", library.name));
                }
                compiler.arg("-L").arg(folder.path()).arg("-pthread")
            }
        };
        let output = compiler.output().unwrap();
        assert!(output.status.success(), "{way:?}: {}", text(&output.stderr));
        Some(Self { folder })
    }

    /// The program, with a journal of its own.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut program = Command::new(self.folder.path().join("program"));
        program.args(arguments).env("LD_LIBRARY_PATH", self.folder.path());
        program.env("NOISEFLOOR_STATE", self.state());
        program
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// The words of each line that the program writes.
    fn lines(&self, arguments: &[&str]) -> Vec<String> {
        text(&self.run(arguments).stdout).lines().map(str::to_owned).collect()
    }

    fn journal_is_empty(&self) -> bool {
        !self.state().join("journal.json").exists()
    }
}

fn has_static_libc() -> bool {
    let asked = Command::new("cc").arg("-print-file-name=libc.a").output();
    asked.is_ok_and(|output| text(&output.stdout).contains('/'))
}

/// The linker's arguments for static libraries by `pkg-config`, which are installed into that
/// folder; `None`, and why, if there is no `pkg-config`.
fn static_libraries(
    libraries: &[Library],
    prefix: &Path,
    test: &str,
) -> Option<Vec<String>> {
    let lib = prefix.join("lib");
    fs::create_dir(&lib).unwrap();
    for library in libraries {
        let name = library.name;
        symlink(library.file("a"), lib.join(format!("lib{name}.a"))).unwrap();
        let template = library.folder().join(format!("{name}.pc.in"));
        let text = fs::read_to_string(template).unwrap();
        let text = text.replace("@PREFIX@", prefix.to_str().unwrap());
        let text = text.replace("@LIBDIR@", prefix.join("lib").to_str().unwrap());
        fs::write(lib.join(format!("{name}.pc")), text.replace("@VERSION@", "1"))
            .unwrap();
    }
    let mut pkg_config = Command::new("pkg-config");
    pkg_config.env("PKG_CONFIG_PATH", &lib).args(["--static", "--libs"]);
    let names = libraries.iter().map(|library| library.name);
    let Ok(output) = pkg_config.args(names).output() else {
        println!("skipped: {test}: there is no pkg-config");
        return None;
    };
    assert!(output.status.success(), "{}", text(&output.stderr));
    Some(text(&output.stdout).split_whitespace().map(str::to_owned).collect())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Compiles and runs a program that checks itself, each way.
fn checks_itself(source: &str, ways: &[Way], arguments: &[&str]) {
    for way in ways {
        let Some(built) = Built::new(source, *way) else { continue };
        let output = built.run(arguments);
        let report = text(&output.stdout);
        assert!(output.status.success(), "{way:?}: {report}{}", text(&output.stderr));
        // Includes what it skipped, and why.
        print!("{report}");
        assert!(built.journal_is_empty(), "{way:?}");
    }
}

/// Check that each shared library exports the functions of its header and nothing else: those of
/// libnoisefloor all have its prefix, and neither library, shared or static, has the other's.
#[test]
fn exports() {
    assert!(NOISEFLOOR.declared().iter().all(|name| name.starts_with("nf_")));
    for (library, other) in [(NOISEFLOOR, TIF), (TIF, NOISEFLOOR)] {
        let Some(exported) = library.defined("so", "-D") else { return };
        assert_eq!(exported, library.declared());
        assert!(!exported.is_empty());
        let Some(defined) = library.defined("a", "-g") else { return };
        assert!(defined.is_superset(&library.declared()));
        assert!(defined.is_disjoint(&other.declared()));
    }
}

/// Check that a C program enters a CPU, measures, reads the same quantiles that it counts itself,
/// and is as it was afterwards; shared, static, and wholly static.
#[test]
fn measured() {
    let version = [env!("CARGO_PKG_VERSION")];
    let ways = [Way::SharedC, Way::StaticC, Way::WhollyStaticC];
    checks_itself("measured.c", &ways, &version);
}

/// Check that a C++ program's threads share the library.
#[test]
fn threads() {
    checks_itself("threads.cpp", &[Way::SharedCpp], &[]);
}

/// Check that usage errors are refused, in C and in C++.
#[test]
fn misuse() {
    let ways = [Way::SharedC, Way::WhollyStaticC, Way::SharedCpp];
    checks_itself("misuse.c", &ways, &[]);
}

/// Check that a program written for TIF compiles and works, linked either way.
#[test]
fn tif_style() {
    let ways = [Way::SharedC, Way::StaticC, Way::SharedCpp];
    checks_itself("tif_style.c", &ways, &[]);
}

/// The state directory of root's runs.
const SHARED_STATE: &str = "/run/noisefloor";
/// How long to wait for another noisefloor that needs the setting.
const PATIENCE: Duration = Duration::from_secs(120);

/// The machine's setting, for one test at a time.
struct Throttling {
    before: String,
    // The programs of these tests have journals of their own; others share the one that is locked.
    _journal: Option<File>,
    _turn: (Option<File>, MutexGuard<'static, ()>),
}

/// Locks the journal that other runs on this machine share, so that they change no setting for the time
/// of a test; `None` if they still need changed settings after a while, or without the privilege.
fn lock_shared_journal() -> Option<File> {
    let begin = Instant::now();
    let folder = Path::new(SHARED_STATE);
    let _ = fs::DirBuilder::new().mode(0o700).create(folder);
    while begin.elapsed() < PATIENCE {
        let lock = isolate::try_lock(&folder.join("lock")).ok()?;
        if lock.is_some() && !folder.join("journal.json").exists() {
            return lock;
        }
        drop(lock);
        // What killed runs have left there is restored.
        let _ = isolate::restore();
        std::thread::sleep(Duration::from_millis(100));
    }
    None
}

impl Throttling {
    /// `None`, and why, if it cannot be changed.
    fn of(test: &str) -> Option<(Self, Built)> {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = (lock_settings(), turn);
        let journal = lock_shared_journal();
        let before = fs::read_to_string(RT_RUNTIME).unwrap_or_default().trim().to_owned();
        let own = Self { before, _journal: journal, _turn: turn };
        // Others can change it neither without the privilege nor while they wait for the lock.
        if own._journal.is_none() && own._turn.0.is_some() {
            println!("skipped: {test}: another noisefloor has changed settings");
            return None;
        }
        if own.before.is_empty() || own.before == "-1" {
            println!("skipped: {test}: {RT_RUNTIME} is not there, or -1 already");
            return None;
        }
        let built = Built::new("enters.c", Way::SharedC)?;
        let tried = built.lines(&["exit"]);
        if tried.last().is_none_or(|line| line != "entered -1") {
            println!("skipped: {test}: {}", tried.join(", "));
            return None;
        }
        assert!(own.is_as_before());
        Some((own, built))
    }

    fn is_as_before(&self) -> bool {
        fs::read_to_string(RT_RUNTIME).unwrap().trim() == self.before
    }
}

impl Drop for Throttling {
    fn drop(&mut self) {
        // A failed test may have left it changed.
        if !self.is_as_before() {
            let _ = fs::write(RT_RUNTIME, &self.before);
        }
    }
}

/// Starts a program that waits; returns once it has entered.
fn waiting(built: &Built) -> Child {
    let mut program = built.command(&["wait"]);
    let mut child = program.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    let entered = lines.map_while(Result::ok).any(|line| line == "entered -1");
    assert!(entered);
    child
}

/// Check that what a program changed is restored when it returns from main without restoring it:
/// with the functions of either library, of two that are linked, shared or static.
#[test]
fn left_by_returning() {
    let Some((throttling, _)) = Throttling::of("left_by_returning") else { return };
    for way in [Way::SharedC, Way::StaticC] {
        let Some(built) = Built::new("enters.c", way) else { continue };
        for how in ["exit", "isolate"] {
            let lines = built.lines(&[how]);
            assert_eq!(lines[0], format!("began {}", throttling.before));
            assert!(lines[1].ends_with(" -1"), "{lines:?}");
            assert!(throttling.is_as_before() && built.journal_is_empty(), "{how}");
        }
    }
}

/// Check that the program in the documentation compiles, runs, and leaves no setting changed.
#[test]
fn example() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(here.join("../../docs/c.md")).unwrap();
    let program = fs::read_to_string(here.join("tests/programs/example.c")).unwrap();
    assert!(page.contains(&format!("```c\n{program}```\n")));
    let Some((throttling, _)) = Throttling::of("example") else { return };
    let Some(built) = Built::new("example.c", Way::SharedC) else { return };
    let output = built.run(&[]);
    let report = text(&output.stdout);
    assert!(output.status.success(), "{report}{}", text(&output.stderr));
    assert!(report.contains(" lost "), "{report}{}", text(&output.stderr));
    assert!(throttling.is_as_before() && built.journal_is_empty());
}

/// Check that calls of nohz_enter are counted, and that an extra nohz_exit does nothing.
#[test]
fn entered_twice() {
    let Some((throttling, built)) = Throttling::of("entered_twice") else { return };
    let was = &throttling.before;
    let expected = [
        &format!("began {was}"),
        "entered -1",
        "entered -1",
        "once -1",
        &format!("exited {was}"),
        "entered -1",
    ];
    assert_eq!(built.lines(&["twice"]), expected);
    assert!(throttling.is_as_before() && built.journal_is_empty());
}

/// Check that a handler of SIGINT may call nohz_exit, as in programs written for TIF.
#[test]
fn ended_by_a_handler() {
    let Some((throttling, built)) = Throttling::of("ended_by_a_handler") else { return };
    let mut child = waiting(&built);
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert!(child.wait().unwrap().success());
    assert!(throttling.is_as_before() && built.journal_is_empty());
}

/// Check that a child that calls nohz_exit and exit changes nothing for its parent.
#[test]
fn forked() {
    let Some((throttling, built)) = Throttling::of("forked") else { return };
    let lines = built.lines(&["fork"]);
    assert_eq!(lines[1..], ["entered -1", "forked -1"]);
    assert!(throttling.is_as_before() && built.journal_is_empty());
}

/// Check that settings left behind by a killed program are restored by the next one.
#[test]
fn killed() {
    let Some((throttling, built)) = Throttling::of("killed") else { return };
    let mut child = waiting(&built);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!throttling.is_as_before() && !built.journal_is_empty());
    let restored: Vec<String> = built.lines(&["restore"]);
    assert!(restored[0].starts_with("restored ") && restored[0] != "restored 0 ");
    assert!(throttling.is_as_before() && built.journal_is_empty(), "{restored:?}");
    assert_eq!(built.lines(&["restore"]), ["restored 0 "]);
}

/// Check that the last of two processes restores what the first one found, even if one of them is
/// killed.
#[test]
fn two_processes() {
    let Some((throttling, built)) = Throttling::of("two_processes") else { return };
    for kill_first in [true, false] {
        let mut children = [waiting(&built), waiting(&built)];
        if !kill_first {
            children.reverse();
        }
        let [mut gone, mut last] = children;
        gone.kill().unwrap();
        gone.wait().unwrap();
        assert!(!throttling.is_as_before());
        let pid = last.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        last.wait().unwrap();
        assert!(throttling.is_as_before() && built.journal_is_empty());
    }
}
