//! Shared by the measuring commands: the choice of CPUs, reporting and saving.

use facts::{Facts, Root};
use measure::Spec;
use recording::Recording;
use stats::Limits;
use units::CpuSet;

use crate::args::{Output, Where};
use crate::outcome::{Failure, Outcome};
use crate::printing::{print, print_json, say};
use crate::terminal::Terminal;

/// `isolate::choose` for CPUs to run on, `isolate::watch` for CPUs to observe.
type Choose = fn(Option<&CpuSet>, &Facts) -> Result<CpuSet, isolate::Error>;

/// The input of a measuring command: this machine's facts and the CPUs to measure.
pub(crate) struct Place {
    pub(crate) facts: Facts,
    pub(crate) cpus: CpuSet,
}

/// Usage errors are reported before CPUs that are not available.
pub(crate) fn mistake_or(spec: &Spec, facts: &Facts, why: isolate::Error) -> Failure {
    match measure::refuse(spec, facts) {
        Err(mistake) if mistake.kind() == measure::Kind::Spec => mistake.into(),
        _ => why.into(),
    }
}

impl Place {
    /// Reads the facts, and checks before the measurement that the CPUs are available. `choose`
    /// selects the CPUs.
    pub(crate) fn find(asked: &Where, choose: Choose) -> Result<Self, Failure> {
        let facts = Facts::read(&Root::live());
        let cpus = choose(asked.cpus.as_ref(), &facts)?;
        Ok(Self { facts, cpus })
    }

    /// The same for CPUs to run on, with the specification: errors in it are reported before
    /// anything else.
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

    /// Measures, and removes the progress line.
    pub(crate) fn measure(
        &self,
        spec: &Spec,
        terminal: &mut Terminal,
    ) -> Result<Recording, Failure> {
        let recording = measure::run(spec, &self.facts, &terminal.control(), terminal);
        terminal.clear();
        Ok(recording?)
    }
}

/// Reports a recording, saves it if requested, and returns the outcome. A recording is saved even
/// if the report fails.
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
        let json = ::report::json(recording, output.series).map_err(Failure::bug)?;
        print_json(&json)?;
    } else if output.has_report {
        print(&text())?;
    }
    Ok(())
}

/// Checks a recording against the limits, unless the outcome is a failure already.
pub(crate) fn judge(outcome: Outcome, recording: &Recording, limits: Limits) -> Outcome {
    let exceeded = ::report::exceeded(recording, &limits);
    exceeded.iter().for_each(say);
    match outcome {
        Outcome::Done if !exceeded.is_empty() => Outcome::Exceeded,
        other => other,
    }
}
