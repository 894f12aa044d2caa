//! Shared by the measuring commands: measuring, reporting and saving.

use recording::Doubt;
use session::Plan;
use summary::Limit;

use crate::args::Output;
use crate::destination::Destination;
use crate::measured::Measured;
use crate::outcome::{Failure, Outcome};
use crate::printing::{print_document, print_json, say};
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
    files: &[Destination<'_>],
    output: Output,
) -> Result<Outcome, Failure> {
    finish_with(measured, files, output, || {
        print_document(&measured.screen(output), output.view())
    })
}

/// The same with another text report.
pub(crate) fn finish_with(
    measured: &Measured,
    files: &[Destination<'_>],
    output: Output,
    print: impl FnOnce() -> Result<bool, Failure>,
) -> Result<Outcome, Failure> {
    let recording = measured.recording();
    let shown = show(measured, output, print);
    let saved: Vec<_> = files.iter().map(|to| write(measured, *to)).collect();
    shown?;
    saved.into_iter().collect::<Result<(), _>>()?;
    if output.save {
        saved::append(measured, output)?;
    }
    let grave = recording.doubts.iter().any(Doubt::is_grave);
    Ok(if grave { Outcome::Doubtful } else { Outcome::Done })
}

/// Prints a recording as JSON, or its report by `print`.
pub(crate) fn show(
    measured: &Measured,
    output: Output,
    print: impl FnOnce() -> Result<bool, Failure>,
) -> Result<(), Failure> {
    if output.json {
        print_json(&measured.json(output.series)?)?;
    } else if output.has_report {
        print()?;
    }
    Ok(())
}

/// Writes the recording, or its report, by the end of the file's name.
pub(crate) fn write(measured: &Measured, to: Destination<'_>) -> Result<(), Failure> {
    match to.form() {
        Some(form) => to.write_report(form, measured.page(), None),
        None => to.save(measured.recording()),
    }
}

/// Checks a recording against the limits, and that of its moments, unless the outcome is a failure
/// already.
pub(crate) fn judge(outcome: Outcome, measured: &Measured, limits: &[Limit]) -> Outcome {
    let mut exceeded = match limits.is_empty() {
        true => Vec::new(),
        false => ::report::exceeded_limits(measured.summary(), limits),
    };
    if exceeded.is_empty() {
        exceeded.extend(::report::worst_moment(measured.recording()));
    }
    exceeded.iter().for_each(say);
    let is_exceeded = outcome == Outcome::Done && !exceeded.is_empty();
    if is_exceeded { Outcome::Exceeded } else { outcome }
}
