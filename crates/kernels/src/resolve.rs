//! From the name of a kernel to its image.
//!
//! A kernel of this machine or in a file is used in place. Debian's come from the archive of
//! this machine's own packages, and are cached: a name resolves to the same kernel, without
//! a query of the archive, until a fresh one is requested. So a result can be repeated after
//! the archive has moved on. Kernels are built from a source the same way (`build`).

use std::fs;
use std::path::{self, Path, PathBuf};
use std::thread;

use crate::apt::{self, Archive};
use crate::architecture::Architecture;
use crate::build::Builder;
use crate::build::Configuration;
use crate::build::difference::ConfigDifference;
use crate::build::source::Identities;
use crate::build_name::{BuildSpec, SourceSpec};
use crate::debian::{Debian, Fetch, SuiteKernels, unavailable};
use units::chain;

use crate::error::Error;
use crate::image::Image;
use crate::kernel::Kernel;
use crate::package::Package;
use crate::spec::{DebianSpec, KernelSpec};
use crate::store::KernelStore;
use crate::wanted::{self, Source, Wanted};

/// How many packages of a kernel are tried if the archive does not have the newest.
const TRIES: usize = 12;

/// The kernels that are available to this machine.
pub struct Kernels {
    root: PathBuf,
    cache: PathBuf,
    debian: Debian,
    store: KernelStore,
    identities: Identities,
    /// How many processes a build may run at once.
    jobs: usize,
}

impl Kernels {
    /// The kernels of this machine; downloaded ones are stored in that cache.
    pub fn new(cache: &Path) -> Self {
        Self::of_machine(Path::new("/"), cache)
    }

    /// The same for the machine whose files lie under `root`.
    pub(crate) fn of_machine(root: &Path, cache: &Path) -> Self {
        let (debian, store) = (Debian::new(root, cache), KernelStore::new(cache));
        let (root, cache) = (root.to_owned(), cache.to_owned());
        let jobs = thread::available_parallelism().map_or(1, usize::from);
        Self { root, cache, debian, store, identities: Identities::default(), jobs }
    }

    /// The kernels in the cache, one for each name that was resolved. They are not checked.
    pub fn list(&self) -> Vec<Kernel> {
        self.store.list()
    }

    /// The kernels of each suite of Debian's archive in the cached lists; `None` if the
    /// machine has no sources of Debian's.
    pub fn suites(&self) -> Option<Vec<SuiteKernels>> {
        self.debian.suites()
    }

    /// Updates the lists of all suites of Debian's archive.
    ///
    /// # Errors
    /// `Kind::Unavailable` if none answers, `Kind::Cache`, `Kind::Interrupted`.
    pub fn ask(&self, fetch: &mut Fetch<'_>) -> Result<(), Error> {
        let _alone = self.debian.lock(fetch)?;
        self.debian.ask(fetch)
    }

    /// The Debian packages that have a missing program, library or file; `None` if none has.
    ///
    /// # Errors
    /// `Kind::Unavailable` if there is no archive, or it does not answer; `Kind::Cache`;
    /// `Kind::Interrupted`.
    pub fn package_with(
        &self,
        wanted: Wanted<'_>,
        fetch: &mut Fetch<'_>,
    ) -> Result<Option<Source>, Error> {
        wanted::source(wanted, &self.root, &self.debian, fetch)
    }

    /// Refuses a name that no kernel can have, and the path of a file that is no kernel.
    /// Nothing is downloaded.
    ///
    /// # Errors
    /// `Kind::Name`, `Kind::Kernel`; `Kind::Unavailable` if a file cannot be read.
    pub fn check_name(&self, spec: &str) -> Result<(), Error> {
        match KernelSpec::parse(spec)? {
            KernelSpec::File(path) => Image::read(&path).map(drop),
            KernelSpec::Build(build) => crate::build::check(&build),
            KernelSpec::Running | KernelSpec::Debian(_) => Ok(()),
        }
    }

