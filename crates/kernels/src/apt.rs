//! The system's package client (apt, dpkg-deb), with lists and a configuration of its own.
//!
//! No file of the system is written or locked, so root is not needed. The machine's own
//! configuration (proxies, certificates) is read first, then [`CONFIGURATION`]. Signatures are
//! checked as on the machine: a machine that does not trust a suite's key gets nothing of that
//! suite. Installation scripts of packages never run.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::architecture::Architecture;
use crate::client;
use crate::error::{CacheError, ClientError, Error};
use crate::package::{self, Package};
use crate::sources::{self, PACKAGES};
use crate::spec::DebianSpec;

/// The options that override the machine's own configuration; `ARCHITECTURE` is replaced by Debian's name of
/// one. Its hooks would clean up the system's files, and a cache of the lists makes queries fast.
const CONFIGURATION: &str = r##"
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear APT::Architectures;
APT::Architecture "ARCHITECTURE";
APT::Architectures { "ARCHITECTURE"; };
APT::Update::Error-Mode "any";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::GzipIndexes "true";
Acquire::Retries "2";
Acquire::http::Timeout "20";
Acquire::https::Timeout "20";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State::status "/dev/null";
Dir::Cache::pkgcache "pkgcache.bin";
Dir::Cache::srcpkgcache "";
"##;
/// The options for a list of files instead of one of packages.
const FILES: &str = r##"
#clear Acquire::IndexTargets;
Acquire::IndexTargets::deb::Contents-deb {
  MetaKey "$(COMPONENT)/Contents-amd64";
  ShortDescription "Contents";
  Description "$(RELEASE)/$(COMPONENT) Contents";
  KeepCompressed "true";
};
"##;
/// The program that reads a list, however it is compressed, and the search in it; it fails if
/// nothing matches.
const SEARCH: &str = r#"/usr/lib/apt/apt-helper cat-file "$1" | grep -E -e "$2" || true"#;
/// The age at which a list is updated.
const FRESH: Duration = Duration::from_secs(24 * 60 * 60);

/// The packages of kernels and their sources in the lists, as `apt-cache show` prints them.
const KERNELS: &str = "kernels";
/// A file with the modification time of the last update.
const UPDATED: &str = "updated";

/// One of Debian's suites, with a list of its packages.
#[derive(Debug, Clone)]
pub(crate) struct Archive {
    folder: PathBuf,
}

/// The outcome of an update of a suite's list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Update {
    /// There is a new list.
    Listed,
    /// The archive has no such suite.
    Absent,
    /// The suite's signature is by a key that this machine does not trust.
    Untrusted(String),
    /// The archive did not answer, and why.
    Unanswered(String),
}

impl Archive {
    /// Prepares that folder for a list of that architecture from those sources; a list from other sources that
    /// is in it is out of date. The caller must hold the lock of the cache.
    ///
    /// # Errors
    /// `Kind::Cache`.
    pub(crate) fn open(
        folder: PathBuf,
        sources: &str,
        architecture: Architecture,
    ) -> Result<Self, Error> {
        let line = |architecture| sources::architectures(architecture);
        let sources = sources.replace(&line(Architecture::X86_64), &line(architecture));
        Self::prepared(folder, &sources, &configuration(architecture))
    }

    /// The same for the list of the files in packages.
    ///
    /// # Errors
    /// `Kind::Cache`.
    pub(crate) fn open_files(folder: PathBuf, sources: &str) -> Result<Self, Error> {
        let sources = sources.replace(PACKAGES, "Targets: Contents-deb\n");
        let configuration = configuration(Architecture::X86_64) + FILES;
        Self::prepared(folder, &sources, &configuration)
    }

    fn prepared(
        folder: PathBuf,
        sources: &str,
        configuration: &str,
    ) -> Result<Self, Error> {
        let archive = Self { folder };
        let current = fs::read_to_string(archive.file("debian.sources"));
        let prepare = || {
            fs::create_dir_all(archive.file("lists"))?;
            fs::create_dir_all(archive.file("cache"))?;
            fs::write(archive.file("apt.conf"), configuration)?;
            if current.is_ok_and(|current| current == sources) {
                return Ok(());
            }
            let _ = fs::remove_file(archive.file(UPDATED)); // usually not there
            fs::write(archive.file("debian.sources"), sources)
        };
        prepare().map_err(|error| archive.unwritable(error))?;
        Ok(archive)
    }

