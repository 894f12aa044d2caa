//! `noisefloor lab list`, `show`, `kernels`: built-in experiments and available kernels.

use ::lab::{Cache, CellObserver, Lab};
use experiments::Experiment;
use kernels::{Fetch, Kernel, Kernels, SuiteKernels};
use report::{
    ArchiveSuite, CachedKernel, Document, catalogue_document, kernels_document,
};
use serde_json::json;
use units::chain;

use crate::args::Output;
use crate::lab;
use crate::lab::args::{KernelsArgs, ShowArgs};
use crate::lab::watcher::Watcher;
use crate::outcome::{Failure, Outcome};
use crate::printing::{self, print_content, print_document};
use crate::terminal::stop_flag;

/// The built-in experiments, and the agent, counter and QEMU in use.
pub(crate) fn list(output: Output) -> Result<Outcome, Failure> {
    let experiments = Experiment::builtins()?;
    let parts = Lab::find_made_with();
    if output.json {
        let told = |e: &Experiment| json!({"name": e.name(), "about": e.about()});
        let all: Vec<_> = experiments.iter().map(told).collect();
        let parts = parts.ok();
        return print_json(&json!({
            "format": recording::FORMAT,
            "kind": "experiments",
            "experiments": all,
            "made_with": parts,
        }));
    }
    let told = experiments.iter().map(|e| (e.name(), e.about()));
    let parts = parts.map_err(|error| chain(&error).to_string());
    print_document(&catalogue_document(told, &parts), output.view())?;
    Ok(Outcome::Done)
}

/// An experiment's text, after it has been checked.
pub(crate) fn show(args: &ShowArgs, output: Output) -> Result<Outcome, Failure> {
    if output.json {
        return Err(Failure::usage("an experiment is TOML; hint: omit --json"));
    }
    print_content(lab::read(&args.name)?.with_kernels(&[])?.text())?;
    Ok(Outcome::Done)
}

/// Downloads the named kernels, and lists the cached ones and those of Debian's archive. With
/// `--fresh` alone the list of the archive is updated.
pub(crate) fn kernels(args: &KernelsArgs, output: Output) -> Result<Outcome, Failure> {
    let stop = stop_flag()?;
    let kernels = Kernels::new(&Cache::find()?.folder);
    let mut watcher = Watcher::new(output.quiet);
    let mut say = |text: &str| watcher.say(text);
    let mut fetch = Fetch { fresh: args.fresh, stop: &stop, say: &mut say };
    for spec in &args.get {
        kernels.find(spec, &mut fetch)?;
    }
    if args.fresh && args.get.is_empty() {
        kernels.ask(&mut fetch)?;
    }
    watcher.clear();
    let (kept, suites) = (kernels.list(), kernels.suites());
    if output.json {
        let kept: Vec<_> = kept.iter().map(kept_json).collect();
        let suites: Vec<_> = suites.iter().flatten().map(suite_json).collect();
        return object("kernels", &json!({"kept": kept, "suites": suites}));
    }
    print_document(&document(&kept, suites.as_deref()), output.view())?;
    Ok(Outcome::Done)
}

fn kept_json(kernel: &Kernel) -> serde_json::Value {
    let Kernel { spec, release, package_version, sha256, build, .. } = kernel;
    json!({
        "name": spec,
        "release": release,
        "package": package_version,
        "sha256": sha256,
        "build": build,
    })
}

fn suite_json(suite: &SuiteKernels) -> serde_json::Value {
    let kernels = suite.kernels.iter().map(|(name, version)| {
        let name = format!("debian:{}/{name}", suite.suite);
        json!({"name": name, "package": version})
    });
    json!({"suite": suite.suite, "kernels": kernels.collect::<Vec<_>>()})
}

fn document(kept: &[Kernel], suites: Option<&[SuiteKernels]>) -> Document {
    let kept: Vec<_> = kept.iter().map(cached).collect();
    let suites: Option<Vec<_>> = suites.map(|suites| suites.iter().map(suite).collect());
    kernels_document(&kept, suites.as_deref())
}

fn cached(kernel: &Kernel) -> CachedKernel<'_> {
    let version = kernel.package_version.as_deref().unwrap_or_default();
    [&kernel.spec, &kernel.release, version]
}

fn suite(suite: &SuiteKernels) -> ArchiveSuite<'_> {
    (&suite.suite, suite.kernels.iter().map(|(name, _)| name.as_str()).collect())
}

fn object(kind: &str, value: &serde_json::Value) -> Result<Outcome, Failure> {
    print_json(&json!({"format": recording::FORMAT, "kind": kind, (kind): value}))
}

fn print_json(object: &serde_json::Value) -> Result<Outcome, Failure> {
    let text = serde_json::to_string_pretty(object).map_err(Failure::bug)?;
    printing::print_json(&text)?;
    Ok(Outcome::Done)
}
