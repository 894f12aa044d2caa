//! Debian's archive of kernels, as this machine reaches it.
//!
//! It is asked suite by suite: those of the machine's own release first, since most need
//! only them, then all others, each with its own list, so that one that the archive does
//! not have, or that this machine does not trust, costs only its own kernels. Lists are
//! kept in the cache, and brought up to date when they are a day old or do not have what
//! is wanted. Cannot see kernels that the archive has dropped; those that were kept are
//! found without it.

use std::cmp::Ordering;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use itertools::Itertools;

use crate::apt::{Archive, Asked};
use crate::client::refuse_stopped;
use crate::debian_version;
use crate::error::{CacheError, Error, Kind, Unavailable};
use crate::package::{self, Package};
use crate::sources::{DebianSources, Suite};
use crate::spec::DebianSpec;

/// How often a lock that another lab has is tried again.
const TRY: Duration = Duration::from_millis(100);

/// How kernels are got.
pub struct Fetch<'a> {
    /// Whether to ask the archive again for a kernel that is kept.
    pub fresh: bool,
    /// The order to end early.
    pub stop: &'a AtomicBool,
    /// Is called with a line for each thing that takes a while.
    pub say: &'a mut dyn FnMut(&str),
}

/// The kernels of one of Debian's suites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuiteKernels {
    /// The suite: `trixie-backports`.
    pub suite: String,
    /// Its kernels, in the order of their versions: what is written after `debian:` for
    /// the newest of each (`6.18-cloud`), and the version of its package.
    pub kernels: Vec<(String, String)>,
}

/// Debian's archive of kernels.
pub(crate) struct Debian {
    root: PathBuf,
    folder: PathBuf,
}

/// One suite while the archive is being asked.
struct Part {
    suite: Suite,
    archive: Archive,
    /// What came of asking for its list now.
    asked: Option<Asked>,
}

/// Suites among which the newest kernel is taken.
struct Tier(Vec<Part>);

impl Debian {
    /// The archive of the machine whose files lie under `root`, with lists in that cache.
    pub(crate) fn new(root: &Path, cache: &Path) -> Self {
        Self { root: root.to_owned(), folder: cache.join("apt") }
    }

    /// What each suite has, as far as its list is there; `None` where the machine has
    /// nothing from Debian.
    pub(crate) fn suites(&self) -> Option<Vec<SuiteKernels>> {
        let sources = DebianSources::find(&self.root)?;
        let suites = sources.own().into_iter().chain(sources.others());
        let kernels = suites.map(|suite| self.listed(suite.name));
        Some(kernels.filter(|suite| !suite.kernels.is_empty()).collect())
    }

    /// Waits until no other lab gets a kernel into this cache; none does while the file
    /// is open.
    ///
    /// # Errors
    /// `Kind::Cache`, `Kind::Interrupted`.
    pub(crate) fn lock(&self, fetch: &mut Fetch<'_>) -> Result<File, Error> {
        let failed = |error: std::io::Error| CacheError::new(&self.folder, error);
        fs::create_dir_all(&self.folder).map_err(failed)?;
        let mut waits = false;
        loop {
            let lock = isolate::try_lock(&self.folder.join("lock")).map_err(failed)?;
            if let Some(lock) = lock {
                return Ok(lock);
            }
            if !std::mem::replace(&mut waits, true) {
                (fetch.say)("waiting for another lab to get its kernel");
            }
            refuse_stopped(fetch.stop)?;
            thread::sleep(TRY);
        }
    }

    /// The packages of the kernel that is meant, the newest first: of the suite that is
    /// named, else of the machine's own release, else of all others. There is at least one.
    /// The caller must have locked the cache.
    ///
    /// # Errors
    /// `Kind::Unavailable` where there is none or the archive cannot be asked, `Kind::Cache`,
    /// `Kind::Interrupted`.
    pub(crate) fn find(
        &self,
        spec: &DebianSpec,
        fetch: &mut Fetch<'_>,
    ) -> Result<Vec<(Archive, Package)>, Error> {
        let sources = self.sources().map_err(|error| unavailable(spec, error))?;
        let mut tiers = match spec.suite() {
            Some(name) => vec![self.tier(vec![sources.suite(name)])?],
            None => vec![self.tier(sources.own())?, self.tier(sources.others())?],
        };
        let mut silent = Vec::new();
        for again in [false, true] {
            for tier in &mut tiers {
                let asked = tier.ask(fetch, again || fetch.fresh, &mut silent);
                asked.map_err(|error| unavailable(spec, error))?;
                let found = tier.packages(spec);
                if !found.is_empty() {
                    return Ok(found);
                }
            }
        }
        if spec.suite().is_some() {
            // So that the suites that do have it can be named.
            let mut all = self.tier([sources.own(), sources.others()].concat())?;
            let asked = all.ask(fetch, false, &mut silent);
            asked.map_err(|error| unavailable(spec, error))?;
            tiers.push(all);
        }
        Err(unavailable(spec, self.missing(spec, &tiers)))
    }

