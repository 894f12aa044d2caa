//! Kernels that are built from their source.
//!
//! A kernel is identified by its source, its configuration and the compiler. What is requested has
//! a key, too, so that a cached kernel is found without a run of Kconfig. Kernels of one source are
//! built in one folder, one after another: an interrupted build continues there, and another
//! configuration makes again only what differs.

pub(crate) mod base;
pub(crate) mod configure;
pub(crate) mod difference;
pub(crate) mod folder;
pub(crate) mod kconfig;
pub(crate) mod make;
pub(crate) mod sequence;
pub(crate) mod source;
pub(crate) mod tools;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use facts::Config;
use units::chain;

use crate::build::base::BaseConfig;
use crate::build::configure::{CONFIG, Request, wanted};
use crate::build::difference::{ConfigDifference, Values, values};
use crate::build::folder::Folder;
use crate::build::kconfig::Kconfig;
use crate::build::make::{BuildEnd, Make};
use crate::build::sequence::Objects;
use crate::build::source::{Identities, Sources, Tree};
use crate::build_error::BuildError;
use crate::build_name::{Base, BuildSpec, SourceSpec};
use crate::debian::{Debian, Fetch};
use crate::error::{CacheError, Error};
use crate::image::checksum;
use crate::kernel::{Build, Kernel};
use crate::store::{KernelStore, replace};

/// The version of the recipe: kernels of others are built again.
const RECIPE: &str = "1";
/// Characters that make or a shell would not take as part of a path.
const SPECIAL: &str = ":$;'\"`()&|<>*?#%\\!{}[]^";
/// The target of make, and its file.
const TARGET: &str = "bzImage";
const IMAGE: &str = "arch/x86/boot/bzImage";

/// Checks a build without doing anything: files that it needs exist and have options.
///
/// # Errors
/// `Error::Build`.
pub(crate) fn check(spec: &BuildSpec) -> Result<(), Error> {
    let build = |cause| Error::Build(spec.to_string(), cause);
    if let SourceSpec::Path(path) = &spec.source {
        fs::metadata(path)
            .map_err(|error| build(BuildError::Read(path.clone(), error)))?;
    }
    if let Some(file) = spec.base.file() {
        BaseConfig::from_file(file).map_err(build)?;
    }
    wanted(spec).map(drop).map_err(build)
}

/// The configuration that Kconfig made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// Its text.
    pub text: String,
    /// What identifies a kernel of this source and compiler with it.
    pub id: String,
    /// Whether that kernel is in the cache.
    pub is_built: bool,
}

/// A configuration in the folder of a build.
struct Configured<'a> {
    make: Make<'a>,
    config: Config,
    text: String,
    id: String,
}

/// The builder of kernels.
pub(crate) struct Builder<'a> {
    pub(crate) cache: &'a Path,
    pub(crate) debian: &'a Debian,
    pub(crate) store: &'a KernelStore,
    pub(crate) identities: &'a Identities,
    pub(crate) jobs: usize,
}

/// A kernel that is to be built.
struct Order<'a> {
    spec: &'a BuildSpec,
    /// Its name in messages.
    name: String,
    tree: Tree,
    request: Request,
    compiler: String,
}

impl Order<'_> {
    /// What identifies a kernel with that configuration.
    fn key(&self, config: &str) -> String {
        let Self { tree, compiler, .. } = self;
        checksum(format!("{RECIPE}\n{}\n{compiler}\n{config}", tree.identity).as_bytes())
    }

    /// The name of the folder in which it is built. The path is part of all commands, and few objects
    /// of a complete base are those of another one.
    fn folder(&self) -> String {
        let Self { tree, compiler, request, .. } = self;
        let (path, identity) = (tree.path.display(), &tree.identity);
        let complete = request.is_complete();
        let text =
            format!("folder\n{RECIPE}\n{identity}\n{path}\n{compiler}\n{complete}");
        checksum(text.as_bytes())
    }

    /// Whether the tree is not in the cache, so that it may be another one now.
    fn is_changeable(&self) -> bool {
        matches!(&self.spec.source, SourceSpec::Path(path) if path.is_dir())
    }

    fn failed(&self, cause: BuildError) -> Error {
        Error::Build(self.name.clone(), cause)
    }
}

