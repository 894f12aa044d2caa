//! What the measuring commands share: which CPUs, and how a measurement is reported and saved.

use facts::{Facts, Root};
use measure::{Spec, Watch};
use recording::Recording;
use stats::{Limits, Summary};
use units::CpuSet;

use crate::args::{Output, Where};
use crate::outcome::{Failure, Outcome};
use crate::printing::{print, print_json, say};
use crate::terminal::Terminal;

/// `isolate::choose` for CPUs to run on, `isolate::watch` for CPUs to look at.
type Choose = fn(Option<&CpuSet>, &Facts) -> Result<CpuSet, isolate::Error>;

/// What a measuring command begins with: this machine's facts and the CPUs to measure.
pub(crate) struct Place {
    pub(crate) facts: Facts,
    pub(crate) cpus: CpuSet,
}

/// A mistake in what was asked is reported before a CPU that cannot be had.
pub(crate) fn mistake_or(spec: &Spec, facts: &Facts, why: isolate::Error) -> Failure {
    match measure::refuse(spec, facts) {
        Err(mistake) if mistake.kind() == measure::Kind::Spec => mistake.into(),
        _ => why.into(),
    }
}

impl Place {
    /// Reads the facts, and refuses CPUs that cannot be had before anything is measured.
    /// `choose` says which CPUs those asked for are.
    pub(crate) fn find(asked: &Where, choose: Choose) -> Result<Self, Failure> {
        let facts = Facts::read(&Root::live());
        let cpus = choose(asked.cpus.as_ref(), &facts)?;
        Ok(Self { facts, cpus })
    }

    /// The same for CPUs to run on, and what is to be measured there: mistakes in that are
    /// reported before anything else.
    pub(crate) fn find_for(
        asked: &Where,
        spec: impl Fn(CpuSet, &Facts) -> Spec,
    ) -> Result<(Self, Spec), Failure> {
        let facts = Facts::read(&Root::live());
        let cpus = isolate::choose(asked.cpus.as_ref(), &facts).map_err(|why| {
            let named = asked.cpus.clone().unwrap_or_default();
            mistake_or(&spec(named, &facts), &facts, why)
        })?;
        let spec = spec(cpus.clone(), &facts);
        measure::refuse(&spec, &facts)?;
        Ok((Self { facts, cpus }, spec))
    }

    /// Measures, and takes the progress line away.
    pub(crate) fn measure(
        &self,
        spec: &Spec,
        terminal: &mut Terminal,
    ) -> Result<Recording, Failure> {
        let recording = measure::run(spec, &self.facts, terminal as &mut dyn Watch);
        terminal.clear();
        Ok(recording?)
    }
}

/// Reports what was measured, saves it where that was asked, and says how it ended. What
/// cannot be reported is saved all the same.
pub(crate) fn finish(
    recording: &Recording,
    asked: &Where,
    output: Output,
    text: impl FnOnce() -> String,
) -> Result<Outcome, Failure> {
    let shown = show(recording, output, text);
    let saved = asked.destination().map(|to| to.save(recording));
    shown?;
    saved.transpose()?;
    let grave = recording.doubts.iter().any(recording::Doubt::is_grave);
    Ok(if grave { Outcome::Doubtful } else { Outcome::Done })
}

/// Prints a recording as JSON, or the text given.
pub(crate) fn show(
    recording: &Recording,
    output: Output,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    if output.json {
        let summary = Summary::of(recording);
        let json = ::report::json(recording, &summary, output.series);
        let json = json.map_err(Failure::bug)?;
        print_json(&json)?;
    } else if output.has_report {
        print(&text())?;
    }
    Ok(())
}

/// Holds what was measured against the limits given, unless it ended badly already.
pub(crate) fn judge(outcome: Outcome, recording: &Recording, limits: Limits) -> Outcome {
    if limits == Limits::default() {
        return outcome;
    }
    let exceeded = ::report::exceeded(&Summary::of(recording), &limits);
    exceeded.iter().for_each(say);
    match outcome {
        Outcome::Done if !exceeded.is_empty() => Outcome::Exceeded,
        other => other,
    }
}
