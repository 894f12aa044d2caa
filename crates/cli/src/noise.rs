//! `noise`: how much a spinning CPU loses, and to whom.

use std::fs;
use std::path::Path;

use measure::Spec;
use recording::{NoiseSeries, NoiseSpec, Recording};
use stats::Limits;

use crate::args::{NoiseArgs, Output};
use crate::blaming::Blaming;
use crate::measuring::{self, Place};
use crate::outcome::{Failure, Outcome};
use crate::terminal::Terminal;

pub(crate) fn run(args: &NoiseArgs, output: Output) -> Result<Outcome, Failure> {
    if let Some(file) = &args.trace {
        measuring::refuse_unwritable_in_place("--trace", file)?;
    }
    let place = Place::find(&args.place, isolate::choose)?;
    let _claim = isolate::claim(&place.cpus)?;
    let spec = Spec::Noise(NoiseSpec {
        cpus: place.cpus.clone(),
        duration_ns: args.duration,
        threshold_ns: args.threshold,
        fifo: args.fifo,
        stop_above_ns: args.stop_above,
        phases: None,
    });
    let trace = args.trace.is_some() || args.stop_above.is_some();
    let blaming = Blaming { source: args.source, trace };
    let mut terminal = Terminal::new(output.quiet, None)?;
    let mut recording = blaming.measure(&place, &spec, &mut terminal)?;
    let text = told(&mut recording, args);
    let written = args.trace.as_deref().map(|file| write_trace(&mut recording, file));
    let outcome = measuring::finish(&recording, &args.place, output, || text)?;
    written.transpose()?;
    let gap = args.limits.max_gap.into_iter().chain(args.stop_above).min();
    let limits = Limits { gap, ..args.limits.of_noise() };
    Ok(measuring::judge(outcome, &recording, limits))
}

/// The recording as text, and what went on around the gap that ended it.
fn told(recording: &mut Recording, args: &NoiseArgs) -> String {
    let text = ::report::text(recording);
    let around = |series: &mut NoiseSeries| ::report::around(series, args.stop_above?);
    text + &recording.body.noise_mut().and_then(around).unwrap_or_default()
}

fn write_trace(recording: &mut Recording, file: &Path) -> Result<(), Failure> {
    let trace = recording.body.noise_mut().and_then(|series| ::report::trace(series));
    let Some(trace) = trace else { return Ok(()) };
    fs::write(file, trace)
        .map_err(|error| Failure::refused(format!("{}: {error}", file.display())))
}
