//! The files of a guest, by path, before they are an archive.
//!
//! A path is resolved through the links that are there, as the guest's kernel will, so that
//! `/bin/sh` is a file in `/usr/bin`.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

use experiments::is_owned_path;
use units::printable;

use crate::pack_error::PackError;
use crate::packing::links;
use crate::packing::{Archive, FILES_MAX};

/// The kind of a file, as in `st_mode`.
const DIRECTORY: u32 = 0o040_000;
const PLAIN: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
/// The permissions of directories that are only on the way to a file, and those of links.
const USUAL: u32 = 0o755;
/// The size of a page, in bytes.
const PAGE: u64 = 4096;
const ALL: u32 = 0o777;
/// So many of the largest files are named.
const LARGEST: usize = 5;

/// A file, a directory or a link.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Directory(u32),
    File(File),
    Link(String),
}

/// A regular file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct File {
    /// Its permissions.
    pub(super) mode: u32,
    /// The time of its last change, in seconds since 1970.
    pub(super) modified: u32,
    pub(super) contents: Vec<u8>,
}

/// The files of a guest.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// By path: parents are before their children.
    nodes: BTreeMap<String, Node>,
    /// The size of all files that were added.
    bytes: u64,
}

impl Tree {
    /// Adds a directory and its parents; one that is there keeps its permissions unless others are
    /// given.
    pub(super) fn directory(
        &mut self,
        path: &str,
        mode: Option<u32>,
    ) -> Result<(), PackError> {
        let path = self.resolve(path, true)?;
        self.parents(&path)?;
        match self.nodes.get_mut(&path) {
            None if path == "/" => {}
            None => {
                self.nodes.insert(path, Node::Directory(mode.unwrap_or(USUAL)));
            }
            Some(Node::Directory(given)) => *given = mode.unwrap_or(*given),
            Some(Node::File(_) | Node::Link(_)) => {
                return Err(PackError::Conflict(path));
            }
        }
        Ok(())
    }

    /// Adds a file; it replaces another one.
    pub(super) fn file(&mut self, path: &str, file: File) -> Result<(), PackError> {
        self.bytes = self.bytes.saturating_add(file.contents.len() as u64);
        refuse_size(self.bytes)?;
        self.insert(path, Node::File(file))
    }

    /// Adds a symbolic link; it replaces a file.
    pub(super) fn link(&mut self, path: &str, target: &str) -> Result<(), PackError> {
        self.insert(path, Node::Link(target.to_owned()))
    }

    /// Whether there is a file, a directory or a link.
    pub(super) fn has(&self, path: &str) -> bool {
        self.resolve(path, true).is_ok_and(|path| self.nodes.contains_key(&path))
    }

    /// Whether there is a directory.
    pub(super) fn has_directory(&self, path: &str) -> bool {
        let path = self.resolve(path, true);
        path.is_ok_and(|path| matches!(self.nodes.get(&path), Some(Node::Directory(_))))
    }

    /// Whether there is one of that name itself, which may be a link to nowhere.
    pub(super) fn has_name(&self, path: &str) -> bool {
        self.resolve(path, false).is_ok_and(|path| self.nodes.contains_key(&path))
    }

    fn insert(&mut self, path: &str, node: Node) -> Result<(), PackError> {
        let path = self.resolve(path, false)?;
        if is_owned_path(&path) {
            return Err(PackError::Owned(path));
        }
        self.parents(&path)?;
        if let Some(Node::Directory(_)) = self.nodes.get(&path) {
            return Err(PackError::Conflict(path));
        }
        self.nodes.insert(path, node);
        Ok(())
    }

    /// Adds the directories on the way to a resolved path.
    fn parents(&mut self, path: &str) -> Result<(), PackError> {
        let ends = path.match_indices('/').map(|(end, _)| end).skip(1);
        for end in ends {
            let parent = &path[..end];
            match self.nodes.get(parent) {
                Some(Node::Directory(_)) => {}
                None => {
                    self.nodes.insert(parent.to_owned(), Node::Directory(USUAL));
                }
                Some(Node::File(_) | Node::Link(_)) => {
                    return Err(PackError::Conflict(parent.to_owned()));
                }
            }
        }
        Ok(())
    }

    /// A path without links, except for its last part if that is not to be followed.
    pub(super) fn resolve(&self, path: &str, follow: bool) -> Result<String, PackError> {
        links::resolve(path, |next, is_last| match self.nodes.get(next) {
            Some(Node::Link(target)) if follow || !is_last => Ok(Some(target.clone())),
            Some(Node::Directory(_) | Node::File(_) | Node::Link(_)) | None => Ok(None),
        })
    }

