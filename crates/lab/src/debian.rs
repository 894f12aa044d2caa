//! Debian's archive of kernels, as this machine reaches it.
//!
//! It is asked in two parts, the machine's own release of Debian first, since most need
//! only that one. Their lists are kept in the cache, and brought up to date when they are
//! a day old or do not have what is wanted. Cannot see kernels that the archive has
//! dropped; those that were kept are found without it.

use std::cmp::Ordering;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::apt::Archive;
use crate::apt_sources::DebianSources;
use crate::debian_version;
use crate::error::{Error, Kind};
use crate::kernel_spec::DebianSpec;
use crate::package::Package;
use crate::places::failed;

/// Kernels that are known before any list is there.
const KNOWN: &[&str] = &["5.10", "6.1", "6.12"];
/// What they are built for.
const FLAVOURS: &[&str] = &["", "-cloud", "-rt"];
/// The parts, in the order in which they are asked.
const PARTS: [&str; 2] = ["own", "others"];
/// What helps wherever packages cannot be had.
const OTHERWISE: &str = "the path of a kernel image works without packages";

/// What is told while something takes a while: a line for each thing.
pub(crate) type Say<'a> = &'a mut dyn FnMut(&str);

/// Debian's archive of kernels.
pub(crate) struct Debian {
    root: PathBuf,
    folder: PathBuf,
}

/// One part of the archive while it is being asked.
struct Part {
    archive: Archive,
    updated: bool,
}

impl Debian {
    /// The archive of the machine whose files lie under `root`, with lists in that cache.
    pub(crate) fn new(root: &Path, cache: &Path) -> Self {
        Self { root: root.to_owned(), folder: cache.join("apt") }
    }

    /// What the archive has, in short and as far as is known without asking it; nothing
    /// where the machine has nothing from Debian.
    pub(crate) fn available(&self) -> Vec<String> {
        if DebianSources::find(&self.root).is_none() {
            return Vec::new();
        }
        let known = KNOWN.iter().flat_map(|version| {
            FLAVOURS.iter().map(move |flavour| format!("{version}{flavour}"))
        });
        let known = known.filter_map(|text| DebianSpec::parse(&text).ok());
        texts(known.chain(self.listed()).collect())
    }

    /// Waits until no other lab gets a kernel into this cache; none does while the file
    /// is open.
    ///
    /// # Errors
    /// `Kind::Cache`, `Kind::Interrupted`.
    pub(crate) fn lock(&self, say: Say) -> Result<File, Error> {
        let failed = |error: std::io::Error| failed(&self.folder, &error);
        fs::create_dir_all(&self.folder).map_err(failed)?;
        let file = File::create(self.folder.join("lock")).map_err(failed)?;
        let mut locked =
            rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
        if locked == Err(Errno::WOULDBLOCK) {
            say("waiting for another lab to get its kernel");
            locked = rustix::fs::flock(&file, FlockOperation::LockExclusive);
        }
        match locked {
            Ok(()) => Ok(file),
            Err(Errno::INTR) => {
                Err(Error::new(Kind::Interrupted, "interrupted while waiting"))
            }
            Err(errno) => Err(failed(errno.into())),
        }
    }

    /// The newest package of the kernel that is meant, in the first part that has one.
    /// Only for who has locked the cache.
    ///
    /// # Errors
    /// `Kind::Archive` where there is none or the archive cannot be asked, `Kind::Cache`,
    /// `Kind::Interrupted`.
    pub(crate) fn find(
        &self,
        spec: &DebianSpec,
        fresh: bool,
        say: Say,
    ) -> Result<(Archive, Package), Error> {
        let mut parts = self.parts(spec)?;
        let mut trouble = None;
        for again in [false, true] {
            for part in &mut parts {
                if again || fresh || !part.archive.is_fresh() {
                    trouble = part.update(say).err().or(trouble);
                }
                let found = part.archive.find(spec);
                if let Some(package) = found.map_err(|error| unavailable(spec, &error))? {
                    return Ok((part.archive.clone(), package));
                }
            }
        }
        Err(trouble.map_or_else(|| self.unknown(spec), |error| unavailable(spec, &error)))
    }

