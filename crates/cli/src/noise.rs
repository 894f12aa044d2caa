//! `noise`: OS noise of each CPU, and its sources.

use ::facts::{Facts, Root};
use measure::Spec;
use recording::{Code, Doubt, NoiseSeries, NoiseSpec, Recording};
use stats::Limits;
use units::CpuSet;

use crate::args::{NoiseArgs, Output};
use crate::blaming::Blaming;
use crate::destination::{self, Destination};
use crate::isolating::{Free, kept_free};
use crate::measuring::{self, Place};
use crate::outcome::{Failure, Outcome};
use crate::terminal::Terminal;

pub(crate) fn run(args: &NoiseArgs, output: Output) -> Result<Outcome, Failure> {
    let trace_to = args.trace.as_deref().map(|file| Destination::new("--trace", file));
    let files = args.place.destination().into_iter().chain(trace_to);
    let output = destination::check(files, output)?;
    let (place, spec) = Place::find_for(&args.place, |cpus, _| spec(args, cpus))?;
    let claimed = args.claiming.claim_for(&spec, &place.cpus, output.quiet)?;
    let trace = args.trace.is_some() || args.stop_above.is_some();
    let blaming = Blaming { source: args.source, trace };
    let mut terminal = Terminal::new(output.quiet, None)?;
    let mut recording = match args.unthrottled {
        true => unthrottled(place, output.quiet, |place| {
            blaming.measure(place, &spec, &mut terminal)
        }),
        false => blaming.measure(&place, &spec, &mut terminal).map(with_offer),
    }?;
    claimed.doubt(&mut recording);
    let text = told(&mut recording, args);
    let outcome = measuring::finish(&recording, &args.place, output, || text);
    let written = trace_to.map(|file| write_trace(&mut recording, file));
    let outcome = outcome?;
    written.transpose()?;
    let gap = args.limits.max_gap.into_iter().chain(args.stop_above).min();
    let limits = Limits { gap, ..args.limits.of_noise() };
    Ok(measuring::judge(outcome, &recording, limits))
}

/// The recording; if real-time tasks were throttled, with a hint how to disable that.
fn with_offer(mut recording: Recording) -> Recording {
    let throttled = |doubt: &&mut Doubt| doubt.code == Code::RtThrottled;
    for doubt in recording.doubts.iter_mut().filter(throttled) {
        doubt.text += "; hint: --unthrottled disables that during the run (root)";
    }
    recording
}

/// Measures with RT throttling disabled. The facts are read in that state.
fn unthrottled<T>(
    place: Place,
    quiet: bool,
    measure: impl FnOnce(&Place) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let Place { facts, cpus } = place;
    kept_free(cpus.clone(), Free::UNTHROTTLED, &facts, quiet, || {
        measure(&Place { facts: Facts::read(&Root::live()), cpus })
    })
}

fn spec(args: &NoiseArgs, cpus: CpuSet) -> Spec {
    Spec::Noise(NoiseSpec {
        cpus,
        duration_ns: args.duration,
        threshold_ns: args.threshold,
        fifo: args.fifo,
        stop_above_ns: args.stop_above,
        phases: None,
    })
}

/// The recording as text, with the events around the gap that ended it.
fn told(recording: &mut Recording, args: &NoiseArgs) -> String {
    let text = ::report::text(recording);
    let around = |series: &mut NoiseSeries| ::report::around(series, args.stop_above?);
    text + &recording.body.noise_mut().and_then(around).unwrap_or_default()
}

fn write_trace(recording: &mut Recording, to: Destination) -> Result<(), Failure> {
    let trace = recording.body.noise_mut().and_then(|series| ::report::trace(series));
    trace.map_or(Ok(()), |trace| to.write(&trace))
}
