//! Debian's archive of kernels, as this machine reaches it.
//!
//! Suites are queried one by one: those of the machine's own release first, since most
//! kernels are there, then all others. Each has its own list, so that one that the archive
//! does not have, or that this machine does not trust, costs only its own kernels. Lists are
//! cached, and updated when they are a day old or lack the kernel. Cannot see kernels that
//! the archive has dropped; those in the cache are found without it.

use std::cmp::Ordering;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use itertools::Itertools;

use crate::apt::{Archive, Update};
use crate::architecture::Architecture;
use crate::client::refuse_stopped;
use crate::debian_version;
use crate::error::{CacheError, Error, Kind, Unavailable};
use crate::lock::lock_or_stop;
use crate::package::{self, Package};
use crate::sources::{DebianSources, Suite};
use crate::spec::DebianSpec;

/// How kernels are downloaded.
pub struct Fetch<'a> {
    /// Whether to look for a newer version of a cached kernel.
    pub fresh: bool,
    /// Set by another thread to stop early.
    pub stop: &'a AtomicBool,
    /// Called with a line of progress before each slow step.
    pub say: &'a mut dyn FnMut(&str),
}

/// The kernels of one of Debian's suites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuiteKernels {
    /// The suite: `trixie-backports`.
    pub suite: String,
    /// Its kernels, sorted by version: the newest of each as written after `debian:`
    /// (`6.18-cloud`), and the version of its package.
    pub kernels: Vec<(String, String)>,
}

/// Debian's archive of kernels.
pub(crate) struct Debian {
    root: PathBuf,
    folder: PathBuf,
}

/// One suite while the archive is queried.
struct Part {
    suite: Suite,
    archive: Archive,
    /// The outcome of its update, if it was updated now.
    update: Option<Update>,
}

/// Suites of equal preference: the newest kernel among them is used.
struct Tier(Vec<Part>);

impl Debian {
    /// The archive of the machine whose files lie under `root`, with lists in that cache.
    pub(crate) fn new(root: &Path, cache: &Path) -> Self {
        Self { root: root.to_owned(), folder: cache.join("apt") }
    }

    /// The kernels of each suite whose list is cached; `None` if the machine has no sources
    /// of Debian's.
    pub(crate) fn suites(&self) -> Option<Vec<SuiteKernels>> {
        let sources = DebianSources::find(&self.root)?;
        let suites = sources.own().into_iter().chain(sources.others());
        let kernels = suites.map(|suite| self.listed(suite.name));
        Some(kernels.filter(|suite| !suite.kernels.is_empty()).collect())
    }

    /// Takes the lock of this cache for downloads, held as long as the file is open.
    ///
    /// # Errors
    /// `Kind::Cache`, `Kind::Interrupted`.
    pub(crate) fn lock(&self, fetch: &mut Fetch<'_>) -> Result<File, Error> {
        let failed = |error: std::io::Error| CacheError::new(&self.folder, error);
        fs::create_dir_all(&self.folder).map_err(failed)?;
        let mut waits = || {
            (fetch.say)("waiting for another process to download its kernel or source")
        };
        let lock = lock_or_stop(&self.folder.join("lock"), fetch.stop, &mut waits);
        lock.map_err(failed)?.ok_or(Error::Interrupted)
    }

    /// The packages that match a name, the newest first: of the named suite, else of the
    /// machine's own release, else of all others. There is at least one. The caller must
    /// hold the lock.
    ///
    /// # Errors
    /// `Kind::Unavailable` if there is none or the archive does not answer, `Kind::Cache`,
    /// `Kind::Interrupted`.
    pub(crate) fn find(
        &self,
        spec: &DebianSpec,
        fetch: &mut Fetch<'_>,
    ) -> Result<Vec<(Archive, Package)>, Error> {
        let sources = self.sources().map_err(|error| unavailable(spec, error))?;
        let tier = |suites| self.tier(suites, spec.architecture());
        let mut tiers = match spec.suite() {
            Some(name) => vec![tier(vec![sources.suite(name)])?],
            None => vec![tier(sources.own())?, tier(sources.others())?],
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
            let mut all = tier([sources.own(), sources.others()].concat())?;
            let asked = all.ask(fetch, false, &mut silent);
            asked.map_err(|error| unavailable(spec, error))?;
            tiers.push(all);
        }
        Err(unavailable(spec, self.missing(spec, &tiers)))
    }

