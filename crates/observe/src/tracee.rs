//! What a traced thread means by a path: its text, and the directory that it belongs to (proc(5)).

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use libc::pid_t;

use crate::ptrace;

/// A page of memory, in bytes: what follows it may not exist.
const PAGE: u64 = 4096;
/// The longest path (`PATH_MAX`).
const PATH_MAX: usize = 4096;

/// The text at an address.
pub(crate) fn path(id: pid_t, address: u64) -> io::Result<PathBuf> {
    let (mut text, mut at) = (Vec::new(), address);
    let mut buffer = [0; PATH_MAX];
    while text.len() < PATH_MAX {
        let left = usize::try_from(PAGE - at % PAGE).unwrap_or(PATH_MAX);
        let read = ptrace::read(id, at, &mut buffer[..left.min(PATH_MAX)])?;
        let part = &buffer[..read];
        match part.iter().position(|&byte| byte == 0) {
            Some(end) => {
                text.extend(&part[..end]);
                return Ok(OsString::from_vec(text).into());
            }
            None if read == 0 => break,
            None => text.extend(part),
        }
        at += read as u64;
    }
    Err(io::ErrorKind::InvalidData.into())
}

/// The flags at the beginning of a structure `open_how`.
pub(crate) fn open_flags(id: pid_t, address: u64) -> io::Result<i32> {
    let mut flags = [0; 8];
    ptrace::read(id, address, &mut flags)?;
    let flags = u64::from_le_bytes(flags);
    Ok(i32::try_from(flags & 0x7fff_ffff).unwrap_or_default())
}

/// The working directory of a thread.
pub(crate) fn folder(id: pid_t) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/{id}/cwd"))
}

/// What a descriptor of a thread is open for.
pub(crate) fn opened(id: pid_t, descriptor: i32) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/{id}/fd/{descriptor}"))
}

/// The name of a process; `None` for its other threads, and if it has ended.
pub(crate) fn process_name(id: pid_t) -> Option<String> {
    let status = fs::read(format!("/proc/{id}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.strip_prefix(':').map(str::trim)
    };
    let is_process = field("Tgid") == Some(id.to_string().as_str());
    let has_ended = field("State").is_some_and(|state| state.starts_with(['Z', 'X']));
    field("Name").filter(|_| is_process && !has_ended).map(str::to_owned)
}
