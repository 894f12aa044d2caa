//! Recordings with hostile strings: real files of every kind, with each string replaced by one
//! that contains control characters.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::{Path, PathBuf};

use facts::Facts;
use recording::{Body, Recording};
use serde_json::Value;
use summary::RunSet;
use units::is_hidden;

/// Clears the screen, adds a line, reverses the text direction, hides a character.
const HOSTILE: &str = "\x1b[2J\nFORGED\r\u{9b}31m\u{202e}\u{200b}\u{2028}";

fn golden() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recording/tests/golden");
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// The pointers (RFC 6901) of all strings.
fn strings(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(at.to_owned()),
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                strings(value, &format!("{at}/{index}"), found);
            }
        }
        Value::Object(values) => {
            for (key, value) in values {
                let key = key.replace('~', "~0").replace('/', "~1");
                strings(value, &format!("{at}/{key}"), found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Replaces all strings that may have any value, and returns their number.
fn replace_all(file: &mut Value) -> usize {
    let mut all = Vec::new();
    strings(file, "", &mut all);
    let is_read = |file: &Value| {
        Recording::from_json(&file.to_string(), Path::new("hostile.json")).is_ok()
    };
    let replaced = all.iter().filter(|at| {
        let old = std::mem::replace(file.pointer_mut(at).unwrap(), HOSTILE.into());
        let is_valid = is_read(file);
        if !is_valid {
            *file.pointer_mut(at).unwrap() = old;
        }
        is_valid
    });
    replaced.count()
}

fn check_text(text: &str, of: &str) {
    let hidden = text.chars().find(|&c| is_hidden(c) && c != '\n');
    assert_eq!(hidden, None, "{of}: {text}");
    assert!(!text.lines().any(|line| line.trim().starts_with("FORGED")), "{of}: {text}");
}

fn check_facts(facts: &Facts) {
    let text = report::facts_text(facts);
    assert!(text.contains("\\x1b[2J\\x0aFORGED"), "{text}");
    check_text(&text, "facts");
}

/// The comparison of a file with its hostile form, if it has metrics.
fn comparison(file: &Path, hostile: &Recording) -> String {
    let sets = [RunSet::single(&Recording::load(file).unwrap()), RunSet::single(hostile)];
    let (names, smallest) = (["usual", HOSTILE].map(str::to_owned), units::Ppm::new(1e5));
    let comparisons = summary::compare(&sets[0], &sets[1..], smallest);
    report::compared_sets_text(&report::ComparedSets {
        names: &names,
        sets: &sets,
        comparisons: &comparisons,
        smallest,
    })
}

/// Check that control characters are escaped in every report and replaced in pictures, that no
/// string adds a line, and that files and JSON contain the original strings.
#[test]
fn no_string_reaches_the_terminal() {
    for file in golden() {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let mut value: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        assert!(replace_all(&mut value) > 10, "{name}");
        let hostile = Recording::from_json(&value.to_string(), &file).unwrap();
        let summary = summary::Summary::of(&hostile);
        check_text(&report::text(&hostile, &summary), &name);
        let compared = comparison(&file, &hostile);
        assert!(compared.contains("\\x1b[2J"), "{compared}");
        check_text(&compared, &name);
        check_facts(&hostile.facts);
        let json = report::json(&hostile, &summary, true).unwrap();
        let json: Value = serde_json::from_str(&json).unwrap();
        let facts = |of: &Value| of["facts"]["kernel"].clone();
        assert_eq!(facts(&json), facts(&value), "{name}");
        assert_eq!(json["doubts"][0]["text"], value["doubts"][0]["text"], "{name}");
        if let Body::Slices { spec, series } = &hostile.body {
            for picture in [report::slices_svg, report::slices_html] {
                check_text(&picture(&hostile.facts, spec, series), &name);
            }
            let summary::Summary::Slices(summary) = &summary else { panic!("{name}") };
            check_text(&report::slices_classic(summary, &hostile.doubts), &name);
        }
    }
}
