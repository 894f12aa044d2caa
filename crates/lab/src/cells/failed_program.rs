//! A program that failed in its guest: the reason, and what it wrote.

use recording::{Answer, Body, KeptOutput, ProgramSeries, ProgramSpec};

/// A program that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FailedProgram {
    /// The reason, with the last line of its output.
    pub(crate) why: String,
    /// Everything that it and its services wrote, as far as it was kept.
    pub(crate) output: String,
}

impl FailedProgram {
    /// That of an answer; `None` if it is of another kind, or did not fail.
    pub(crate) fn of(answer: &Answer) -> Option<Self> {
        let Body::Program { spec, series } = &answer.recording.body else { return None };
        let failure = series.failure.as_ref()?;
        let outputs = outputs(spec, series);
        let lines = outputs.iter().filter_map(|(_, output)| last_line(output));
        let why = match lines.last() {
            Some(line) => format!("{failure}; the last line of its output: {line}"),
            None => format!("{failure}; it wrote nothing"),
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

fn last_line(output: &KeptOutput) -> Option<&str> {
    output.text.lines().map(str::trim).rfind(|line| !line.is_empty())
}
