//! Where facts are read: the live machine, or a tree recorded from one.
//!
//! A tree is a directory that holds the files by their own paths (`DIR/proc/version`),
//! and a manifest, `DIR/noisefloor-tree.json`, that says why others could not be read
//! when it was made. Links in a tree lead to its own files only ([`crate::tree`]). In a tree written by hand the manifest may be missing: a file that
//! is not there was then not there on the machine.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::str::FromStr;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind};
use crate::fact::{Unknown, Why};
use crate::tree::Tree;

/// The manifest's name in a recorded tree.
const MANIFEST: &str = "noisefloor-tree.json";
/// More than any file facts are read from; a tree may hold anything.
const BYTES_MAX: u64 = 16 << 20;
/// More than what one CPU has to say in `/proc/cpuinfo`.
const HEAD_MAX: u64 = 8 << 10;
/// The longest record `/dev/kmsg` gives (`PRINTK_MESSAGE_MAX`, `CONSOLE_EXT_LOG_MAX`).
const RECORD_MAX: usize = 8192;
/// How much of the kernel's messages is read; a boot's are a tenth of it.
const LOG_MAX: usize = 1 << 20;

/// What a recorded tree says beside its files.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Manifest {
    format: u32,
    unreadable: BTreeMap<String, Unknown>,
}

impl Manifest {
    /// That of a tree; an empty one where there is none.
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
    Tree { tree: Tree, unreadable: BTreeMap<String, Unknown> },
}

/// Where facts are read, and everything that was read there so far.
#[derive(Debug)]
pub struct Root {
    base: Base,
    seen: RefCell<BTreeMap<String, Result<Vec<u8>, Unknown>>>,
}

impl Root {
    /// The machine this runs on.
    pub fn live() -> Self {
        Self { base: Base::Live, seen: RefCell::default() }
    }

