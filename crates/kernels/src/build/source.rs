//! The source of a kernel: where its tree is, and what identifies it.
//!
//! A package of Debian's is identified by its version, an archive by its checksum, a git tree by the
//! hashes of its commit's tree and of the changes since, and any other tree by the checksum of its
//! files. Packages and archives are unpacked once, into `sources/` of the cache. Nothing is ever
//! written to a tree.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::build_error::BuildError;
use crate::build_name::{BuildSpec, SourceSpec};
use crate::client::{self, refuse_stopped};
use crate::debian::{Debian, Fetch};
use crate::error::{CacheError, ClientError, Error};
use crate::store::{UNFINISHED, replace, sweep};

/// The name of Debian's packages with a source, and with configurations, before the version.
const SOURCE_PACKAGE: &str = "linux-source-";
const CONFIG_PACKAGE: &str = "linux-config-";
/// The folder of a package's files.
const PACKAGE_FILES: &str = "usr/src";
/// Files that only the tree of a kernel has.
const KERNEL_FILES: [&str; 4] =
    ["Makefile", "Kconfig", "arch/x86/Kconfig", "scripts/kconfig"];
/// Files of a build in the tree itself, which Kbuild refuses to build elsewhere.
const BUILT_IN_PLACE: [&str; 3] =
    [".config", "include/config", "arch/x86/include/generated"];

/// The variables by which git takes another tree, or another state of it.
const GIT_VARIABLES: [&str; 6] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
];

/// A tree with the source of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tree {
    pub(crate) path: PathBuf,
    /// What identifies its contents.
    pub(crate) identity: String,
    /// The version in its Makefile: `6.1.192`.
    pub(crate) version: String,
}

impl Tree {
    /// The first two numbers of its version.
    pub(crate) fn short_version(&self) -> String {
        let numbers: Vec<&str> = self.version.split(['.', '-']).take(2).collect();
        numbers.join(".")
    }
}

/// The identities of trees in place, each read once: that takes seconds, and all kernels of a run are
/// to be of the same source. A build of a tree that has changed since is refused.
#[derive(Debug, Default)]
pub(crate) struct Identities(Mutex<BTreeMap<PathBuf, String>>);

impl Identities {
    fn of(&self, tree: &Path, stop: &AtomicBool) -> Result<String, Error> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(identity) = known.get(tree) {
            return Ok(identity.clone());
        }
        let identity = identity(tree, stop)?;
        known.insert(tree.to_owned(), identity.clone());
        Ok(identity)
    }
}

/// The unpacked sources in a cache.
pub(crate) struct Sources<'a> {
    folder: PathBuf,
    debian: &'a Debian,
    identities: &'a Identities,
}

impl<'a> Sources<'a> {
    /// The sources in that cache; nothing is created yet.
    pub(crate) fn new(
        cache: &Path,
        debian: &'a Debian,
        identities: &'a Identities,
    ) -> Self {
        Self { folder: cache.join("sources"), debian, identities }
    }

    /// Finds the tree of a source: in place, in the cache, or by unpacking it.
    ///
    /// # Errors
    /// `Error::Build` if it is no kernel's, `Kind::Unavailable`, `Kind::Cache`,
    /// `Kind::Interrupted`.
    pub(crate) fn find(
        &self,
        spec: &BuildSpec,
        fetch: &mut Fetch<'_>,
    ) -> Result<Tree, Error> {
        let name = spec.to_string();
        let build = |cause| Error::Build(name.clone(), cause);
        let (path, identity) = match &spec.source {
            SourceSpec::Debian(version) => self.debian_source(version, fetch)?,
            SourceSpec::Path(path) => match fs::metadata(path) {
                Err(error) => return Err(build(BuildError::Read(path.clone(), error))),
                Ok(metadata) if metadata.is_dir() => {
                    check_tree(path, path).map_err(build)?;
                    let path = std::path::absolute(path);
                    let path = path.map_err(|error| self.unusable(error))?;
                    let identity = self.identities.of(&path, fetch.stop)?;
                    (path, identity)
                }
                Ok(metadata) if metadata.is_file() => self.archive(path, &name, fetch)?,
                Ok(_) => {
                    let why = "it is neither a directory nor a file".to_owned();
                    let path = path.clone();
                    return Err(build(BuildError::NotKernel { path, why }));
                }
            },
        };
        check_tree(&path, &path).map_err(build)?;
        let version = version(&path).map_err(build)?;
        Ok(Tree { path, identity, version })
    }

