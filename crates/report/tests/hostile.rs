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

fn text(document: &report::Document) -> String {
    report::terminal_text(document, report::View::FULL)
}

fn check_text(text: &str, of: &str) {
    let hidden = text.chars().find(|&c| is_hidden(c) && c != '\n');
    assert_eq!(hidden, None, "{of}: {text}");
    assert!(!text.lines().any(|line| line.trim().starts_with("FORGED")), "{of}: {text}");
}

fn check_facts(facts: &Facts) {
    let text = text(&report::facts_document(facts));
    assert!(text.contains("\\x1b[2J\\x0aFORGED"), "{text}");
    check_text(&text, "facts");
}

/// The reports of a file and its hostile form: compared, tried, repeated, and as a history.
fn reports(file: &Path, hostile: &Recording) -> [String; 4] {
    let sets = [RunSet::single(&Recording::load(file).unwrap()), RunSet::single(hostile)];
    let (names, smallest) = (["usual", HOSTILE].map(str::to_owned), units::Ppm::new(1e5));
    let comparisons = &summary::compare(&sets[0], &sets[1..], smallest)[..];
    let compared =
        report::ComparedSets { names: &names, sets: &sets, comparisons, smallest };
    let [name, value] = [HOSTILE; 2].map(str::to_owned);
    let tried = report::TriedSettings {
        measurement: HOSTILE,
        compared,
        better: stats::BetterSet::Other,
        better_settings: &[recording::StepSetting { name, value }],
        is_in_place: true,
        seed: 1,
        doubts: &hostile.doubts,
    };
    let repeated = report::RepeatedRuns {
        measurement: HOSTILE,
        variants: &names,
        sets: &sets,
        folders: &names,
        files: &[vec![HOSTILE.to_owned()], Vec::new()],
        known: &[0, 1],
        seed: 1,
        doubts: &hostile.doubts,
    };
    [
        text(&report::compared_sets_document(&compared)),
        text(&report::tried_document(&tried)),
        text(&report::repeated_document(&repeated)),
        text(&report::history_document(&history())),
    ]
}

fn history() -> report::HistoryReport {
    let text = || HOSTILE.to_owned();
    let facts = [(text(), [Some(text().into()), None])].into();
    report::HistoryReport {
        machine: text(),
        kind: text(),
        metrics: vec![report::MetricHistory {
            metric: text(),
            unit: stats::Unit::Count,
            entries: vec![report::HistoryEntry { id: 1, taken: text(), value: 1.0 }],
            stretches: stats::stretches(&[1.0]),
        }],
        changes: vec![report::FactsChange { id: 1, taken: text(), facts }],
    }
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
        let document = report::recording_document(&hostile, &summary);
        check_text(&text(&document), &name);
        check_text(&report::markdown_text(&document), &name);
        check_text(&report::html_page(&document.titled(HOSTILE)), &name);
        for text in reports(&file, &hostile) {
            assert!(text.contains("\\x1b[2J"), "{text}");
            check_text(&text, &name);
        }
        check_facts(&hostile.facts);
        let json = report::json(&hostile, &summary, true).unwrap();
        let json: Value = serde_json::from_str(&json).unwrap();
        let facts = |of: &Value| of["facts"]["kernel"].clone();
        assert_eq!(facts(&json), facts(&value), "{name}");
        assert_eq!(json["doubts"][0]["text"], value["doubts"][0]["text"], "{name}");
        let pictures = report::recording_pictures(&hostile, &summary);
        let view = report::View { has_pictures: true, ..report::View::FULL };
        check_text(&report::terminal_text(&pictures, view), &name);
        if !pictures.is_empty() {
            check_text(&report::picture_svg(&pictures, None).unwrap(), &name);
            check_text(&report::html_page(&pictures), &name);
        }
        if let Body::Slices { .. } = &hostile.body {
            let summary::Summary::Slices(summary) = &summary else { panic!("{name}") };
            let classic = report::slices_classic(summary, &hostile.doubts);
            check_text(&text(&classic), &name);
        }
    }
}