    /// The list in that folder, to be read only.
    pub(crate) fn stored(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Whether the list is recent.
    pub(crate) fn is_fresh(&self) -> bool {
        let written = fs::metadata(self.file(UPDATED)).and_then(|file| file.modified());
        written.is_ok_and(|time| time.elapsed().is_ok_and(|age| age < FRESH))
    }

    /// Brings the list up to date.
    ///
    /// # Errors
    /// `Kind::Unavailable` if the package client cannot be run, `Kind::Cache`,
    /// `Kind::Interrupted`.
    pub(crate) fn update(&self, stop: &AtomicBool) -> Result<Update, Error> {
        let mut client = self.client("apt-get");
        let written = client::run(client.args(["-q", "update"]), stop);
        let written = written.inspect_err(|_| self.clean())?;
        let errors = written.errors.as_str();
        let asked = match written.status.success() {
            true => Update::Listed,
            false => judge(errors, !self.packages().is_empty()),
        };
        if errors.contains("No space left on device") {
            return Err(client::complained(&client, client::complaint(errors)));
        }
        if matches!(asked, Update::Listed | Update::Absent) {
            let kernels = self.read_kernels(stop).inspect_err(|_| self.clean())?;
            let write = || {
                fs::write(self.file(KERNELS), kernels)?;
                fs::write(self.file(UPDATED), "")
            };
            write().map_err(|error| self.unwritable(error))?;
        }
        Ok(asked)
    }

    /// Brings the list of files up to date.
    ///
    /// # Errors
    /// `Kind::Unavailable` with the package client's message, `Kind::Cache`, `Kind::Interrupted`.
    pub(crate) fn update_files(&self, stop: &AtomicBool) -> Result<(), Error> {
        let mut client = self.client("apt-get");
        let updated = client::output(client.args(["-q", "update"]), stop);
        updated.inspect_err(|_| self.clean())?;
        fs::write(self.file(UPDATED), "").map_err(|error| self.unwritable(error))
    }

    /// The lines of the list of files that match an extended regular expression.
    ///
    /// # Errors
    /// As [`Self::update_files`].
    pub(crate) fn files(
        &self,
        pattern: &str,
        stop: &AtomicBool,
    ) -> Result<String, Error> {
        let mut client = self.client("apt-get");
        client.args(["indextargets", "--format", "$(FILENAME)"]);
        let lists = client::output(client.arg("Identifier: Contents-deb"), stop)?;
        let mut found = String::new();
        for list in lists.lines() {
            let mut search = Command::new("sh");
            search.args(["-c", SEARCH, "sh", list, pattern]);
            found += &client::output(&mut search, stop)?;
        }
        Ok(found)
    }

    /// Reads the kernel packages in the package client's list, and their parts.
    fn read_kernels(&self, stop: &AtomicBool) -> Result<String, Error> {
        let mut client = self.client("apt-cache");
        let names = client::output(client.args(["pkgnames", "linux-"]), stop)?;
        let is_wanted = |name: &&str| {
            DebianSpec::of_package(name).is_some()
                || package::is_part(name)
                || package::is_source(name)
        };
        let names: Vec<&str> = names.lines().filter(is_wanted).collect();
        if names.is_empty() {
            return Ok(String::new());
        }
        client::output(self.client("apt-cache").arg("show").args(names), stop)
    }

    /// The packages with a kernel in the list, as far as it is there.
    pub(crate) fn packages(&self) -> Vec<Package> {
        let listing = fs::read_to_string(self.file(KERNELS)).unwrap_or_default();
        package::kernels(Package::read(&listing))
    }

    /// The packages with a kernel's source or configurations in the list.
    pub(crate) fn sources(&self) -> Vec<Package> {
        let listing = fs::read_to_string(self.file(KERNELS)).unwrap_or_default();
        let mut packages = Package::read(&listing);
        packages.retain(|package| package::is_source(&package.name));
        packages
    }

    /// Downloads the package and its parts, and unpacks them into the folder without the
    /// modules.
    ///
    /// # Errors
    /// `Kind::Unavailable` with the package client's message, `Kind::Cache`, `Kind::Interrupted`.
    pub(crate) fn unpack(
        &self,
        package: &Package,
        into: &Path,
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        let mut download = self.client("apt-get");
        download.args(["-q", "download"]).args(package.downloads()).current_dir(into);
        client::output(&mut download, stop).inspect_err(|_| self.clean())?;
        let entries = fs::read_dir(into).into_iter().flatten().flatten();
        let files = entries.map(|entry| entry.path());
        for file in files.filter(|file| file.extension().is_some_and(|end| end == "deb"))
        {
            unpack_file(&file, into, stop)?;
        }
        Ok(())
    }

    /// The package client, restricted to this folder.
    fn client(&self, program: &str) -> Command {
        let mut client = Command::new(program);
        client.arg("-c").arg(self.file("apt.conf"));
        for (name, file) in [
            ("Dir::Etc::sourcelist", "debian.sources"),
            ("Dir::State::lists", "lists"),
            ("Dir::Cache", "cache"),
        ] {
            let mut option = std::ffi::OsString::from(format!("{name}="));
            option.push(self.file(file));
            client.arg("-o").arg(option);
        }
        client
    }

    /// Removes what the package client leaves when it is terminated: parts of lists and of
    /// its own cache.
    fn clean(&self) {
        for folder in ["lists/partial", "cache"] {
            match fs::remove_dir_all(self.file(folder)) {
                Err(error) if error.kind() != ErrorKind::NotFound => {} // only space
                _ => drop(fs::create_dir_all(self.file(folder))),
            }
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn unwritable(&self, error: std::io::Error) -> Error {
        CacheError::new(&self.folder, error).into()
    }
}

/// The options for packages of that architecture.
fn configuration(architecture: Architecture) -> String {
    CONFIGURATION.replace("ARCHITECTURE", architecture.debian())
}

/// What the errors of an update mean. A suite may be in several sources: it is absent only
/// if it has had no list, and each error says that a source does not have it.
fn judge(errors: &str, had_list: bool) -> Update {
    let marked = || errors.lines().filter_map(|line| line.strip_prefix("E: "));
    let is_absent = |line: &str| {
        line.contains("does not have a Release file")
            || line.starts_with("Failed to fetch") && line.contains("  404  Not Found")
            || line.starts_with("Failed to fetch file:")
                && line.contains("  File not found")
            || line.starts_with("Some index files failed to download")
    };
    if !had_list && marked().next().is_some() && marked().all(is_absent) {
        return Update::Absent;
    }
    if marked().any(|line| line.ends_with("is not signed.")) {
        let mut lines = errors.lines().filter(|line| line.contains("GPG error"));
        let reason = lines.find_map(|line| line.split_once("InRelease: "));
        let reason = reason.map_or("it is not signed", |(_, reason)| reason);
        return Update::Untrusted(reason.trim_end_matches('.').to_owned());
    }
    Update::Unanswered(client::complaint(errors).to_owned())
}

/// Whether an error means that the archive no longer has a package of its list.
pub(crate) fn is_gone(error: &Error) -> bool {
    if let Error::Debian(_, cause) = error {
        return is_gone(&cause.0);
    }
    let Error::Client(_, ClientError::Failed(text)) = error else { return false };
    text.contains("404  Not Found") || text.contains("  File not found")
}

/// Unpacks everything but the modules, which are most of a kernel's package.
fn unpack_file(package: &Path, into: &Path, stop: &AtomicBool) -> Result<(), Error> {
    let mut open = Command::new("dpkg-deb");
    open.arg("--fsys-tarfile").arg(package);
    let mut write = Command::new("tar");
    write.args(["-x", "--no-same-owner", "--exclude=modules/*/kernel", "-C"]).arg(into);
    client::pipe(&mut open, &mut write, "the package is damaged", stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a list counts as new until its sources change.
    #[test]
    fn other_sources_void_the_lists() {
        let folder = tempfile::tempdir().unwrap();
        let open = |sources| {
            let folder = folder.path().join("own");
            Archive::open(folder, sources, Architecture::X86_64).unwrap()
        };
        let archive = open("a");
        assert!(!archive.is_fresh());
        fs::write(archive.file(UPDATED), "").unwrap();
        assert!(open("a").is_fresh());
        assert!(!open("b").is_fresh());
    }

    /// Check what the package client's errors mean, as apt 2.6 and 3.0 write them.
    #[test]
    fn judges_errors() {
        let missing = "E: The repository 'http://mirror.example/debian duke Release' does \
                       not have a Release file.\n";
        assert_eq!(judge(missing, false), Update::Absent);
        assert!(matches!(judge(missing, true), Update::Unanswered(_)));
        // Without a Release file, apt requests the lists of trusted sources, too.
        let trusted = "E: Failed to fetch http://mirror.example/debian/dists/duke/main/\
                       binary-amd64/Packages  404  Not Found\n";
        assert_eq!(judge(trusted, false), Update::Absent);
        let key = "The following signatures couldn't be verified because the public key is \
                   not available: NO_PUBKEY 6ED0E7B82643E131";
        let place = "http://mirror.example/debian sid InRelease";
        let unsigned = format!("E: The repository '{place}' is not signed.\n");
        let untrusted = format!("W: GPG error: {place}: {key}\n{unsigned}");
        assert_eq!(judge(&untrusted, false), Update::Untrusted(key.to_owned()));
        assert_eq!(
            judge(&unsigned, false),
            Update::Untrusted("it is not signed".to_owned())
        );
        let gone = "E: Failed to fetch http://mirror.example/debian/dists/sid/InRelease  \
                    Could not connect\nE: Some index files failed to download.\n";
        let why = Update::Unanswered(gone.lines().next().unwrap()[3..].to_owned());
        assert_eq!(judge(gone, false), why);
        assert!(matches!(
            judge(&format!("{missing}{gone}"), false),
            Update::Unanswered(_)
        ));
        assert!(matches!(
            judge(&format!("{missing}{unsigned}"), false),
            Update::Untrusted(_)
        ));
    }
}