    fn parts(&self, spec: &DebianSpec) -> Result<[Part; 2], Error> {
        let Some(sources) = DebianSources::find(&self.root) else {
            let text = "there is no archive of Debian's among this machine's package \
                        sources (/etc/apt)";
            return Err(unavailable(spec, &Error::new(Kind::Archive, text)));
        };
        let [own, others] = PARTS.map(|part| self.folder.join(part));
        let open = |folder, sources: &str| {
            Ok(Part { archive: Archive::open(folder, sources)?, updated: false })
        };
        Ok([open(own, &sources.own())?, open(others, &sources.others())?])
    }

    /// What the lists that are there have, in short.
    fn listed(&self) -> Vec<DebianSpec> {
        let lists = PARTS.iter().filter_map(|part| Archive::kept(self.folder.join(part)));
        let kernels = lists.flat_map(|archive| archive.kernels().unwrap_or_default());
        kernels.map(|kernel| kernel.short()).collect()
    }

    fn unknown(&self, spec: &DebianSpec) -> Error {
        let listed = texts(self.listed()).join(", ");
        let text =
            format!("{spec}: Debian's archive has no such kernel; it has {listed}");
        Error::new(Kind::Archive, text)
    }
}

impl Part {
    /// Brings the lists up to date, once. What went wrong is said too, since what is
    /// found may then not be the newest.
    fn update(&mut self, say: Say) -> Result<(), Error> {
        if self.updated {
            return Ok(());
        }
        self.updated = true;
        say("asking Debian's archive what it has");
        let updated = self.archive.update();
        if let Err(error) = &updated {
            say(&format!("it did not answer in full ({error})"));
        }
        updated
    }
}

/// The specs as texts, in the order of their versions, each once.
fn texts(mut specs: Vec<DebianSpec>) -> Vec<String> {
    specs.sort_by(by_version);
    specs.dedup();
    specs.iter().map(DebianSpec::to_string).collect()
}

fn by_version(a: &DebianSpec, b: &DebianSpec) -> Ordering {
    let texts = || a.to_string().cmp(&b.to_string());
    debian_version::compare(a.version(), b.version()).then_with(texts)
}

/// The error with what was asked for, and with what helps where packages do not.
pub(crate) fn unavailable(spec: &DebianSpec, error: &Error) -> Error {
    let otherwise = match error.kind() {
        Kind::Archive => format!("; {OTHERWISE}"),
        _ => String::new(),
    };
    Error::new(error.kind(), format!("{spec}: {error}{otherwise}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a machine without Debian's archive has none of its kernels, and says
    /// what works instead.
    #[test]
    fn other_machines_have_none() {
        let machine = tempfile::tempdir().unwrap();
        let debian = Debian::new(machine.path(), &machine.path().join("cache"));
        assert!(debian.available().is_empty());
        let spec = DebianSpec::parse("6.1").unwrap();
        let error = debian.find(&spec, false, &mut |_| {}).err().unwrap();
        assert_eq!(error.kind(), Kind::Archive);
        assert!(error.to_string().contains("/etc/apt"), "{error}");
        assert!(error.to_string().ends_with(OTHERWISE), "{error}");
    }

    /// Check that a machine with Debian's archive has the usual kernels before it has
    /// asked, in the order of their versions.
    #[test]
    fn usual_kernels_are_known() {
        let machine = tempfile::tempdir().unwrap();
        fs::create_dir_all(machine.path().join("etc/apt")).unwrap();
        let line = "deb http://mirror.example/debian bookworm main\n";
        fs::write(machine.path().join("etc/apt/sources.list"), line).unwrap();
        let available = Debian::new(machine.path(), machine.path()).available();
        assert_eq!(available.len(), 9);
        assert_eq!(
            available[..4],
            ["5.10", "5.10-cloud", "5.10-rt", "6.1"]
                .map(|version| { format!("debian:{version}") })
        );
    }

    /// Check that one lab waits for another, and says so.
    #[test]
    fn labs_take_turns() {
        let cache = tempfile::tempdir().unwrap();
        let debian = Debian::new(cache.path(), cache.path());
        let first = debian.lock(&mut |text| panic!("{text}")).unwrap();
        std::thread::scope(|scope| {
            let (told, hear) = std::sync::mpsc::channel();
            let second = scope.spawn(|| {
                let told = told; // gone with this thread
                debian.lock(&mut |text| told.send(text.to_owned()).unwrap())
            });
            assert!(hear.recv().unwrap().starts_with("waiting"));
            drop(first);
            second.join().unwrap().unwrap();
        });
    }
}
