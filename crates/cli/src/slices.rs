//! `slices`: time slices of CPU-bound processes, and what ends them.

use std::ffi::OsStr;
use std::path::Path;

use ::facts::Facts;
use blame::{SwitchWatch, WakerWatch};
use measure::Spec;
use recording::{
    Body, Code, Doubt, Recording, SlicesSeries, SlicesSpec, WakersSeries, WakersSpec,
};
use units::chain;

use crate::args::{Output, Where};
use crate::destination::{self, Destination};
use crate::measuring::{self, Place};
use crate::outcome::{Failure, Outcome};
use crate::slices_args::SlicesArgs;
use crate::terminal::Terminal;

/// The highest rate of switches of a CPU, reached by two threads that wake each other up.
const SWITCHES_PER_SECOND: u64 = 100_000;
/// 256 MiB of them.
const SWITCHES_ALL: u64 = 1 << 24;

pub(crate) fn run(args: &SlicesArgs, output: Output) -> Result<Outcome, Failure> {
    let mut files = args.output.iter().map(|file| Destination::new("-o", file));
    let output = destination::check(files.clone(), output)?;
    let asked = Where { cpus: args.cpus.clone(), output: None };
    // Checked before any setting is changed.
    let (place, spec) =
        Place::find_for(&asked, |cpus, _| Spec::Slices(args.spec(&cpus)))?;
    let claimed = args.claiming.claim_for(&spec, &place.cpus, output.quiet)?;
    let mut terminal = Terminal::new(output.quiet, None)?;
    let spec = args.spec(&place.cpus);
    let mut recording = watched(args, spec, &place, &mut terminal)?;
    claimed.doubt(&mut recording);
    let text = || match args.classic {
        true => ::report::slices_classic(&recording),
        false => ::report::text(&recording),
    };
    let outcome = measuring::finish(&recording, &asked, output, text);
    files.try_for_each(|file| write(&recording, file))?;
    outcome
}

/// Measures while the scheduler's switches are traced; if that is not possible, it is a doubt.
fn watched(
    args: &SlicesArgs,
    spec: SlicesSpec,
    place: &Place,
    terminal: &mut Terminal,
) -> Result<Recording, Failure> {
    let watch = match args.no_trace {
        true => Err("disabled by option".to_owned()),
        false => SwitchWatch::start(&place.cpus, room(&spec), &place.facts)
            .map_err(|why| chain(&why)),
    };
    let (recording, wakers) = counted(args, spec, place, terminal);
    let mut recording = recording?;
    let Body::Slices { series, .. } = &mut recording.body else {
        return Err(Failure::bug("unexpected kind of recording"));
    };
    match watch {
        Ok(watch) => {
            let (switches, doubts) = watch.end(series.began_ns)?;
            series.switches = Some(switches);
            series.wakers = wakers;
            recording.doubts.extend(doubts);
        }
        Err(why) => {
            let text = format!("scheduler switches were not traced: {why}");
            recording.doubts.push(Doubt::new(Code::Unwatched, text));
        }
    }
    Ok(recording)
}

/// Measures while wake-ups are counted, if permitted.
fn counted(
    args: &SlicesArgs,
    spec: SlicesSpec,
    place: &Place,
    terminal: &mut Terminal,
) -> (Result<Recording, Failure>, Option<WakersSeries>) {
    let of_cpus = WakersSpec {
        cpus: Some(spec.cpus.clone()),
        duration_ns: spec.duration_ns,
        top: u32::MAX,
        process: None,
    };
    let wakers = match args.no_trace {
        true => None,
        false => WakerWatch::start(&of_cpus, &place.facts).ok(),
    };
    let measured = place.measure(&Spec::Slices(spec), terminal);
    let wakers = wakers.and_then(|watch| match watch.end(false).ok()?.body {
        Body::Wakers { series, .. } => Some(series),
        _ => None,
    });
    (measured, wakers)
}

/// The capacity for switches of each CPU: more than are expected, with a limit on the memory of all
/// CPUs together.
fn room(spec: &SlicesSpec) -> u32 {
    let steps = u64::try_from(spec.steps.len() + 1).unwrap_or(1);
    let seconds = spec.duration_ns.get() / 1_000_000_000 + 1;
    let expected = seconds.saturating_mul(steps).saturating_mul(SWITCHES_PER_SECOND);
    let share = SWITCHES_ALL / u64::try_from(spec.cpus.len()).unwrap_or(1).max(1);
    u32::try_from(expected.min(share).max(1)).unwrap_or(u32::MAX)
}

/// Writes a picture or the recording, by the file's extension.
fn write(recording: &Recording, to: Destination) -> Result<(), Failure> {
    match picture_of(to.file()) {
        Some(_) => draw(recording, to),
        None => to.save(recording),
    }
}

type Picture = fn(&Facts, &SlicesSpec, &SlicesSeries) -> String;

/// The kind of picture, by the file's extension; `None`: not a picture.
fn picture_of(file: &Path) -> Option<Picture> {
    match file.extension().and_then(OsStr::to_str) {
        Some("svg") => Some(::report::slices_svg),
        Some("html") => Some(::report::slices_html),
        _ => None,
    }
}

/// Writes a picture of a recording of slices.
pub(crate) fn draw(recording: &Recording, to: Destination) -> Result<(), Failure> {
    let Some(picture) = picture_of(to.file()) else {
        return Err(to.refuse("expected FILE.svg or FILE.html"));
    };
    let Body::Slices { spec, series } = &recording.body else {
        let kind = recording.body.kind();
        return Err(Failure::usage(format!("-o: recordings of {kind} have no picture")));
    };
    to.write(&picture(&recording.facts, spec, series))
}
