//! Checks that the programs of guests are the same bytes when built in another folder.
//!
//! The tracked files are copied to a folder of another name and depth, and the agent and the
//! counter are built there again, into another target directory.
//! Compiled packages of the registry are reused through links, which saves half of the time;
//! those of this workspace and libbpf, whose C is compiled in the target directory, are not. The
//! binaries are searched for the path of the registry's folder.
//!
//! Differences caused by the compiler or by the system's libraries (libc, libelf, zlib) are not
//! detected: both builds use the same.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command;
use crate::guest::{self, ARCHITECTURE};
use crate::workspace::Workspace;

/// A package of the registry that is built again for guests.
const LIBBPF: &str = "libbpf-";
/// Number of bytes shown around the first difference.
const SHOWN: usize = 24;

/// Builds the output of `guest::run` in another folder; returns a report of what was compared.
pub(crate) fn run(workspace: &Workspace) -> Result<String, String> {
    let place = workspace.target.join("bytes");
    let failed = |error: io::Error| format!("{}: {error}", place.display());
    if place.exists() {
        fs::remove_dir_all(&place).map_err(failed)?;
    }
    let other = Workspace {
        root: place.join("another folder/noisefloor"),
        target: place.join("target"),
        members: Vec::new(),
    };
    copy_tracked(&workspace.root, &other.root)?;
    // Programs of the host, and programs of guests.
    for (folder, again) in [("", None), (ARCHITECTURE.triple(), Some(LIBBPF))] {
        let [from, to] = [workspace, &other].map(|w| w.target.join(folder).join("guest"));
        take_along(&from, &to, workspace, again).map_err(failed)?;
    }
    let built = guest::parts(&other)?;
    let report = built
        .iter()
        .map(|(name, path)| compared(&workspace.target.join("lab").join(name), path));
    let report = report.collect::<Result<Vec<_>, _>>()?.join("\n");
    fs::remove_dir_all(&place).map_err(failed)?;
    Ok(report)
}

/// Copies the files that git tracks, as they are now.
fn copy_tracked(from: &Path, to: &Path) -> Result<(), String> {
    let mut git = Command::new("git");
    let files = command::output(git.current_dir(from).args(["ls-files", "-z"]))?;
    for file in files.split_terminator('\0') {
        let (from, to) = (from.join(file), to.join(file));
        let is_file = from.symlink_metadata().is_ok_and(|data| data.is_file());
        let copied = match to.parent().filter(|_| is_file) {
            Some(folder) => {
                fs::create_dir_all(folder).and_then(|()| fs::copy(&from, &to))
            }
            // Links are in fixtures only.
            None => Ok(0),
        };
        copied.map_err(|error| format!("{}: {error}", to.display()))?;
    }
    Ok(())
}

/// Links the compiled packages in a profile's folder, except those that are built again.
fn take_along(
    from: &Path,
    to: &Path,
    workspace: &Workspace,
    again: Option<&str>,
) -> io::Result<()> {
    for part in [".fingerprint", "build", "deps"] {
        for entry in fs::read_dir(from.join(part)).into_iter().flatten() {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().replace('_', "-");
            let name =
                name.strip_prefix("lib").filter(|_| part == "deps").unwrap_or(&name);
            if !is_built_again(name, workspace, again) {
                link(&entry.path(), &to.join(part).join(entry.file_name()))?;
            }
        }
    }
    Ok(())
}

/// Whether a file's name, `NAME-HASH...`, is that of a package to be built again.
fn is_built_again(file: &str, workspace: &Workspace, again: Option<&str>) -> bool {
    let is_of = |name: &str| {
        file.strip_prefix(name).and_then(|rest| rest.strip_prefix('-')).is_some()
    };
    let own = workspace.members.iter().any(|member| is_of(&member.name));
    let is_again = |again: &str| {
        // The prefix `lib` of a library may have been removed.
        let short = again.strip_prefix("lib").unwrap_or(again);
        file.starts_with(again) || file.starts_with(short)
    };
    own || again.is_some_and(is_again)
}

