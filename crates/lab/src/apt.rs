//! The system's package client (apt, dpkg-deb), with lists and a configuration of its own.
//!
//! Nothing of the system's is written or locked, so root is not needed. The machine's
//! own configuration (proxies, certificates) is read first, then [`CONFIGURATION`].
//! Signatures are checked as on the machine: who does not trust a release's key gets
//! nothing of that release. What a package would do on installation never runs.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::error::{Error, Kind};
use crate::kernel_spec::DebianSpec;
use crate::package::{self, Package};
use crate::places::{self, full};

/// What is wanted otherwise than by the machine's own configuration. Its hooks would
/// clean up the system's files, and a cache of the lists makes each question fast.
const CONFIGURATION: &str = r##"
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear APT::Architectures;
APT::Architecture "amd64";
APT::Architectures { "amd64"; };
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
/// How long lists count as new.
const FRESH: Duration = Duration::from_secs(24 * 60 * 60);

/// Some of Debian's releases, with lists of what is in them.
#[derive(Debug, Clone)]
pub(crate) struct Archive {
    folder: PathBuf,
}

impl Archive {
    /// Prepares that folder for lists from those sources; lists from others that are in
    /// it count as old. Whoever does this must be alone with the folder.
    ///
    /// # Errors
    /// `Kind::Cache`.
    pub(crate) fn open(folder: PathBuf, sources: &str) -> Result<Self, Error> {
        let archive = Self { folder };
        let kept = fs::read_to_string(archive.file("debian.sources"));
        let prepare = || {
            fs::create_dir_all(archive.file("lists"))?;
            fs::create_dir_all(archive.file("cache"))?;
            fs::write(archive.file("apt.conf"), CONFIGURATION)?;
            if kept.is_ok_and(|kept| kept == sources) {
                return Ok(());
            }
            let _ = fs::remove_file(archive.file("updated")); // usually not there
            fs::write(archive.file("debian.sources"), sources)
        };
        prepare().map_err(|error| places::failed(&archive.folder, &error))?;
        Ok(archive)
    }

    /// The lists that are kept in that folder, if there are any, to be read only.
    pub(crate) fn kept(folder: PathBuf) -> Option<Self> {
        let archive = Self { folder };
        archive.file("debian.sources").exists().then_some(archive)
    }

    /// Whether all of the lists are new enough.
    pub(crate) fn is_fresh(&self) -> bool {
        let written = fs::metadata(self.file("updated")).and_then(|file| file.modified());
        written.is_ok_and(|time| time.elapsed().is_ok_and(|age| age < FRESH))
    }

    /// Brings the lists up to date.
    ///
    /// # Errors
    /// `Kind::Archive` where not all of them could be; those that could are there.
    pub(crate) fn update(&self) -> Result<(), Error> {
        run(self.client("apt-get").args(["-q", "update"]))?;
        let _ = fs::write(self.file("updated"), ""); // else the next time asks again
        Ok(())
    }

    /// The newest package with the kernel that is meant, as far as the lists know.
    ///
    /// # Errors
    /// `Kind::Archive` where the package client fails.
    pub(crate) fn find(&self, spec: &DebianSpec) -> Result<Option<Package>, Error> {
        let names = self.package_names()?;
        let meant = |name: &&String| {
            DebianSpec::of_package(name).is_some_and(|kernel| spec.covers(&kernel))
        };
        let names: Vec<&String> = names.iter().filter(meant).collect();
        if names.is_empty() {
            return Ok(None);
        }
        let listing = run(self.client("apt-cache").arg("show").args(names))?;
        Ok(package::newest(Package::read(&listing), spec))
    }

    /// The kernels in the lists, each with all of its version.
    ///
    /// # Errors
    /// `Kind::Archive` where the package client fails.
    pub(crate) fn kernels(&self) -> Result<Vec<DebianSpec>, Error> {
        let names = self.package_names()?;
        Ok(names.iter().filter_map(|name| DebianSpec::of_package(name)).collect())
    }

    /// Names of all versions that were ever in one of the lists, kernels or not.
    fn package_names(&self) -> Result<Vec<String>, Error> {
        let names = run(self.client("apt-cache").args(["pkgnames", "linux-image-"]))?;
        Ok(names.lines().map(str::to_owned).collect())
    }