    /// The architecture of the kernel of that name, as far as it is known before it is found: that of a file
    /// that cannot be read counts as x86-64. Nothing is downloaded.
    ///
    /// # Errors
    /// `Kind::Name`.
    pub fn architecture(&self, spec: &str) -> Result<Architecture, Error> {
        Ok(match KernelSpec::parse(spec)? {
            KernelSpec::File(path) => Image::read(&path)
                .map_or_else(|_| Architecture::default(), |image| image.architecture),
            KernelSpec::Debian(debian) => debian.architecture(),
            KernelSpec::Running if cfg!(target_arch = "aarch64") => Architecture::Arm64,
            KernelSpec::Running | KernelSpec::Build(_) => Architecture::X86_64,
        })
    }

    /// The kernel of that name, built if it is not cached. Whether guests can use it is not
    /// checked.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn build(
        &self,
        spec: &BuildSpec,
        fetch: &mut Fetch<'_>,
    ) -> Result<Kernel, Error> {
        self.builder().find(spec, fetch)
    }

    /// The same names in the order in which their kernels are built the fastest: kernels of one source
    /// are built in one folder, where a build makes again what differs from the last one.
    pub fn in_build_order<'a>(
        &self,
        names: &[&'a str],
        fetch: &mut Fetch<'_>,
    ) -> Vec<&'a str> {
        let build = |name: &&str| match KernelSpec::parse(name) {
            Ok(KernelSpec::Build(build)) => Some(*build),
            _ => None,
        };
        let specs: Vec<Option<BuildSpec>> = names.iter().map(build).collect();
        let order = self.builder().sequence(&specs, fetch);
        order.into_iter().map(|index| names[index]).collect()
    }

    /// The configuration that Kconfig makes of a kernel to build; nothing is built.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn configuration(
        &self,
        spec: &BuildSpec,
        fetch: &mut Fetch<'_>,
    ) -> Result<Configuration, Error> {
        self.builder().configuration(spec, fetch)
    }

    /// The differences of two configurations of that source.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub fn difference(
        &self,
        source: &SourceSpec,
        configurations: [&Configuration; 2],
        fetch: &mut Fetch<'_>,
    ) -> Result<ConfigDifference, Error> {
        self.builder().difference(source, configurations, fetch)
    }

    /// The kernel to build with the first of two configurations and those of their differences.
    ///
    /// # Errors
    /// `Kind::Cache`.
    pub fn between(
        &self,
        source: &SourceSpec,
        difference: &ConfigDifference,
        made: &[usize],
    ) -> Result<BuildSpec, Error> {
        self.builder().between(source, difference, made)
    }

    fn builder(&self) -> Builder<'_> {
        let Self { cache, debian, store, identities, jobs, .. } = self;
        Builder { cache, debian, store, identities, jobs: *jobs }
    }

    /// The same with that many processes at once for builds.
    #[must_use]
    pub fn with_jobs(self, jobs: usize) -> Self {
        Self { jobs, ..self }
    }

    /// Finds a kernel: in the cache, unless a fresh one is requested, or by downloading or
    /// building it.
    ///
    /// # Errors
    /// `Kind::Name` if the spec names none; `Kind::Kernel` if no guest can
    /// boot what it names; `Kind::Unavailable` if that is not available here; `Kind::Build` if it
    /// does not build; `Kind::Cache`; `Kind::Interrupted`.
    pub fn find(&self, spec: &str, fetch: &mut Fetch<'_>) -> Result<Kernel, Error> {
        let kernel = match KernelSpec::parse(spec)? {
            KernelSpec::Running => self.running()?,
            KernelSpec::File(path) => in_file(spec, &path, beside(&path))?,
            KernelSpec::Debian(debian) => self.debian(&debian, fetch)?,
            KernelSpec::Build(build) => {
                Kernel { spec: spec.to_owned(), ..self.build(&build, fetch)? }
            }
        };
        check_options(&kernel)?;
        Ok(kernel)
    }

    fn running(&self) -> Result<Kernel, Error> {
        let file = self.root.join("proc/sys/kernel/osrelease");
        let release = fs::read_to_string(&file)
            .map_err(|cause| Error::Read(file.clone(), cause))?;
        let release = release.trim();
        let Some(image) = first_file(&self.root, &images(release)) else {
            let places = images(release).map(|place| format!("/{place}")).join(" or ");
            return Err(Error::NoRunningImage(places));
        };
        in_file("running", &image, first_file(&self.root, &configs(release)))
    }

    fn debian(&self, spec: &DebianSpec, fetch: &mut Fetch<'_>) -> Result<Kernel, Error> {
        let name = spec.to_string();
        if !fetch.fresh {
            match self.store.recall(&name) {
                Ok(Some(kernel)) => return Ok(kernel),
                Ok(None) => {}
                Err(damaged) => {
                    (fetch.say)(&format!("{}: downloading it again", chain(&damaged)))
                }
            }
        }
        let _alone = self.debian.lock(fetch)?;
        if let (false, Ok(Some(kernel))) = (fetch.fresh, self.store.recall(&name)) {
            return Ok(kernel); // another process has downloaded it
        }
        self.store.sweep();
        self.download(spec, fetch)
    }

    /// Downloads the newest package, unless its kernel is cached. An archive may not have
    /// every package of its list, if that is out of date: then the list is updated, and
    /// then the next newest package is tried.
    fn download(
        &self,
        spec: &DebianSpec,
        fetch: &mut Fetch<'_>,
    ) -> Result<Kernel, Error> {
        let packages = self.debian.find(spec, fetch)?;
        let kernel = self.first(spec, &packages[..1], fetch);
        if !kernel.as_ref().is_err_and(apt::is_gone) {
            return kernel;
        }
        let Fetch { stop, say, .. } = fetch;
        let mut fetch = Fetch { fresh: true, stop, say: &mut **say };
        let packages = self.debian.find(spec, &mut fetch)?;
        self.first(spec, &packages, &mut fetch)
    }

    /// The kernel of the first package that the archive still has.
    fn first(
        &self,
        spec: &DebianSpec,
        packages: &[(Archive, Package)],
        fetch: &mut Fetch<'_>,
    ) -> Result<Kernel, Error> {
        let mut first = None;
        for (archive, package) in packages.iter().take(TRIES) {
            match self.unpack(spec, archive, package, fetch) {
                Err(error) if apt::is_gone(&error) => {
                    (fetch.say)(&chain(&error));
                    first.get_or_insert(error);
                }
                other => return other,
            }
        }
        Err(first.unwrap_or_else(|| Error::Archive(format!("no package has {spec}"))))
    }

    /// The kernel of a package: cached, or downloaded and unpacked.
    fn unpack(
        &self,
        spec: &DebianSpec,
        archive: &Archive,
        package: &Package,
        fetch: &mut Fetch<'_>,
    ) -> Result<Kernel, Error> {
        let name = spec.to_string();
        if let Some(kernel) = self.store.find(&name, package)? {
            return Ok(kernel);
        }
        (fetch.say)(&format!("downloading {} {}", package.name, package.version));
        let scratch = self.store.scratch()?;
        let unpacked = archive.unpack(package, scratch.path(), fetch.stop);
        unpacked.map_err(|error| unavailable(spec, error))?;
        let release = package.release();
        let Some(image) = first_file(scratch.path(), &images(release)) else {
            return Err(unavailable(spec, Error::EmptyPackage(package.name.clone())));
        };
        let config = first_file(scratch.path(), &configs(release));
        if config.is_none() {
            (fetch.say)(&format!(
                "{spec}: the archive does not have its configuration: its build options \
                 will be unknown"
            ));
        }
        self.store.store(&name, package, &image, config.as_deref())
    }
}

