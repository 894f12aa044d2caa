//! Recorded trees for tests, with few files.

use std::fs;

use crate::fact::{Unknown, Why};
use crate::sources::Sources;
use crate::tree::root::Root;

/// A tree that is removed when this is dropped.
pub(crate) struct Tree {
    _directory: tempfile::TempDir,
    /// The tree.
    pub(crate) root: Root,
}

impl Tree {
    /// The sources of the tree.
    pub(crate) fn sources(&self) -> Sources<'_> {
        Sources::read(&self.root)
    }
}

/// A tree with these files.
pub(crate) fn tree(files: &[(&str, &str)]) -> Tree {
    tree_refusing(files, &[])
}

/// A tree with these files, in which the files of `refused` could not be read.
pub(crate) fn tree_refusing(files: &[(&str, &str)], refused: &[(&str, Why)]) -> Tree {
    let unreadable: serde_json::Map<String, serde_json::Value> = refused
        .iter()
        .map(|(path, code)| {
            let unknown = Unknown::new(*code, format!("{path} is refused"));
            ((*path).to_owned(), serde_json::to_value(unknown).unwrap())
        })
        .collect();
    write(files, &serde_json::json!({"format": 1, "unreadable": unreadable}))
}

/// A tree with these files, in which the files of `read_only` had no write permission.
pub(crate) fn tree_with_permissions(
    files: &[(&str, &str)],
    read_only: Option<&[&str]>,
) -> Tree {
    write(
        files,
        &serde_json::json!({"format": 1, "unreadable": {}, "read_only": read_only}),
    )
}

fn write(files: &[(&str, &str)], manifest: &serde_json::Value) -> Tree {
    let directory = tempfile::tempdir().unwrap();
    let manifest = manifest.to_string();
    let own = [("/proc/version", "Linux version"), ("/noisefloor-tree.json", &manifest)];
    for (path, text) in own.iter().chain(files) {
        let place = directory.path().join(&path[1..]);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, text).unwrap();
    }
    let root = Root::tree(directory.path()).unwrap();
    Tree { _directory: directory, root }
}
