//! Recordings with hostile names in all places: real files of every kind, each string in them
//! replaced by one that a terminal would act on.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::{Path, PathBuf};

use facts::Facts;
use recording::{Body, Recording};
use serde_json::Value;
use units::is_hidden;

/// Clears the screen, forges a line, turns the text around, hides a character.
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
        _ => {}
    }
}

/// Replaces all strings that may be anything; says how many.
fn replace_all(file: &mut Value) -> usize {
    let mut all = Vec::new();
    strings(file, "", &mut all);
    let is_read = |file: &Value| {
        Recording::from_json(&file.to_string(), Path::new("hostile.json")).is_ok()
    };
    let replaced = all.iter().filter(|at| {
        let old = std::mem::replace(file.pointer_mut(at).unwrap(), HOSTILE.into());
        let is_kept = is_read(file);
        if !is_kept {
            *file.pointer_mut(at).unwrap() = old;
        }
        is_kept
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

/// Check that hostile strings are shown as escapes in every report and replaced in pictures, that
/// none adds a line, and that files and JSON keep them.
#[test]
fn no_string_reaches_the_terminal() {
    for file in golden() {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let mut value: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        assert!(replace_all(&mut value) > 10, "{name}");
        let hostile = Recording::from_json(&value.to_string(), &file).unwrap();
        check_text(&report::text(&hostile), &name);
        check_facts(&hostile.facts);
        let json = report::json(&hostile, &stats::Summary::of(&hostile), true).unwrap();
        let json: Value = serde_json::from_str(&json).unwrap();
        let facts = |of: &Value| of["facts"]["kernel"].clone();
        assert_eq!(facts(&json), facts(&value), "{name}");
        assert_eq!(json["doubts"][0]["text"], value["doubts"][0]["text"], "{name}");
        if let Body::Slices { spec, series } = &hostile.body {
            for picture in [report::slices_svg, report::slices_html] {
                check_text(&picture(&hostile.facts, spec, series), &name);
            }
            check_text(&report::slices_classic(&hostile), &name);
        }
    }
}
