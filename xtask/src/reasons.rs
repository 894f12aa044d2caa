//! Checks that each external dependency has its reason in a comment at the end of its line.
//!
//! Reads Cargo.toml line by line, because cargo does not report comments. One entry is one
//! line, `name = ... # why`, or a separate table, `[dependencies.name] # why`.

use std::fs;
use std::path::Path;

use crate::workspace::Workspace;

/// Every dependency without a reason.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<String>, String> {
    let rooms: Vec<&str> = workspace.members.iter().map(|m| m.name.as_str()).collect();
    let mut folders: Vec<_> =
        workspace.members.iter().map(|m| m.folder.clone()).collect();
    folders.push(workspace.root.join("fuzz"));
    let mut wrong = Vec::new();
    for folder in folders {
        let file = folder.join("Cargo.toml");
        let read = fs::read_to_string(&file);
        let text = read.map_err(|error| format!("{}: {error}", file.display()))?;
        let place = file.strip_prefix(&workspace.root).unwrap_or(&file);
        wrong.extend(
            silent(&text, &rooms).into_iter().map(|name| missing_reason(place, &name)),
        );
    }
    Ok(wrong)
}

fn missing_reason(file: &Path, name: &str) -> String {
    format!("{}: {name}: add the reason: {name} = ... # why", file.display())
}

/// The dependencies of a manifest that are not rooms and have no comment.
fn silent(manifest: &str, rooms: &[&str]) -> Vec<String> {
    let mut listing = false;
    let mut names = Vec::new();
    for line in manifest.lines().map(str::trim) {
        let name = if line.starts_with('[') {
            let (table, name) = header(line);
            listing = table && name.is_none();
            name
        } else {
            line.split(['=', '.', ' ']).next().filter(|_| listing && line.contains('='))
        };
        let ours = |name: &&str| !name.starts_with('#') && !rooms.contains(name);
        if let Some(name) = name.filter(ours).filter(|_| comment(line).is_none()) {
            names.push(name.to_owned());
        }
    }
    names
}

/// Whether a table lists dependencies, and the dependency's name if it is for one alone.
fn header(line: &str) -> (bool, Option<&str>) {
    let end = line.rfind(']').unwrap_or(line.len());
    let table = line[..end].trim_start_matches('[').trim();
    match table.rsplit_once("dependencies") {
        Some((_, "")) => (true, None),
        Some((_, name)) => (true, name.strip_prefix('.')),
        None => (false, None),
    }
}

/// The text of a line after a `#` outside of quotes.
fn comment(line: &str) -> Option<&str> {
    let mut quoted = false;
    let start = line.find(|c: char| {
        quoted ^= c == '"';
        c == '#' && !quoted
    })?;
    Some(line[start + 1..].trim()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "\
[package]
name = \"facts\"

[dependencies]
flate2 = { workspace = true } # /proc/config.gz
serde = { workspace = true }
units = { workspace = true }
# jiff = \"1\"

[target.'cfg(unix)'.dev-dependencies]
libc.workspace = true
odd = { path = \"a#b\" }
empty = \"1\" #

[build-dependencies.cc]
version = \"1\"

[dependencies.clap] # the command line
version = \"4\"

[lints]
workspace = true
";

    /// Check that dependencies without a reason are found in all kinds of tables, and only those.
    #[test]
    fn finds_the_silent_ones() {
        assert_eq!(silent(MANIFEST, &["units"]), ["serde", "libc", "odd", "empty", "cc"]);
    }

    /// Check that a `#` in quotes does not begin a comment.
    #[test]
    fn comments() {
        assert_eq!(comment("a = \"#1\" # why"), Some("why"));
        assert_eq!(comment("a = \"#1\""), None);
    }
}
