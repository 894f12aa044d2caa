//! House rules for source files: where they lie, how long they are, what they forbid.
//!
//! Cannot see what the compiler and clippy see better: these rules are about files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::workspace::{Member, Workspace};

/// The longest file that is still read in one go.
const LINES_MAX: usize = 600;
/// Rooms that talk to the processor, the kernel or another language directly.
const MAY_BE_UNSAFE: &[&str] =
    &["measure", "isolate", "agent", "blame", "capi", "counter"];
/// The only files that live recordings come from, by room, and how they make one.
const MEASURE: [(&str, &str); 2] = [("measure", "lib.rs"), ("blame", "wakers.rs")];
const TAKES: &str = concat!("Recording::", "now("); // in two, or it would find itself
/// Names that say nothing about what is inside.
const NAMES_OF_NOTHING: &[&str] =
    &["mod", "util", "utils", "helper", "helpers", "common", "misc"];

/// Everything that is wrong with the workspace's source files.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<String>, String> {
    let mut wrong = Vec::new();
    for member in &workspace.members {
        for root in &member.roots {
            let text = read(root)?;
            let allowed = MAY_BE_UNSAFE.contains(&member.name.as_str());
            if !allowed && !forbids_unsafe(&text) {
                let text = "#![forbid(unsafe_code)] is missing";
                wrong.push(format!("{}: {text}", shown(root, workspace)));
            }
        }
        for file in rust_files(&member.folder.join("src"))? {
            let place = shown(&file, workspace);
            let broken = check_file(&file, &read(&file)?, member);
            wrong.extend(broken.into_iter().map(|text| format!("{place}: {text}")));
        }
    }
    Ok(wrong)
}

fn check_file(file: &Path, text: &str, member: &Member) -> Vec<String> {
    let mut wrong = Vec::new();
    let lines = text.lines().count();
    if lines > LINES_MAX {
        wrong.push(format!("{lines} lines, and {LINES_MAX} are the most"));
    }
    let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    if let Some(name) = name.filter(|name| NAMES_OF_NOTHING.contains(&name.as_str())) {
        wrong.push(format!("'{name}' is not the name of a thing"));
    }
    let name = file.file_name().unwrap_or_default();
    let takes = MEASURE.iter().any(|(room, file)| member.name == *room && name == *file);
    if !takes && text.contains(TAKES) {
        let text = "only measure::run and blame::wakers take recordings";
        wrong.push(format!("{text} ({TAKES})"));
    }
    if file.parent() != Some(&member.folder.join("src")) {
        wrong.push("modules lie flat in src/".to_owned());
    }
    wrong
}

fn forbids_unsafe(text: &str) -> bool {
    text.lines().any(|line| line.trim() == "#![forbid(unsafe_code)]")
}

/// The Rust files of a folder and the folders in it, sorted.
pub(crate) fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            files.extend(rust_files(&path)?);
        } else if path.extension().is_some_and(|end| end == "rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

pub(crate) fn read(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

fn shown(file: &Path, workspace: &Workspace) -> String {
    file.strip_prefix(&workspace.root).unwrap_or(file).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(file: &str, text: &str) -> Vec<String> {
        wrong_in("facts", file, text)
    }

    fn wrong_in(room: &str, file: &str, text: &str) -> Vec<String> {
        let folder = Path::new("/w/crates").join(room);
        let member = Member {
            name: room.to_owned(),
            folder: folder.clone(),
            roots: Vec::new(),
            edges: Vec::new(),
        };
        check_file(&folder.join("src").join(file), text, &member)
    }

    /// Check length, name and place of a file.
    #[test]
    fn rules_for_a_file() {
        assert_eq!(wrong("tick.rs", &"\n".repeat(600)), [""; 0]);
        assert_eq!(
            wrong("tick.rs", &"\n".repeat(601)),
            ["601 lines, and 600 are the most"]
        );
        assert_eq!(wrong("utils.rs", ""), ["'utils' is not the name of a thing"]);
        assert_eq!(wrong("tick/mod.rs", "").len(), 2);
        assert_eq!(wrong("tick/mode.rs", ""), ["modules lie flat in src/"]);
    }

    /// Check that recordings are taken in two places, and in no other file of their rooms.
    #[test]
    fn who_takes_recordings() {
        for (room, file, count) in [
            ("measure", "lib.rs", 0),
            ("measure", "noise.rs", 1),
            ("blame", "wakers.rs", 0),
            ("blame", "lib.rs", 1),
            ("facts", "tick.rs", 1),
        ] {
            assert_eq!(wrong_in(room, file, TAKES).len(), count, "{room} {file}");
        }
    }

    /// Check that only the attribute itself counts, not talk of it.
    #[test]
    fn unsafe_is_forbidden_in_earnest() {
        assert!(forbids_unsafe("//! Facts.\n#![forbid(unsafe_code)]\nmod a;\n"));
        assert!(!forbids_unsafe("//! No #![forbid(unsafe_code)] here.\n"));
        assert!(!forbids_unsafe("#![deny(unsafe_code)]\n"));
    }
}