    /// What the files fill in a file system of the guest, in bytes: whole pages, and about a page for
    /// everything else about each.
    pub(super) fn unpacked(&self) -> u64 {
        let pages = |node: &Node| match node {
            Node::File(file) => 1 + (file.contents.len() as u64).div_ceil(PAGE),
            Node::Directory(_) | Node::Link(_) => 1,
        };
        self.nodes.values().map(|node| pages(node) * PAGE).sum()
    }

    /// The archive.
    ///
    /// # Errors
    /// A file is too long for one.
    pub(super) fn archive(self) -> Result<Vec<u8>, PackError> {
        let mut archive = Archive::default();
        for (path, node) in self.nodes {
            let name = path.trim_start_matches('/');
            match node {
                Node::Directory(mode) => archive.add(name, DIRECTORY | mode, 0, &[])?,
                Node::File(file) => {
                    archive.add(
                        name,
                        PLAIN | file.mode,
                        file.modified,
                        &file.contents,
                    )?;
                }
                Node::Link(target) => {
                    archive.add(name, LINK | ALL, 0, target.as_bytes())?;
                }
            }
        }
        Ok(archive.finish()?)
    }
}

/// Refuses files that fit into no guest together, and names the largest.
pub(super) fn refuse_sizes<'a>(
    files: impl Iterator<Item = (&'a Path, u64)>,
) -> Result<(), PackError> {
    let mut files: Vec<_> = files.collect();
    if files.iter().map(|(_, size)| size).sum::<u64>() <= FILES_MAX << 20 {
        return Ok(());
    }
    files.sort_by_key(|&(_, size)| Reverse(size));
    let largest = files.iter().take(LARGEST).map(|(path, size)| {
        format!("{} ({} MiB)", printable(&path.to_string_lossy()), size >> 20)
    });
    let largest = largest.collect::<Vec<_>>().join(", ");
    Err(PackError::TooLargeTogether { most: FILES_MAX, largest })
}

/// Refuses files that fit into no guest.
pub(super) fn refuse_size(bytes: u64) -> Result<(), PackError> {
    match bytes > FILES_MAX << 20 {
        true => Err(PackError::TooLarge(FILES_MAX)),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(tree: &Tree) -> Vec<&str> {
        tree.nodes.keys().map(String::as_str).collect()
    }

    /// Check that files are added where the guest's kernel looks for them, with their parents.
    #[test]
    fn links_are_followed() {
        let mut tree = Tree::default();
        tree.link("/bin", "usr/bin").unwrap();
        tree.file("/bin/sh", File::default()).unwrap();
        tree.link("/usr/bin/awk", "/etc/alternatives/awk").unwrap();
        tree.file("/usr/bin/awk", File::default()).unwrap();
        assert_eq!(
            paths(&tree),
            ["/bin", "/usr", "/usr/bin", "/usr/bin/awk", "/usr/bin/sh"]
        );
        assert!(tree.has("/bin/sh") && !tree.has("/bin/bash"));
        tree.link("/usr/bin/lost", "nowhere").unwrap();
        assert!(tree.has_name("/bin/lost") && !tree.has("/bin/lost"));
    }

    /// Check that a path is either a file or a directory, and that links may not be circular.
    #[test]
    fn conflicts() {
        let mut tree = Tree::default();
        tree.file("/a", File::default()).unwrap();
        let text = |error: PackError| error.to_string();
        assert!(text(tree.file("/a/b", File::default()).unwrap_err()).contains("/a"));
        assert!(text(tree.directory("/a", None).unwrap_err()).contains("/a"));
        tree.link("/x", "y").unwrap();
        tree.link("/y", "x").unwrap();
        assert!(matches!(tree.resolve("/x", true), Err(PackError::Loop(_))));
        tree.directory("/c/d", None).unwrap();
        assert!(matches!(tree.link("/c", "a"), Err(PackError::Conflict(_))));
    }

    /// Check that a directory keeps its permissions unless others are given.
    #[test]
    fn permissions() {
        let mut tree = Tree::default();
        tree.directory("/tmp", Some(0o1777)).unwrap();
        tree.directory("/tmp", None).unwrap();
        assert_eq!(tree.nodes.get("/tmp"), Some(&Node::Directory(0o1777)));
        tree.directory("/", None).unwrap();
        assert_eq!(paths(&tree), ["/tmp"]);
    }
}