    /// The versions of a package with a source or configurations, the newest first; of the
    /// machine's own release, else of all others. There is at least one. The caller must hold
    /// the lock.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub(crate) fn find_package(
        &self,
        name: &str,
        fetch: &mut Fetch<'_>,
    ) -> Result<Vec<(Archive, Package)>, Error> {
        let sources = self.sources()?;
        let tier = |suites| self.tier(suites, Architecture::X86_64);
        let mut tiers = vec![tier(sources.own())?, tier(sources.others())?];
        let mut silent = Vec::new();
        for again in [false, true] {
            for tier in &mut tiers {
                tier.ask(fetch, again || fetch.fresh, &mut silent)?;
                let mut found = tier.sources();
                found.retain(|(_, package)| package.name == name);
                if !found.is_empty() {
                    return Ok(found);
                }
            }
        }
        let others = tiers.iter().flat_map(Tier::sources);
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let others = others.map(|(_, package)| package.name).filter(|other| {
            other
                .strip_prefix(prefix)
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        });
        let others =
            others.unique().sorted_by(|one, other| debian_version::compare(one, other));
        let others = others.collect::<Vec<_>>().join(", ");
        let troubles = tiers.iter().flat_map(Tier::troubles).unique().join("; ");
        let mut text = format!("Debian's archive has no package {name}");
        for (more, what) in [(others, "there are "), (troubles, "")] {
            if !more.is_empty() {
                text += &format!("; {what}{more}");
            }
        }
        Err(Error::Archive(text))
    }

    /// Updates the lists of all suites; of other architectures than the usual one, if it has any yet. The
    /// caller must hold the lock.
    ///
    /// # Errors
    /// As [`Self::find`]; `Kind::Unavailable` if no suite answers.
    pub(crate) fn ask(&self, fetch: &mut Fetch<'_>) -> Result<(), Error> {
        let sources = self.sources()?;
        let has_lists = |architecture: &Architecture| {
            architecture.is_usual() || self.lists(*architecture).exists()
        };
        let mut all = Tier(Vec::new());
        for architecture in Architecture::ALL.into_iter().filter(has_lists) {
            let suites = [sources.own(), sources.others()].concat();
            all.0.append(&mut self.tier(suites, architecture)?.0);
        }
        all.ask(fetch, true, &mut Vec::new())?;
        let troubles = all.troubles();
        match all.0.iter().all(|part| part.update != Some(Update::Listed)) {
            true => Err(Error::Archive(troubles.join("; "))),
            false => Ok(()),
        }
    }

    /// The lines of the own release's list of files that match an extended regular expression.
    ///
    /// # Errors
    /// `Kind::Unavailable` if the archive does not answer, `Kind::Cache`, `Kind::Interrupted`.
    pub(crate) fn files(
        &self,
        pattern: &str,
        fetch: &mut Fetch<'_>,
    ) -> Result<String, Error> {
        let sources = self.sources()?;
        let Some(suite) = sources.own().into_iter().next() else {
            return Ok(String::new());
        };
        let _alone = self.lock(fetch)?;
        let place = self.folder.join("files").join(&suite.name);
        let archive = Archive::open_files(place, &suite.sources)?;
        if !archive.is_fresh() {
            (fetch.say)("downloading the list of the files in Debian's packages");
            archive.update_files(fetch.stop)?;
        }
        archive.files(pattern, fetch.stop)
    }

    fn sources(&self) -> Result<DebianSources, Error> {
        DebianSources::find(&self.root).ok_or_else(|| {
            let text = "there is no archive of Debian's among this machine's package \
                        sources (/etc/apt)";
            Error::Archive(text.to_owned())
        })
    }

    fn tier(
        &self,
        suites: Vec<Suite>,
        architecture: Architecture,
    ) -> Result<Tier, Error> {
        let part = |suite: Suite| {
            let place = self.lists(architecture).join(&suite.name);
            let archive = Archive::open(place, &suite.sources, architecture)?;
            Ok(Part { suite, archive, update: None })
        };
        suites.into_iter().map(part).collect::<Result<_, Error>>().map(Tier)
    }

    /// The folder of the suites' lists.
    fn lists(&self, architecture: Architecture) -> PathBuf {
        self.folder.join(match architecture {
            Architecture::X86_64 => "suites",
            Architecture::Arm64 => "suites-arm64",
        })
    }

    /// The kernels in the lists of a suite.
    fn listed(&self, suite: String) -> SuiteKernels {
        let lists = Architecture::ALL.map(|one| self.lists(one).join(&suite));
        let packages =
            lists.into_iter().flat_map(|list| Archive::stored(list).packages());
        let mut packages: Vec<Package> = packages.collect();
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

    /// Why none of the queried suites has that kernel, and which others have it.
    fn missing(&self, spec: &DebianSpec, tiers: &[Tier]) -> Error {
        let parts = || tiers.iter().flat_map(|tier| &tier.0);
        let troubles = tiers.iter().flat_map(Tier::troubles).unique().join("; ");
        if parts().all(|part| part.archive.packages().is_empty()) && !troubles.is_empty()
        {
            return Error::Archive(troubles);
        }
        let named = spec.suite().zip(parts().next());
        let mut text = match named.map(|(suite, part)| (suite, &part.update)) {
            None => "Debian's archive has no such kernel".to_owned(),
            Some((suite, Some(Update::Absent))) => {
                format!("the archive has no suite {suite}")
            }
            Some((suite, Some(Update::Untrusted(_) | Update::Unanswered(_)))) => {
                format!("suite {suite} cannot be read")
            }
            Some((suite, _)) => format!("suite {suite} has no such kernel"),
        };
        let having = parts().filter(|part| part.has(spec));
        let having: Vec<_> =
            having.map(|part| part.suite.name.as_str()).unique().collect();
        text += &match having.as_slice() {
            [] => similar(spec, parts()),
            _ => format!("; it is in {}", having.join(", ")),
        };
        if !troubles.is_empty() {
            text += &format!("; {troubles}");
        }
        Error::Archive(text)
    }
}