/// A kernel that is used in place; its path is absolute, since QEMU runs in another folder.
fn in_file(spec: &str, path: &Path, config: Option<PathBuf>) -> Result<Kernel, Error> {
    let Image { release, architecture, sha256, .. } = Image::read(path)?;
    let image =
        path::absolute(path).map_err(|cause| Error::Read(path.to_owned(), cause))?;
    let spec = spec.to_owned();
    let (package, package_version, build) = (None, None, None);
    Ok(Kernel {
        spec,
        architecture,
        image,
        config,
        sha256,
        release,
        package,
        package_version,
        build,
    })
}

/// The configuration beside an image that is named as in distributions.
fn beside(image: &Path) -> Option<PathBuf> {
    let release = image.file_name()?.to_str()?.strip_prefix("vmlinuz-")?;
    Some(image.with_file_name(format!("config-{release}"))).filter(|path| path.is_file())
}

/// The paths of the image of a release; Debian's newer ones only have the second.
fn images(release: &str) -> [String; 2] {
    [format!("boot/vmlinuz-{release}"), format!("usr/lib/modules/{release}/vmlinuz")]
}

/// The paths of its configuration.
fn configs(release: &str) -> [String; 2] {
    [format!("boot/config-{release}"), format!("usr/lib/modules/{release}/config")]
}

