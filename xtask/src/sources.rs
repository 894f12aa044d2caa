//! Rules for source files: location, length, forbidden code.
//!
//! Rules that the compiler or clippy can check are not repeated here.

use std::fs;
use std::path::{Path, PathBuf};

use crate::workspace::{Member, Workspace};

/// The largest number of lines of a file.
const LINES_MAX: usize = 600;
/// The rooms with shorter files, those of tests too, and their largest number of lines.
const SHORT: ([&str; 3], usize) = (["stats", "summary", "report"], 400);
/// Rooms with direct access to the processor, the kernel or another language.
const MAY_BE_UNSAFE: &[&str] =
    &["measure", "isolate", "agent", "blame", "observe", "ffi", "capi", "tif", "counter"];
/// The only files that create live recordings, by room, and the call that creates one.
const MEASURE: [(&str, &str); 4] = [
    ("measure", "lib.rs"),
    ("blame", "wakers.rs"),
    ("blame", "program_watch.rs"),
    ("blame", "machine_watch.rs"),
];
const TAKES: &str = concat!("Recording::", "now("); // split, so that this file passes
/// File names that do not describe their contents.
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
        let mut files = rust_files(&member.folder.join("src"))?;
        let tests = member.folder.join("tests");
        if SHORT.0.contains(&member.name.as_str()) && tests.is_dir() {
            files.extend(rust_files(&tests)?);
        }
        for file in files {
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
    let is_short = SHORT.0.contains(&member.name.as_str());
    let most = if is_short { SHORT.1 } else { LINES_MAX };
    if lines > most {
        wrong.push(format!("{lines} lines; at most {most} are allowed"));
    }
    let name = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    if let Some(name) = name.filter(|name| NAMES_OF_NOTHING.contains(&name.as_str())) {
        wrong.push(format!("the name '{name}' does not describe the contents"));
    }
    let name = file.file_name().unwrap_or_default();
    let takes = MEASURE.iter().any(|(room, file)| member.name == *room && name == *file);
    if !takes && text.contains(TAKES) {
        let text = "only measure::run and blame's WakerWatch, ProgramWatch and MachineWatch make recordings";
        wrong.push(format!("{text} ({TAKES})"));
    }
    wrong.extend(misplaced(file.strip_prefix(member.folder.join("src")).ok()));
    wrong
}

/// Why a file's path in `src/` is wrong: folders are at most two levels deep, and the names of the
/// files in them do not repeat the folder's.
fn misplaced(path: Option<&Path>) -> Option<String> {
    let names: Vec<_> = path?.iter().filter_map(|name| name.to_str()).collect();
    let (file, folders) = names.split_last()?;
    if folders.len() > 2 {
        return Some("folders in src/ are at most two levels deep".to_owned());
    }
    let repeated = folders.iter().find(|folder| file.starts_with(&format!("{folder}_")));
    repeated.map(|folder| format!("its name repeats the folder's, '{folder}'"))
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
            ["601 lines; at most 600 are allowed"]
        );
        assert_eq!(wrong_in("stats", "rank.rs", &"\n".repeat(400)), [""; 0]);
        assert_eq!(wrong_in("stats", "rank.rs", &"\n".repeat(401)).len(), 1);
        assert_eq!(
            wrong("utils.rs", ""),
            ["the name 'utils' does not describe the contents"]
        );
        assert_eq!(wrong("tick/mod.rs", "").len(), 1);
        assert_eq!(wrong("tick/mode.rs", ""), [""; 0]);
        let repeats = "its name repeats the folder's, 'tick'";
        assert_eq!(wrong("tick/tick_mode.rs", ""), [repeats]);
        assert_eq!(wrong("tick/mode/full.rs", ""), [""; 0]);
        let deep = "folders in src/ are at most two levels deep";
        assert_eq!(wrong("tick/mode/full/on.rs", ""), [deep]);
    }

    /// Check that recordings are created in three files, and in no other file of their rooms.
    #[test]
    fn who_takes_recordings() {
        for (room, file, count) in [
            ("measure", "lib.rs", 0),
            ("measure", "noise.rs", 1),
            ("blame", "wakers.rs", 0),
            ("blame", "program_watch.rs", 0),
            ("blame", "lib.rs", 1),
            ("facts", "tick.rs", 1),
        ] {
            assert_eq!(wrong_in(room, file, TAKES).len(), count, "{room} {file}");
        }
    }

    /// Check that only the attribute itself counts, and not a mention of it.
    #[test]
    fn unsafe_is_forbidden_in_earnest() {
        assert!(forbids_unsafe("//! Facts.\n#![forbid(unsafe_code)]\nmod a;\n"));
        assert!(!forbids_unsafe("//! No #![forbid(unsafe_code)] here.\n"));
        assert!(!forbids_unsafe("#![deny(unsafe_code)]\n"));
    }
}