fn link(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        fs::create_dir_all(to.parent().unwrap_or(to))?;
        return fs::hard_link(from, to);
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        link(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Compares both files; fails with the first difference.
fn compared(here: &Path, there: &Path) -> Result<String, String> {
    let read = |path: &Path| {
        fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let [ours, theirs] = [read(here)?, read(there)?];
    let name = here.file_name().unwrap_or_default().to_string_lossy();
    if let Some(text) = difference(&ours, &theirs) {
        return Err(format!(
            "{name} is not the same bytes from another folder: {text}; compare {} and {}",
            here.display(),
            there.display()
        ));
    }
    let registry = cargo_home().join("registry").into_os_string();
    let registry = registry.as_encoded_bytes();
    match ours.windows(registry.len()).position(|bytes| bytes == registry) {
        Some(at) => {
            Err(format!("{name} has a path of this machine: {}", shown(&ours, at)))
        }
        None => Ok(format!("{name}: {} bytes, the same", ours.len())),
    }
}

/// The position of the first difference of two files, and the bytes there.
fn difference(ours: &[u8], theirs: &[u8]) -> Option<String> {
    let same = ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
    if same == ours.len() && same == theirs.len() {
        return None;
    }
    Some(format!(
        "{} and {} bytes long, they differ from byte {same:#x} on: '{}' here, '{}' there",
        ours.len(),
        theirs.len(),
        shown(ours, same),
        shown(theirs, same)
    ))
}

/// The bytes around an offset; bytes that are not text are escaped.
fn shown(bytes: &[u8], at: usize) -> String {
    let end = bytes.len().min(at + SHOWN);
    bytes[at.saturating_sub(SHOWN).min(end)..end].escape_ascii().to_string()
}

fn cargo_home() -> PathBuf {
    let own = || Some(PathBuf::from(env::var_os("HOME")?).join(".cargo"));
    env::var_os("CARGO_HOME").map(PathBuf::from).or_else(own).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the first difference is reported with its offset and both texts, also at an end.
    #[test]
    fn differences() {
        assert_eq!(difference(b"same", b"same"), None);
        let text = difference(b"at /a/src\0", b"at /b c/src\0").unwrap();
        let expected = "10 and 12 bytes long, they differ from byte 0x4 on: \
                        'at /a/src\\x00' here, 'at /b c/src\\x00' there";
        assert_eq!(text, expected);
        assert!(
            difference(b"ab", b"abc").unwrap().contains("from byte 0x2 on: 'ab' here")
        );
    }

    /// Check that a path of the registry is found in two equal files, and that a difference
    /// fails.
    #[test]
    fn comparisons() {
        let place = env::temp_dir().join(format!("xtask-bytes-{}", std::process::id()));
        fs::create_dir_all(&place).unwrap();
        let [here, there] = ["here", "there"].map(|name| place.join(name));
        let registry = cargo_home().join("registry/src/serde");
        let compared = |ours: &str, theirs: &str| {
            fs::write(&here, ours).unwrap();
            fs::write(&there, theirs).unwrap();
            super::compared(&here, &there)
        };
        assert_eq!(compared("agent", "agent"), Ok("here: 5 bytes, the same".to_owned()));
        assert!(compared("agent", "agenT").unwrap_err().contains("0x4"));
        let path = registry.to_str().unwrap();
        let error = compared(path, path).unwrap_err();
        assert!(error.contains("here has a path of this machine"), "{error}");
        fs::remove_dir_all(place).unwrap();
    }

    /// Check that packages of the registry are reused, and no others.
    #[test]
    fn built_again() {
        let mut workspace = Workspace {
            root: PathBuf::new(),
            target: PathBuf::new(),
            members: Vec::new(),
        };
        for (name, own) in
            [("serde-1f", false), ("libbpf-sys-1f", true), ("bpf-rs-1f", true)]
        {
            assert_eq!(is_built_again(name, &workspace, Some(LIBBPF)), own, "{name}");
        }
        let name = "units".to_owned();
        let (folder, roots, edges) = (PathBuf::new(), Vec::new(), Vec::new());
        workspace.members.push(crate::workspace::Member { name, folder, roots, edges });
        assert!(is_built_again("units-1f.d", &workspace, None));
        assert!(!is_built_again("libbpf-sys-1f", &workspace, None));
        assert!(!is_built_again("unicode-ident-1f", &workspace, Some(LIBBPF)));
    }
}
