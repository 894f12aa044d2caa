//! Shared by the measuring commands: measuring, reporting and saving.

use recording::Recording;
use session::Plan;
use stats::{Limit, Summary};

use crate::args::{Output, Where};
use crate::outcome::{Failure, Outcome};
use crate::printing::{print, print_json, say};
use crate::remarks::Remarks;
use crate::saved;
use crate::terminal::Terminal;

/// Measures with a progress line; Ctrl-C ends the measurement.
pub(crate) fn measure(plan: Plan, output: Output) -> Result<Recording, Failure> {
    let claimed = plan.claim(&mut Remarks { quiet: output.quiet })?;
    // Signals are handled from before the first change of a setting.
    let mut terminal = Terminal::new(output.quiet, None)?;
    Ok(claimed.run(&terminal.control(), &mut terminal)?)
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
    if output.save {
        saved::append(recording, output)?;
    }
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

/// Checks a recording against the limits, unless the outcome is a failure already.
pub(crate) fn judge(
    outcome: Outcome,
    recording: &Recording,
    limits: &[Limit],
) -> Outcome {
    if limits.is_empty() {
        return outcome;
    }
    let exceeded = ::report::exceeded_limits(&Summary::of(recording), limits);
    exceeded.iter().for_each(say);
    let is_exceeded = outcome == Outcome::Done && !exceeded.is_empty();
    if is_exceeded { Outcome::Exceeded } else { outcome }
}
