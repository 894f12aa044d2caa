//! The check of the project's text for the words and phrases of `xtask/words.txt`.
//!
//! Identifiers, and code in backticks, are not checked.

use std::fs;
use std::path::{Path, PathBuf};

use crate::prose::{self, Language, Word};
use crate::workspace::Workspace;

/// The files and folders whose text is checked.
const PATHS: &[&str] = &[
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.toml",
    "Makefile",
    "README.md",
    "crates",
    "docs",
    "examples",
    "fixtures/README.md",
    "fuzz/Cargo.toml",
    "fuzz/src",
    "scripts",
    "xtask/src",
];
/// The ends of the names of files that are not text of this project, such as recordings.
const NO_TEXT: &[&str] = &["json", "svg", "bin", "so", "formats", "header_page"];
/// The listed words, and exceptions.
const TABLE: &str = include_str!("../words.txt");

/// The listed words, and the files in which they are allowed.
struct Table {
    rules: Vec<Rule>,
    exceptions: Vec<Exception>,
}

struct Rule {
    /// The words of the phrase, in lower case.
    phrase: Vec<String>,
    instead: String,
}

struct Exception {
    file: String,
    phrase: Vec<String>,
}

impl Table {
    /// Parses the format that the comments of `words.txt` describe.
    fn parse(text: &str) -> Result<Self, String> {
        let mut table = Self { rules: Vec::new(), exceptions: Vec::new() };
        let mut allows = false;
        let lines = text.lines().map(str::trim).zip(1..);
        for (line, number) in lines.filter(|(line, _)| is_entry(line)) {
            if line == "[allow]" {
                allows = true;
                continue;
            }
            let wrong = || format!("words.txt:{number}: expected PHRASE = TEXT");
            let (left, right) = line.split_once(" = ").ok_or_else(wrong)?;
            if allows {
                let wrong =
                    || format!("words.txt:{number}: expected FILE: PHRASE = REASON");
                let (file, phrase) = left.split_once(": ").ok_or_else(wrong)?;
                let (file, phrase) = (file.to_owned(), phrase_of(phrase));
                table.exceptions.push(Exception { file, phrase });
            } else {
                let (phrase, instead) = (phrase_of(left), right.to_owned());
                table.rules.push(Rule { phrase, instead });
            }
        }
        Ok(table)
    }

    /// The listed words in one file, and the indices of the exceptions that it needs.
    fn check(&self, file: &str, text: &[Word]) -> (Vec<String>, Vec<usize>) {
        let (mut wrong, mut needed) = (Vec::new(), Vec::new());
        for at in 0..text.len() {
            for rule in self.rules.iter().filter(|rule| rule.is_at(&text[at..])) {
                let is_allowed = |exception: &Exception| {
                    exception.file == file && exception.phrase == rule.phrase
                };
                match self.exceptions.iter().position(is_allowed) {
                    Some(exception) => needed.push(exception),
                    None => wrong.push(format!("{file}:{}: {rule}", text[at].line)),
                }
            }
        }
        (wrong, needed)
    }
}

impl Rule {
    fn is_at(&self, text: &[Word]) -> bool {
        let is_word = |(word, found): (&String, &Word)| {
            *word == found.text || found.text.strip_suffix("'s") == Some(word)
        };
        text.len() >= self.phrase.len() && self.phrase.iter().zip(text).all(is_word)
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "'{}': write {}", self.phrase.join(" "), self.instead)
    }
}

fn is_entry(line: &str) -> bool {
    !line.is_empty() && !line.starts_with('#')
}

fn phrase_of(text: &str) -> Vec<String> {
    prose::words(text, Language::Plain).into_iter().map(|word| word.text).collect()
}

/// Checks all files; reports their number, or every word to be replaced.
pub(crate) fn run(workspace: &Workspace) -> Result<String, String> {
    let table = Table::parse(TABLE)?;
    let mut files = Vec::new();
    for path in PATHS {
        collect(&workspace.root.join(path), &mut files)?;
    }
    let (mut wrong, mut needed) = (Vec::new(), Vec::new());
    for file in &files {
        let failed = |error| format!("{}: {error}", file.display());
        let text = fs::read_to_string(file).map_err(failed)?;
        let name =
            file.strip_prefix(&workspace.root).unwrap_or(file).display().to_string();
        let found = table.check(&name, &prose::words(&text, language(file)));
        wrong.extend(found.0);
        needed.extend(found.1);
    }
    let unused = table.exceptions.iter().zip(0..).filter(|(_, at)| !needed.contains(at));
    wrong.extend(unused.map(|(exception, _)| {
        let phrase = exception.phrase.join(" ");
        format!(
            "xtask/words.txt: {}: '{phrase}' is allowed, but does not occur",
            exception.file
        )
    }));
    if wrong.is_empty() {
        return Ok(format!("words: {} files have none of the listed words", files.len()));
    }
    Err(format!("listed words (xtask/words.txt):\n  {}", wrong.join("\n  ")))
}

/// The text files of a path, sorted.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |error| format!("{}: {error}", path.display());
    if !path.is_dir() {
        let name = path.to_string_lossy();
        let is_text = !NO_TEXT.iter().any(|end| name.ends_with(end));
        files.extend(is_text.then(|| path.to_owned()));
        return Ok(());
    }
    let entries = fs::read_dir(path).map_err(failed)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = paths.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    paths.sort();
    paths.iter().try_for_each(|path| collect(path, files))
}

fn language(file: &Path) -> Language {
    match file.extension().and_then(|end| end.to_str()) {
        Some("rs" | "c" | "h" | "cpp") => Language::Code,
        _ => Language::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "\
# a comment
frob = blue; green
red herring = clue
[allow]
a.md: red herring = a fish
";

    fn wrong(file: &str, text: &str) -> Vec<String> {
        let table = Table::parse(EXAMPLE).unwrap();
        table.check(file, &prose::words(text, Language::Plain)).0
    }

    /// Check that words and phrases are found with their lines, also across line ends.
    #[test]
    fn finds_words() {
        assert_eq!(wrong("b.md", "One\nFrob."), ["b.md:2: 'frob': write blue; green"]);
        assert_eq!(
            wrong("b.md", "a red\nherring"),
            ["b.md:1: 'red herring': write clue"]
        );
        assert_eq!(wrong("b.md", "Frob's"), ["b.md:1: 'frob': write blue; green"]);
        assert_eq!(wrong("b.md", "frobs, red, herring_red `frob`"), [""; 0]);
    }

    /// Check that an exception allows one phrase in one file, and is reported as needed.
    #[test]
    fn exceptions() {
        assert_eq!(wrong("a.md", "red herring"), [""; 0]);
        assert_eq!(wrong("a.md", "frob").len(), 1);
        let table = Table::parse(EXAMPLE).unwrap();
        let needed = |text| table.check("a.md", &prose::words(text, Language::Plain)).1;
        assert_eq!(needed("red herring"), [0]);
        assert_eq!(needed("red"), [0; 0]);
    }

    /// Check that the table itself is valid, and that an invalid one is an error.
    #[test]
    fn tables() {
        let table = Table::parse(TABLE).unwrap();
        assert!(table.rules.iter().all(|rule| !rule.phrase.is_empty()));
        assert!(Table::parse("frob").is_err());
        assert!(Table::parse("[allow]\nfrob = no file").is_err());
    }
}
