//! The root of the files that facts are read from: the live machine or a recorded tree.
//!
//! A tree is a directory with the files at their own paths (`DIR/proc/version`), and a manifest,
//! `DIR/noisefloor-tree.json`, with the reasons for which other files could not be read. Links in a
//! tree lead only to files in it ([`crate::tree`]). In a tree that was written manually, the
//! manifest may be missing: then files that are not there did not exist on the machine.
//!
//! Of a kernel's configuration, and of a node in a must-gather, only some files are
//! given: of all others it is unknown whether they existed.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::str::FromStr;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use units::CpuSet;

use crate::error::{Error, Kind};
use crate::fact::{Unknown, Why};
use crate::tree::Tree;
use crate::tree::holders::{self, FOLDERS};

/// The manifest's file name.
const MANIFEST: &str = "noisefloor-tree.json";
/// The maximum size of a file in a tree; larger than any file facts are read from.
const BYTES_MAX: u64 = 16 << 20;
/// The maximum size of one CPU in `/proc/cpuinfo`.
const HEAD_MAX: u64 = 8 << 10;
/// The maximum length of a record of `/dev/kmsg` (`PRINTK_MESSAGE_MAX`, `CONSOLE_EXT_LOG_MAX`).
const RECORD_MAX: usize = 8192;
/// The maximum length of the kernel's messages; ten times the messages of a boot.
const LOG_MAX: usize = 1 << 20;

/// The manifest of a recorded tree.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Manifest {
    format: u32,
    unreadable: BTreeMap<String, Unknown>,
    /// The files without a write permission, of those whose permissions facts use; `None` in older
    /// trees.
    #[serde(default)]
    read_only: Option<BTreeSet<String>>,
    /// The processes that had a file open, by file, of those for which facts use it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    holders: BTreeMap<String, Vec<String>>,
}

