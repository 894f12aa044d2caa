//! Real programs: what they used is what their command lines say, and they end with their observation.

#![allow(clippy::unwrap_used, reason = "a test ends at what it does not expect")]

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use observe::{
    Contents, Ended, Error, FileUse, Kind, Node, Observation, Request, observe,
};
use tempfile::TempDir;

/// More than a program of these tests takes on a busy machine.
const LONG: Duration = Duration::from_secs(120);
const SIGKILL: i32 = 9;
const IGNORED: [&str; 4] = ["/dev", "/proc", "/run", "/sys"];

/// A folder for a program.
struct Site {
    _folder: TempDir,
    root: PathBuf,
    stop: AtomicBool,
}

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        Self { _folder: folder, root, stop: AtomicBool::new(false) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn run(
        &self,
        program: &Path,
        words: &[&str],
        limit: Duration,
    ) -> Result<Observation, Error> {
        let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
        let environment = [("PATH", "/usr/bin:/bin"), ("WHO", "you")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let request = Request {
            program,
            arguments: &arguments,
            environment: &environment,
            folder: &self.root,
            ignored: &IGNORED,
            limit,
            contents_max: 1 << 20,
            stop: &self.stop,
        };
        observe(&request, &mut |_, _| {})
    }

    /// What a line of a shell used.
    fn shell(&self, line: &str) -> Observation {
        self.run(Path::new("/bin/sh"), &["sh", "-c", line], LONG).unwrap()
    }

    fn used<'a>(&self, observation: &'a Observation, name: &str) -> &'a FileUse {
        let used = observation.files.get(&self.path(name));
        used.unwrap_or_else(|| panic!("{name} is not in {observation:?}"))
    }
}

fn stored(text: &str) -> Contents {
    Contents::Stored(text.as_bytes().to_vec())
}

/// Check that programs, libraries, files, links and names that do not exist are found, in whichever
/// process they are used.
#[test]
fn pipelines() {
    let site = Site::new();
    fs::create_dir(site.path("d")).unwrap();
    fs::write(site.path("d/file"), "text\n").unwrap();
    symlink("d/file", site.path("link")).unwrap();
    let seen = site.shell(
        "cat link none 2>&1 | wc -c; cd d; ls . >/dev/null; cat ../d/file; echo $WHO",
    );
    assert_eq!(seen.ended, Ended::Exited(0));
    assert!(
        seen.output.ends_with(b"text\nyou\n"),
        "{:?}",
        String::from_utf8_lossy(&seen.output)
    );
    assert!(site.used(&seen, "d/file").is_opened);
    let looked = site.shell("test -e d/file");
    let looked = site.used(&looked, "d/file");
    assert!(looked.is_used && !looked.is_opened);
    assert_eq!(site.used(&seen, "none").node, Node::Missing);
    assert_eq!(seen.links[&site.path("link")], Path::new("d/file"));
    let names: Vec<_> =
        seen.listings[&site.path("d")].iter().map(|one| &one.name).collect();
    assert_eq!(names, ["file"]);
    let executed: Vec<_> =
        seen.executed.iter().filter_map(|path| path.file_name()?.to_str()).collect();
    for program in ["sh", "cat", "wc", "ls"] {
        assert!(executed.contains(&program), "{executed:?}");
    }
    let is_library =
        |path: &PathBuf| path.as_os_str().as_bytes().ends_with(b"/libc.so.6");
    assert!(seen.files.iter().any(|(path, used)| is_library(path) && used.is_used));
    assert!(seen.above.is_empty() && seen.outlived.is_empty());
    assert!(!seen.files.keys().any(|path| path.starts_with("/dev")));
}

/// Check that files are stored as they were before the program changed, replaced, renamed or removed
/// them, and that its own files are none that were there.
#[test]
fn changes() {
    let site = Site::new();
    for name in ["appended", "replaced", "moved", "removed", "read"] {
        fs::write(site.path(name), name).unwrap();
    }
    fs::create_dir(site.path("old")).unwrap();
    fs::write(site.path("old/in"), "in").unwrap();
    let seen = site.shell(
        "echo more >> appended; echo new > replaced; mv moved other; rm -f removed; \
         cat read; echo more > read; echo own > own; cat own other; mkdir folder; \
         echo x > folder/x; cat folder/x; mv old new; cat new/in",
    );
    assert_eq!(seen.ended, Ended::Exited(0), "{}", String::from_utf8_lossy(&seen.output));
    assert_eq!(site.used(&seen, "appended").contents, stored("appended"));
    assert_eq!(site.used(&seen, "moved").contents, stored("moved"));
    assert_eq!(site.used(&seen, "read").contents, stored("read"));
    assert_eq!(site.used(&seen, "old/in").contents, stored("in"));
    assert!(site.used(&seen, "own").is_created && site.used(&seen, "folder").is_created);
    assert!(site.used(&seen, "replaced").is_replaced);
    assert!(!site.used(&seen, "read").is_replaced);
    for own in ["own", "other", "folder"] {
        assert_eq!(site.used(&seen, own).node, Node::Missing, "{own}");
    }
    assert!(
        !seen.files.contains_key(&site.path("folder/x"))
            || site.used(&seen, "folder/x").node == Node::Missing
    );
}