    /// Asks all suites what they have. The caller must have locked the cache.
    ///
    /// # Errors
    /// As [`Self::find`]; `Kind::Unavailable` where no suite answers.
    pub(crate) fn ask(&self, fetch: &mut Fetch<'_>) -> Result<(), Error> {
        let sources = self.sources()?;
        let mut all = self.tier([sources.own(), sources.others()].concat())?;
        all.ask(fetch, true, &mut Vec::new())?;
        let troubles = all.troubles();
        match all.0.iter().all(|part| part.asked != Some(Asked::Listed)) {
            true => Err(Error::Archive(troubles.join("; "))),
            false => Ok(()),
        }
    }

    fn sources(&self) -> Result<DebianSources, Error> {
        DebianSources::find(&self.root).ok_or_else(|| {
            let text = "there is no archive of Debian's among this machine's package \
                        sources (/etc/apt)";
            Error::Archive(text.to_owned())
        })
    }

    fn tier(&self, suites: Vec<Suite>) -> Result<Tier, Error> {
        let part = |suite: Suite| {
            let archive = Archive::open(self.place(&suite.name), &suite.sources)?;
            Ok(Part { suite, archive, asked: None })
        };
        suites.into_iter().map(part).collect::<Result<_, Error>>().map(Tier)
    }

    /// Where a suite's list is kept.
    fn place(&self, suite: &str) -> PathBuf {
        self.folder.join("suites").join(suite)
    }

    /// What the list of a suite has.
    fn listed(&self, suite: String) -> SuiteKernels {
        let mut packages = Archive::kept(self.place(&suite)).packages();
        packages.sort_by(|one, other| other.order(one));
        let kernel = |package: &Package| {
            Some((package.kernel()?.short(), package.version.clone()))
        };
        let mut kernels: Vec<_> = packages.iter().filter_map(kernel).collect();
        kernels = kernels.into_iter().unique_by(|(spec, _)| spec.to_string()).collect();
        kernels.sort_by(|(one, _), (other, _)| by_version(one, other));
        let kernels = kernels.into_iter().map(|(spec, version)| (spec.name(), version));
        SuiteKernels { suite, kernels: kernels.collect() }
    }

    /// Why none of the suites that were asked has that kernel, and which have it.
    fn missing(&self, spec: &DebianSpec, tiers: &[Tier]) -> Error {
        let parts = || tiers.iter().flat_map(|tier| &tier.0);
        let troubles = tiers.iter().flat_map(Tier::troubles).unique().join("; ");
        if parts().all(|part| part.archive.packages().is_empty()) && !troubles.is_empty()
        {
            return Error::Archive(troubles);
        }
        let named = spec.suite().zip(parts().next());
        let mut text = match named.map(|(suite, part)| (suite, &part.asked)) {
            None => "Debian's archive has no such kernel".to_owned(),
            Some((suite, Some(Asked::Absent))) => {
                format!("the archive has no suite {suite}")
            }
            Some((suite, Some(Asked::Untrusted(_) | Asked::Unanswered(_)))) => {
                format!("suite {suite} cannot be read")
            }
            Some((suite, _)) => format!("suite {suite} has no such kernel"),
        };
        let having = parts().filter(|part| part.has(spec));
        let having: Vec<_> =
            having.map(|part| part.suite.name.as_str()).unique().collect();
        text += &match having.as_slice() {
            [] => alike(spec, parts()),
            _ => format!("; it is in {}", having.join(", ")),
        };
        if !troubles.is_empty() {
            text += &format!("; {troubles}");
        }
        Error::Archive(text)
    }
}

impl Tier {
    /// Brings the lists up to date, each at most once: those that are old, or all. An
    /// address that does not answer is `silent`, and not asked for more: each time could
    /// take minutes.
    fn ask(
        &mut self,
        fetch: &mut Fetch<'_>,
        all: bool,
        silent: &mut Vec<String>,
    ) -> Result<(), Error> {
        let asks =
            |part: &Part| part.asked.is_none() && (all || !part.archive.is_fresh());
        if self.0.iter().any(asks) {
            (fetch.say)("asking Debian's archive what it has");
        }
        for part in &mut self.0 {
            refuse_stopped(fetch.stop)?;
            if !asks(part) || silent.contains(&part.suite.uri) {
                continue;
            }
            part.asked = Some(part.archive.update(fetch.stop)?);
            if let Some(trouble) = part.trouble() {
                (fetch.say)(&trouble);
            }
            if matches!(part.asked, Some(Asked::Unanswered(_))) {
                silent.push(part.suite.uri.clone());
            }
        }
        Ok(())
    }