    /// Debian's configuration of a kernel of that version.
    ///
    /// # Errors
    /// `Kind::Unavailable` if there is none, `Kind::Cache`, `Kind::Interrupted`.
    pub(crate) fn debian_config(
        &self,
        version: &str,
        cloud: bool,
        fetch: &mut Fetch<'_>,
    ) -> Result<String, Error> {
        let package = format!("{CONFIG_PACKAGE}{version}");
        let folder = self.package(&package, fetch, &|unpacked, _| Ok(unpacked.into()))?;
        let flavour = if cloud { "cloud-amd64" } else { "amd64" };
        let file = format!("{PACKAGE_FILES}/{package}/config.amd64_none_{flavour}.xz");
        client::output(Command::new("xz").arg("-dc").arg(folder.join(file)), fetch.stop)
    }

    fn debian_source(
        &self,
        version: &str,
        fetch: &mut Fetch<'_>,
    ) -> Result<(PathBuf, String), Error> {
        let package = format!("{SOURCE_PACKAGE}{version}");
        let folder = self.package(&package, fetch, &|unpacked, stop| {
            let archive = unpacked.join(PACKAGE_FILES).join(format!("{package}.tar.xz"));
            self.extract(&archive, &unpacked.join("tree"), stop)?.ok_or_else(|| {
                Error::Archive(format!("{package} has not one folder, but several"))
            })
        })?;
        let identity = folder.file_name().unwrap_or_default().to_string_lossy();
        let identity = format!("package {identity}");
        Ok((folder, identity))
    }

    /// The folder of the newest version of a package, or of the one in the cache.
    fn package(
        &self,
        name: &str,
        fetch: &mut Fetch<'_>,
        kept: &dyn Fn(&Path, &AtomicBool) -> Result<PathBuf, Error>,
    ) -> Result<PathBuf, Error> {
        let cached = || {
            let version = fs::read_to_string(self.folder.join(name)).ok()?;
            let folder = self.folder.join(version.trim());
            // Of a file that was cut off, nothing may remain.
            (folder != self.folder && folder.is_dir()).then_some(folder)
        };
        if let (false, Some(folder)) = (fetch.fresh, cached()) {
            return Ok(folder);
        }
        let _alone = self.debian.lock(fetch)?;
        if let (false, Some(folder)) = (fetch.fresh, cached()) {
            return Ok(folder); // another process has downloaded it
        }
        sweep(&self.folder);
        let found = self.debian.find_package(name, fetch)?;
        let Some((archive, package)) = found.first() else {
            return Err(Error::Archive(format!("no package {name}")));
        };
        let folder = self.folder.join(format!("{name}_{}", package.version));
        if !folder.is_dir() {
            (fetch.say)(&format!("downloading {name} {}", package.version));
            let scratch = self.scratch()?;
            archive.unpack(package, scratch.path(), fetch.stop)?;
            (fetch.say)(&format!("unpacking {name}"));
            let kept = kept(scratch.path(), fetch.stop)?;
            self.store(&kept, &folder)?;
        }
        let remembered = folder.file_name().unwrap_or_default().to_string_lossy();
        replace(&self.folder.join(name), &remembered)
            .map_err(|error| self.unusable(error))?;
        Ok(folder)
    }

