//! `check`: overview of this machine.

use std::path::PathBuf;

use ::facts::Facts;
use recording::{CheckSpec, Spec};
use session::Plan;
use units::{CpuSet, Nanos};

use crate::args::{AtScaleOptions, Limits, Output, SourceOption, Where, seconds};
use crate::claiming::Claiming;
use crate::destination::Destination;
use crate::file_pattern::file_name;
use crate::measuring;
use crate::outcome::{Failure, Outcome};

#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) place: Where,
    /// Duration of the busy loop, in seconds or with a unit (500ms).
    #[arg(short, long, value_name = "TIME", default_value = "7", value_parser = seconds)]
    pub(crate) duration: Nanos,
    /// Duration of the count of timer interrupts before that, while noisefloor sleeps.
    #[arg(long, value_name = "TIME", default_value = "4", value_parser = seconds)]
    pub(crate) rest: Nanos,
    /// Write the metrics to FILE in Prometheus' text format, for node_exporter's textfile collector
    /// (FILE.prom).
    #[arg(long, value_name = "FILE", value_parser = file_name())]
    pub(crate) prometheus: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) source: SourceOption,
    #[command(flatten)]
    pub(crate) at_scale: AtScaleOptions,
    #[command(flatten)]
    pub(crate) limits: Limits,
    #[command(flatten)]
    pub(crate) claiming: Claiming,
}

pub(crate) fn run(args: &CheckArgs, output: Output) -> Result<Outcome, Failure> {
    let prometheus = args.prometheus.as_deref();
    let prometheus = prometheus.map(|file| Destination::new("--prometheus", file));
    let files = args.place.saved.files();
    let output = output.beside(files.iter().copied().chain(prometheus))?;
    let asked = args.place.cpus.as_ref();
    let times = [args.rest, args.duration];
    let plan = Plan::choose(asked, |cpus, facts| {
        let mut spec = spec(asked, cpus, facts, times);
        if let Spec::Check(check) = &mut spec {
            check.at_scale = args.at_scale.of_recording();
        }
        spec
    })?;
    let (access, trace) = (args.claiming.access(), args.source.trace(false));
    let plan = Plan { access, trace, ..plan };
    let measured = measuring::measure(plan, output)?;
    let outcome = measuring::finish(&measured, &files, output);
    let metrics = prometheus.map(|to| {
        to.write(&::report::prometheus_text(measured.recording(), measured.summary()))
    });
    let outcome = outcome?;
    metrics.transpose()?;
    Ok(measuring::judge(outcome, &measured, &args.limits.of_noise()))
}

/// A check of these CPUs, for so long without and with load. Timer interrupts are counted on all online CPUs unless
/// others are asked for.
pub(crate) fn spec(
    asked: Option<&CpuSet>,
    cpus: CpuSet,
    facts: &Facts,
    [idle_ns, noise_ns]: [Nanos; 2],
) -> Spec {
    let watched = isolate::choose_online(asked, facts);
    let rest_cpus = watched.unwrap_or_else(|_| cpus.clone());
    Spec::Check(CheckSpec { rest_cpus, cpus, idle_ns, noise_ns, at_scale: None })
}
