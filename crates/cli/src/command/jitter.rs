//! `jitter`: variation of a workload's run time.
//!
//! A user's library may crash, so it runs in a second process, which this one supervises.

use std::path::Path;

use isolate::Retain;
use measure::Spec;
use recording::{Body, JitterSeries, JitterSpec, Recording, Workload};
use session::{Access, Plan};
use units::{Cpu, LengthUnit};

use crate::args::jitter::JitterArgs;
use crate::args::{Output, Where};
use crate::destination::Destination;
use crate::isolating::tell_pick;
use crate::jitter_watcher::JitterWatcher;
use crate::measuring;
use crate::outcome::{Failure, Outcome};
use crate::remarks::Remarks;
use crate::supervisor::{self, Supervisor};

pub(crate) fn run(args: &JitterArgs, output: Output) -> Result<Outcome, Failure> {
    let output = output.beside(args.destination().into_iter().chain(args.histogram()))?;
    let (pick, plan) = Plan::pick(args.cpu, |cpu| Spec::Jitter(spec(args, cpu)))?;
    if supervisor::is_supervised() {
        // The supervisor has done everything else that needs a capability.
        isolate::drop_capabilities(Retain::SysNice)?;
        return supervisor::supervised(|| measure(args, pick.cpu, plan, output));
    }
    let isolation = Some(args.free.at(args.fifo).options());
    let plan = Plan { isolation, ..plan };
    tell_pick(&pick, output.quiet);
    match &args.workload {
        Workload::Exec(library) => supervise(args, pick.cpu, plan, library, output),
        _ => measure(args, pick.cpu, plan, output),
    }
}

/// Isolates the CPU, on which a supervised process then measures.
fn supervise(
    args: &JitterArgs,
    cpu: Cpu,
    plan: Plan,
    library: &Path,
    output: Output,
) -> Result<Outcome, Failure> {
    let supervisor = Supervisor::new()?;
    let mut remarks = Remarks { quiet: output.quiet };
    let claimed = Plan { access: Access::Shared, ..plan }.claim(&mut remarks)?;
    let again = args.cpu.is_none().then(|| format!("--cpu={cpu}"));
    let isolated = claimed.isolate(&mut remarks)?;
    let outcome = supervisor.watch_over(library, again.as_deref());
    isolated.end(&mut remarks);
    outcome
}

/// Measures on an isolated CPU (which a supervisor may have isolated already), reports and saves.
fn measure(
    args: &JitterArgs,
    cpu: Cpu,
    plan: Plan,
    output: Output,
) -> Result<Outcome, Failure> {
    let facts = plan.facts.clone();
    let plan = Plan { access: args.claiming.access(), locks_memory: true, ..plan };
    let claimed = plan.claim(&mut Remarks { quiet: output.quiet })?;
    let mut watcher = JitterWatcher::new(spec(args, cpu), facts, output)?;
    if args.tests.is_some() && args.duration().is_some() {
        watcher.remark("-d and -D take precedence over -t: the number of tests depends on the duration");
    }
    let recording = claimed.run(&watcher.control(), &mut watcher).map_err(refused)?;
    let asked = Where { cpus: None, output: args.output.clone() };
    let outcome = measuring::finish(&recording, &asked, output, || close(&recording));
    let written = args.histogram().map(|file| write_histogram(&recording, file));
    let outcome = outcome?;
    written.transpose()?;
    Ok(outcome)
}

fn spec(args: &JitterArgs, cpu: Cpu) -> JitterSpec {
    let duration_ns = args.duration();
    JitterSpec {
        cpu,
        workload: args.workload.clone(),
        tests: args.tests.filter(|_| duration_ns.is_none()),
        loops: args.loops,
        duration_ns,
        unit: if args.ticks { LengthUnit::Ticks } else { LengthUnit::Ns },
        fifo: Some(args.fifo).filter(|&priority| priority > 0),
    }
}

/// Without the privilege, an ordinary task can still be measured.
fn refused(error: session::Error) -> Failure {
    let hint = "--fifo 0 measures as an ordinary task, which others preempt";
    Failure::with_hint(error, hint)
}

/// The text below the rows; the header above them says what is run.
fn close(recording: &Recording) -> String {
    seen(recording).map_or_else(String::new, |(spec, series)| {
        ::report::jitter_close(spec, series, &recording.doubts)
    })
}

fn write_histogram(recording: &Recording, to: Destination) -> Result<(), Failure> {
    let Some((spec, series)) = seen(recording) else { return Ok(()) };
    let is_hgrm = to.file().extension().is_some_and(|end| end == "hgrm");
    let write = if is_hgrm { ::report::jitter_hgrm } else { ::report::jitter_list };
    to.write(&write(spec, series))
}

fn seen(recording: &Recording) -> Option<(&JitterSpec, &JitterSeries)> {
    match &recording.body {
        Body::Jitter { spec, series } => Some((spec, series)),
        _ => None,
    }
}
