//! Runs of make in a folder of its own (`folder`), with a fixed environment, so that the same inputs
//! give the same image.
//!
//! All output goes to a file, from which progress and the first error are read. The processes end
//! with this one. When it is stopped, all of them get SIGINT, and make removes the files that were
//! written, so that a later run can continue. See `Documentation/kbuild/reproducible-builds.rst` of the
//! kernel.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use isolate::{Ending, Program};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use units::CpuSet;

use crate::build::folder::Folder;
use crate::build_error::BuildError;
use crate::debian::Fetch;
use crate::error::Error;

/// The file with make's output.
pub(crate) const LOG: &str = "noisefloor-build.log";
/// The file with the CPU time of all runs for one kernel so far, in milliseconds.
pub(crate) const CPU_TIME: &str = "noisefloor-cpu-ms";
/// The interval at which a stop is noticed.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// The time until the first report of progress, and the largest interval, up to which it then doubles.
const REPORTS: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(30));
/// How long make may take to remove unfinished files.
const GRACE: Duration = Duration::from_secs(5);
/// The longest error that is quoted, in characters.
const QUOTE_MAX: usize = 300;
/// The interval at which the end of the last process is noticed.
const SURVIVORS: Duration = Duration::from_millis(10);
/// A disk with less is full.
const FREE_BYTES_MIN: u64 = 1 << 20;

/// What names the machine and the moment of a build in an image.
const FIXED: [(&str, &str); 5] = [
    ("LC_ALL", "C"),
    ("KBUILD_BUILD_TIMESTAMP", "Thu Jan  1 00:00:00 UTC 1970"),
    ("KBUILD_BUILD_USER", "noisefloor"),
    ("KBUILD_BUILD_HOST", "noisefloor"),
    ("KBUILD_BUILD_VERSION", "1"),
];
/// The variables of this process that are passed on.
const PASSED: [&str; 3] = ["PATH", "HOME", "TMPDIR"];

/// A folder in which make builds a tree.
pub(crate) struct Make<'a> {
    pub(crate) tree: &'a Path,
    pub(crate) folder: &'a Folder,
    /// The file with the options, instead of the tree's own.
    pub(crate) kconfig: Option<PathBuf>,
    pub(crate) jobs: usize,
}

