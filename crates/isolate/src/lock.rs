//! Locks that end with the process that holds them, however it ends (`flock(2)`).
//!
//! A lock is tried over and over rather than waited for in the kernel: so a wait can be reported
//! and ends on a signal. The process that holds a lock is found in `/proc/locks`
//! (`proc_locks(5)`), unless it is in another PID namespace.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use facts::acquire_lock;
use rustix::fs::{Mode, OFlags};
use rustix::thread::{NanosleepRelativeResult, nanosleep};

use crate::task::described;

/// A lock is tried again after this, and after twice as long each time up to `TRY_MAX`.
const TRY_MIN: Duration = Duration::from_millis(1);
const TRY_MAX: Duration = Duration::from_millis(50);
/// A wait is reported after this.
const REPORT: Duration = Duration::from_secs(1);
/// How long a program waits that has not said how waits are reported.
const SILENT_MAX: Duration = Duration::from_secs(10);

/// What a program does while it waits for a lock.
#[derive(Debug, Clone, Copy)]
pub struct LockWait {
    /// Reports the wait, once, after a second: a sentence without a period.
    pub report: fn(&str),
    /// Whether the program was asked to stop.
    pub is_stopped: fn() -> bool,
}

static LOCK_WAIT: OnceLock<LockWait> = OnceLock::new();

/// Says what is done while this program waits for a lock; the first call counts. With it, a wait
/// is as long as the lock is held, and a signal that has a handler ends it. Without it (a C
/// program that uses the library), nothing is reported, and a wait fails after ten seconds.
pub fn on_lock_wait(wait: LockWait) {
    let _ = LOCK_WAIT.set(wait);
}

/// Waits for the lock of that file; `what` is it that the file protects.
///
/// # Errors
/// `Interrupted`, `TimedOut`; those of [`try_lock`].
pub(crate) fn lock(file: File, what: &str) -> io::Result<File> {
    let wait = LOCK_WAIT.get();
    let is_stopped = || wait.is_some_and(|wait| (wait.is_stopped)());
    let (began, was_stopped) = (Instant::now(), is_stopped());
    let (mut pause, mut is_reported) = (TRY_MIN, false);
    while !acquire_lock(&file)? {
        let is_late = |limit| began.elapsed() >= limit;
        if wait.is_none() && is_late(SILENT_MAX) {
            return Err(io::Error::new(ErrorKind::TimedOut, held(&file, what)));
        }
        if let Some(wait) = wait.filter(|_| !is_reported && is_late(REPORT)) {
            (wait.report)(&format!("waiting: {}", held(&file, what)));
            is_reported = true;
        }
        let is_interrupted = is_interrupted(pause) && wait.is_some();
        if is_interrupted || is_stopped() && !was_stopped {
            let text = format!("{}; interrupted while waiting", held(&file, what));
            return Err(io::Error::new(ErrorKind::Interrupted, text));
        }
        pause = TRY_MAX.min(pause * 2);
    }
    Ok(file)
}

/// The lock of that file, which is created if need be; `None` where another process has it.
///
/// # Errors
/// The file cannot be opened, or not be locked: in words where the kernel has no file locks.
pub fn try_lock(path: &Path) -> io::Result<Option<File>> {
    // For reading: a file system may become read-only meanwhile. Other users could lock what
    // they can open.
    let flags = OFlags::RDONLY | OFlags::CREATE | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?);
    Ok(acquire_lock(&file)?.then_some(file))
}

/// Sleeps; whether a signal's handler ended that.
fn is_interrupted(pause: Duration) -> bool {
    let Ok(pause) = pause.try_into() else { return false };
    matches!(nanosleep(&pause), NanosleepRelativeResult::Interrupted(_))
}

/// Which process holds the lock of that file.
fn held(file: &File, what: &str) -> String {
    let Some(process) = owner(file) else {
        return format!("another process holds {what}");
    };
    format!("{} holds {what}", described(process))
}

/// The process that holds the lock of that file, as `/proc/locks` has it:
/// `1: FLOCK  ADVISORY  WRITE 708 00:13:548 0 EOF`.
fn owner(file: &File) -> Option<u32> {
    let about = file.metadata().ok()?;
    let (major, minor) = (rustix::fs::major(about.dev()), rustix::fs::minor(about.dev()));
    let place = format!("{major:02x}:{minor:02x}:{}", about.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let line = locks.lines().find(|line| {
        let mut fields = line.split_ascii_whitespace();
        fields.nth(1) == Some("FLOCK") && fields.nth(3) == Some(place.as_str())
    });
    line?.split_ascii_whitespace().nth(4)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    use crate::settings::journal::Journal;

    /// Keeps this thread from `flock(2)`, which the kernel then answers with ENOSYS, as one
    /// without `CONFIG_FILE_LOCKING` does: a seccomp filter (`seccomp(2)`), which ends with the
    /// thread. False where the kernel has no such filters.
    fn without_locks() -> bool {
        let statement = |code: u32, value| libc::sock_filter {
            code: u16::try_from(code).unwrap(),
            jt: 0,
            jf: 0,
            k: value,
        };
        let flock = u32::try_from(libc::SYS_flock).unwrap();
        let enosys = libc::SECCOMP_RET_ERRNO | u32::try_from(libc::ENOSYS).unwrap();
        let mut filter = [
            // The number of the system call is the first of what a filter sees.
            statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
            libc::sock_filter {
                jf: 1,
                ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, flock)
            },
            statement(libc::BPF_RET | libc::BPF_K, enosys),
            statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog { len: 4, filter: filter.as_mut_ptr() };
        // SAFETY: takes numbers only.
        let is_bound = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } == 0;
        let (set, mode) = (libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER);
        // SAFETY: the kernel copies the program, which outlives the call.
        is_bound && unsafe { libc::prctl(set, mode, &raw const program) } == 0
    }

    /// Check that a kernel without file locks is named as the reason, by each lock and by the
    /// journal, and that another folder is not proposed.
    #[test]
    fn kernels_without_locks() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lock");
        thread::scope(|scope| {
            let refused = scope.spawn(|| {
                if !without_locks() {
                    println!(
                        "skipped: this kernel has no filters of system calls (seccomp)"
                    );
                    return;
                }
                let open = fs::File::create(&file).unwrap();
                let refused = lock(open, "a test").unwrap_err();
                for error in [refused, try_lock(&file).unwrap_err()] {
                    assert_eq!(error.kind(), ErrorKind::Unsupported);
                    assert!(error.to_string().contains("CONFIG_FILE_LOCKING"), "{error}");
                }
                let state = crate::settings::state::State::create(folder.path()).unwrap();
                let why = units::chain(&Journal::open(&state).unwrap_err());
                assert!(why.contains("CONFIG_FILE_LOCKING"), "{why}");
                assert!(!why.contains("names another folder"), "{why}");
            });
            refused.join().unwrap();
        });
        // The filter was the thread's alone.
        assert!(try_lock(&file).unwrap().is_some());
    }

    /// Check that the process that holds a lock is named.
    #[test]
    fn owners_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lock");
        let _held = try_lock(&file).unwrap().unwrap();
        let other = File::open(&file).unwrap();
        assert!(!acquire_lock(&other).unwrap());
        assert_eq!(owner(&other), Some(std::process::id()));
        let text = held(&other, "the journal");
        assert!(text.contains(&format!("process {} (", std::process::id())), "{text}");
    }
}
