//! Processes that this one starts and answers for: they end with it, and cannot fill a
//! disk.
//!
//! `prctl(2)` `PR_SET_PDEATHSIG` is tied to the thread that starts the process: that
//! thread must live as long as the process is needed. `setrlimit(2)` `RLIMIT_FSIZE`.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Lets the command's process be killed when the calling thread ends, however it does,
/// keeps Ctrl-C from it, and lets it write no file longer than `file_bytes_max`: the
/// attempt ends it with `SIGXFSZ`.
pub fn tether(command: &mut Command, file_bytes_max: u64) {
    let parent = std::process::id();
    command.process_group(0);
    // SAFETY: between fork and exec only async-signal-safe calls are made, on memory that
    // was there before.
    unsafe { command.pre_exec(move || bind(parent, file_bytes_max)) };
}

fn bind(parent: u32, file_bytes_max: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: file_bytes_max, rlim_max: file_bytes_max };
    // SAFETY: takes numbers only.
    let bound = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    // SAFETY: `limit` outlives the call, which only reads it.
    let limited = unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
    if bound != 0 || limited != 0 {
        return Err(io::Error::last_os_error());
    }
    // The parent may have ended before it could be tied to.
    if std::os::unix::process::parent_id() != parent {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    /// Check that a process ends with the thread that started it.
    #[test]
    fn ends_with_its_thread() {
        let start = || {
            let mut sleep = Command::new("sleep");
            tether(sleep.arg("1000"), u64::MAX);
            sleep.spawn().unwrap()
        };
        let mut child = std::thread::spawn(start).join().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    }

    /// Check that a process that writes too much is ended, its file as long as allowed.
    #[test]
    fn files_are_bounded() {
        let file = std::env::temp_dir().join(format!("tether-{}", std::process::id()));
        let mut fill = Command::new("sh");
        fill.args(["-c", "exec head -c 100000 /dev/zero >\"$0\""]).arg(&file);
        tether(&mut fill, 5000);
        let status = fill.status().unwrap();
        let length = std::fs::metadata(&file).unwrap().len();
        std::fs::remove_file(&file).unwrap();
        assert_eq!((status.signal(), length), (Some(libc::SIGXFSZ), 5000));
    }
}