    /// The tree in an archive, identified by the archive's checksum.
    fn archive(
        &self,
        archive: &Path,
        name: &str,
        fetch: &mut Fetch<'_>,
    ) -> Result<(PathBuf, String), Error> {
        let build = |cause| Error::Build(name.to_owned(), cause);
        let mut hash = Sha256::new();
        hash_file(archive, &mut hash, fetch.stop)
            .map_err(|error| build(BuildError::Read(archive.to_owned(), error)))?;
        refuse_stopped(fetch.stop)?;
        let identity = format!("archive {}", hex(hash));
        let folder = self.folder.join(identity.replace(' ', "-"));
        if folder.is_dir() {
            return Ok((folder, identity));
        }
        let _alone = self.debian.lock(fetch)?;
        if folder.is_dir() {
            return Ok((folder, identity)); // another process has unpacked it
        }
        sweep(&self.folder);
        (fetch.say)(&format!("unpacking {}", archive.display()));
        let scratch = self.scratch()?;
        let extracted = self.extract(archive, &scratch.path().join("tree"), fetch.stop);
        let not_kernel = |why| {
            let path = archive.to_owned();
            build(BuildError::NotKernel { path, why })
        };
        if let Err(Error::Client(_, ClientError::Failed(why))) = extracted {
            return Err(not_kernel(format!("tar says: {why}")));
        }
        let tree = extracted?;
        let tree =
            tree.ok_or_else(|| not_kernel("it has not one folder, but several".into()))?;
        check_tree(&tree, archive).map_err(build)?;
        self.store(&tree, &folder)?;
        Ok((folder, identity))
    }