impl Manifest {
    /// Reads the manifest of a tree; empty if it does not exist.
    fn read(tree: &Tree) -> io::Result<Self> {
        let file = match tree.file(MANIFEST) {
            Ok(file) => file.ok_or_else(|| io::Error::other("not a regular file"))?,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        file.take(BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(serde_json::from_slice(&bytes)?)
    }
}

#[derive(Debug)]
enum Base {
    Live,
    Tree {
        tree: Tree,
        manifest: Manifest,
    },
    /// Files in memory, by path.
    Files(BTreeMap<String, Vec<u8>>),
}

/// The root of the files, with a cache of all files that were read.
#[derive(Debug)]
pub struct Root {
    base: Base,
    cache: RefCell<BTreeMap<String, Result<Vec<u8>, Unknown>>>,
    read_only: RefCell<BTreeSet<String>>,
    holders: RefCell<BTreeMap<String, Result<Vec<String>, Unknown>>>,
}

impl Root {
    /// The machine on which this process runs.
    pub fn live() -> Self {
        Self::of(Base::Live)
    }

    fn of(base: Base) -> Self {
        Self {
            base,
            cache: RefCell::default(),
            read_only: RefCell::default(),
            holders: RefCell::default(),
        }
    }

    /// A tree that was recorded by [`Root::record`], or written manually.
    ///
    /// # Errors
    /// `Kind::Tree` if the directory cannot be read or has no files of a kernel, or its manifest is
    /// invalid.
    pub fn tree(dir: &Path) -> Result<Self, Error> {
        let tree = Tree::open(dir).map_err(|why| Error::new(Kind::Tree, dir, why))?;
        if !["proc/version", "proc/sys/kernel/osrelease"]
            .iter()
            .any(|path| matches!(tree.file(path), Ok(Some(_))))
        {
            let text = "not a recorded tree: it has neither proc/version nor \
                        proc/sys/kernel/osrelease (make one with noisefloor facts --record DIR)";
            return Err(Error::new(Kind::Tree, dir, text));
        }
        let manifest = Manifest::read(&tree)
            .map_err(|why| Error::new(Kind::Tree, &dir.join(MANIFEST), why))?;
        Ok(Self::of(Base::Tree { tree, manifest }))
    }

    /// A machine of which only these files are known, by their paths.
    pub fn files(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        Self::of(Base::Files(files.into_iter().collect()))
    }

    /// Whether this is the live machine.
    pub fn is_live(&self) -> bool {
        matches!(self.base, Base::Live)
    }

    /// The contents of a file.
    ///
    /// # Errors
    /// Why the file could not be read.
    pub fn bytes(&self, path: &str) -> Result<Vec<u8>, Unknown> {
        if let Some(cached) =
            self.cache.borrow().get(path).filter(|cached| !may_be_head(cached))
        {
            return cached.clone();
        }
        let found = self.fetch(path, BYTES_MAX);
        self.cache.borrow_mut().insert(path.to_owned(), found.clone());
        found
    }

    /// The contents of a file as text; bytes that are not UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// Why the file could not be read.
    pub fn text(&self, path: &str) -> Result<String, Unknown> {
        Ok(String::from_utf8_lossy(&self.bytes(path)?).into_owned())
    }

    /// The whole contents of a file, parsed.
    pub(crate) fn parsed<T: FromStr>(
        &self,
        path: &str,
        expected: &str,
    ) -> Result<T, Unknown> {
        let text = self.text(path)?;
        let garbage = |_| Unknown::garbage(path, 1, &text, expected);
        text.trim().parse().map_err(garbage)
    }

    /// A file with a mask of CPUs.
    pub(crate) fn mask(&self, path: &str) -> Result<CpuSet, Unknown> {
        let text = self.text(path)?;
        let garbage = |_| Unknown::garbage(path, 1, &text, "a mask of CPUs");
        CpuSet::from_mask(&text).map_err(garbage)
    }

    /// The only line of a file, without leading and trailing white space.
    pub(crate) fn line(&self, path: &str) -> Result<String, Unknown> {
        let text = self.text(path)?;
        let line = text.trim();
        if line.is_empty() {
            return Err(Unknown::new(Why::Absent, format!("{path} is empty")));
        }
        if line.chars().any(char::is_control) {
            return Err(Unknown::garbage(path, 1, line, "one line of text"));
        }
        Ok(line.to_owned())
    }

    /// The beginning of a file that can be long, as text. The kernel generates such files during
    /// reading, CPU by CPU: reading the remainder would take time.
    ///
    /// # Errors
    /// Why the file could not be read.
    pub(crate) fn head(&self, path: &str) -> Result<String, Unknown> {
        let mut cache = self.cache.borrow_mut();
        let found =
            cache.entry(path.to_owned()).or_insert_with(|| self.fetch(path, HEAD_MAX));
        found.clone().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The current contents of `/dev/kmsg`. Reading this file as any other would wait for the next
    /// message. Messages after the first mebibyte are skipped; facts use only messages of the boot.
    ///
    /// # Errors
    /// Why the file could not be read.
    pub(crate) fn kernel_log(&self, path: &str) -> Result<Vec<u8>, Unknown> {
        if let Some(cached) = self.cache.borrow().get(path) {
            return cached.clone();
        }
        let found = match self.is_live() {
            true => records(path).map_err(|error| self.reason(path, &error.into())),
            false => self.fetch(path, BYTES_MAX),
        };
        self.cache.borrow_mut().insert(path.to_owned(), found.clone());
        found
    }

    /// Whether a file exists; `Err` if that cannot be determined. The file is not read, and is
    /// recorded as an empty file.
    ///
    /// # Errors
    /// Why it is unknown whether the file exists.
    pub fn exists(&self, path: &str) -> Result<bool, Unknown> {
        let found = match &self.base {
            Base::Live => fs::symlink_metadata(path).map(drop),
            Base::Tree { tree, .. } => tree.has(path),
            Base::Files(files) if files.contains_key(path) => Ok(()),
            Base::Files(files) => {
                return below(files, path)
                    .next()
                    .map(|_| true)
                    .ok_or_else(|| not_given(path));
            }
        };
        let found = found.map(|()| Vec::new()).map_err(|why| self.reason(path, &why));
        self.cache.borrow_mut().entry(path.to_owned()).or_insert_with(|| found.clone());
        match found {
            Ok(_) => Ok(true),
            Err(unknown) if unknown.code == Why::Absent => Ok(false),
            Err(unknown) => Err(unknown),
        }
    }

    /// Whether a file has no write permission, not even for root. The file is not read.
    ///
    /// # Errors
    /// Why that is unknown.
    pub(crate) fn is_read_only(&self, path: &str) -> Result<bool, Unknown> {
        match &self.base {
            Base::Live => {
                let about = fs::metadata(path).map_err(|why| self.reason(path, &why))?;
                let is_read_only = about.permissions().readonly();
                if is_read_only {
                    self.read_only.borrow_mut().insert(path.to_owned());
                }
                Ok(is_read_only)
            }
            Base::Tree { manifest, .. } => {
                let recorded = manifest.read_only.as_ref().ok_or_else(|| {
                    let text = "the recorded tree has no permissions of files";
                    Unknown::new(Why::NotRecorded, text)
                })?;
                Ok(recorded.contains(path))
            }
            Base::Files(_) => {
                let text = "only the contents of files are given";
                Err(Unknown::new(Why::NotRecorded, text))
            }
        }
    }

    /// The processes that have a file open, without this one, as `NAME (PID)`, sorted.
    ///
    /// # Errors
    /// Why they are unknown.
    pub(crate) fn holders(&self, path: &str) -> Result<Vec<String>, Unknown> {
        let mut cache = self.holders.borrow_mut();
        let found = cache.entry(path.to_owned()).or_insert_with(|| match &self.base {
            Base::Live => {
                holders::holders(path).map_err(|error| self.reason(FOLDERS, &error))
            }
            Base::Tree { manifest, .. } => {
                manifest.holders.get(path).cloned().ok_or_else(|| {
                    manifest.unreadable.get(FOLDERS).cloned().unwrap_or_else(|| {
                        let text = format!(
                            "the recorded tree has no processes that hold {path}"
                        );
                        Unknown::new(Why::NotRecorded, text)
                    })
                })
            }
            Base::Files(_) => Err(not_given(FOLDERS)),
        });
        found.clone()
    }

    /// The names in a directory, sorted.
    ///
    /// # Errors
    /// Why the directory could not be read.
    pub fn list(&self, path: &str) -> Result<Vec<String>, Unknown> {
        let names = match &self.base {
            Base::Live => names(path),
            Base::Tree { tree, .. } => tree.list(path),
            Base::Files(files) => {
                let names: BTreeSet<&str> = below(files, path).collect();
                let names = names.into_iter().map(str::to_owned).collect::<Vec<_>>();
                return if names.is_empty() { Err(not_given(path)) } else { Ok(names) };
            }
        };
        let mut names = names.map_err(|error| self.reason(path, &error))?;
        names.sort();
        Ok(names)
    }

    /// Writes all files that were read so far as a tree in an open folder, which must be empty; `dir` is
    /// its path, for messages. `redact` returns the contents to store for each file.
    ///
    /// # Errors
    /// `Kind::Record` if a file cannot be written.
    pub fn record(
        &self,
        dir: &Path,
        folder: impl AsFd,
        redact: impl Fn(&str, &[u8]) -> Vec<u8>,
    ) -> Result<(), Error> {
        let failed = |error: io::Error| Error::new(Kind::Record, dir, error);
        let tree = Tree::of(folder).map_err(failed)?;
        if !tree.is_empty().map_err(failed)? {
            return Err(Error::new(Kind::Record, dir, "the directory is not empty"));
        }
        let write = |path: &str, bytes: &[u8]| {
            let full_path = || dir.join(path.trim_start_matches('/'));
            let written = tree.write(path, bytes);
            written.map_err(|why| Error::new(Kind::Record, &full_path(), why))
        };
        let read_only = match &self.base {
            Base::Live => Some(self.read_only.borrow().clone()),
            Base::Tree { manifest, .. } => manifest.read_only.clone(),
            Base::Files(_) => None,
        };
        let mut manifest = Manifest { format: 1, read_only, ..Manifest::default() };
        for (path, found) in self.cache.borrow().iter() {
            match found {
                Ok(bytes) => write(path, &redact(path, bytes))?,
                Err(unknown) if unknown.code == Why::Absent => {}
                Err(unknown) => {
                    manifest.unreadable.insert(path.clone(), unknown.clone());
                }
            }
        }
        self.record_holders(&mut manifest);
        let text = serde_json::to_string_pretty(&manifest)
            .map_err(|error| Error::new(Kind::Record, dir, error))?;
        write(MANIFEST, (text + "\n").as_bytes())
    }

    fn record_holders(&self, manifest: &mut Manifest) {
        for (path, found) in self.holders.borrow().iter() {
            match found {
                Ok(processes) => {
                    manifest.holders.insert(path.clone(), processes.clone());
                }
                Err(unknown) if unknown.code == Why::NotRecorded => {}
                Err(unknown) => {
                    manifest.unreadable.insert(FOLDERS.to_owned(), unknown.clone());
                }
            }
        }
    }

    fn fetch(&self, path: &str, bytes_max: u64) -> Result<Vec<u8>, Unknown> {
        let file = match &self.base {
            Base::Live => fs::File::open(path).map(Some),
            Base::Tree { tree, .. } => tree.file(path),
            Base::Files(files) => {
                return files.get(path).cloned().ok_or_else(|| not_given(path));
            }
        };
        let file = file.map_err(|error| self.reason(path, &error))?.ok_or_else(|| {
            let text = format!("{path}: not a plain file in the recorded tree");
            Unknown::new(Why::Garbage, text)
        })?;
        let mut bytes = Vec::new();
        let read = file.take(bytes_max).read_to_end(&mut bytes);
        read.map_err(|error| self.reason(path, &error))?;
        Ok(bytes)
    }

    /// Converts an error of the file system into the reason for an unknown value.
    fn reason(&self, path: &str, error: &std::io::Error) -> Unknown {
        if let Base::Tree { manifest, .. } = &self.base {
            if let Some(unknown) = manifest.unreadable.get(path) {
                return unknown.clone();
            }
        }
        #[expect(clippy::wildcard_enum_match_arm, reason = "a large enum of std")]
        let (code, text) = match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => {
                (Why::Absent, format!("{path} is not there"))
            }
            ErrorKind::PermissionDenied if rustix::process::geteuid().is_root() => {
                let text = "refused even to root: lockdown, or a capability is missing";
                (Why::Lockdown, format!("{path} is {text}"))
            }
            ErrorKind::PermissionDenied => {
                (Why::NeedsRoot, format!("{path} may be read by root only"))
            }
            _ => (Why::Absent, format!("{path}: {error}")),
        };
        Unknown::new(code, text)
    }
}

/// Why a file is unknown where only some are given.
fn not_given(path: &str) -> Unknown {
    Unknown::new(Why::NotRecorded, format!("{path} is not given"))
}

/// The names in a directory, once for each file below it.
fn below<'a>(
    files: &'a BTreeMap<String, Vec<u8>>,
    folder: &str,
) -> impl Iterator<Item = &'a str> {
    let folder = format!("{}/", folder.trim_end_matches('/'));
    let first = files.range(folder.clone()..);
    first.map_while(move |(path, _)| path.strip_prefix(&folder)?.split('/').next())
}

