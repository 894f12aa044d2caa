//! Kernels in the cache: `kernels/SHA256/` with `vmlinuz`, `config` and `about.json`, and
//! `kernels/specs/SPEC`, which has the result of a resolved spec (with `@` in the place of a
//! slash). `kernels/builds/KEY` has the result of a build, by what it was built from.
//!
//! A kernel's folder is made elsewhere and renamed, so it is complete or absent, and a second lab
//! may do the same at the same time. A stored kernel is not changed; that the disk did not change
//! it is checked before each use.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tempfile::{NamedTempFile, TempDir};

use crate::architecture::Architecture;
use crate::error::{CacheError, Error};
use crate::image::{Image, checksum};
use crate::kernel::{Build, Kernel};
use crate::package::Package;

const IMAGE: &str = "vmlinuz";
const CONFIG: &str = "config";
const ABOUT: &str = "about.json";
/// The prefix of a folder that is being filled.
pub(crate) const UNFINISHED: &str = ".new-";

/// The kernels in a cache.
pub(crate) struct KernelStore {
    folder: PathBuf,
}

/// The description of a kernel.
#[derive(Debug, Serialize, Deserialize)]
struct About {
    release: String,
    #[serde(default, skip_serializing_if = "Architecture::is_usual")]
    architecture: Architecture,
    #[serde(skip_serializing_if = "Option::is_none")]
    package: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    package_version: Option<String>,
    /// How it was built, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    build: Option<Build>,
    sha256: String,
    bytes: usize,
    taken_s: u64,
}