/// Check that paths from the root, and those above the folder, are noted.
#[test]
fn names() {
    let site = Site::new();
    let inner = site.path("inner");
    fs::create_dir(&inner).unwrap();
    fs::create_dir(site.path("data")).unwrap();
    fs::write(site.path("data/file"), "").unwrap();
    let inner = Site { root: inner, ..site };
    let above = inner.root.parent().unwrap().join("data");
    let seen = inner.shell("cat ../data/file");
    assert!(seen.above.contains(&above), "{:?}", seen.above);
    assert!(!seen.names_folder);
    let seen = inner.shell(&format!("test -e {}/x", inner.root.display()));
    assert!(seen.names_folder);
}

/// Check that a program which does not end is killed, with everything that it started, and that what
/// it used until then is known.
#[test]
fn endings() {
    let site = Site::new();
    let run =
        |line: &str, limit| site.run(Path::new("/bin/sh"), &["sh", "-c", line], limit);
    let begin = Instant::now();
    let seen = run("sleep 1000 & sleep 2000", Duration::from_millis(500)).unwrap();
    assert_eq!(seen.ended, Ended::TooLong);
    assert!(seen.executed.iter().any(|path| path.ends_with("sleep")));
    let seen = site.shell("(trap '' HUP TERM; exec sleep 3000) & exit 3");
    assert_eq!(seen.ended, Ended::Exited(3));
    assert_eq!(seen.outlived.len(), 1, "{:?}", seen.outlived);
    assert_eq!(site.shell("kill -9 $$").ended, Ended::Killed(SIGKILL));
    // One that stops itself waits for SIGCONT.
    let seen = site.shell("(sleep 0.2; kill -CONT $$) & kill -STOP $$; wait; exit 4");
    assert_eq!(seen.ended, Ended::Exited(4));
    assert!(begin.elapsed() < LONG);
    site.stop.store(true, Ordering::Relaxed);
    let why = run("sleep 1000", LONG).unwrap_err();
    assert_eq!(why.kind(), Kind::Interrupted);
}

/// Check that a program without a format, and one that does not exist, have the kernel's reason.
#[test]
fn failures() {
    let site = Site::new();
    fs::write(site.path("text"), "no program\n").unwrap();
    fs::set_permissions(site.path("text"), fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["text", "none"] {
        let why = site.run(&site.path(name), &[name], LONG).unwrap_err();
        assert_eq!(why.kind(), Kind::Program, "{why}");
    }
}

/// Compiles a program; false, with the reason printed, where that is not possible.
fn compile(site: &Site, options: &[&str], source: &str) -> bool {
    fs::write(site.path("program.c"), source).unwrap();
    let mut compiler = Command::new("cc");
    compiler.current_dir(&site.root).args(options).args(["-o", "program", "program.c"]);
    let is_built = compiler.output().is_ok_and(|output| output.status.success());
    if !is_built {
        println!("skipped: no cc for {options:?}");
    }
    is_built
}

/// Check that static programs, threads, vfork and a thread that becomes another program are followed.
#[test]
fn processes() {
    let site = Site::new();
    let source = "#include <fcntl.h>\n#include <pthread.h>\n#include <unistd.h>\n#include <sys/wait.h>\n\
        static void *start(void *path) { open(path, O_RDONLY); return 0; }\n\
        static void *become(void *path) { execl(\"/bin/cat\", \"cat\", path, (char *)0); return 0; }\n\
        int main(void) { pthread_t a; pthread_create(&a, 0, start, \"of-thread\"); pthread_join(a, 0);\n\
        if (vfork() == 0) { execl(\"/bin/cat\", \"cat\", \"of-vfork\", (char *)0); _exit(1); }\n\
        wait(0); pthread_create(&a, 0, become, \"of-exec\"); pause(); return 0; }\n";
    if !compile(&site, &["-static", "-pthread", "-w"], source) {
        return;
    }
    for name in ["of-thread", "of-vfork", "of-exec"] {
        fs::write(site.path(name), name).unwrap();
    }
    let seen = site.run(&site.path("program"), &["./program"], LONG).unwrap();
    assert_eq!(seen.ended, Ended::Exited(0));
    assert_eq!(String::from_utf8_lossy(&seen.output), "of-vforkof-exec");
    for name in ["of-thread", "of-vfork", "of-exec"] {
        assert!(site.used(&seen, name).is_used, "{name}");
    }
    assert!(site.used(&seen, "program").is_executed);
}

/// Check that the calls of a 32-bit program do not end the observation.
#[test]
fn foreign_calls() {
    let site = Site::new();
    let source =
        "void _start(void) { __asm__ volatile (\"int $0x80\" :: \"a\"(1), \"b\"(7)); }\n";
    if !compile(&site, &["-m32", "-static", "-nostdlib", "-w"], source) {
        return;
    }
    let seen = site.run(&site.path("program"), &["./program"], LONG).unwrap();
    assert_eq!(seen.ended, Ended::Exited(7));
}