impl Builder<'_> {
    /// Finds a kernel in the cache, or builds it.
    ///
    /// # Errors
    /// `Error::Build`, `Kind::Unavailable`, `Kind::Cache`, `Kind::Interrupted`.
    pub(crate) fn find(
        &self,
        spec: &BuildSpec,
        fetch: &mut Fetch<'_>,
    ) -> Result<Kernel, Error> {
        check(spec)?;
        let order = self.order(spec, fetch)?;
        let key = order.key(&order.request.identity());
        match self.store.recall_build(&key, &order.name) {
            Ok(Some(kernel)) => return Ok(kernel),
            Ok(None) => {}
            Err(damaged) => {
                (fetch.say)(&format!("{}: building it again", chain(&damaged)))
            }
        }
        let builds = self.cache.join("builds");
        let folder = Folder::acquire(&builds, &order.folder(), fetch)?;
        if let Ok(Some(kernel)) = self.store.recall_build(&key, &order.name) {
            return Ok(kernel); // another process has built it
        }
        self.build_in(&folder, order, &key, fetch)
    }

    /// Prepares that folder, and builds a kernel there.
    fn build_in(
        &self,
        folder: &Folder,
        mut order: Order<'_>,
        key: &str,
        fetch: &mut Fetch<'_>,
    ) -> Result<Kernel, Error> {
        let kconfig = self.prepare(folder, &mut order, key)?;
        let Order { spec, tree, .. } = &order;
        (fetch.say)(&format!("building Linux {} as {}", tree.version, spec.unlabelled()));
        let built = self.build(&order, &kconfig, key, folder, fetch);
        let _ = folder.end(key); // without it, the next build is a full one
        built
    }

    /// The indices of requests in the order in which they are built the fastest: first what is not to
    /// be built, then one folder after another. Those of a folder stay in the given order if nothing
    /// was built in it yet, or if one has a mistake.
    pub(crate) fn sequence(
        &self,
        specs: &[Option<BuildSpec>],
        fetch: &mut Fetch<'_>,
    ) -> Vec<usize> {
        let (mut order, mut folders) = (Vec::new(), BTreeMap::<_, Vec<usize>>::new());
        for (index, spec) in specs.iter().enumerate() {
            match spec.as_ref().and_then(|spec| self.folder_of(spec, fetch)) {
                Some(folder) => folders.entry(folder).or_default().push(index),
                None => order.push(index),
            }
        }
        for (folder, builds) in folders {
            let requests = builds.iter().filter_map(|index| specs[*index].as_ref());
            let requests: Vec<&BuildSpec> = requests.collect();
            let sequence = self.sequence_in(&folder, &requests, fetch);
            let sequence = sequence.unwrap_or_else(|| (0..builds.len()).collect());
            order.extend(sequence.into_iter().map(|at| builds[at]));
        }
        order
    }

    /// The folder in which a kernel is to be built; `None` if it is cached, or cannot be built.
    fn folder_of(&self, spec: &BuildSpec, fetch: &mut Fetch<'_>) -> Option<PathBuf> {
        let order = self.order(spec, fetch).ok()?;
        let key = order.key(&order.request.identity());
        let is_built = matches!(self.store.recall_build(&key, &order.name), Ok(Some(_)));
        (!is_built).then(|| self.cache.join("builds").join(order.folder()))
    }

    /// The order of at least two builds in one folder; `None` if nothing is known about them.
    fn sequence_in(
        &self,
        folder: &Path,
        specs: &[&BuildSpec],
        fetch: &mut Fetch<'_>,
    ) -> Option<Vec<usize>> {
        if specs.len() < 2 {
            return None;
        }
        let objects = Objects::read(folder).ok()?;
        let (count, name) =
            (specs.len(), "in the order in which they share most objects");
        (fetch.say)(&format!("configuring {count} kernels, to build them {name}"));
        let configured =
            |spec: &&BuildSpec| Some(values(&self.configuration(spec, fetch).ok()?.text));
        let configurations: Option<Vec<Values>> = specs.iter().map(configured).collect();
        Some(objects.sequence(&configurations?))
    }

    /// The configuration that Kconfig makes of a request; nothing is built.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub(crate) fn configuration(
        &self,
        spec: &BuildSpec,
        fetch: &mut Fetch<'_>,
    ) -> Result<Configuration, Error> {
        check(spec)?;
        let mut order = self.order(spec, fetch)?;
        let key = order.key(&order.request.identity());
        let folder = Folder::acquire(&self.cache.join("builds"), &order.folder(), fetch)?;
        let kconfig = self.prepare(&folder, &mut order, &key)?;
        let made = self.configure(&order, &kconfig, &folder, fetch);
        let _ = folder.end(&key); // without it, the next build is a full one
        let Configured { text, id, .. } = made?;
        let is_built = matches!(self.store.recall_build(&id, &order.name), Ok(Some(_)));
        Ok(Configuration { text, id, is_built })
    }

    /// The differences of two configurations of that source.
    ///
    /// # Errors
    /// As [`Self::find`].
    pub(crate) fn difference(
        &self,
        source: &SourceSpec,
        [from, to]: [&Configuration; 2],
        fetch: &mut Fetch<'_>,
    ) -> Result<ConfigDifference, Error> {
        let sources = self.sources();
        let tree = sources.find(&BuildSpec::new(source.clone()), fetch)?;
        Ok(ConfigDifference::of(&from.text, &to.text, &Kconfig::read(&tree.path)))
    }

    /// The name of the kernel with the configuration between two others. Its file stays in the cache,
    /// so that the name can be used later.
    ///
    /// # Errors
    /// `Kind::Cache`.
    pub(crate) fn between(
        &self,
        source: &SourceSpec,
        difference: &ConfigDifference,
        made: &[usize],
    ) -> Result<BuildSpec, Error> {
        let text = difference.with(made);
        let folder = self.cache.join("configs");
        let file = folder.join(format!("{}.config", checksum(text.as_bytes())));
        let written = fs::create_dir_all(&folder).and_then(|()| replace(&file, &text));
        written.map_err(|error| CacheError::new(&file, error))?;
        Ok(BuildSpec { base: Base::File(file), ..BuildSpec::new(source.clone()) })
    }

    fn sources(&self) -> Sources<'_> {
        Sources::new(self.cache, self.debian, self.identities)
    }

    /// What is to be built, after everything that can be checked at once.
    fn order<'a>(
        &self,
        spec: &'a BuildSpec,
        fetch: &mut Fetch<'_>,
    ) -> Result<Order<'a>, Error> {
        let name = spec.to_string();
        let failed = |cause| Error::Build(name.clone(), cause);
        tools::check().map_err(failed)?;
        let wanted = wanted(spec).map_err(failed)?;
        let sources = self.sources();
        let tree = sources.find(spec, fetch)?;
        let base = match &spec.base {
            Base::Lean => BaseConfig::lean(),
            Base::None => BaseConfig::none(),
            Base::File(file) => BaseConfig::from_file(file).map_err(failed)?,
            Base::Debian { cloud } => {
                let version = tree.short_version();
                let config = sources.debian_config(&version, *cloud, fetch)?;
                let file = PathBuf::from(format!("linux-config-{version}"));
                BaseConfig::without_modules(&config, &file).map_err(failed)?
            }
        };
        let request = Request::new(base, wanted);
        let compiler = tools::compiler(fetch.stop)?;
        Ok(Order { spec, name, tree, request, compiler })
    }

    /// Prepares that folder for a request that the tree can have, and settles it; returns the tree's
    /// options.
    fn prepare(
        &self,
        folder: &Folder,
        order: &mut Order<'_>,
        key: &str,
    ) -> Result<Kconfig, Error> {
        let Order { tree, request, .. } = &*order;
        let failed = |cause| order.failed(cause);
        refuse_special([&tree.path, &folder.path]).map_err(failed)?;
        let kconfig = Kconfig::read(&tree.path);
        request.check(&kconfig, tree).map_err(failed)?;
        let changeable = order.is_changeable().then_some(tree.path.as_path());
        let prepared = folder.prepare(key, changeable);
        prepared.map_err(|error| CacheError::new(&folder.path, error))?;
        order.request = order.request.settled(&kconfig);
        Ok(kconfig)
    }

    /// Makes the configuration in a prepared folder.
    fn configure<'a>(
        &self,
        order: &'a Order<'_>,
        kconfig: &Kconfig,
        folder: &'a Folder,
        fetch: &mut Fetch<'_>,
    ) -> Result<Configured<'a>, Error> {
        let Order { name, tree, request, .. } = order;
        let failed = |cause| order.failed(cause);
        let options = request.write_kconfig(&tree.path, &folder.path).map_err(failed)?;
        let make = Make { tree: &tree.path, folder, kconfig: options, jobs: self.jobs };
        let config = request.configure(&make, kconfig, fetch);
        let config = config.map_err(|end| end.of(name))?;
        let text = fs::read_to_string(folder.path.join(CONFIG))
            .map_err(|error| CacheError::new(&folder.path, error))?;
        let id = order.key(&format!("configuration\n{text}"));
        Ok(Configured { make, config, text, id })
    }

    /// Builds a kernel in a prepared folder, and stores it.
    fn build(
        &self,
        order: &Order<'_>,
        kconfig: &Kconfig,
        key: &str,
        folder: &Folder,
        fetch: &mut Fetch<'_>,
    ) -> Result<Kernel, Error> {
        let Order { spec, name, tree, compiler, .. } = order;
        let out = &folder.path;
        let configured = self.configure(order, kconfig, folder, fetch)?;
        let Configured { make, config, id, .. } = configured;
        tools::check_for(&config).map_err(|cause| order.failed(cause))?;
        if let Ok(Some(kernel)) = self.store.recall_build(&id, name) {
            self.store.remember_build(key, &kernel.sha256)?;
            return Ok(kernel);
        }
        let target = [TARGET.to_owned()];
        let made = make.run(&target, &format!("Linux {}", tree.version), fetch);
        made.map_err(|end| self.refused_hz(order, &config, end).of(name))?;
        self.refuse_changed(order, fetch)?;
        let build = Build {
            name: spec.unlabelled().to_string(),
            source: tree.identity.clone(),
            compiler: compiler.clone(),
            cpu_ms: u64::try_from(make.cpu_time().as_millis()).unwrap_or(u64::MAX),
        };
        let (image, config) = (out.join(IMAGE), out.join(CONFIG));
        let kernel = self.store.store_build(&build, [key, &id], &image, &config)?;
        Ok(Kernel { spec: name.clone(), ..kernel })
    }

    /// The end of a failed build, as the refusal of its HZ if that is the reason.
    fn refused_hz(&self, order: &Order<'_>, config: &Config, end: BuildEnd) -> BuildEnd {
        let BuildEnd::Error(BuildError::Failed { error, log }) = end else { return end };
        let hz = config.value("HZ").and_then(|hz| hz.parse().ok());
        match order.request.other_hz().and(hz) {
            Some(hz) if speaks_of_hz(&error) => {
                BuildEnd::Error(BuildError::Hz(hz, error))
            }
            _ => BuildEnd::Error(BuildError::Failed { error, log }),
        }
    }

    /// Refuses the result if a tree that is not in the cache is another one now.
    fn refuse_changed(
        &self,
        order: &Order<'_>,
        fetch: &mut Fetch<'_>,
    ) -> Result<(), Error> {
        let Order { spec, tree, .. } = order;
        let SourceSpec::Path(path) = &spec.source else { return Ok(()) };
        if !order.is_changeable()
            || source::identity(&tree.path, fetch.stop)? == tree.identity
        {
            return Ok(());
        }
        Err(order.failed(BuildError::Changed(path.clone())))
    }
}

/// Refuses paths that the kernel's Makefile does.
fn refuse_special(paths: [&Path; 2]) -> Result<(), BuildError> {
    let is_special = |c: char| c.is_whitespace() || SPECIAL.contains(c);
    let is_refused = |path: &&Path| path.to_string_lossy().contains(is_special);
    match paths.into_iter().find(is_refused) {
        Some(path) => Err(BuildError::Spaces(path.to_owned())),
        None => Ok(()),
    }
}

/// Whether a compiler's error is about the frequency of the tick.
fn speaks_of_hz(error: &str) -> bool {
    let words = error.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.into_iter().any(|word| matches!(word, "HZ" | "SHIFT_HZ"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a path with a space or a colon is refused by its name, and says nothing about the
    /// source.
    #[test]
    fn paths() {
        let [fine, space, colon, shell] =
            ["/a/b-c~1_é", "/a/b c", "/a:b", "/a$(b)"].map(Path::new);
        assert!(refuse_special([fine, fine]).is_ok());
        for bad in [space, colon, shell] {
            let refused = refuse_special([fine, bad]).unwrap_err();
            assert!(refused.to_string().contains(&bad.display().to_string()));
            assert!(!refused.is_of_source());
        }
    }
}