/// What a kernel is from.
#[derive(Clone, Copy)]
enum Origin<'a> {
    Package(&'a Package),
    Build(&'a Build),
}

impl KernelStore {
    /// The kernels in that cache; nothing is created yet.
    pub(crate) fn new(cache: &Path) -> Self {
        Self { folder: cache.join("kernels") }
    }

    /// The kernel that a name was resolved to.
    ///
    /// # Errors
    /// `Error::Damaged`, with the folder to delete.
    pub(crate) fn recall(&self, spec: &str) -> Result<Option<Kernel>, Error> {
        let Some(sha256) = self.remembered(spec) else { return Ok(None) };
        let kernel = self.kernel(spec, &sha256);
        kernel.map(|kernel| self.checked(kernel)).transpose()
    }

    /// All that specs were resolved to, by spec, and then all that were built. They are not
    /// checked.
    pub(crate) fn list(&self) -> Vec<Kernel> {
        let entries = fs::read_dir(self.specs()).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let names = names.filter(|name| !name.starts_with('.'));
        let mut specs: Vec<String> = names.map(|name| name.replace('@', "/")).collect();
        specs.sort();
        let kernel = |spec: &String| self.kernel(spec, &self.remembered(spec)?);
        let downloaded: Vec<Kernel> = specs.iter().filter_map(kernel).collect();
        downloaded.into_iter().chain(self.list_builds()).collect()
    }

    /// The kernel of that package, if it is cached and undamaged; the name is resolved to
    /// it from now on.
    ///
    /// # Errors
    /// `Kind::Cache`.
    pub(crate) fn find(
        &self,
        spec: &str,
        package: &Package,
    ) -> Result<Option<Kernel>, Error> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let kernels = names.filter_map(|sha256| self.kernel(spec, &sha256));
        let mut same = kernels.filter(|kernel| {
            kernel.package.as_ref() == Some(&package.name)
                && kernel.package_version.as_ref() == Some(&package.version)
        });
        let Some(kernel) = same.find_map(|kernel| self.checked(kernel).ok()) else {
            return Ok(None);
        };
        self.remember(spec, &kernel.sha256)?;
        Ok(Some(kernel))
    }

    /// Stores a kernel that was unpacked from that package; the name is resolved to it
    /// from now on.
    ///
    /// # Errors
    /// `Kind::Kernel` if the image is none, `Kind::Cache`.
    pub(crate) fn store(
        &self,
        spec: &str,
        package: &Package,
        image: &Path,
        config: Option<&Path>,
    ) -> Result<Kernel, Error> {
        let sha256 = self.add(Origin::Package(package), image, config)?;
        self.remember(spec, &sha256)?;
        self.stored(spec, &sha256)
    }

    /// Stores a kernel that was built. Its key is what it was built from: the same key, and
    /// that of the configuration, find it from now on.
    ///
    /// # Errors
    /// `Kind::Kernel` if the image is none, `Kind::Cache`.
    pub(crate) fn store_build(
        &self,
        build: &Build,
        keys: [&str; 2],
        image: &Path,
        config: &Path,
    ) -> Result<Kernel, Error> {
        let sha256 = self.add(Origin::Build(build), image, Some(config))?;
        for key in keys {
            self.remember_build(key, &sha256)?;
        }
        self.stored(&build.name, &sha256)
    }

    /// The kernel that was built from what has this key.
    ///
    /// # Errors
    /// `Error::Damaged`, with the folder to delete.
    pub(crate) fn recall_build(
        &self,
        key: &str,
        name: &str,
    ) -> Result<Option<Kernel>, Error> {
        let Some(sha256) = read_checksum(&self.builds().join(key)) else {
            return Ok(None);
        };
        let kernel = self.kernel(name, &sha256);
        kernel.map(|kernel| self.checked(kernel)).transpose()
    }

    /// Makes another key find a kernel.
    ///
    /// # Errors
    /// `Kind::Cache`.
    pub(crate) fn remember_build(&self, key: &str, sha256: &str) -> Result<(), Error> {
        let folder = self.builds();
        let write = || {
            fs::create_dir_all(&folder)?;
            replace(&folder.join(key), &format!("{sha256}\n"))
        };
        write().map_err(|error| self.unwritable(error))
    }

    /// Adds a kernel; returns its checksum.
    fn add(
        &self,
        origin: Origin<'_>,
        image: &Path,
        config: Option<&Path>,
    ) -> Result<String, Error> {
        let header = Image::read(image)?;
        let sha256 = header.sha256.clone();
        let scratch = self.scratch()?;
        let made = scratch.path().join("kernel");
        let make = || {
            fs::create_dir(&made)?;
            fs::copy(image, made.join(IMAGE))?;
            config.map(|config| fs::copy(config, made.join(CONFIG))).transpose()?;
            fs::write(made.join(ABOUT), About::new(header, origin).to_json()?)
        };
        make().map_err(|error| self.unwritable(error))?;
        self.place(&made, &sha256, &scratch)?;
        Ok(sha256)
    }

    fn stored(&self, spec: &str, sha256: &str) -> Result<Kernel, Error> {
        let vanished = || self.unwritable(ErrorKind::NotFound.into());
        self.kernel(spec, sha256).ok_or_else(vanished)
    }

    /// The folder with the results of builds, by key.
    fn builds(&self) -> PathBuf {
        self.folder.join("builds")
    }

    /// The kernels that were built, by name. They are not checked.
    fn list_builds(&self) -> Vec<Kernel> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let named = |sha256: String| {
            let kernel = self.kernel("", &sha256)?;
            let spec = kernel.build.as_ref()?.name.clone();
            Some(Kernel { spec, ..kernel })
        };
        let mut kernels: Vec<Kernel> = names.filter_map(named).collect();
        kernels.sort_by(|one, other| one.spec.cmp(&other.spec));
        kernels
    }

    /// An empty folder for a kernel on its way into the store, gone with its value.
    ///
    /// # Errors
    /// `Kind::Cache`.
    pub(crate) fn scratch(&self) -> Result<TempDir, Error> {
        let make = || {
            fs::create_dir_all(self.specs())?;
            tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(&self.folder)
        };
        make().map_err(|error| self.unwritable(error))
    }

    /// Removes what killed processes left. The caller must hold the lock.
    pub(crate) fn sweep(&self) {
        sweep(&self.folder);
    }

    /// Moves a kernel to its folder, unless another process has stored the same one.
    fn place(&self, made: &Path, sha256: &str, scratch: &TempDir) -> Result<(), Error> {
        let place = self.folder.join(sha256);
        let Err(error) = fs::rename(made, &place) else { return Ok(()) };
        if !matches!(
            error.kind(),
            ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists
        ) {
            return Err(self.unwritable(error));
        }
        let there = self.kernel("", sha256).map(|kernel| self.checked(kernel));
        if matches!(there, Some(Ok(_))) {
            return Ok(());
        }
        let replace = || {
            fs::rename(&place, scratch.path().join("damaged"))?;
            fs::rename(made, &place)
        };
        replace().map_err(|error| self.unwritable(error))
    }

    /// What the spec was resolved to.
    fn remembered(&self, spec: &str) -> Option<String> {
        read_checksum(&self.place_of(spec))
    }

    fn remember(&self, spec: &str, sha256: &str) -> Result<(), Error> {
        let written = replace(&self.place_of(spec), &format!("{sha256}\n"));
        written.map_err(|error| self.unwritable(error))
    }

    /// A stored kernel by its description; its image is not checked.
    fn kernel(&self, spec: &str, sha256: &str) -> Option<Kernel> {
        let folder = self.folder.join(sha256);
        let text = fs::read_to_string(folder.join(ABOUT)).ok()?;
        let about: About = serde_json::from_str(&text).ok()?;
        Some(Kernel {
            spec: spec.to_owned(),
            image: folder.join(IMAGE),
            config: Some(folder.join(CONFIG)).filter(|config| config.exists()),
            sha256: sha256.to_owned(),
            architecture: about.architecture,
            release: about.release,
            package: about.package,
            package_version: about.package_version,
            build: about.build,
        })
    }

    /// The same kernel, if its image still has its checksum.
    fn checked(&self, kernel: Kernel) -> Result<Kernel, Error> {
        let cause = match fs::read(&kernel.image) {
            Ok(bytes) if checksum(&bytes) == kernel.sha256 => return Ok(kernel),
            Ok(_) => None,
            Err(error) => Some(error),
        };
        Err(Error::Damaged(self.folder.join(&kernel.sha256), cause))
    }

    fn specs(&self) -> PathBuf {
        self.folder.join("specs")
    }

    /// The file with the result of a resolved spec. A slash cannot be in its name, and `@` is in no
    /// spec.
    fn place_of(&self, spec: &str) -> PathBuf {
        self.specs().join(spec.replace('/', "@"))
    }

    fn unwritable(&self, error: std::io::Error) -> Error {
        CacheError::new(&self.folder, error).into()
    }
}