impl Make<'_> {
    /// Makes a target with those variables; `what` begins lines of progress.
    ///
    /// # Errors
    /// `BuildError::Failed` with the first error, `Kind::Interrupted`.
    pub(crate) fn run(
        &self,
        args: &[String],
        what: &str,
        fetch: &mut Fetch<'_>,
    ) -> Result<(), BuildEnd> {
        let io = |error| BuildEnd::Error(BuildError::of_writing(&self.log(), error));
        let log = self.log();
        let mut file =
            File::options().create(true).append(true).open(&log).map_err(io)?;
        let begin = file.seek(SeekFrom::End(0)).map_err(io)?;
        let copies = file.try_clone().and_then(|one| Ok((one, file.try_clone()?)));
        let (out, errors) = copies.map_err(io)?;
        let mut command = self.command(args);
        command.stdout(out).stderr(errors);
        let mut program = Program::start(&mut command, &allowed(), None)
            .map_err(|error| BuildEnd::Error(BuildError::Run("make", error)))?;
        let ending = self.watch(&mut program, Progress::new(&log, begin), what, fetch)?;
        let (user, system) = (ending.usage.ru_utime, ending.usage.ru_stime);
        self.add_cpu_time(user.tv_sec + system.tv_sec, user.tv_usec + system.tv_usec);
        match (ending.status, fetch.stop.load(Ordering::Relaxed)) {
            (0, _) => Ok(()),
            (_, true) => Err(BuildEnd::Stopped),
            _ => Err(BuildEnd::Error(self.failure(&log, begin))),
        }
    }

    /// Waits for the end of make, reporting its progress, or ends it.
    fn watch(
        &self,
        program: &mut Program,
        mut progress: Progress,
        what: &str,
        fetch: &mut Fetch<'_>,
    ) -> Result<Ending, BuildEnd> {
        loop {
            match program.ended() {
                Ok(Some(ending)) => {
                    if ending.is_survived {
                        self.folder.cut();
                    }
                    return Ok(ending);
                }
                Ok(None) => {}
                Err(error) => {
                    self.folder.cut();
                    return Err(BuildEnd::Error(BuildError::Run("make", error)));
                }
            }
            if fetch.stop.load(Ordering::Relaxed) {
                if !is_stopped(program) {
                    self.folder.cut();
                }
                return Err(BuildEnd::Stopped);
            }
            if let Some(text) = progress.due() {
                (fetch.say)(&format!("{what}: {text}"));
            }
            wait(program);
        }
    }

    fn command(&self, args: &[String]) -> Command {
        let mut command = Command::new("make");
        command.stdin(Stdio::null()).process_group(0);
        isolate::receive_interrupts(&mut command);
        for (name, _) in std::env::vars_os() {
            if !PASSED.iter().any(|passed| name == *passed) {
                command.env_remove(name);
            }
        }
        command.envs(FIXED);
        command.arg("-C").arg(self.tree).arg(format!("O={}", self.folder.path.display()));
        command.args(["ARCH=x86", "LOCALVERSION=", "--no-print-directory"]);
        command.arg(format!("-j{}", self.jobs));
        if let Some(kconfig) = &self.kconfig {
            command.arg(format!("KBUILD_KCONFIG={}", kconfig.display()));
        }
        command.args(args);
        command
    }

    /// The file with make's output.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.path.join(LOG)
    }

    /// The CPU time of all runs for this kernel, interrupted ones left out.
    pub(crate) fn cpu_time(&self) -> Duration {
        let text =
            fs::read_to_string(self.folder.path.join(CPU_TIME)).unwrap_or_default();
        Duration::from_millis(text.trim().parse().unwrap_or(0))
    }

    fn add_cpu_time(&self, seconds: i64, micros: i64) {
        let millis = u64::try_from(seconds * 1000 + micros / 1000).unwrap_or(0);
        let total = self.cpu_time() + Duration::from_millis(millis);
        // Only a figure is lost if the disk is full.
        let _ = fs::write(
            self.folder.path.join(CPU_TIME),
            format!("{}\n", total.as_millis()),
        );
    }

    /// The failure of a run whose output begins at this byte of the log.
    fn failure(&self, log: &Path, begin: u64) -> BuildError {
        let text = read_from(log, begin).unwrap_or_default();
        if text.contains("No space left on device") || is_full(&self.folder.path) {
            return BuildError::Full(self.folder.path.clone());
        }
        let error = first_error(&text);
        let error = error.chars().take(QUOTE_MAX).collect();
        BuildError::Failed { error, log: log.to_owned() }
    }
}

/// Why a run of make did not succeed.
pub(crate) enum BuildEnd {
    Stopped,
    Error(BuildError),
}

impl BuildEnd {
    /// The failure to build that kernel.
    pub(crate) fn of(self, name: &str) -> Error {
        match self {
            Self::Stopped => Error::Interrupted,
            Self::Error(cause) => Error::Build(name.to_owned(), cause),
        }
    }
}

/// Ends make and all that it runs as Ctrl-C does in a terminal, upon which make removes unfinished
/// files: with SIGTERM, the compilers would survive, and write on. Returns whether all ended by
/// themselves; what remains is killed when it is dropped.
fn is_stopped(program: &mut Program) -> bool {
    program.signal_group(Signal::INT);
    let begun = Instant::now();
    let mut has_ended = false;
    while begun.elapsed() < GRACE {
        match program.ended() {
            Ok(Some(ending)) if !ending.is_survived => return true,
            Ok(Some(_)) => has_ended = true,
            Ok(None) if has_ended => thread::sleep(SURVIVORS),
            Ok(None) => wait(program),
            Err(_) => return has_ended,
        }
    }
    false
}

/// Waits for the end of make, or a moment.
fn wait(program: &Program) {
    let end = program.end();
    // A failure only makes the next look come early.
    let _ = poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&LOOK));
}