    /// The packages of the kernel that is meant, the newest first.
    fn packages(&self, spec: &DebianSpec) -> Vec<(Archive, Package)> {
        let meant = |part: &Part| package::meant(part.archive.packages(), spec);
        let found = self.0.iter().flat_map(|part| {
            meant(part).into_iter().map(|package| (part.archive.clone(), package))
        });
        found.sorted_by(|(_, one), (_, other)| other.order(one)).collect()
    }

    fn troubles(&self) -> Vec<String> {
        self.0.iter().filter_map(Part::trouble).collect()
    }
}

impl Part {
    fn has(&self, spec: &DebianSpec) -> bool {
        !package::meant(self.archive.packages(), spec).is_empty()
    }

    /// Why the suite's list may be old or missing, in words.
    fn trouble(&self) -> Option<String> {
        let suite = &self.suite.name;
        match self.asked.as_ref()? {
            Asked::Listed | Asked::Absent => None,
            Asked::Untrusted(why) => Some(format!(
                "suite {suite} is signed with a key that this machine does not trust \
                 ({why}); install the package debian-archive-keyring of a newer Debian"
            )),
            Asked::Unanswered(why) => {
                Some(format!("suite {suite} did not answer ({why})"))
            }
        }
    }
}

/// What kernels of the same flavour these suites have, in short.
fn alike<'a>(spec: &DebianSpec, parts: impl Iterator<Item = &'a Part>) -> String {
    let packages = parts.flat_map(|part| part.archive.packages());
    let kernels = packages.filter_map(|package| package.kernel());
    let alike = kernels.filter(|kernel| kernel.is_alike(spec));
    let mut alike: Vec<DebianSpec> = alike.map(|kernel| kernel.short()).collect();
    alike.sort_by(by_version);
    alike.dedup();
    match alike.as_slice() {
        [] => "; there is none of this flavour".to_owned(),
        _ => format!("; there are {}", alike.iter().join(", ")),
    }
}

fn by_version(a: &DebianSpec, b: &DebianSpec) -> Ordering {
    let texts = || a.to_string().cmp(&b.to_string());
    debian_version::compare(a.version(), b.version()).then_with(texts)
}

/// The error with the kernel's name and a hint, if the kernel is unavailable.
pub(crate) fn unavailable(spec: &DebianSpec, error: Error) -> Error {
    match error.kind() {
        Kind::Unavailable => {
            Error::Debian { spec: spec.to_string(), cause: Unavailable(Box::new(error)) }
        }
        Kind::Name | Kind::Kernel | Kind::Cache | Kind::Interrupted => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;
    use units::chain;

    /// Check that a machine without Debian's archive has none of its kernels, and says
    /// what works instead.
    #[test]
    fn other_machines_have_none() {
        let machine = tempfile::tempdir().unwrap();
        let debian = Debian::new(machine.path(), &machine.path().join("cache"));
        assert_eq!(debian.suites(), None);
        let spec = DebianSpec::parse("6.1").unwrap();
        let stop = AtomicBool::new(false);
        let mut fetch = Fetch { fresh: false, stop: &stop, say: &mut |_| {} };
        let error = debian.find(&spec, &mut fetch).err().unwrap();
        assert_eq!(error.kind(), Kind::Unavailable);
        let text = chain(&error);
        assert!(text.contains("/etc/apt"), "{text}");
        let otherwise = "the path of a kernel image works without packages";
        assert!(text.ends_with(otherwise), "{text}");
    }

    /// Check that one lab waits for another, and says so, and that the wait can be ended.
    #[test]
    fn labs_wait_for_each_other() {
        let cache = tempfile::tempdir().unwrap();
        let debian = Debian::new(cache.path(), cache.path());
        let stop = AtomicBool::new(false);
        let mut quiet = |text: &str| panic!("{text}");
        let mut fetch = Fetch { fresh: false, stop: &stop, say: &mut quiet };
        let first = debian.lock(&mut fetch).unwrap();
        let wait = |then: &dyn Fn()| {
            thread::scope(|scope| {
                let (told, hear) = std::sync::mpsc::channel();
                let waiting = scope.spawn(|| {
                    let told = told; // gone with this thread
                    let mut say = |text: &str| told.send(text.to_owned()).unwrap();
                    let mut fetch = Fetch { fresh: false, stop: &stop, say: &mut say };
                    debian.lock(&mut fetch)
                });
                assert!(hear.recv().unwrap().starts_with("waiting"));
                then();
                waiting.join().unwrap()
            })
        };
        let ended = wait(&|| stop.store(true, Relaxed));
        assert_eq!(ended.unwrap_err().kind(), Kind::Interrupted);
        stop.store(false, Relaxed);
        let first = std::cell::Cell::new(Some(first));
        wait(&|| drop(first.take())).unwrap();
    }
}