    /// A tree recorded by [`Root::record`], or written by hand.
    ///
    /// # Errors
    /// `Kind::Tree` where the directory cannot be read or holds no kernel's files, or
    /// its manifest is not one.
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
        let base = Base::Tree { tree, unreadable: manifest.unreadable };
        Ok(Self { base, seen: RefCell::default() })
    }

    /// Whether this is the machine this runs on.
    pub fn is_live(&self) -> bool {
        matches!(self.base, Base::Live)
    }

    /// A file's bytes.
    ///
    /// # Errors
    /// Why the file could not be read.
    pub fn bytes(&self, path: &str) -> Result<Vec<u8>, Unknown> {
        if let Some(seen) = self.seen.borrow().get(path).filter(|seen| !may_be_head(seen))
        {
            return seen.clone();
        }
        let found = self.fetch(path, BYTES_MAX);
        self.seen.borrow_mut().insert(path.to_owned(), found.clone());
        found
    }

    /// A file's text; bytes that are not UTF-8 become U+FFFD.
    ///
    /// # Errors
    /// Why the file could not be read.
    pub fn text(&self, path: &str) -> Result<String, Unknown> {
        Ok(String::from_utf8_lossy(&self.bytes(path)?).into_owned())
    }

    /// What the file's text says, as a whole.
    pub(crate) fn parsed<T: FromStr>(
        &self,
        path: &str,
        expected: &str,
    ) -> Result<T, Unknown> {
        let text = self.text(path)?;
        let garbage = |_| Unknown::garbage(path, 1, &text, expected);
        text.trim().parse().map_err(garbage)
    }

    /// The file's only line, without white space around it.
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

    /// The beginning of a file that says what matters first and can be long, as text.
    /// Such files are made while they are read, CPU by CPU: the rest would cost time.
    ///
    /// # Errors
    /// Why the file could not be read.
    pub(crate) fn head(&self, path: &str) -> Result<String, Unknown> {
        let mut seen = self.seen.borrow_mut();
        let found =
            seen.entry(path.to_owned()).or_insert_with(|| self.fetch(path, HEAD_MAX));
        found.clone().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The bytes of `/dev/kmsg` as far as it goes now. That file never ends: reading it
    /// as any other would wait for the kernel's next message. Messages that come after
    /// the first mebibyte are left out; what facts look for is said at boot.
    ///
    /// # Errors
    /// Why the file could not be read.
    pub(crate) fn kernel_log(&self, path: &str) -> Result<Vec<u8>, Unknown> {
        if let Some(seen) = self.seen.borrow().get(path) {
            return seen.clone();
        }
        let found = match self.is_live() {
            true => records(path).map_err(|error| self.reason(path, &error.into())),
            false => self.fetch(path, BYTES_MAX),
        };
        self.seen.borrow_mut().insert(path.to_owned(), found.clone());
        found
    }

    /// Whether the file is there; `Err` where even that may not be known. The file is
    /// not read: in a recorded tree an empty one stands for it.
    ///
    /// # Errors
    /// Why it is not known whether the file is there.
    pub fn exists(&self, path: &str) -> Result<bool, Unknown> {
        let found = match &self.base {
            Base::Live => fs::symlink_metadata(path).map(drop),
            Base::Tree { tree, .. } => tree.has(path),
        };
        let found = found.map(|()| Vec::new()).map_err(|why| self.reason(path, &why));
        self.seen.borrow_mut().entry(path.to_owned()).or_insert_with(|| found.clone());
        match found {
            Ok(_) => Ok(true),
            Err(unknown) if unknown.code == Why::Absent => Ok(false),
            Err(unknown) => Err(unknown),
        }
    }

    /// The names in a directory, sorted.
    ///
    /// # Errors
    /// Why the directory could not be read.
    pub fn list(&self, path: &str) -> Result<Vec<String>, Unknown> {
        let names = match &self.base {
            Base::Live => names(path),
            Base::Tree { tree, .. } => tree.list(path),
        };
        let mut names = names.map_err(|error| self.reason(path, &error))?;
        names.sort();
        Ok(names)
    }

    /// Writes everything that was read here so far as a tree below `dir`, which must not
    /// exist yet or be empty. `redact` is asked for each file's bytes as they may be kept.
    ///
    /// # Errors
    /// `Kind::Record` where a file cannot be written.
    pub fn record(
        &self,
        dir: &Path,
        redact: impl Fn(&str, &[u8]) -> Vec<u8>,
    ) -> Result<(), Error> {
        let failed = |error: io::Error| Error::new(Kind::Record, dir, error);
        fs::create_dir_all(dir).map_err(failed)?;
        let tree = Tree::open(dir).map_err(failed)?;
        if !tree.is_empty().map_err(failed)? {
            return Err(Error::new(Kind::Record, dir, "the directory is not empty"));
        }
        let write = |path: &str, bytes: &[u8]| {
            let place = || dir.join(path.trim_start_matches('/'));
            let written = tree.write(path, bytes);
            written.map_err(|why| Error::new(Kind::Record, &place(), why))
        };
        let mut manifest = Manifest { format: 1, unreadable: BTreeMap::new() };
        for (path, found) in self.seen.borrow().iter() {
            match found {
                Ok(bytes) => write(path, &redact(path, bytes))?,
                Err(unknown) if unknown.code == Why::Absent => {}
                Err(unknown) => {
                    manifest.unreadable.insert(path.clone(), unknown.clone());
                }
            }
        }
        let text = serde_json::to_string_pretty(&manifest)
            .map_err(|error| Error::new(Kind::Record, dir, error))?;
        write(MANIFEST, (text + "\n").as_bytes())
    }

    fn fetch(&self, path: &str, bytes_max: u64) -> Result<Vec<u8>, Unknown> {
        let file = match &self.base {
            Base::Live => fs::File::open(path).map(Some),
            Base::Tree { tree, .. } => tree.file(path),
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

    /// Turns an error of the file system into the reason why something is not known.
    fn reason(&self, path: &str, error: &std::io::Error) -> Unknown {
        if let Base::Tree { unreadable, .. } = &self.base {
            if let Some(unknown) = unreadable.get(path) {
                return unknown.clone();
            }
        }
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

/// Reads record after record until there is none left.
fn records(path: &str) -> Result<Vec<u8>, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    let mut bytes = Vec::new();
    let mut record = [0; RECORD_MAX];
    while bytes.len() < LOG_MAX {
        match rustix::io::read(&file, &mut record) {
            Ok(0) | Err(Errno::AGAIN) => break,
            Ok(length) => bytes.extend_from_slice(&record[..length]),
            // A record was overwritten before it was read; the next read goes on.
            Err(Errno::PIPE | Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

/// Whether what was read may be only a file's beginning.
fn may_be_head(found: &Result<Vec<u8>, Unknown>) -> bool {
    found.as_ref().is_ok_and(|bytes| bytes.len() as u64 == HEAD_MAX)
}

/// The names in a directory of this machine.
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

    /// Check that a recorded tree answers as the machine it was recorded from, refusals
    /// included.
    #[test]
    fn a_tree_answers_as_the_machine_did() {
        let machine = tempfile::tempdir().unwrap();
        write(machine.path(), "/proc/version", b"Linux version 6.1\n");
        let refused = Unknown::new(Why::NeedsRoot, "/proc/timer_list: root only");
        let manifest = Manifest {
            format: 1,
            unreadable: [("/proc/timer_list".to_owned(), refused.clone())].into(),
        };
        let text = serde_json::to_vec(&manifest).unwrap();
        write(machine.path(), MANIFEST, &text);
        let first = Root::tree(machine.path()).unwrap();
        let ask = |root: &Root| {
            ["/proc/version", "/proc/timer_list", "/proc/nothing"]
                .map(|path| root.text(path))
        };
        let answers = ask(&first);
        assert_eq!(answers[1], Err(refused));

        let copy = tempfile::tempdir().unwrap();
        first.record(copy.path(), |_, bytes| bytes.to_vec()).unwrap();
        assert_eq!(ask(&Root::tree(copy.path()).unwrap()), answers);
    }

    /// Check that a directory that holds no kernel's files is refused by name.
    #[test]
    fn refuses_what_is_no_tree() {
        let dir = tempfile::tempdir().unwrap();
        let error = units::chain(&Root::tree(dir.path()).unwrap_err());
        assert!(error.contains("not a recorded tree"), "{error}");
        assert!(Root::tree(Path::new("/nonexistent/tree")).is_err());
    }

    /// Check that having read a file's beginning does not cut off what is read later.
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

    /// Check that a directory in a file's place is an answer, not a failure.
    #[test]
    fn a_directory_is_no_file() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "/proc/version", b"x");
        fs::create_dir(dir.path().join("proc/stat")).unwrap();
        let root = Root::tree(dir.path()).unwrap();
        assert_eq!(root.text("/proc/stat").unwrap_err().code, Why::Garbage);
    }

    /// Check that nothing is written over a directory that is in use.
    #[test]
    fn records_into_empty_directories_only() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("mine"), "x").unwrap();
        assert!(Root::live().record(dir.path(), |_, bytes| bytes.to_vec()).is_err());
    }
}
