//! `noisefloor lab list`, `show`, `kernels`: what there is to run, and to run it on.

use ::lab::{Audience, Cache, Experiment, Kernel, Kernels, Lab};
use serde_json::json;

use crate::args::Output;
use crate::lab_args::{KernelsArgs, ShowArgs};
use crate::lab_watcher::Watcher;
use crate::outcome::{Failure, Outcome};
use crate::terminal::print;

/// The experiments that are built in, and what cells are made with here.
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
    let line = |e: &Experiment| format!("{:<12}{}\n", e.name(), e.about());
    let lines: String = experiments.iter().map(line).collect();
    let parts = parts.map_or_else(
        |error| format!("\nNothing can be run yet: {error}\n"),
        |parts| report::made_with(&parts),
    );
    print(&(lines + &parts))?;
    Ok(Outcome::Done)
}

/// An experiment's text.
pub(crate) fn show(args: &ShowArgs, output: Output) -> Result<Outcome, Failure> {
    if output.json {
        return Err(Failure::usage("an experiment is written as TOML: leave out --json"));
    }
    print(Experiment::builtin(&args.name)?.text())?;
    Ok(Outcome::Done)
}

/// Gets the kernels that were named, and tells which there are.
pub(crate) fn kernels(args: &KernelsArgs, output: Output) -> Result<Outcome, Failure> {
    let kernels = Kernels::new(&Cache::find()?.folder);
    let mut watcher = Watcher::new(output.quiet);
    for spec in &args.get {
        kernels.find(spec, args.fresh, &mut |text| watcher.say(text))?;
    }
    watcher.clear();
    let kept = kernels.list();
    let mut others = kernels.available();
    others.retain(|spec| kept.iter().all(|kernel| kernel.spec != *spec));
    if output.json {
        let all: Vec<_> = kept.iter().map(told).collect();
        return object("kernels", &json!({"kept": all, "available": others}));
    }
    print(&text(&kept, &others))?;
    Ok(Outcome::Done)
}

fn told(kernel: &Kernel) -> serde_json::Value {
    let Kernel { spec, release, package_version, sha256, .. } = kernel;
    json!({"name": spec, "release": release, "package": package_version, "sha256": sha256})
}

fn text(kept: &[Kernel], others: &[String]) -> String {
    let mut text = String::new();
    if !kept.is_empty() {
        text += "Kept\n";
    }
    for Kernel { spec, release, package_version, .. } in kept {
        let version = package_version.as_deref().unwrap_or_default();
        let line = format!("  {spec:<22} {release:<30} {version}");
        text += line.trim_end();
        text += "\n";
    }
    if !others.is_empty() {
        text += "To be had: a run gets what it needs, and lab kernels NAME does\n";
    }
    for spec in others {
        text += &format!("  {spec}\n");
    }
    text + "Also: running, this machine's own; or the path of a kernel image\n"
}

fn object(kind: &str, value: &serde_json::Value) -> Result<Outcome, Failure> {
    print_json(&json!({"format": recording::FORMAT, "kind": kind, (kind): value}))
}

fn print_json(object: &serde_json::Value) -> Result<Outcome, Failure> {
    let text = serde_json::to_string_pretty(object).map_err(Failure::bug)?;
    print(&(text + "\n"))?;
    Ok(Outcome::Done)
}
