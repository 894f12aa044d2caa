//! What a program has used so far.

use std::collections::btree_map::Entry;
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;

use crate::observation::{Contents, FileUse, Listed, Node, Observation};
use crate::path_walk::{Before, without_dots};
use crate::{Counts, Request};

/// What a call does at a path, as far as it matters for what was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Touch {
    /// Looks it up.
    Look,
    /// Opens it, to read it.
    Read,
    /// Executes it.
    Execute,
    /// Reads and changes it.
    Change,
    /// Creates it; it must not exist.
    Create,
    /// Replaces all of it, whether it exists or not.
    Replace,
    /// Empties or removes it, if it exists.
    Remove,
    /// Gives it another name, with everything below it.
    Move,
}

/// The paths so far.
pub(crate) struct Uses<'a> {
    request: &'a Request<'a>,
    counts: &'a Counts,
    before: Before,
    pub(crate) observation: Observation,
    /// The bytes of contents that are stored.
    stored: u64,
}

impl<'a> Uses<'a> {
    pub(crate) fn new(request: &'a Request<'a>, counts: &'a Counts) -> Self {
        let (before, observation) = Default::default();
        Self { request, counts, before, observation, stored: 0 }
    }

    /// Adds the use of an absolute path, before the call that makes it.
    pub(crate) fn add(&mut self, path: &Path, follows: bool, touch: Touch) {
        let Some(walked) = self.before.walk(path, follows, self.request.ignored) else {
            return;
        };
        self.observation.links.extend(walked.links);
        self.touch(&walked.path, touch);
    }

    /// Adds what is listed of the directory at a path without links.
    pub(crate) fn list(&mut self, path: &Path) {
        let is_ignored = |ignored: &&str| path.starts_with(ignored);
        if self.request.ignored.iter().any(is_ignored)
            || self.observation.listings.contains_key(path)
            || !matches!(self.before.node(path), Node::Directory(_))
        {
            return;
        }
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut listed = Vec::new();
        for entry in entries {
            let node = self.before.node(&entry.path());
            if node != Node::Missing {
                listed.push(Listed { name: entry.file_name(), node });
            }
        }
        listed.sort_by(|a, b| a.name.cmp(&b.name));
        self.observation.listings.insert(path.to_owned(), listed);
    }

    /// Notes how a path was named: from the root, or through the `..` of the program's folder.
    pub(crate) fn note_name(&mut self, base: Option<&Path>, path: &Path) {
        let folder = self.request.folder;
        let Some(base) = base else {
            self.observation.names_folder |= path.starts_with(folder);
            return;
        };
        if !base.starts_with(folder) {
            return;
        }
        let full = without_dots(&base.join(path));
        if full.starts_with(folder) {
            return;
        }
        let common = folder.ancestors().find(|ancestor| full.starts_with(ancestor));
        let rest = common.and_then(|common| full.strip_prefix(common).ok());
        let first = rest.and_then(|rest| rest.components().next());
        if let (Some(common), Some(first)) = (common, first) {
            self.observation.above.insert(common.join(first));
        }
    }

    fn touch(&mut self, path: &Path, touch: Touch) {
        let node = self.before.node(path);
        let used = match self.observation.files.entry(path.to_owned()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                if let Node::File { size, .. } = node {
                    self.counts.files.fetch_add(1, Ordering::Relaxed);
                    self.counts.bytes.fetch_add(size, Ordering::Relaxed);
                }
                entry.insert(FileUse::new(node))
            }
        };
        let creates = matches!(touch, Touch::Create | Touch::Change | Touch::Replace);
        used.is_created |= creates && used.node == Node::Missing;
        let is_directory = matches!(used.node, Node::Directory(_));
        used.is_replaced |= touch == Touch::Create && is_directory;
        used.is_opened |=
            matches!(touch, Touch::Read | Touch::Execute | Touch::Change | Touch::Move);
        match touch {
            Touch::Look | Touch::Read | Touch::Create => used.is_used = true,
            Touch::Execute => (used.is_used, used.is_executed) = (true, true),
            Touch::Change | Touch::Move => {
                used.store(path, self.request.contents_max, &mut self.stored);
                used.is_used = true;
                if touch == Touch::Move {
                    self.move_all(path);
                }
            }
            Touch::Replace if !used.is_used => used.is_replaced = true,
            Touch::Replace | Touch::Remove => {
                if used.is_used {
                    used.store(path, self.request.contents_max, &mut self.stored);
                }
            }
        }
    }

    /// Adds everything in a directory that gets another name.
    fn move_all(&mut self, path: &Path) {
        if !matches!(self.before.node(path), Node::Directory(_)) {
            return;
        }
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            match self.before.node(&entry.path()) {
                Node::Missing => {}
                Node::Link(target) => {
                    self.observation.links.insert(entry.path(), target);
                }
                Node::Directory(_) | Node::File { .. } | Node::Special => {
                    self.touch(&entry.path(), Touch::Move);
                }
            }
        }
    }
}

impl FileUse {
    fn new(node: Node) -> Self {
        Self {
            node,
            is_executed: false,
            is_used: false,
            is_opened: false,
            is_replaced: false,
            is_created: false,
            contents: Contents::Same,
        }
    }

    /// Stores the contents of a file that has not been changed yet.
    fn store(&mut self, path: &Path, most: u64, stored: &mut u64) {
        let Node::File { size, .. } = self.node else { return };
        if self.is_replaced || self.contents != Contents::Same {
            return;
        }
        let contents = match stored.saturating_add(size) <= most {
            true => fs::read(path).ok(),
            false => None,
        };
        self.contents = match contents {
            Some(contents) => {
                *stored += contents.len() as u64;
                Contents::Stored(contents)
            }
            None => Contents::Lost,
        };
    }
}