/// Writes a file in one step: another process may be reading it, or this one be killed.
pub(crate) fn replace(file: &Path, text: &str) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut new = NamedTempFile::new_in(folder)?;
    new.write_all(text.as_bytes())?;
    new.persist(file).map(drop).map_err(|error| error.error)
}

/// Removes the unfinished folders that killed processes left in a folder. The caller must hold the lock
/// under which they are created.
pub(crate) fn sweep(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let left = |name: &str| name.starts_with(UNFINISHED);
    for entry in entries.filter(|entry| entry.file_name().to_str().is_some_and(left)) {
        let _ = fs::remove_dir_all(entry.path()); // it only takes space
    }
}

impl About {
    fn new(image: Image, origin: Origin<'_>) -> Self {
        let (package, build) = match origin {
            Origin::Package(package) => (Some(package), None),
            Origin::Build(build) => (None, Some(build)),
        };
        let taken = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            release: image.release,
            architecture: image.architecture,
            package: package.map(|package| package.name.clone()),
            package_version: package.map(|package| package.version.clone()),
            build: build.cloned(),
            sha256: image.sha256,
            bytes: image.size,
            taken_s: taken.as_secs(),
        }
    }

    fn to_json(&self) -> Result<String, std::io::Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

/// The checksum in a file.
fn read_checksum(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let sha256 = text.trim();
    let is_checksum = |c: char| c.is_ascii_hexdigit();
    (sha256.len() == 64 && sha256.chars().all(is_checksum)).then(|| sha256.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::image::synthetic;

    const SPEC: &str = "debian:6.1";

    fn package(release: &str) -> Package {
        let name = format!("linux-image-{release}");
        Package { name, version: "6.1.192-2".to_owned(), parts: Vec::new() }
    }

    /// Stores a synthetic kernel, with a configuration.
    fn add(cache: &Path, release: &str) -> Result<Kernel, Error> {
        let source = tempfile::tempdir().unwrap();
        let image = source.path().join("image");
        let config = source.path().join("config");
        fs::write(&image, synthetic(release)).unwrap();
        fs::write(&config, "CONFIG_X=y\n").unwrap();
        KernelStore::new(cache).store(SPEC, &package(release), &image, Some(&config))
    }

    /// Check that a stored kernel is unchanged, and that no other file remains.
    #[test]
    fn stores_kernels() {
        let cache = tempfile::tempdir().unwrap();
        let store = KernelStore::new(cache.path());
        assert_eq!(store.recall(SPEC).unwrap(), None);
        let stored = add(cache.path(), "6.1.0-56-amd64").unwrap();
        assert_eq!(stored.release, "6.1.0-56-amd64");
        assert_eq!(fs::read(&stored.image).unwrap(), synthetic("6.1.0-56-amd64"));
        assert_eq!(fs::read(stored.config.as_ref().unwrap()).unwrap(), b"CONFIG_X=y\n");
        assert_eq!(store.recall(SPEC).unwrap(), Some(stored.clone()));
        assert_eq!(store.list(), [stored]);
        assert_eq!(fs::read_dir(cache.path().join("kernels")).unwrap().count(), 2);
    }

    /// Check that a spec is resolved to a newer kernel, and that the older one is still found by
    /// its package.
    #[test]
    fn specs_move_on() {
        let cache = tempfile::tempdir().unwrap();
        let store = KernelStore::new(cache.path());
        let older = add(cache.path(), "6.1.0-55-amd64").unwrap();
        let newer = add(cache.path(), "6.1.0-56-amd64").unwrap();
        assert_eq!(store.recall(SPEC).unwrap(), Some(newer));
        let whole = "debian:6.1.0-55";
        let found = store.find(whole, &package("6.1.0-55-amd64")).unwrap().unwrap();
        assert_eq!(found.sha256, older.sha256);
        assert_eq!(store.recall(whole).unwrap(), Some(found));
        assert_eq!(store.find(whole, &package("6.1.0-54-amd64")).unwrap(), None);
    }

    /// Check that a name with a suite is stored beside the same one without.
    #[test]
    fn specs_with_a_suite() {
        let cache = tempfile::tempdir().unwrap();
        let store = KernelStore::new(cache.path());
        let stored = add(cache.path(), "6.1.0-56-amd64").unwrap();
        let spec = "debian:bookworm-security/6.1";
        let found = store.find(spec, &package("6.1.0-56-amd64")).unwrap().unwrap();
        assert_eq!(store.recall(spec).unwrap(), Some(found.clone()));
        assert_eq!(store.list(), [stored, found]);
    }

    /// Check that a damaged image is named, is not found, and makes room for a good one.
    #[test]
    fn replaces_damaged_kernels() {
        let cache = tempfile::tempdir().unwrap();
        let store = KernelStore::new(cache.path());
        let release = "6.1.0-56-amd64";
        let stored = add(cache.path(), release).unwrap();
        fs::write(&stored.image, "damaged").unwrap();
        let error = store.recall(SPEC).unwrap_err();
        assert_eq!(error.kind(), Kind::Cache);
        assert!(error.to_string().contains(&stored.sha256), "{error}");
        assert_eq!(store.find(SPEC, &package(release)).unwrap(), None);
        assert_eq!(add(cache.path(), release).unwrap(), stored);
        assert_eq!(store.recall(SPEC).unwrap(), Some(stored.clone()));
        fs::remove_file(stored.image.with_file_name(ABOUT)).unwrap();
        assert_eq!(store.recall(SPEC).unwrap(), None);
        assert_eq!(add(cache.path(), release).unwrap(), stored);
    }

    /// Check that an invalid checksum is ignored.
    #[test]
    fn distrusts_what_it_remembers() {
        let cache = tempfile::tempdir().unwrap();
        add(cache.path(), "6.1.0-56-amd64").unwrap();
        let store = KernelStore::new(cache.path());
        for text in ["", "../specs", &"g".repeat(64), &"0".repeat(64)] {
            fs::write(store.specs().join(SPEC), text).unwrap();
            assert_eq!(store.recall(SPEC).unwrap(), None, "{text}");
        }
    }

    /// Check that the same kernel can be stored by several processes at once.
    #[test]
    fn many_store_the_same() {
        let cache = tempfile::tempdir().unwrap();
        let start = std::sync::Barrier::new(4);
        let kernels: Vec<Kernel> = std::thread::scope(|scope| {
            let task = || {
                start.wait();
                add(cache.path(), "6.1.0-56-amd64").unwrap()
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(task)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(kernels.windows(2).all(|pair| pair[0] == pair[1]), "{kernels:?}");
        let store = KernelStore::new(cache.path());
        assert_eq!(store.recall(SPEC).unwrap(), Some(kernels[0].clone()));
        assert_eq!(fs::read_dir(&store.folder).unwrap().count(), 2);
    }

    /// Check that a file that is no kernel is not stored, and that leftovers are removed.
    #[test]
    fn stores_nothing_else() {
        let cache = tempfile::tempdir().unwrap();
        let store = KernelStore::new(cache.path());
        let text = cache.path().join("text");
        fs::write(&text, "not a kernel").unwrap();
        let error = store.store(SPEC, &package("6.1"), &text, None).unwrap_err();
        assert_eq!(error.kind(), Kind::Kernel);
        let left = store.scratch().unwrap().keep();
        store.sweep();
        assert!(!left.exists());
        assert_eq!(store.list(), []);
    }
}
