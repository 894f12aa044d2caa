//! The processes of the live machine that have a file open.
//!
//! From the links in `/proc/PID/fd` (`man proc_pid_fd`), which root or a process with
//! `CAP_SYS_PTRACE` can read for all processes. Not visible are processes outside of this PID
//! namespace, and requests of drivers, which need no file.

use std::ffi::CString;
use std::fs;
use std::io;

use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, openat, readlinkat};
use rustix::io::Errno;

/// The folders with the links.
pub(crate) const FOLDERS: &str = "/proc/*/fd";
/// A process that always exists: if it is not visible, others are hidden as well (`hidepid=`).
const INIT: &str = "1";

/// The processes that have this file open, without this one, as `NAME (PID)`, sorted. Those that
/// cannot be read are missing; an error if there are such processes, and none is found.
pub(crate) fn holders(path: &str) -> io::Result<Vec<String>> {
    let own = std::process::id().to_string();
    let mut found = Vec::new();
    let is_hidden = links(INIT).is_ok_and(|links| links.is_none());
    let mut refused = is_hidden.then_some(Errno::ACCESS);
    for entry in fs::read_dir("/proc")? {
        let Ok(process) = entry?.file_name().into_string() else { continue };
        let is_number = process.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number || process == own {
            continue;
        }
        match links(&process).and_then(|links| has_link(links, path)) {
            Ok(true) => found.push(named(&process)),
            Ok(false) => {}
            Err(error) => refused = Some(error),
        }
    }
    found.sort();
    match refused {
        Some(error) if found.is_empty() => Err(error.into()),
        Some(_) | None => Ok(found),
    }
}

fn named(process: &str) -> String {
    let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    format!("{} ({process})", name.trim_end())
}

/// The folder with a process's links; `None` if the process has ended, or is not visible.
fn links(process: &str) -> Result<Option<Dir>, Errno> {
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = openat(CWD, format!("/proc/{process}/fd"), how, Mode::empty());
    if_running(folder.and_then(Dir::new))
}

/// Whether one of the links in a folder leads to this file.
fn has_link(links: Option<Dir>, path: &str) -> Result<bool, Errno> {
    let Some(mut links) = links else { return Ok(false) };
    let mut target = Vec::new();
    while let Some(entry) = links.read() {
        let Some(entry) = if_running(entry)? else { break };
        // `.` and `..`.
        if entry.file_type() != FileType::Symlink {
            continue;
        }
        let link = readlinkat(links.fd()?, entry.file_name(), target);
        target = if_running(link)?.map(CString::into_bytes).unwrap_or_default();
        if target == path.as_bytes() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `None` if the process or the file has been closed meanwhile.
fn if_running<T>(result: Result<T, Errno>) -> Result<Option<T>, Errno> {
    match result {
        Err(Errno::NOENT | Errno::SRCH) => Ok(None),
        other => other.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::process::{Command, Stdio};

    use super::*;

    /// Check that another process is found by a file that it has open, and this one is not.
    #[test]
    fn other_processes() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        let others = || match holders(path) {
            // Not all processes can be read here.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => Vec::new(),
            found => found.unwrap(),
        };
        assert_eq!(others(), Vec::<String>::new());
        let input = Stdio::from(file.reopen().unwrap());
        let mut child = Command::new("sleep").arg("60").stdin(input).spawn().unwrap();
        let found = others();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, [format!("sleep ({})", child.id())]);
    }
}
