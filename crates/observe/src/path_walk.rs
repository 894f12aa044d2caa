//! Paths as the kernel resolves them (path_resolution(7)), through what was there before the program
//! changed it.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use crate::observation::Node;

/// As many links as the kernel follows in a path (`MAXSYMLINKS`).
const LINKS_MAX: u32 = 40;
/// The permissions in `st_mode`.
const PERMISSIONS: u32 = 0o7777;

/// What was at each path when it was looked at first.
#[derive(Debug, Default)]
pub(crate) struct Before {
    /// By the text of a path without links, which is compared faster than a path.
    nodes: HashMap<OsString, Node>,
    /// The directories whose paths have no links and are not ignored: most paths begin with one.
    plain: HashSet<OsString>,
}

/// A path without links.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Walked {
    pub(crate) path: PathBuf,
    /// The links on the way that were there before.
    pub(crate) links: Vec<(PathBuf, PathBuf)>,
}

impl Before {
    /// What was at a path without links.
    pub(crate) fn node(&mut self, path: &Path) -> Node {
        if let Some(node) = self.nodes.get(path.as_os_str()) {
            return node.clone();
        }
        // What is in a directory that the program made is its own.
        let is_own =
            path.parent().is_some_and(|parent| self.node(parent) == Node::Missing);
        let node = if is_own { Node::Missing } else { node(path) };
        self.nodes.insert(path.into(), node.clone());
        node
    }

    /// The part of an absolute path that is a directory without links, and the rest.
    fn start<'a>(&self, path: &'a Path) -> (PathBuf, &'a Path) {
        let text = path.as_os_str().as_bytes();
        let split = text.iter().rposition(|&byte| byte == b'/').unwrap_or_default();
        let (folder, rest) = text.split_at(split);
        let folder = OsStr::from_bytes(folder);
        match self.plain.contains(folder) {
            true => (folder.into(), Path::new(OsStr::from_bytes(&rest[1..]))),
            false => (PathBuf::from("/"), path),
        }
    }

    /// Resolves an absolute path; `ignored` is always the same. A path ends at the first part that does not
    /// exist; `None` if it is ignored, or circular. The last part is followed if `follows`.
    pub(crate) fn walk(
        &mut self,
        path: &Path,
        follows: bool,
        ignored: &[&str],
    ) -> Option<Walked> {
        let (start, rest) = self.start(path);
        let (mut left, mut at, mut links) = (parts(rest), start, Vec::new());
        let mut followed = 0;
        while let Some(part) = left.pop() {
            if part == *".." {
                at.pop();
                continue;
            }
            let next = at.join(part);
            if ignored.iter().any(|path| next == Path::new(path)) {
                return None;
            }
            let before = self.node(&next);
            let is_own = before == Node::Missing;
            let now = if is_own { node(&next) } else { before };
            match now {
                Node::Missing => return Some(Walked { path: next, links }),
                Node::Link(target) => {
                    if !is_own {
                        links.push((next.clone(), target.clone()));
                    }
                    if left.is_empty() && !follows {
                        return Some(Walked { path: next, links });
                    }
                    followed += 1;
                    if followed > LINKS_MAX {
                        return None;
                    }
                    if target.is_absolute() {
                        at = PathBuf::from("/");
                    }
                    left.extend(parts(&target));
                }
                Node::Directory(_) => {
                    if !is_own {
                        self.plain.insert((&next).into());
                    }
                    at = next;
                }
                Node::File { .. } | Node::Special => at = next,
            }
        }
        Some(Walked { path: at, links })
    }
}

/// The names of a path and its `..`, the first one last.
fn parts(path: &Path) -> Vec<OsString> {
    let part = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsStr::new("..").to_owned()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    };
    path.components().rev().filter_map(part).collect()
}

/// What is at a path now.
pub(crate) fn node(path: &Path) -> Node {
    match fs::symlink_metadata(path) {
        Ok(about) => kind(path, &about),
        Err(_) => Node::Missing,
    }
}

fn kind(path: &Path, about: &Metadata) -> Node {
    let mode = about.permissions().mode() & PERMISSIONS;
    if about.is_dir() {
        Node::Directory(mode)
    } else if about.is_file() {
        Node::File { mode, size: about.len(), modified: about.mtime() }
    } else if about.is_symlink() {
        fs::read_link(path).map_or(Node::Missing, Node::Link)
    } else {
        Node::Special
    }
}

/// A path without `.` and `..`, as text.
pub fn without_dots(path: &Path) -> PathBuf {
    let mut shortest = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                shortest.pop();
            }
            Component::CurDir => {}
            Component::RootDir | Component::Normal(_) | Component::Prefix(_) => {
                shortest.push(part);
            }
        }
    }
    shortest
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// Check that a path is resolved through what was there before, also after it was changed, and
    /// that what a program makes is followed, but not taken for something that was there.
    #[test]
    fn walks() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let at = |name: &str| root.join(name);
        fs::create_dir(at("real")).unwrap();
        fs::write(at("real/file"), "12345").unwrap();
        symlink("real", at("link")).unwrap();
        let mut before = Before::default();
        let mut walk = |name: &str, follows| {
            let walked = before.walk(&at(name), follows, &["/proc"]).unwrap();
            (walked.path, walked.links.len(), before.node(&at("real/file")))
        };
        let (path, links, node) = walk("link/../link/./file", true);
        assert_eq!((path, links), (at("real/file"), 2));
        assert!(matches!(node, Node::File { size: 5, .. }));
        assert_eq!(walk("link", false).0, at("link"));
        assert_eq!(walk("none/file", true).0, at("none"));
        fs::remove_file(at("link")).unwrap();
        assert_eq!(walk("link/file", true).0, at("real/file"));
        fs::create_dir(at("none")).unwrap();
        symlink(at("real"), at("none/own")).unwrap();
        let (path, links, _) = walk("none/own/file", true);
        assert_eq!((path, links), (at("real/file"), 0));
        assert_eq!(before.node(&at("none/own")), Node::Missing);
        let ignored = [root.to_str().unwrap()];
        assert_eq!(Before::default().walk(&at("real"), true, &ignored), None);
        symlink("circle", at("circle")).unwrap();
        assert_eq!(before.walk(&at("circle"), true, &[]), None);
    }
}
