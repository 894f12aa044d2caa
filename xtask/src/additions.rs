//! The lists of CONTRIBUTING.md with the files that an addition touches, checked with an example of
//! each: the files that name it are those of the list, and are few.
//!
//! Reads text, not syntax, without comments and tests. A module may have a folder of its own,
//! which counts as one file.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// A section of CONTRIBUTING.md, and an addition that was made as it says.
struct Addition {
    section: &'static str,
    /// What stands for `NAME` in paths.
    name: &'static str,
    /// Texts that a file contains if the addition touches it.
    needles: &'static [&'static str],
    files_max: usize,
}

const ADDITIONS: [Addition; 3] = [
    Addition {
        section: "## How to add a measuring command",
        name: "latency",
        needles: &[
            "LatencySpec",
            "LatencySeries",
            "LatencySummary",
            "Spec::Latency",
            "Body::Latency",
            "Summary::Latency",
            "command::latency",
        ],
        files_max: 16,
    },
    Addition {
        section: "## How to add a kind of culprit",
        name: "nmi",
        needles: &[
            "CulpritKind::Nmi",
            "CulpritKind::{Ipi, Irq, Nmi,",
            "    Nmi,\n    /// Another thread.",
        ],
        files_max: 8,
    },
    Addition {
        section: "## How to add an output format",
        name: "csv",
        needles: &["metrics_csv", "mod csv;"],
        files_max: 4,
    },
];

/// The paths in backticks of a section, without repetitions.
fn listed(text: &str, section: &str) -> BTreeSet<String> {
    let after = text.split(section).nth(1).unwrap_or_default();
    let own = after.split("\n## ").next().unwrap_or_default();
    let quoted = own.split('`').skip(1).step_by(2);
    quoted
        .filter(|text| text.starts_with("crates/") && text.ends_with(".rs"))
        .map(str::to_owned)
        .collect()
}

/// The production files below `crates/` that contain one of the texts; the files of the module of
/// that name are one.
fn named(root: &Path, addition: &Addition) -> BTreeSet<String> {
    let mut files = Vec::new();
    collect(&root.join("crates"), &mut files);
    let contains =
        |text: &str| addition.needles.iter().any(|needle| text.contains(needle));
    let touched = files.iter().filter(|(_, text)| contains(text));
    let paths = touched.map(|(path, _)| {
        let path = path.strip_prefix(&format!("{}/", root.display())).unwrap_or(path);
        let folder = format!("/{}/", addition.name);
        let path = path.split_once(&folder).map_or(path.to_owned(), |(before, _)| {
            format!("{before}/{}.rs", addition.name)
        });
        path.replace(&format!("/{}.rs", addition.name), "/NAME.rs")
    });
    paths.collect()
}

fn collect(folder: &Path, files: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let name = path.display().to_string();
        if path.is_dir() {
            collect(&path, files);
        } else if name.contains("/src/") && name.ends_with(".rs") {
            let text = fs::read_to_string(&path).unwrap();
            files.push((
                name,
                text.split("#[cfg(test)]\nmod tests").next().unwrap().to_owned(),
            ));
        }
    }
}

/// Check that the lists are complete, name no file too many, and are short.
#[test]
fn lists_are_complete() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = fs::read_to_string(root.join("CONTRIBUTING.md")).unwrap();
    for addition in &ADDITIONS {
        let listed = listed(&text, addition.section);
        assert_eq!(named(root, addition), listed, "{}", addition.section);
        assert!(listed.len() <= addition.files_max, "{}: {listed:?}", addition.section);
    }
}
