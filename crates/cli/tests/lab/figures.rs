//! The exact figures in documents are those that the lab gives now, within the limits that the
//! documents state: the places in `figures.toml`.
//!
//! An exact figure depends on the agent's bytes, and so on the compiler and the distribution.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::site::Site;

#[derive(Deserialize)]
struct Figures {
    figure: Vec<Figure>,
}

/// Numbers in a document that are of one cell.
#[derive(Deserialize)]
struct Figure {
    document: String,
    text: String,
    experiment: String,
    kernel: String,
    cell: String,
    within_percent: f64,
}

impl Figure {
    /// The metrics and their numbers in the document.
    fn stated(&self) -> Vec<(String, f64)> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let document = fs::read_to_string(folder.join(&self.document)).unwrap();
        let (document, text) = (words(&document), words(&self.text));
        let starts = document.char_indices().map(|(at, _)| &document[at..]);
        let found: Vec<_> = starts.filter_map(|rest| numbers(rest, &text)).collect();
        let [stated] = &found[..] else {
            panic!("{} has '{}' {} times, not once", self.document, text, found.len())
        };
        stated.clone()
    }

    /// The numbers that differ by more than the limit, in words.
    fn differences(&self, cells: &[Value]) -> Vec<String> {
        let is_it =
            |cell: &&Value| cell["asked"] == *self.kernel && cell["name"] == *self.cell;
        let cell = cells.iter().find(is_it).unwrap();
        let differs = |(metric, stated): (String, f64)| {
            let found = cell["metrics"][&metric].as_f64();
            let found = found.unwrap_or_else(|| panic!("{metric}: {}", cell["metrics"]));
            println!("{} {} {metric}: {found}, stated {stated}", self.kernel, self.cell);
            let is_within =
                (found - stated).abs() <= stated * self.within_percent / 100.0;
            (!is_within).then(|| {
                format!("{}: '{}' is {found} now, not {stated}", self.document, self.text)
            })
        };
        self.stated().into_iter().filter_map(differs).collect()
    }
}

/// A text with single spaces.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The numbers in the place of `{metric}` in a pattern, if the text begins with it.
fn numbers(mut text: &str, mut pattern: &str) -> Option<Vec<(String, f64)>> {
    let mut found = Vec::new();
    while let Some((before, rest)) = pattern.split_once('{') {
        let (metric, after) = rest.split_once('}').unwrap();
        text = text.strip_prefix(before)?;
        let end = text.find(|c: char| !c.is_ascii_digit() && c != ',' && c != '.');
        let (number, rest) = text.split_at(end.unwrap_or(text.len()));
        let number = number.replace(',', "").parse().ok()?;
        found.extend((!metric.is_empty()).then(|| (metric.to_owned(), number)));
        (text, pattern) = (rest, after);
    }
    text.starts_with(pattern).then_some(found)
}

fn figures() -> Vec<Figure> {
    toml::from_str::<Figures>(include_str!("figures.toml")).unwrap().figure
}

/// Check that every place has its figures, once.
#[test]
fn places() {
    for figure in figures() {
        assert!(!figure.stated().is_empty(), "{}", figure.text);
        assert!(figure.within_percent > 0.0);
    }
    let found = numbers("a 1,234.5 | 78 | 6 b", "a {one} | {} | {two} ");
    assert_eq!(found, Some(vec![("one".to_owned(), 1234.5), ("two".to_owned(), 6.0)]));
    assert_eq!(numbers("a 12 of", "a {one} |"), None);
    assert_eq!(numbers("a b", "a {one}"), None);
}

/// Check that experiments give the figures again.
#[test]
fn given_again() {
    if std::env::var_os("NOISEFLOOR_TEST_ALL").is_none() {
        return println!(
            "skipped: it runs whole experiments; NOISEFLOOR_TEST_ALL is not set"
        );
    }
    let Some(site) = Site::new() else { return };
    let figures = figures();
    let mut experiments = BTreeMap::new();
    for figure in &figures {
        let cells = || site.cells(&[&figure.experiment], 0);
        experiments.entry(&figure.experiment).or_insert_with(cells);
    }
    let differences: Vec<String> = figures
        .iter()
        .flat_map(|figure| figure.differences(&experiments[&figure.experiment]))
        .collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
