//! The imports of each file of a room, for rooms in which no two files may import each other, not
//! even in one folder.
//!
//! Reads text, not syntax: every path that begins with `crate`, `super` or `self`, with a module
//! below the file, or with a module that the file imports. An import is of the file that defines the
//! item, so such a room has no other names for its files: only `lib.rs` re-exports, and for other
//! rooms only. The test module, which is a file's last item, and files for tests are left out.

use std::collections::{BTreeMap, BTreeSet};

use super::{Imports, code};

/// The modules that the files of a room import, and what hides imports. `files` are texts by the path
/// of their module: `noise::verdict`, and nothing for `lib.rs`.
pub(super) fn imports(files: &BTreeMap<String, String>) -> (Imports, Vec<String>) {
    let (mut all, mut hidden) = (Imports::new(), Vec::new());
    let for_tests: BTreeSet<String> =
        files.iter().flat_map(|(module, text)| test_modules(module, text)).collect();
    let is_for_tests = |module: &str| {
        let mut ends = module.match_indices("::").map(|(end, _)| end);
        ends.any(|end| for_tests.contains(&module[..end])) || for_tests.contains(module)
    };
    for (module, text) in files {
        if module.is_empty() || is_for_tests(module) {
            continue;
        }
        let code = code(text);
        if code.lines().any(is_export) {
            hidden.push(format!("{module} re-exports, which only lib.rs may do"));
        }
        let (imported, through_root) = of_file(module, &code, files);
        let root = through_root.iter().map(|path| format!("{module} imports {path}"));
        hidden
            .extend(root.map(|text| format!("{text} without the file that defines it")));
        all.insert(module.clone(), imported);
    }
    (all, hidden)
}

/// The modules below one that exist in tests only.
fn test_modules(module: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_for_tests = false;
    for line in text.lines() {
        let name = line.strip_suffix(';').and_then(|line| line.split_once("mod "));
        if let Some((_, name)) = name.filter(|_| is_for_tests) {
            found.push(below(module, name));
        }
        is_for_tests = line == "#[cfg(test)]" || is_for_tests && line.starts_with("#[");
    }
    found
}

fn below(module: &str, name: &str) -> String {
    if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") }
}

/// Whether a line gives an item of another file a second path; a macro has no other path.
fn is_export(line: &str) -> bool {
    let rest = line.trim_start().strip_prefix("pub").unwrap_or_default();
    let is_use =
        rest.starts_with(" use ") || rest.starts_with('(') && rest.contains(") use ");
    is_use && rest.contains("::")
}

/// The modules that a file imports, and its imports that name no file.
fn of_file(
    module: &str,
    code: &str,
    files: &BTreeMap<String, String>,
) -> (BTreeSet<String>, BTreeSet<String>) {
    let paths = paths(code);
    // What a path may begin with: modules below this one, and those that are imported.
    let mut starts: BTreeMap<&str, String> = BTreeMap::new();
    for other in files.keys() {
        if let Some((parent, name)) = other.rsplit_once("::").filter(|it| it.0 == module)
        {
            starts.insert(name, below(parent, name));
        }
    }
    for path in &paths {
        let whole = absolute(module, path).map(|path| path.join("::"));
        if let (Some(whole), Some(name)) = (whole, path.last()) {
            if files.contains_key(&whole) && !whole.is_empty() {
                starts.insert(name, whole);
            }
        }
    }
    let (mut imported, mut unknown) = (BTreeSet::new(), BTreeSet::new());
    for path in &paths {
        let started = || {
            let start = starts.get(path.first()?).filter(|_| path.len() > 1)?;
            Some(start.split("::").chain(path[1..].iter().copied()).collect())
        };
        let Some(whole) = absolute(module, path).or_else(started) else { continue };
        let parts = (1..=whole.len()).rev().map(|count| whole[..count].join("::"));
        match parts.into_iter().find(|part| files.contains_key(part)) {
            Some(file) => imported.extend((file != module).then_some(file)),
            None => unknown.extend([format!("crate::{}", whole.join("::"))]),
        }
    }
    (imported, unknown)
}