impl Tier {
    /// Updates the lists, each at most once: those that are old, or all. An address that
    /// does not answer is added to `silent`, and not tried again: each try could take
    /// minutes.
    fn ask(
        &mut self,
        fetch: &mut Fetch<'_>,
        all: bool,
        silent: &mut Vec<String>,
    ) -> Result<(), Error> {
        let asks =
            |part: &Part| part.update.is_none() && (all || !part.archive.is_fresh());
        if self.0.iter().any(asks) {
            (fetch.say)("updating the lists of Debian's archive");
        }
        for part in &mut self.0 {
            refuse_stopped(fetch.stop)?;
            if !asks(part) || silent.contains(&part.suite.uri) {
                continue;
            }
            part.update = Some(part.archive.update(fetch.stop)?);
            if let Some(trouble) = part.trouble() {
                (fetch.say)(&trouble);
            }
            if matches!(part.update, Some(Update::Unanswered(_))) {
                silent.push(part.suite.uri.clone());
            }
        }
        Ok(())
    }

    /// The packages that match a name, the newest first.
    fn packages(&self, spec: &DebianSpec) -> Vec<(Archive, Package)> {
        let matching = |part: &Part| package::matching(part.archive.packages(), spec);
        let found = self.0.iter().flat_map(|part| {
            matching(part).into_iter().map(|package| (part.archive.clone(), package))
        });
        found.sorted_by(|(_, one), (_, other)| other.order(one)).collect()
    }

    /// The packages with sources and configurations, the newest first.
    fn sources(&self) -> Vec<(Archive, Package)> {
        let found = self.0.iter().flat_map(|part| {
            let packages = part.archive.sources();
            packages.into_iter().map(|package| (part.archive.clone(), package))
        });
        found.sorted_by(|(_, one), (_, other)| other.order(one)).collect()
    }

    fn troubles(&self) -> Vec<String> {
        self.0.iter().filter_map(Part::trouble).collect()
    }
}

impl Part {
    fn has(&self, spec: &DebianSpec) -> bool {
        !package::matching(self.archive.packages(), spec).is_empty()
    }

    /// Why the suite's list may be old or missing.
    fn trouble(&self) -> Option<String> {
        let suite = &self.suite.name;
        match self.update.as_ref()? {
            Update::Listed | Update::Absent => None,
            Update::Untrusted(why) => Some(format!(
                "suite {suite} is signed with a key that this machine does not trust \
                 ({why}); install the package debian-archive-keyring of a newer Debian"
            )),
            Update::Unanswered(why) => {
                Some(format!("suite {suite} did not answer ({why})"))
            }
        }
    }
}

/// The kernels of the same flavour in these suites.
fn similar<'a>(spec: &DebianSpec, parts: impl Iterator<Item = &'a Part>) -> String {
    let packages = parts.flat_map(|part| part.archive.packages());
    let kernels = packages.filter_map(|package| package.kernel());
    let alike = kernels.filter(|kernel| kernel.has_flavour_of(spec));
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
            Error::Debian(spec.to_string(), Unavailable(Box::new(error)))
        }
        Kind::Name | Kind::Kernel | Kind::Build | Kind::Cache | Kind::Interrupted => {
            error
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;
    use std::thread;
    use units::chain;

    /// Check that a machine without Debian's archive has none of its kernels, and that the message
    /// names an alternative.
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

    /// Check that one process waits for another, reports it, and can be stopped.
    #[test]
    fn processes_wait_for_each_other() {
        let cache = tempfile::tempdir().unwrap();
        let debian = Debian::new(cache.path(), cache.path());
        let stop = AtomicBool::new(false);
        let mut quiet = |text: &str| panic!("{text}");
        let mut fetch = Fetch { fresh: false, stop: &stop, say: &mut quiet };
        let first = debian.lock(&mut fetch).unwrap();
        let wait = |then: &dyn Fn()| {
            thread::scope(|scope| {
                let (sender, receiver) = std::sync::mpsc::channel();
                let waiting = scope.spawn(|| {
                    let sender = sender; // dropped with this thread
                    let mut say = |text: &str| sender.send(text.to_owned()).unwrap();
                    let mut fetch = Fetch { fresh: false, stop: &stop, say: &mut say };
                    debian.lock(&mut fetch)
                });
                assert!(receiver.recv().unwrap().starts_with("waiting"));
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