fn first_file(root: &Path, places: &[String]) -> Option<PathBuf> {
    places.iter().map(|place| root.join(place)).find(|path| path.is_file())
}

/// Refuses a kernel whose configuration lacks something. One without a readable
/// configuration passes.
fn check_options(kernel: &Kernel) -> Result<(), Error> {
    match kernel.missing_options()? {
        Some(missing) => Err(Error::Options(kernel.spec.clone(), missing)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::image::synthetic;
    use crate::options;
    use std::sync::atomic::AtomicBool;

    const RELEASE: &str = "6.1.0-56-amd64";

    fn write(path: &Path, bytes: impl AsRef<[u8]>) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// The kernel of that name on a machine with those files.
    fn find(root: &Path, spec: &str) -> Result<Kernel, Error> {
        let kernels = Kernels::of_machine(root, &root.join("cache"));
        let stop = AtomicBool::new(false);
        let mut say = |text: &str| panic!("{text}");
        kernels.find(spec, &mut Fetch { fresh: false, stop: &stop, say: &mut say })
    }

    /// Check that the running kernel is found in either of its places, with its configuration, and
    /// that the message names them if it is missing.
    #[test]
    fn finds_the_running_kernel() {
        let root = tempfile::tempdir().unwrap();
        let at = |place: &str| root.path().join(place);
        write(&at("proc/sys/kernel/osrelease"), format!("{RELEASE}\n"));
        let error = find(root.path(), "running").unwrap_err();
        assert_eq!(error.kind(), Kind::Unavailable);
        let place = format!("/usr/lib/modules/{RELEASE}/vmlinuz");
        assert!(error.to_string().contains(&place), "{error}");
        let [boot, modules] = images(RELEASE).map(|place| at(&place));
        write(&modules, synthetic(RELEASE));
        assert_eq!(find(root.path(), "running").unwrap().image, modules);
        write(&boot, synthetic(RELEASE));
        write(&at(&configs(RELEASE)[1]), options::synthetic_without(""));
        let kernel = find(root.path(), "running").unwrap();
        assert_eq!((kernel.image, kernel.release), (boot, RELEASE.to_owned()));
        assert_eq!(kernel.config, Some(at(&configs(RELEASE)[1])));
    }

    /// Check that a relative path works from any folder, since QEMU works in another.
    #[test]
    fn relative_paths() {
        let root = tempfile::tempdir().unwrap();
        let image = root.path().join("bzImage");
        write(&image, synthetic(RELEASE));
        let here = std::env::current_dir().unwrap();
        let up: PathBuf = here.components().skip(1).map(|_| "..").collect();
        let spec = up.join(image.strip_prefix("/").unwrap());
        assert!(spec.is_relative());
        let kernel = find(root.path(), spec.to_str().unwrap()).unwrap();
        assert_eq!(kernel.spec, spec.to_str().unwrap());
        assert!(kernel.image.is_absolute(), "{}", kernel.image.display());
        assert_eq!(fs::read(&kernel.image).unwrap(), synthetic(RELEASE));
    }

    /// Check that a kernel in a file is checked by the configuration beside it, and that
    /// one without a configuration passes.
    #[test]
    fn checks_what_is_known_of_a_file() {
        let root = tempfile::tempdir().unwrap();
        let image = root.path().join("vmlinuz-mine");
        let config = root.path().join("config-mine");
        let spec = image.to_str().unwrap();
        write(&image, synthetic(RELEASE));
        let kernel = find(root.path(), spec).unwrap();
        assert_eq!((kernel.spec.as_str(), kernel.config), (spec, None));
        write(&config, options::synthetic_without("SERIAL_8250_CONSOLE"));
        let error = find(root.path(), spec).unwrap_err();
        assert_eq!(error.kind(), Kind::Kernel);
        assert!(chain(&error).contains("CONFIG_SERIAL_8250_CONSOLE"), "{error}");
        write(&config, "nonsense\n");
        assert!(find(root.path(), spec).unwrap_err().to_string().contains("config-mine"));
        write(&config, options::synthetic_without(""));
        assert_eq!(find(root.path(), spec).unwrap().config, Some(config));
    }
}