/// A path from the crate's root, if it begins with `crate`, `super` or `self`.
fn absolute<'a>(module: &'a str, path: &[&'a str]) -> Option<Vec<&'a str>> {
    let own = module.split("::");
    if path.len() < 2 {
        return None; // of a visibility, such as `pub(super)`
    }
    let ups = path.iter().take_while(|part| **part == "super").count();
    let (kept, rest) = match *path.first()? {
        "crate" => (0, &path[1..]),
        "self" => (own.clone().count(), &path[1..]),
        "super" => (own.clone().count().checked_sub(ups)?, &path[ups..]),
        _ => return None,
    };
    Some(own.take(kept).chain(rest.iter().copied()).collect())
}

/// Every path in code, those of lists in braces each for itself.
fn paths(code: &str) -> Vec<Vec<&str>> {
    let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let (mut found, mut path) = (Vec::new(), Vec::new());
    // The paths before the braces that are open: those of lists, and of other code nothing.
    let mut open: Vec<Option<Vec<&str>>> = Vec::new();
    let mut rest = code;
    while let Some(letter) = rest.chars().next() {
        let end = rest.find(|letter| !is_name(letter)).unwrap_or(rest.len());
        if end > 0 {
            path.push(&rest[..end]);
            rest = &rest[end..];
            continue;
        }
        if let Some(after) = rest.strip_prefix("::") {
            rest = after;
            if let Some(after) = rest.strip_prefix('{') {
                open.push(Some(std::mem::take(&mut path)));
                path = start(&open);
                rest = after;
            } else if rest.starts_with('*') {
                path.push("*");
            } else if !rest.starts_with(is_name) {
                found.push(std::mem::replace(&mut path, start(&open))); // `::<`
            }
            continue;
        }
        let before = start(&open);
        if path.len() > before.len() {
            found.push(std::mem::take(&mut path));
        }
        match letter {
            '{' => open.push(None),
            '}' => drop(open.pop()),
            _ => (),
        }
        path = start(&open);
        rest = &rest[letter.len_utf8()..];
    }
    found.push(path);
    found.retain(|path| !path.is_empty());
    found
}

/// What a path begins with: the path before the list in braces that it is in.
fn start<'a>(open: &[Option<Vec<&'a str>>]) -> Vec<&'a str> {
    open.last().cloned().flatten().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::circles::circles;

    fn files(texts: &[(&str, &str)]) -> BTreeMap<String, String> {
        texts.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect()
    }

    fn imported(texts: &[(&str, &str)], module: &str) -> Vec<String> {
        let (all, hidden) = imports(&files(texts));
        assert_eq!(hidden, [""; 0]);
        all[module].iter().cloned().collect()
    }

    /// Check that paths are read wherever they are, from lists in lists, too.
    #[test]
    fn paths_are_read() {
        let text =
            "use a::{b, c::{D, e}};\nfn f(x: &g::H) -> i::J<k::L> { m::<n::O>(p) }";
        let found: Vec<String> = paths(text).iter().map(|path| path.join("::")).collect();
        for path in ["a::b", "a::c::D", "a::c::e", "g::H", "i::J", "k::L", "n::O", "p"] {
            assert!(found.iter().any(|other| other == path), "{path}: {found:?}");
        }
    }

    /// Check each way to name another file: from the root, from above, from below, and by an imported
    /// module. Tests are left out, and so is what only has the name of a module.
    #[test]
    fn files_are_named() {
        let others = [("", ""), ("a", ""), ("a::b", ""), ("a::b::c", ""), ("d", "")];
        let of = |text: &str| {
            let texts = [&others[..1], &[("a", text)], &others[2..]].concat();
            imported(&texts, "a")
        };
        assert_eq!(of("use crate::{a::b::X, d::{Y, Z}};"), ["a::b", "d"]);
        assert_eq!(of("mod b;\nfn f() { b::c::g() }"), ["a::b::c"]);
        assert_eq!(of("use self::b::X;"), ["a::b"]);
        assert_eq!(of("use super::d;\nfn f() { d::g() }"), ["d"]);
        assert_eq!(of("use crate::a::b;\nfn f() { b::c::g() }"), ["a::b", "a::b::c"]);
        assert_eq!(of("use std::b::X; // crate::d::Y\nfn f(b: u8) { b }"), [""; 0]);
        assert_eq!(of("#[cfg(test)]\nmod tests {\n use crate::d::X;\n}"), [""; 0]);
    }

    /// Check that files for tests are left out, also where an attribute gives their path.
    #[test]
    fn files_for_tests() {
        let root = "#[cfg(test)]\n#[path = \"e.rs\"]\nmod e;\nmod a;\n";
        let texts = [
            ("", root),
            ("a", "use crate::e::X;"),
            ("e", "mod f;\nuse crate::a::Y;"),
            ("e::f", "use super::Z;"),
        ];
        let (all, _) = imports(&files(&texts));
        assert_eq!(all.keys().collect::<Vec<_>>(), ["a"]);
    }

    /// Check that a circle inside a folder is found, which a file and one below it make, too.
    #[test]
    fn circles_of_files() {
        let below = [("a", "mod b;\nuse crate::a::b::X;"), ("a::b", "use super::Y;")];
        let beside = [("a::b", "use crate::a::c::X;"), ("a::c", "use super::b::Y;")];
        for (texts, names) in [(below, ["a", "a::b"]), (beside, ["a::b", "a::c"])] {
            assert_eq!(circles(&imports(&files(&texts)).0), [names]);
        }
        let declared = [("a", "mod b;\npub struct Y;"), ("a::b", "use super::Y;")];
        assert!(circles(&imports(&files(&declared)).0).is_empty());
    }

    /// Check that imports that do not name a file are refused, and re-exports that would be needed.
    #[test]
    fn hidden_imports() {
        for (text, expected) in [
            ("use crate::X;", "imports crate::X without"),
            ("use super::X;", "imports crate::X without"),
            ("use super::*;", "imports crate::* without"),
            ("pub(crate) use crate::b::X;", "re-exports"),
            (
                "pub(crate) use name_of_a_macro;\nuse crate::X;",
                "imports crate::X without",
            ),
        ] {
            let (_, hidden) = imports(&files(&[("", ""), ("a", text), ("b", "")]));
            assert_eq!(hidden.len(), 1, "{text}: {hidden:?}");
            assert!(hidden[0].contains(expected), "{hidden:?}");
        }
    }
}
