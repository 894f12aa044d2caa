//! `jitter`: variation of a workload's run time.
//!
//! A user's library may crash, so it runs in a second process, which this one supervises.

use ::facts::{Facts, Root};
use isolate::Kept;
use measure::Spec;
use recording::{Body, JitterSeries, JitterSpec, Recording, Workload};
use units::{Cpu, LengthUnit, chain};

use crate::args::{Output, Where};
use crate::destination::{self, Destination};
use crate::isolating::{kept_free, tell_pick};
use crate::jitter_args::JitterArgs;
use crate::jitter_watcher::JitterWatcher;
use crate::measuring;
use crate::outcome::{Failure, Outcome};
use crate::supervisor::{self, Supervisor};

pub(crate) fn run(args: &JitterArgs, output: Output) -> Result<Outcome, Failure> {
    let output = destination::check(
        args.destination().into_iter().chain(args.histogram()),
        output,
    )?;
    let facts = Facts::read(&Root::live());
    let pick = isolate::pick(args.cpu, &facts).map_err(|why| {
        let spec = spec(args, args.cpu.unwrap_or(Cpu::new(0)));
        measuring::mistake_or(&Spec::Jitter(spec), &facts, why)
    })?;
    let cpu = pick.cpu;
    if supervisor::is_supervised() {
        // The supervisor has done everything else that needs a capability.
        isolate::drop_capabilities(Kept::SysNice)?;
        return supervisor::supervised(|| measure(args, cpu, &facts, output));
    }
    // Checked before any setting is changed.
    let spec = Spec::Jitter(spec(args, cpu));
    measure::refuse(&spec, &facts)?;
    tell_pick(&pick, output.quiet);
    match &args.workload {
        Workload::Exec(library) => {
            let supervisor = Supervisor::new()?;
            measure::refuse_occupied(&spec)?;
            let again = args.cpu.is_none().then(|| format!("--cpu={cpu}"));
            kept_free(cpu, args.free.at(args.fifo), &facts, output.quiet, || {
                supervisor.watch_over(library, again.as_deref())
            })
        }
        _ => measure(args, cpu, &facts, output),
    }
}

/// Measures on an isolated CPU (which a supervisor may have isolated already), reports and saves.
fn measure(
    args: &JitterArgs,
    cpu: Cpu,
    facts: &Facts,
    output: Output,
) -> Result<Outcome, Failure> {
    let own = spec(args, cpu);
    let spec = Spec::Jitter(own.clone());
    let claimed = args.claiming.claim_for(&spec, &cpu.into(), output.quiet)?;
    let mut watcher = JitterWatcher::new(own, facts.clone(), output)?;
    if args.tests.is_some() && args.duration().is_some() {
        watcher.remark("-d and -D take precedence over -t: the number of tests depends on the duration");
    }
    let locked = isolate::lock_memory(cpu, facts);
    locked.as_ref().err().iter().for_each(|why| watcher.remark(&chain(*why)));
    let mut run = || {
        let recording = measure::run(&spec, facts, &watcher.control(), &mut watcher);
        watcher.close();
        recording.map_err(refused)
    };
    let mut recording = match supervisor::is_supervised() {
        true => run(),
        false => kept_free(cpu, args.free.at(args.fifo), facts, output.quiet, run),
    }?;
    claimed.doubt(&mut recording);
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
fn refused(error: measure::Error) -> Failure {
    if error.kind() != measure::Kind::Isolate(isolate::Kind::Privilege) {
        return error.into();
    }
    let help = "hint: --fifo 0 measures as an ordinary task, which others preempt";
    Failure::refused(format!("{}; {help}", chain(&error)))
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
