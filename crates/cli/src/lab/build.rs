//! `noisefloor lab kernels build`: kernels from their source.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ::lab::{Cache, CellObserver};
use kernels::{Base, BuildSpec, Fetch, Kernel, Kernels, OptionValue, SourceSpec};
use serde_json::{Value, json};
use units::chain;

use crate::args::Output;
use crate::destination::create_folder;
use crate::lab::args::BuildArgs;
use crate::lab::watcher::Watcher;
use crate::outcome::{Failure, Outcome};
use crate::printing::{self, print, say};
use crate::terminal::stop_flag;

/// Builds kernels that are not in the cache, and prints where they are.
pub(crate) fn run(args: &BuildArgs, output: Output) -> Result<Outcome, Failure> {
    let specs = specs(args)?;
    let stop = stop_flag()?;
    let mut kernels = Kernels::new(&Cache::find()?.folder);
    if let Some(jobs) = args.jobs {
        kernels = kernels.with_jobs(jobs.into());
    }
    let mut watcher = Watcher::new(output.quiet);
    let mut built = Vec::new();
    for spec in &specs {
        let mut say = |text: &str| watcher.say(text);
        let mut fetch = Fetch { fresh: args.fresh, stop: &stop, say: &mut say };
        let kernel = kernels.build(spec, &mut fetch)?;
        let files = match &args.output {
            Some(folder) => copy(&kernel, folder)?,
            None => Files::of(&kernel),
        };
        built.push((kernel, files));
    }
    watcher.clear();
    match output.json {
        true => print_json(&built)?,
        false => print(&built.iter().map(text).collect::<String>()).map(drop)?,
    }
    for (kernel, _) in &built {
        if let Some(missing) = kernel.missing_options()? {
            say(format!("guests cannot use {}: {}", kernel.spec, chain(&missing)));
        }
    }
    Ok(Outcome::Done)
}

/// The kernels to build.
fn specs(args: &BuildArgs) -> Result<Vec<BuildSpec>, Failure> {
    let Some(source) = &args.source else {
        let parse = |name: &String| match name.starts_with(BuildSpec::PREFIX) {
            true => BuildSpec::parse(name).map_err(Failure::usage),
            false => Err(Failure::usage(format!(
                "'{name}' is no kernel to build: write build:debian:6.1,lean, or --source"
            ))),
        };
        return args.names.iter().map(parse).collect();
    };
    spec(source.clone(), &args.base, &args.options, &args.fragments).map(|one| vec![one])
}

fn spec(
    source: SourceSpec,
    base: &str,
    options: &[String],
    fragments: &[PathBuf],
) -> Result<BuildSpec, Failure> {
    let option = |text: &String| {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let option = OptionValue::parse(name, value).map_err(Failure::usage)?;
        option.filter(|_| !value.is_empty()).ok_or_else(|| {
            Failure::usage(format!(
                "'{text}' is not an option: write OPTION=VALUE, as in -o HZ=40"
            ))
        })
    };
    let options = options.iter().map(option).collect::<Result<_, _>>()?;
    let (base, fragments) = (Base::parse(base), fragments.to_vec());
    let spec = BuildSpec { base, fragments, options, ..BuildSpec::new(source) };
    // Its name is printed, and can be used instead of the options.
    match BuildSpec::parse(&spec.to_string()) {
        Ok(named) if named == spec => Ok(spec),
        _ => Err(Failure::usage(
            "a kernel's source, base, fragments and options must not contain a comma",
        )),
    }
}

/// An image and its configuration.
struct Files {
    image: PathBuf,
    config: Option<PathBuf>,
}

impl Files {
    fn of(kernel: &Kernel) -> Self {
        Self { image: kernel.image.clone(), config: kernel.config.clone() }
    }
}

/// Copies a kernel's files, named so that the lab finds the configuration beside the image.
fn copy(kernel: &Kernel, folder: &Path) -> Result<Files, Failure> {
    let failed = |error: recording::Error| Failure::of_writing(&error);
    let copy = |from: &PathBuf, to: PathBuf| {
        let bytes = fs::read(from)
            .map_err(|why| recording::Error::new(recording::Kind::Read, from, why));
        let copied = bytes.and_then(|bytes| recording::write_file(&to, bytes));
        copied.map(|()| to).map_err(failed)
    };
    let name = kernel.spec.trim_start_matches(BuildSpec::PREFIX);
    let known = |c: char| c.is_ascii_alphanumeric() || "._=-".contains(c);
    let name: String = name.chars().map(|c| if known(c) { c } else { '-' }).collect();
    let name = format!("{}-{}", kernel.release, name.trim_matches('-'));
    create_folder(folder).map_err(failed)?;
    let image = copy(&kernel.image, folder.join(format!("vmlinuz-{name}")))?;
    let config = kernel.config.as_ref();
    let config = config.map(|from| copy(from, folder.join(format!("config-{name}"))));
    Ok(Files { image, config: config.transpose()? })
}

fn size(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |metadata| metadata.len())
}

fn text((kernel, files): &(Kernel, Files)) -> String {
    let mut rows = vec![
        ("kernel", kernel.spec.clone()),
        ("release", kernel.release.clone()),
        ("image", format!("{} ({} bytes)", files.image.display(), size(&files.image))),
    ];
    if let Some(config) = &files.config {
        rows.push(("config", config.display().to_string()));
    }
    if let Some(build) = &kernel.build {
        let cpu = Duration::from_millis(build.cpu_ms).as_secs_f64();
        rows.push(("source", build.source.clone()));
        rows.push(("CPU time", format!("{cpu:.1} s")));
    }
    rows.iter().map(|(key, value)| format!("{key:<9} {value}\n")).collect()
}

fn print_json(built: &[(Kernel, Files)]) -> Result<(), Failure> {
    let one = |(kernel, files): &(Kernel, Files)| -> Value {
        json!({
            "name": kernel.spec,
            "release": kernel.release,
            "image": files.image,
            "image_bytes": size(&files.image),
            "config": files.config,
            "sha256": kernel.sha256,
            "build": kernel.build,
        })
    };
    let kernels: Vec<Value> = built.iter().map(one).collect();
    let object =
        json!({"format": recording::FORMAT, "kind": "builds", "builds": kernels});
    printing::print_json(&serde_json::to_string_pretty(&object).map_err(Failure::bug)?)
}
