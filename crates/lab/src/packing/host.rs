//! This machine's files: programs in `PATH`, and the folders of libraries.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::pack_error::PackError;

/// The bits of a mode that allow execution.
const EXECUTE: u32 = 0o111;
/// The permissions in `st_mode`.
pub(super) const PERMISSIONS: u32 = 0o7777;
/// The dynamic linker's list of folders (ldconfig(8)).
const CONFIGURATION: &str = "/etc/ld.so.conf";
/// A configuration that includes itself is not read further than this.
const DEPTH_MAX: u32 = 8;
/// The folders that a dynamic linker searches without a configuration: of Debian's, and of
/// others'.
pub(super) const USUAL: [&str; 6] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

/// Whether a program can be executed there.
pub(super) fn is_program(path: &Path) -> bool {
    refuse_program(path).is_ok()
}

/// Why that is no program, if it is none.
pub(super) fn refuse_program(path: &Path) -> Result<(), PackError> {
    let owned = || path.to_owned();
    match fs::metadata(path) {
        Err(why) if why.kind() == ErrorKind::NotFound => Err(PackError::NoFile(owned())),
        Err(why) => Err(PackError::Read(owned(), why)),
        Ok(about) if !about.is_file() => Err(PackError::NotFile(owned())),
        Ok(about) if about.permissions().mode() & EXECUTE == 0 => {
            Err(PackError::NotExecutable(owned()))
        }
        Ok(_) => Ok(()),
    }
}

/// The first program of that name in folders that are separated by colons.
pub(super) fn find(name: &str, path: &str) -> Option<PathBuf> {
    let folders = path.split(':').filter(|folder| folder.starts_with('/'));
    folders.map(|folder| Path::new(folder).join(name)).find(|path| is_program(path))
}

/// This machine's `PATH`.
pub(super) fn path() -> String {
    env::var("PATH").unwrap_or_default()
}

/// The folders of the linker's configuration.
pub(super) fn library_folders() -> Vec<String> {
    let mut folders = Vec::new();
    read(Path::new(CONFIGURATION), DEPTH_MAX, &mut folders);
    folders
}

fn read(file: &Path, depth: u32, folders: &mut Vec<String>) {
    let text = fs::read_to_string(file).unwrap_or_default();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        match line.strip_prefix("include ") {
            Some(pattern) if depth > 0 => {
                for file in matching(pattern.trim()) {
                    read(&file, depth - 1, folders);
                }
            }
            _ if line.starts_with('/') => folders.push(line.to_owned()),
            _ => {}
        }
    }
}

/// The files of a pattern `FOLDER/*ENDING`, or the file itself, in order.
fn matching(pattern: &str) -> Vec<PathBuf> {
    let pattern = Path::new("/etc").join(pattern);
    let name = pattern.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some(ending) = name.strip_prefix('*') else { return vec![pattern] };
    let folder = pattern.parent().unwrap_or(Path::new("/"));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(ending)).collect();
    names.sort();
    names.iter().map(|name| folder.join(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the configuration is read with the files that it includes, in order.
    #[test]
    fn configurations() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("d")).unwrap();
        let include =
            format!("/first # one\ninclude {}/*.conf\n/last\n", at("d").display());
        fs::write(at("ld.so.conf"), include).unwrap();
        fs::write(at("d/b.conf"), "/b\n").unwrap();
        fs::write(at("d/a.conf"), "# none\n/a\nrelative\n").unwrap();
        fs::write(at("d/c.other"), "/c\n").unwrap();
        let mut folders = Vec::new();
        read(&at("ld.so.conf"), DEPTH_MAX, &mut folders);
        assert_eq!(folders, ["/first", "/a", "/b", "/last"]);
        // One that includes itself ends.
        fs::write(at("own"), format!("include {}\n", at("own").display())).unwrap();
        read(&at("own"), DEPTH_MAX, &mut folders);
    }

    /// Check that programs are found in the order of the folders, and other files are not.
    #[test]
    fn programs() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["one", "two"] {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("tool"), "").unwrap();
        }
        let path = format!("{}:{}", at("one").display(), at("two").display());
        assert_eq!(find("tool", &path), None);
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(at("two/tool"), executable).unwrap();
        assert_eq!(find("tool", &path), Some(at("two/tool")));
        assert_eq!(find("two", &folder.path().display().to_string()), None);
    }
}