    /// Downloads the package and its parts, and unpacks them into the folder without the
    /// modules.
    ///
    /// # Errors
    /// `Kind::Archive` in the package client's words, `Kind::Interrupted`.
    pub(crate) fn unpack(&self, package: &Package, into: &Path) -> Result<(), Error> {
        let mut download = self.client("apt-get");
        run(download
            .args(["-q", "download"])
            .args(package.downloads())
            .current_dir(into))?;
        let entries = fs::read_dir(into).into_iter().flatten().flatten();
        let files = entries.map(|entry| entry.path());
        for file in files.filter(|file| file.extension().is_some_and(|end| end == "deb"))
        {
            unpack_file(&file, into)?;
        }
        Ok(())
    }

    /// The package client, told to stay in this folder.
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

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// Unpacks everything but the modules, which are most of a kernel's package.
fn unpack_file(package: &Path, into: &Path) -> Result<(), Error> {
    let mut open = Command::new("dpkg-deb");
    open.arg("--fsys-tarfile").arg(package).stdin(Stdio::null()).stderr(Stdio::null());
    let mut opened =
        open.stdout(Stdio::piped()).spawn().map_err(|e| absent(&open, &e))?;
    let Some(tar) = opened.stdout.take() else { return Err(failed(&open, "no output")) };
    let mut write = Command::new("tar");
    write.args(["-x", "--no-same-owner", "--exclude=modules/*/kernel", "-C"]).arg(into);
    let written = finish(write.stdin(tar));
    let ended = opened.wait().map_err(|error| failed(&open, &error.to_string()))?;
    written?;
    if ended.success() { Ok(()) } else { Err(failed(&open, "the package is damaged")) }
}

/// Runs a program that gets no input; its output.
fn run(command: &mut Command) -> Result<String, Error> {
    finish(command.stdin(Stdio::null()))
}

fn finish(command: &mut Command) -> Result<String, Error> {
    let output = command.env("LC_ALL", "C").output();
    let output = output.map_err(|error| absent(command, &error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    const SIGINT: i32 = 2;
    if output.status.signal() == Some(SIGINT) {
        return Err(Error::new(Kind::Interrupted, "interrupted while getting a kernel"));
    }
    Err(failed(command, &complaint(&output)))
}

/// The first thing a program complains of; the package client marks errors.
fn complaint(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let mut errors = text.lines().filter_map(|line| line.strip_prefix("E: "));
    let first = || text.lines().next().unwrap_or("it does not say why");
    errors.next().unwrap_or_else(first).to_owned()
}

fn absent(command: &Command, error: &std::io::Error) -> Error {
    if error.kind() == ErrorKind::NotFound {
        let program = command.get_program().to_string_lossy();
        return Error::new(Kind::Archive, format!("there is no {program} here"));
    }
    failed(command, &error.to_string())
}

fn failed(command: &Command, why: &str) -> Error {
    let program = command.get_program().to_string_lossy();
    if why.contains("No space left on device") {
        return full(&format!("{program}: {why}"));
    }
    Error::new(Kind::Archive, format!("{program}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that lists count as new until their sources change.
    #[test]
    fn other_sources_void_the_lists() {
        let folder = tempfile::tempdir().unwrap();
        let open = |sources| Archive::open(folder.path().join("own"), sources).unwrap();
        let archive = open("a");
        assert!(!archive.is_fresh());
        fs::write(archive.file("updated"), "").unwrap();
        assert!(open("a").is_fresh());
        assert!(!open("b").is_fresh());
    }

    /// Check that a program that is missing is named, and one that fails is quoted: apt
    /// by its first error, others by what they say first.
    #[test]
    fn tells_why_a_program_failed() {
        let missing = run(&mut Command::new("/no-such-program")).unwrap_err();
        assert_eq!(missing.to_string(), "there is no /no-such-program here");
        assert_eq!(missing.kind(), Kind::Archive);
        let fail = |text: &str| {
            let script = format!("printf '{text}' >&2; exit 1");
            run(Command::new("sh").arg("-c").arg(script)).unwrap_err().to_string()
        };
        assert_eq!(fail("W: a\\nE: b\\nE: c\\n"), "sh: b");
        assert_eq!(fail("first\\nlast\\n"), "sh: first");
        let error =
            run(Command::new("sh")
                .args(["-c", "echo No space left on device >&2; exit 1"]));
        let error = error.unwrap_err();
        assert_eq!(error.kind(), Kind::Cache);
        assert!(error.to_string().contains("NOISEFLOOR_CACHE"), "{error}");
        // Whoever runs this in the background may have had it ignore Ctrl-C.
        let script = ["--default-signal=INT", "sh", "-c", "kill -INT $$"];
        let interrupted = run(Command::new("env").args(script));
        assert_eq!(interrupted.unwrap_err().kind(), Kind::Interrupted);
    }
}
