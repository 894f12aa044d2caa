//! `jitter`: by how much a workload's run time varies.
//!
//! A user's own library may crash, so another process runs it, which this one watches over.

use std::fs;
use std::path::Path;

use measure::Spec;
use recording::{Body, JitterSeries, JitterSpec, Recording, Workload};
use units::{CpuSet, LengthUnit};

use crate::args::{Output, Where};
use crate::jitter_args::JitterArgs;
use crate::jitter_watcher::JitterWatcher;
use crate::measuring::{self, Place};
use crate::outcome::{Failure, Outcome};
use crate::supervisor;

pub(crate) fn run(args: &JitterArgs, output: Output) -> Result<Outcome, Failure> {
    if supervisor::is_supervised() {
        return supervisor::supervised(|| measure(args, output));
    }
    if let Some((option, file)) = args.histogram() {
        measuring::refuse_unwritable_in_place(option, file)?;
    }
    // Settings of the machine that are to hold while it is measured are held from here on,
    // and given back when this function returns: also after a library's crash.
    match &args.workload {
        Workload::Exec(library) => supervisor::supervise(library),
        _ => measure(args, output),
    }
}

/// Measures, tells and saves.
fn measure(args: &JitterArgs, output: Output) -> Result<Outcome, Failure> {
    let asked = Where {
        cpus: args.cpu.map(|cpu| CpuSet::from_iter([cpu])),
        output: args.output.clone(),
    };
    let place = Place::find(&asked, isolate::choose)?;
    let spec = spec(args, &place)?;
    let _claim = isolate::claim(&CpuSet::from_iter([spec.cpu]))?;
    let mut watcher = JitterWatcher::new(spec.clone(), output)?;
    if args.tests.is_some() && args.duration().is_some() {
        watcher.remark("-d and -D go before -t: as many tests as there is time for");
    }
    let recording = measure::run(&Spec::Jitter(spec), &place.facts, &mut watcher);
    watcher.close();
    let recording = recording.map_err(refused)?;
    let written = args.histogram().map(|(_, file)| write_histogram(&recording, file));
    let outcome = measuring::finish(&recording, &asked, output, || close(&recording))?;
    written.transpose()?;
    Ok(outcome)
}

fn spec(args: &JitterArgs, place: &Place) -> Result<JitterSpec, Failure> {
    let cpu = place.cpus.iter().last();
    let duration_ns = args.duration();
    Ok(JitterSpec {
        cpu: cpu.ok_or_else(|| Failure::refused("no CPU may be used"))?,
        workload: args.workload.clone(),
        tests: args.tests.filter(|_| duration_ns.is_none()),
        loops: args.loops,
        duration_ns,
        unit: if args.ticks { LengthUnit::Ticks } else { LengthUnit::Ns },
        fifo: Some(args.fifo).filter(|&priority| priority > 0),
    })
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