/// Reads all available records.
fn records(path: &str) -> Result<Vec<u8>, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    let mut bytes = Vec::new();
    let mut record = [0; RECORD_MAX];
    while bytes.len() < LOG_MAX {
        match rustix::io::read(&file, &mut record) {
            Ok(0) | Err(Errno::AGAIN) => break,
            Ok(length) => bytes.extend_from_slice(&record[..length]),
            // The record was overwritten before it was read; the next read returns a later one.
            Err(Errno::PIPE | Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

/// Whether the cached contents may be only the beginning of the file.
fn may_be_head(found: &Result<Vec<u8>, Unknown>) -> bool {
    found.as_ref().is_ok_and(|bytes| bytes.len() as u64 == HEAD_MAX)
}

/// The names in a directory of the live machine.
fn names(path: &str) -> io::Result<Vec<String>> {
    let entries = fs::read_dir(path)?;
    Ok(entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(dir: &Path, path: &str, bytes: &[u8]) {
        Tree::open(dir).unwrap().write(path, bytes).unwrap();
    }

    /// Check that a recorded tree has the same contents and errors as its original.
    #[test]
    fn recorded_trees_are_equivalent() {
        let machine = tempfile::tempdir().unwrap();
        write(machine.path(), "/proc/version", b"Linux version 6.1\n");
        let refused = Unknown::new(Why::NeedsRoot, "/proc/timer_list: root only");
        let manifest = Manifest {
            format: 1,
            unreadable: [("/proc/timer_list".to_owned(), refused.clone())].into(),
            holders: [("/dev/a".to_owned(), vec!["tuned (812)".to_owned()])].into(),
            ..Manifest::default()
        };
        let text = serde_json::to_vec(&manifest).unwrap();
        write(machine.path(), MANIFEST, &text);
        let first = Root::tree(machine.path()).unwrap();
        let read_all = |root: &Root| {
            ["/proc/version", "/proc/timer_list", "/proc/nothing"]
                .map(|path| root.text(path))
        };
        let results = read_all(&first);
        assert_eq!(results[1], Err(refused));
        assert_eq!(first.holders("/dev/a").unwrap(), ["tuned (812)"]);
        assert_eq!(first.holders("/dev/b").unwrap_err().code, Why::NotRecorded);

        let copy = tempfile::tempdir().unwrap();
        first
            .record(copy.path(), fs::File::open(copy.path()).unwrap(), |_, bytes| {
                bytes.to_vec()
            })
            .unwrap();
        let second = Root::tree(copy.path()).unwrap();
        assert_eq!(read_all(&second), results);
        for file in ["/dev/a", "/dev/b"] {
            assert_eq!(second.holders(file), first.holders(file));
        }
    }

    /// Check that a directory without files of a kernel is rejected.
    #[test]
    fn rejects_other_directories() {
        let dir = tempfile::tempdir().unwrap();
        let error = units::chain(&Root::tree(dir.path()).unwrap_err());
        assert!(error.contains("not a recorded tree"), "{error}");
        assert!(Root::tree(Path::new("/nonexistent/tree")).is_err());
    }

    /// Check that reading the beginning of a file does not truncate later reads.
    #[test]
    fn a_beginning_is_not_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let whole = "x".repeat(20_000);
        write(dir.path(), "/proc/version", whole.as_bytes());
        let root = Root::tree(dir.path()).unwrap();
        let head = root.head("/proc/version").unwrap();
        assert!(head.len() < whole.len() && whole.starts_with(&head));
        assert_eq!(root.text("/proc/version").unwrap(), whole);
    }

    /// Check that a directory instead of a file is an unknown value.
    #[test]
    fn directories_are_not_files() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "/proc/version", b"x");
        fs::create_dir(dir.path().join("proc/stat")).unwrap();
        let root = Root::tree(dir.path()).unwrap();
        assert_eq!(root.text("/proc/stat").unwrap_err().code, Why::Garbage);
    }

    /// Check that recording does not overwrite a directory with files.
    #[test]
    fn records_into_empty_directories_only() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("mine"), "x").unwrap();
        assert!(
            Root::live()
                .record(dir.path(), fs::File::open(dir.path()).unwrap(), |_, bytes| bytes
                    .to_vec())
                .is_err()
        );
    }
}
