//! `noisefloor lab list`, `show`, `kernels`: built-in experiments and available kernels.

use ::lab::{Cache, CellObserver, Lab};
use experiments::Experiment;
use kernels::{Fetch, Kernel, Kernels, SuiteKernels};
use report::paragraph;
use serde_json::json;
use units::chain;

use crate::args::Output;
use crate::lab;
use crate::lab::args::{KernelsArgs, ShowArgs};
use crate::lab::watcher::Watcher;
use crate::outcome::{Failure, Outcome};
use crate::printing::{self, print, print_content};
use crate::terminal::stop_flag;

/// The widths of a list and of its first column.
const WIDTH: usize = 80;
const SPEC_WIDTH: usize = 22;

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
    let line = |e: &Experiment| paragraph(&format!("{:<12}", e.name()), e.about());
    let lines: String = experiments.iter().map(line).collect();
    let parts = parts.map_or_else(
        |error| {
            let text = format!("No experiment can be run: {}", chain(&error));
            format!("\n{}", paragraph("", &text))
        },
        |parts| report::made_with_text(&parts),
    );
    print(&(lines + &parts))?;
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
    print(&text(&kept, suites.as_deref()))?;
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

fn text(kept: &[Kernel], suites: Option<&[SuiteKernels]>) -> String {
    let mut text = String::new();
    if !kept.is_empty() {
        text += "Cached\n";
    }
    text.extend(kept.iter().map(kept_text));
    match suites {
        None => {}
        Some([]) => {
            text += "Debian's archive has not been listed yet; hint: noisefloor lab kernels --fresh\n";
        }
        Some(suites) => {
            text +=
                "Debian's archive, by suite; each as debian:NAME, or debian:SUITE/NAME\n";
            text.extend(suites.iter().map(suite_text));
        }
    }
    text + "Also: running (this machine's kernel), the path of a kernel image, or a kernel to\n\
            build: noisefloor lab kernels build --help\n"
}

/// A cached kernel; a name that is too long for its column is on a separate line.
fn kept_text(kernel: &Kernel) -> String {
    let Kernel { spec, release, package_version, .. } = kernel;
    let version = package_version.as_deref().unwrap_or_default();
    let line = match spec.len() > SPEC_WIDTH {
        true => format!("  {spec}\n  {:<SPEC_WIDTH$} {release:<30} {version}", ""),
        false => format!("  {spec:<SPEC_WIDTH$} {release:<30} {version}"),
    };
    format!("{}\n", line.trim_end())
}

/// A suite and its kernels, in lines that fit a terminal.
fn suite_text(suite: &SuiteKernels) -> String {
    let mut lines = vec![format!("  {:<SPEC_WIDTH$}", suite.suite)];
    for (name, _) in &suite.kernels {
        let width = lines.last().map_or(0, String::len) + 1 + name.len();
        if width > WIDTH {
            lines.push(format!("  {:<SPEC_WIDTH$}", ""));
        }
        if let Some(line) = lines.last_mut() {
            *line += &format!(" {name}");
        }
    }
    lines.join("\n") + "\n"
}

fn object(kind: &str, value: &serde_json::Value) -> Result<Outcome, Failure> {
    print_json(&json!({"format": recording::FORMAT, "kind": kind, (kind): value}))
}

fn print_json(object: &serde_json::Value) -> Result<Outcome, Failure> {
    let text = serde_json::to_string_pretty(object).map_err(Failure::bug)?;
    printing::print_json(&text)?;
    Ok(Outcome::Done)
}
