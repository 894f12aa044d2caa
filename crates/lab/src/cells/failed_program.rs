//! A program that failed in its guest: the reason, and what it wrote.

use recording::{Answer, Body, Ended, KeptOutput, ProgramSeries, ProgramSpec};

use crate::last_line::last_line;

/// The exit code of a shell that does not find a program, and the hint for it.
const NOT_FOUND: u8 = 127;
const NAME_PROGRAMS: &str = "; hint: programs that the command starts are copied if it is observed \
    (without --no-observe; `observe = true` in an experiment), or if they are named (--program, or \
    `programs`)";

/// The hint for a program that needs more time.
const ALLOW_MORE: &str =
    "; hint: --limit 10m (`limit` in an experiment) allows more time";

/// A program that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FailedProgram {
    /// The reason, with the last line of its output.
    pub(crate) why: String,
    /// Everything that it and its services wrote, as far as it was stored.
    pub(crate) output: String,
}

impl FailedProgram {
    /// That of an answer; `None` if it is of another kind, or did not fail.
    pub(crate) fn of(answer: &Answer) -> Option<Self> {
        let Body::Program { spec, series } = &answer.recording.body else { return None };
        let failure = series.failure.as_ref()?;
        let outputs = outputs(spec, series);
        let mut lines = outputs.iter().filter_map(|(_, output)| last_line(&output.text));
        let hint = match series.ended {
            Some(Ended::Exited(NOT_FOUND)) => NAME_PROGRAMS,
            None if series.elapsed_ns >= spec.limit_ns => ALLOW_MORE,
            _ => "",
        };
        let why = match lines.next_back() {
            Some(line) => format!("{failure}; the last line of its output: {line}{hint}"),
            None => format!("{failure}; it wrote nothing{hint}"),
        };
        let text = |(name, output): &(String, &KeptOutput)| {
            format!("\n--- output of {name}, {} bytes ---\n{}", output.bytes, output.text)
        };
        Some(Self { why, output: outputs.iter().map(text).collect() })
    }
}

/// The outputs of the services and, last, of the command.
fn outputs<'a>(
    spec: &ProgramSpec,
    series: &'a ProgramSeries,
) -> Vec<(String, &'a KeptOutput)> {
    let names = spec.services.iter().map(|service| format!("service {}", service.name));
    let mut outputs: Vec<_> = names.zip(&series.services).collect();
    outputs.push(("the command".to_owned(), &series.output));
    outputs
}
