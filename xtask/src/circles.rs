//! Import circles inside a crate: files or folders below `src/` that import each other, directly
//! or through others.
//!
//! Reads text, not syntax: an import is `crate::NAME` outside of comments and of the test module,
//! which is a file's last item. A folder counts as one module; files inside one folder may import
//! each other, except in the rooms of `BY_FILE`.

mod files;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::sources;
use crate::workspace::Workspace;

/// Which modules each module imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// The rooms in which no two files may import each other.
const BY_FILE: [&str; 3] = ["stats", "summary", "report"];

/// Every import circle of the workspace's crates.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<String>, String> {
    let mut wrong = Vec::new();
    for member in &workspace.members {
        let src = member.folder.join("src");
        let name = &member.name;
        let (imports, hidden) = match BY_FILE.contains(&name.as_str()) {
            true => files::imports(&texts(&src)?),
            false => (imports(&src)?, Vec::new()),
        };
        wrong.extend(hidden.into_iter().map(|text| format!("{name}: {text}")));
        let circles = circles(&imports).into_iter().map(|names| names.join(", "));
        wrong.extend(circles.map(|names| format!("import circle in {name}: {names}")));
    }
    Ok(wrong)
}

/// The text of each file, by the path of its module; nothing for `lib.rs`.
fn texts(src: &Path) -> Result<BTreeMap<String, String>, String> {
    let mut texts = BTreeMap::new();
    for file in sources::rust_files(src)? {
        let inside = file.strip_prefix(src).unwrap_or(&file).with_extension("");
        let parts: Vec<_> = inside.iter().map(|part| part.to_string_lossy()).collect();
        let module = if parts == ["lib"] { String::new() } else { parts.join("::") };
        texts.insert(module, sources::read(&file)?);
    }
    Ok(texts)
}

fn imports(src: &Path) -> Result<Imports, String> {
    let mut all = Imports::new();
    for file in sources::rust_files(src)? {
        let inside = file.strip_prefix(src).unwrap_or(&file).with_extension("");
        let first = inside.components().next().map(|part| part.as_os_str());
        let module = first.unwrap_or_default().to_string_lossy().into_owned();
        let imported = all.entry(module).or_default();
        imported.extend(imported_by(&sources::read(&file)?));
    }
    let modules: BTreeSet<String> = all.keys().cloned().collect();
    for (module, imported) in &mut all {
        imported.retain(|name| name != module && modules.contains(name));
    }
    Ok(all)
}

/// A file's text without comments and its test module.
fn code(text: &str) -> String {
    let lines = text.lines().take_while(|line| {
        let line = line.strip_prefix("pub(crate) ").unwrap_or(line);
        !line.starts_with("mod tests")
    });
    let code: Vec<&str> =
        lines.map(|line| line.split("//").next().unwrap_or(line)).collect();
    code.join("\n")
}

/// The names after `crate::` in a file's text, also in a list in braces.
fn imported_by(text: &str) -> BTreeSet<String> {
    let code = code(text);
    let mut names = BTreeSet::new();
    for (place, found) in code.match_indices("crate::") {
        let path = &code[place + found.len()..];
        match path.strip_prefix('{') {
            Some(list) => names.extend(first_names(list)),
            None => names.extend(first_name(path)),
        }
    }
    names
}

/// The first name of each path in a list in braces, without its opening brace.
fn first_names(list: &str) -> Vec<String> {
    let mut depth = 0;
    let mut starts = vec![0];
    for (place, letter) in list.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => starts.push(place + 1),
            _ => (),
        }
    }
    starts.into_iter().filter_map(|start| first_name(&list[start..])).collect()
}

fn first_name(path: &str) -> Option<String> {
    let path = path.trim_start();
    let end = path.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let name = &path[..end.unwrap_or(path.len())];
    (!name.is_empty()).then(|| name.to_owned())
}

/// The modules of each circle: those that reach each other.
fn circles(imports: &Imports) -> Vec<Vec<String>> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        imports.keys().map(|module| (module, reachable(imports, module))).collect();
    let mut circles = BTreeSet::new();
    for (module, reaches) in &reached {
        let others = reaches.iter().filter(|other| reached[**other].contains(module));
        let circle: Vec<String> = others.map(|other| (*other).clone()).collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

/// Every module that one imports, directly or through others.
fn reachable<'a>(imports: &'a Imports, module: &'a String) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut left = vec![module];
    while let Some(next) = left.pop() {
        for name in imports.get(next).into_iter().flatten() {
            if reached.insert(name) {
                left.push(name);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(&str, &[&str])]) -> Imports {
        let names =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        edges.iter().map(|(from, to)| ((*from).to_owned(), names(to))).collect()
    }

    /// Check that paths, lists in braces and nested lists are read, but not comments and tests.
    #[test]
    fn imports_are_read() {
        let text = "use crate::{a::B, c::{D, e},\n f};\n// crate::comment\n\
                    fn x() { crate::g::h(); }\n#[cfg(test)]\nmod tests {\n use crate::t;\n}\n";
        assert_eq!(
            imported_by(text).into_iter().collect::<Vec<_>>(),
            ["a", "c", "f", "g"]
        );
    }

    /// Check that a circle through a third module is found once, and a tree has none.
    #[test]
    fn circles_are_found() {
        let tree = graph(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &[])]);
        assert_eq!(circles(&tree), Vec::<Vec<String>>::new());
        let circle = graph(&[("a", &["b"]), ("b", &["c"]), ("c", &["a"]), ("d", &["a"])]);
        assert_eq!(circles(&circle), [["a", "b", "c"]]);
    }
}
