//! `jitter`: by how much a workload's run time varies.
//!
//! A user's own library may crash, so another process runs it, which this one watches over.

use std::fs;
use std::path::Path;

use ::facts::{Facts, Root};
use measure::Spec;
use recording::{Body, JitterSeries, JitterSpec, Recording, Workload};
use units::{Cpu, CpuSet, LengthUnit};

use crate::args::{Output, Where};
use crate::isolating::{kept_free, tell_pick};
use crate::jitter_args::JitterArgs;
use crate::jitter_watcher::JitterWatcher;
use crate::measuring;
use crate::outcome::{Failure, Outcome};
use crate::supervisor::{self, Supervisor};

pub(crate) fn run(args: &JitterArgs, output: Output) -> Result<Outcome, Failure> {
    if let Some((option, file)) = args.histogram() {
        measuring::refuse_unwritable_in_place(option, file)?;
    }
    if let Some(file) = &args.output {
        measuring::refuse_unwritable("-o", file)?;
    }
    let facts = Facts::read(&Root::live());
    let pick = isolate::pick(args.cpu, &facts)?;
    let cpu = pick.cpu;
    if supervisor::is_supervised() {
        return supervisor::supervised(|| measure(args, cpu, &facts, output));
    }
    // Where it cannot be, nothing is changed first.
    measure::refuse(&Spec::Jitter(spec(args, cpu)), &facts)?;
    tell_pick(&pick, output.quiet);
    match &args.workload {
        Workload::Exec(library) => {
            let supervisor = Supervisor::new()?;
            let again = args.cpu.is_none().then(|| format!("--cpu={cpu}"));
            kept_free(cpu, args.free.at(args.fifo), &facts, output.quiet, || {
                supervisor.watch_over(library, again.as_deref())
            })
        }
        _ => measure(args, cpu, &facts, output),
    }
}

/// Measures on a CPU that is kept free, unless a supervisor keeps it, tells and saves.
fn measure(
    args: &JitterArgs,
    cpu: Cpu,
    facts: &Facts,
    output: Output,
) -> Result<Outcome, Failure> {
    let spec = spec(args, cpu);
    let _claim = isolate::claim(&CpuSet::from_iter([cpu]))?;
    let mut watcher = JitterWatcher::new(spec.clone(), output)?;
    if args.tests.is_some() && args.duration().is_some() {
        watcher.remark("-d and -D go before -t: as many tests as there is time for");
    }
    let locked = isolate::lock_memory(cpu, facts);
    locked.as_ref().err().iter().for_each(|why| watcher.remark(&why.to_string()));
    let run = || {
        let recording = measure::run(&Spec::Jitter(spec), facts, &mut watcher);
        watcher.close();
        recording.map_err(refused)
    };
    let recording = match supervisor::is_supervised() {
        true => run(),
        false => kept_free(cpu, args.free.at(args.fifo), facts, output.quiet, run),
    }?;
    let asked = Where { cpus: None, output: args.output.clone() };
    let written = args.histogram().map(|(_, file)| write_histogram(&recording, file));
    let outcome = measuring::finish(&recording, &asked, output, || close(&recording))?;
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

/// Without the privilege there is still something to measure.
fn refused(error: measure::Error) -> Failure {
    match error.kind() {
        measure::Kind::Isolate(isolate::Kind::Privilege) => Failure::refused(format!(
            "{error}; --fifo 0 measures as an ordinary task, with what others take"
        )),
        _ => error.into(),
    }
}

/// What is told below the rows; above them stands what was going to be run.
fn close(recording: &Recording) -> String {
    seen(recording).map_or_else(String::new, |(spec, series)| {
        ::report::jitter_close(spec, series, &recording.doubts)
    })
}

fn write_histogram(recording: &Recording, file: &Path) -> Result<(), Failure> {
    let Some((spec, series)) = seen(recording) else { return Ok(()) };
    let is_hgrm = file.extension().is_some_and(|end| end == "hgrm");
    let write = if is_hgrm { ::report::jitter_hgrm } else { ::report::jitter_list };
    fs::write(file, write(spec, series))
        .map_err(|error| Failure::refused(format!("{}: {error}", file.display())))
}

fn seen(recording: &Recording) -> Option<(&JitterSpec, &JitterSeries)> {
    match &recording.body {
        Body::Jitter { spec, series } => Some((spec, series)),
        _ => None,
    }
}
