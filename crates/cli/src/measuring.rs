//! Shared by the measuring commands: measuring, reporting and saving.

use recording::Doubt;
use session::Plan;
use summary::Limit;

use crate::args::Output;
use crate::destination::Destination;
use crate::measured::Measured;
use crate::outcome::{Failure, Outcome};
use crate::printing::{print, print_json, say};
use crate::remarks::Remarks;
use crate::saved;
use crate::terminal::Terminal;

/// Measures with a progress line; Ctrl-C ends the measurement.
pub(crate) fn measure(plan: Plan, output: Output) -> Result<Measured, Failure> {
    let claimed = plan.claim(&mut Remarks { quiet: output.quiet })?;
    // Signals are handled from before the first change of a setting.
    let mut terminal = Terminal::new(output.quiet, None)?;
    Ok(Measured::new(claimed.run(&terminal.control(), &mut terminal)?))
}

/// Reports a recording, saves it if requested, and returns the outcome. A recording is saved even
/// if the report fails.
pub(crate) fn finish(
    measured: &Measured,
    saved_to: Option<Destination<'_>>,
    output: Output,
    text: impl FnOnce() -> String,
) -> Result<Outcome, Failure> {
    let recording = measured.recording();
    let shown = show(measured, output, text);
    let saved = saved_to.map(|to| to.save(recording));
    shown?;
    saved.transpose()?;
    if output.save {
        saved::append(measured, output)?;
    }
    let grave = recording.doubts.iter().any(Doubt::is_grave);
    Ok(if grave { Outcome::Doubtful } else { Outcome::Done })
}

/// Prints a recording as JSON, or the text given.
pub(crate) fn show(
    measured: &Measured,
    output: Output,
    text: impl FnOnce() -> String,
) -> Result<(), Failure> {
    if output.json {
        print_json(&measured.json(output.series)?)?;
    } else if output.has_report {
        print(&text())?;
    }
    Ok(())
}

/// Checks a recording against the limits, unless the outcome is a failure already.
pub(crate) fn judge(outcome: Outcome, measured: &Measured, limits: &[Limit]) -> Outcome {
    if limits.is_empty() {
        return outcome;
    }
    let exceeded = ::report::exceeded_limits(measured.summary(), limits);
    exceeded.iter().for_each(say);
    let is_exceeded = outcome == Outcome::Done && !exceeded.is_empty();
    if is_exceeded { Outcome::Exceeded } else { outcome }
}