/// The CPUs of this process.
fn allowed() -> CpuSet {
    let facts = facts::Facts::read(&facts::Root::live());
    facts.cpus.allowed.get().cloned().unwrap_or_default()
}

/// The progress of a build, from make's output.
struct Progress {
    log: PathBuf,
    at: u64,
    steps: usize,
    last: String,
    next: Instant,
    interval: Duration,
}

impl Progress {
    fn new(log: &Path, at: u64) -> Self {
        let (interval, last) = (REPORTS.0, String::new());
        let next = Instant::now() + interval;
        Self { log: log.to_owned(), at, steps: 0, last, next, interval }
    }

    /// What has been made, if it is time to report it.
    fn due(&mut self) -> Option<String> {
        if Instant::now() < self.next {
            return None;
        }
        self.interval = (self.interval * 2).min(REPORTS.1);
        self.next = Instant::now() + self.interval;
        self.read();
        (self.steps > 0).then(|| format!("{} files made, now {}", self.steps, self.last))
    }

    /// Reads the complete lines that make has added: `  CC      kernel/fork.o`.
    fn read(&mut self) {
        let Some(text) = read_from(&self.log, self.at) else { return };
        let Some(end) = text.rfind('\n') else { return };
        self.at += end as u64 + 1;
        for line in text[..end].lines().filter(|line| line.starts_with("  ")) {
            self.steps += 1;
            if let Some(file) = line.split_whitespace().nth(1) {
                self.last = file.to_owned();
            }
        }
    }
}

fn read_from(file: &Path, at: u64) -> Option<String> {
    let mut file = File::open(file).ok()?;
    file.seek(SeekFrom::Start(at)).ok()?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The first error in make's output: the compiler's, the linker's, or make's own.
pub(crate) fn first_error(text: &str) -> &str {
    const OF_COMPILER: [&str; 3] = ["error:", "Error:", "undefined reference"];
    const OF_MAKE: [&str; 2] = ["not found", "*** "];
    let with = |signs: &[&str]| {
        text.lines().find(|line| signs.iter().any(|sign| line.contains(sign)))
    };
    let line = with(&OF_COMPILER).or_else(|| with(&OF_MAKE));
    line.or_else(|| text.lines().last()).unwrap_or("make printed no reason").trim()
}

fn is_full(folder: &Path) -> bool {
    let free = |folder: &Path| {
        let stat = rustix::fs::statvfs(folder).ok()?;
        Some(stat.f_bavail.saturating_mul(stat.f_frsize))
    };
    free(folder).is_some_and(|free| free < FREE_BYTES_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the first error is quoted, from any program.
    #[test]
    fn errors() {
        let compiler = "  CC      a.o\n./include/linux/jiffies.h:44:3: error: #error Invalid \
                        value of HZ.\n   44 | # error\nmake[1]: *** [a.o] Error 1\n";
        let expected =
            "./include/linux/jiffies.h:44:3: error: #error Invalid value of HZ.";
        assert_eq!(first_error(compiler), expected);
        let shell = "  LEX     x\n/bin/sh: 1: flex: not found\nmake: *** [x] Error 127\n";
        assert_eq!(first_error(shell), "/bin/sh: 1: flex: not found");
        assert_eq!(
            first_error("make: *** No rule.  Stop.\n"),
            "make: *** No rule.  Stop."
        );
        assert_eq!(first_error(""), "make printed no reason");
    }

    /// Check that progress counts complete lines, and names the last file.
    #[test]
    fn counts_files() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        fs::write(&log, "make: x\n  CC      a.o\n  LD      b.o\n  CC      c").unwrap();
        let mut progress = Progress::new(&log, 8);
        progress.read();
        assert_eq!((progress.steps, progress.last.as_str()), (2, "b.o"));
        fs::write(&log, "make: x\n  CC      a.o\n  LD      b.o\n  CC      c.o\n")
            .unwrap();
        progress.read();
        assert_eq!((progress.steps, progress.last.as_str()), (3, "c.o"));
        assert_eq!(progress.due(), None);
    }
}
