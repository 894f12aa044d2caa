//! File locks (`flock(2)`), which the kernel releases when their process ends for any reason.
//!
//! Waiting is a loop of attempts rather than a blocking call, so that a wait can be reported and is
//! ended by a signal. The owner of a lock is looked up in `/proc/locks` (`proc_locks(5)`), which
//! does not list processes in other PID namespaces.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use facts::acquire_lock;
use rustix::fs::{Mode, OFlags};

use crate::task::describe_process;

/// The delay before the second attempt; it doubles with each attempt up to `TRY_MAX`.
const TRY_MIN: Duration = Duration::from_millis(1);
const TRY_MAX: Duration = Duration::from_millis(50);
/// A wait is reported after this time.
const REPORT_AFTER: Duration = Duration::from_secs(1);
/// The timeout if no [`LockWait`] is set.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// A wait that other signals do not end is ended by a signal after this time,
const LATE: Duration = Duration::from_secs(5);
/// if it is this one or a later one.
const INSISTENT: u32 = 3;

/// How a program waits for a lock.
#[derive(Debug, Clone, Copy)]
pub struct LockWait {
    /// Reports the wait once, after a second: a sentence without a period.
    pub report: fn(&str),
    /// The number of signals so far that request the program to stop.
    pub signals: fn() -> u32,
}

/// Which signals end a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndedBy {
    /// Any, also one before the wait.
    Any,
    /// The third during the wait, if that takes seconds: settings would stay changed.
    Third,
}

static LOCK_WAIT: OnceLock<LockWait> = OnceLock::new();

/// Sets how this program waits for locks; only the first call has an effect. With it, a wait has
/// no timeout, and a signal ends it. Without it (a C program that uses the library), nothing is
/// reported, and a wait fails after ten seconds.
pub fn on_lock_wait(wait: LockWait) {
    let _ = LOCK_WAIT.set(wait);
}

/// Waits for the lock of a file; `what` describes what it protects.
///
/// # Errors
/// `Interrupted`, `TimedOut`; those of [`try_lock`].
pub(crate) fn lock(file: File, what: &str, ended_by: EndedBy) -> io::Result<File> {
    let wait = LOCK_WAIT.get();
    let signals = || wait.map_or(0, |wait| (wait.signals)());
    let (began, before) = (Instant::now(), signals());
    let (mut pause, mut is_reported, mut when_late) = (TRY_MIN, false, None);
    while !acquire_lock(&file)? {
        let is_late = |limit| began.elapsed() >= limit;
        if wait.is_none() && is_late(TIMEOUT_DEFAULT) {
            return Err(io::Error::new(ErrorKind::TimedOut, holder(&file, what)));
        }
        if let Some(wait) = wait.filter(|_| !is_reported && is_late(REPORT_AFTER)) {
            (wait.report)(&format!("waiting: {}", holder(&file, what)));
            is_reported = true;
        }
        if is_late(LATE) {
            when_late.get_or_insert_with(signals);
        }
        let is_ended = match ended_by {
            EndedBy::Any => signals() > 0,
            EndedBy::Third => {
                when_late.is_some_and(|then| signals() > then)
                    && signals() - before >= INSISTENT
            }
        };
        if is_ended {
            let text = format!("{}; interrupted while waiting", holder(&file, what));
            return Err(io::Error::new(ErrorKind::Interrupted, text));
        }
        std::thread::sleep(pause);
        pause = TRY_MAX.min(pause * 2);
    }
    Ok(file)
}

/// Acquires the lock of a file, which is created if needed; `None` if another process holds it.
///
/// # Errors
/// The file cannot be opened or locked; the message says if the kernel has no file locks.
pub fn try_lock(path: &Path) -> io::Result<Option<File>> {
    // Read-only access: the file system may become read-only later. Only the owner can open the
    // file, since any process that can open it could lock it.
    let flags = OFlags::RDONLY | OFlags::CREATE | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?);
    Ok(acquire_lock(&file)?.then_some(file))
}

/// Acquires the lock of a folder (not of a link to one); `None` if another process holds it. Unlike a
/// file in the folder, it does not have to be created, and what empties the folder keeps it.
///
/// # Errors
/// As for [`try_lock`].
pub fn try_lock_folder(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    Ok(acquire_lock(&folder)?.then_some(folder))
}

/// Describes the process that holds the lock of a file.
fn holder(file: &File, what: &str) -> String {
    let Some(process) = owner(file) else {
        return format!("another process holds {what}");
    };
    format!("{} holds {what}", describe_process(process))
}

/// The process that holds the lock of a file, from `/proc/locks`:
/// `1: FLOCK  ADVISORY  WRITE 708 00:13:548 0 EOF`.
fn owner(file: &File) -> Option<u32> {
    let metadata = file.metadata().ok()?;
    let (major, minor) =
        (rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
    let inode = format!("{major:02x}:{minor:02x}:{}", metadata.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let line = locks.lines().find(|line| {
        let mut fields = line.split_ascii_whitespace();
        fields.nth(1) == Some("FLOCK") && fields.nth(3) == Some(inode.as_str())
    });
    line?.split_ascii_whitespace().nth(4)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    use crate::settings::journal::Journal;

    /// Makes `flock(2)` of this thread fail with ENOSYS, as in a kernel without
    /// `CONFIG_FILE_LOCKING`, by a seccomp filter (`seccomp(2)`), which ends with the thread.
    /// Returns false if the kernel does not support such filters.
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
            // Load the number of the system call, the first field of the filter's input.
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

    /// Check that all lock errors of a kernel without file locks name that reason, and do not
    /// suggest another directory.
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
                let refused = lock(open, "a test", EndedBy::Any).unwrap_err();
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
        // The filter applies to that thread only.
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
        let text = holder(&other, "the journal");
        assert!(text.contains(&format!("process {} (", std::process::id())), "{text}");
    }
}