    /// Moves what was unpacked to its place, unless another process has done so before.
    fn store(&self, unpacked: &Path, folder: &Path) -> Result<(), Error> {
        match fs::rename(unpacked, folder) {
            Err(error) if !folder.is_dir() => Err(self.unusable(error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Unpacks an archive; the only folder in it, if there is one.
    fn extract(
        &self,
        archive: &Path,
        to: &Path,
        stop: &AtomicBool,
    ) -> Result<Option<PathBuf>, Error> {
        fs::create_dir(to).map_err(|error| self.unusable(error))?;
        let mut tar = Command::new("tar");
        // To tar, a name with a colon is a file of another host.
        tar.args(["-x", "--no-same-owner", "--force-local", "-f"]).arg(archive);
        client::output(tar.arg("-C").arg(to), stop)?;
        let entries = fs::read_dir(to).map_err(|error| self.unusable(error))?;
        let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        Ok(match paths.as_slice() {
            [one] if one.is_dir() && !one.is_symlink() => Some(one.clone()),
            _ => None,
        })
    }

    /// An empty folder for what is on its way into the cache, gone with its value.
    fn scratch(&self) -> Result<TempDir, Error> {
        let make = || {
            fs::create_dir_all(&self.folder)?;
            tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(&self.folder)
        };
        make().map_err(|error| self.unusable(error))
    }

    fn unusable(&self, error: io::Error) -> Error {
        CacheError::new(&self.folder, error).into()
    }
}

/// Refuses a tree that is no kernel's, or that was built in place; `named` is its path in messages.
fn check_tree(tree: &Path, named: &Path) -> Result<(), BuildError> {
    for file in KERNEL_FILES {
        let path = tree.join(file);
        match path.try_exists() {
            Ok(true) => {}
            Ok(false) => {
                let why = format!("it has no {file}");
                return Err(BuildError::NotKernel { path: named.to_owned(), why });
            }
            Err(error) => return Err(BuildError::Read(path, error)),
        }
    }
    match BUILT_IN_PLACE.into_iter().any(|file| tree.join(file).exists()) {
        true => Err(BuildError::BuiltInPlace(named.to_owned())),
        false => Ok(()),
    }
}

/// The version in the tree's Makefile.
fn version(tree: &Path) -> Result<String, BuildError> {
    let file = tree.join("Makefile");
    let text = fs::read_to_string(&file);
    let text = text.map_err(|error| BuildError::Read(file, error))?;
    let value = |name: &str| {
        let line = text.lines().find(|line| {
            line.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('='))
        });
        line.and_then(|line| line.split_once('=')).map_or("", |(_, value)| value.trim())
    };
    let (major, minor) = (value("VERSION"), value("PATCHLEVEL"));
    if major.is_empty() || minor.is_empty() {
        let why = "its Makefile has no VERSION and PATCHLEVEL".to_owned();
        return Err(BuildError::NotKernel { path: tree.to_owned(), why });
    }
    let (sub, extra) = (value("SUBLEVEL"), value("EXTRAVERSION"));
    let sub = if sub.is_empty() { String::new() } else { format!(".{sub}") };
    Ok(format!("{major}.{minor}{sub}{extra}"))
}

/// What identifies the contents of a tree.
pub(crate) fn identity(tree: &Path, stop: &AtomicBool) -> Result<String, Error> {
    if tree.join(".git").exists() {
        match git_identity(tree, stop) {
            // Without git, or in another user's tree, which git refuses: by its files.
            Err(Error::Client(..)) => {}
            other => return other,
        }
    }
    let mut hash = Sha256::new();
    let hashed = hash_folder(tree, tree, &mut hash, stop);
    refuse_stopped(stop)?;
    hashed.map_err(|error| Error::Read(tree.to_owned(), error))?;
    Ok(format!("files {}", hex(hash)))
}

/// The identity of a git tree: its commit's tree, and all changes since. Ignored files have no
/// effect on a build.
fn git_identity(tree: &Path, stop: &AtomicBool) -> Result<String, Error> {
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        // `git bisect run` and hooks set them, maybe for another tree.
        for name in GIT_VARIABLES {
            git.env_remove(name);
        }
        git.arg("--no-optional-locks").arg("-C").arg(tree).args(args);
        client::output(&mut git, stop)
    };
    let commit = git(&["rev-parse", "HEAD^{tree}"])?;
    let status = git(&["status", "--porcelain=v1", "-z", "--untracked-files=all", "."])?;
    if status.is_empty() {
        return Ok(format!("git {}", commit.trim()));
    }
    let mut hash = Sha256::new();
    hash.update(&status);
    // A user's programs for differences may print anything.
    let exact = ["--binary", "--no-ext-diff", "--no-textconv", "--no-color"];
    hash.update(git(&[&["diff"][..], &exact, &["HEAD", "."]].concat())?);
    for file in status.split('\0').filter_map(|entry| entry.strip_prefix("?? ")) {
        // A folder is a git tree of its own.
        let path = tree.join(file);
        let hashed = hash_entry(&path, &path, &mut hash, stop);
        hashed.map_err(|error| Error::Read(path.clone(), error))?;
    }
    Ok(format!("git {} changed {}", commit.trim(), hex(hash)))
}

/// Adds the names, kinds and contents of all files in a folder to a hash.
fn hash_folder(
    folder: &Path,
    tree: &Path,
    hash: &mut Sha256,
    stop: &AtomicBool,
) -> io::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries.iter().filter(|entry| entry.path() != tree.join(".git")) {
        hash_entry(&entry.path(), tree, hash, stop)?;
    }
    Ok(())
}

/// Adds the name, kind and contents of a file, a link or a folder to a hash.
fn hash_entry(
    path: &Path,
    tree: &Path,
    hash: &mut Sha256,
    stop: &AtomicBool,
) -> io::Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    hash.update(path.strip_prefix(tree).unwrap_or(path).as_os_str().as_bytes());
    if metadata.is_dir() {
        hash.update(b"/\0");
        hash_folder(path, tree, hash, stop)?;
    } else if metadata.is_symlink() {
        hash.update(b"@\0");
        hash.update(fs::read_link(path)?.as_os_str().as_bytes());
    } else if metadata.is_file() {
        let is_program = metadata.permissions().mode() & 0o100 != 0;
        hash.update([b'\0', u8::from(is_program)]);
        hash.update(metadata.len().to_le_bytes());
        hash_file(path, hash, stop)?;
    }
    Ok(())
}

/// Adds the contents of a file to a hash; not all of it if `stop` is set.
fn hash_file(file: &Path, hash: &mut Sha256, stop: &AtomicBool) -> io::Result<()> {
    let mut file = File::open(file)?;
    let mut bytes = vec![0; 1 << 20];
    loop {
        let length = file.read(&mut bytes)?;
        if length == 0 || stop.load(std::sync::atomic::Ordering::Relaxed) {
            return Ok(());
        }
        hash.update(&bytes[..length]);
    }
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
