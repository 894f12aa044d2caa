//! Small recorded trees for tests: only the files a test is about.

use std::fs;

use crate::fact::{Unknown, Why};
use crate::sources::Sources;
use crate::tree::root::Root;

/// A tree that is gone when the test is over.
pub(crate) struct Tree {
    _directory: tempfile::TempDir,
    /// The tree, to be read.
    pub(crate) root: Root,
}

impl Tree {
    /// What groups of facts are read from.
    pub(crate) fn sources(&self) -> Sources<'_> {
        Sources::read(&self.root)
    }
}

/// A tree of these files.
pub(crate) fn tree(files: &[(&str, &str)]) -> Tree {
    tree_refusing(files, &[])
}

/// A tree of these files, in which reading those others was refused.
pub(crate) fn tree_refusing(files: &[(&str, &str)], refused: &[(&str, Why)]) -> Tree {
    let directory = tempfile::tempdir().unwrap();
    let unreadable: serde_json::Map<String, serde_json::Value> = refused
        .iter()
        .map(|(path, code)| {
            let unknown = Unknown::new(*code, format!("{path} is refused"));
            ((*path).to_owned(), serde_json::to_value(unknown).unwrap())
        })
        .collect();
    let manifest = serde_json::json!({"format": 1, "unreadable": unreadable}).to_string();
    let own = [("/proc/version", "Linux version"), ("/noisefloor-tree.json", &manifest)];
    for (path, text) in own.iter().chain(files) {
        let place = directory.path().join(&path[1..]);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, text).unwrap();
    }
    let root = Root::tree(directory.path()).unwrap();
    Tree { _directory: directory, root }
}
