//! A program that failed in its guest: the reason, and what it wrote.

use recording::{Answer, Body, Ended, KeptOutput, ProgramSeries, ProgramSpec};

/// A longer line of output is cut, in characters.
const LINE_MAX: usize = 200;

/// The exit code of a shell that does not find a program, and the hint for it.
const NOT_FOUND: u8 = 127;
const NAME_PROGRAMS: &str = "; hint: programs that the command starts are copied if it is observed \
    (without --no-observe; `observe = true` in an experiment), or if they are named (--program, or \
    `programs`)";

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

/// The last line with text, without control characters; a long one is cut.
pub(crate) fn last_line(output: &str) -> Option<String> {
    let text = |line: &str| {
        let plain: String = line.chars().filter(|c| !c.is_control()).collect();
        let plain = plain.trim().to_owned();
        match plain.char_indices().nth(LINE_MAX) {
            Some((end, _)) => format!("{}…", &plain[..end]),
            None => plain,
        }
    };
    output.lines().rev().map(text).find(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the reason has a line that can be read, whatever a program writes.
    #[test]
    fn last_lines() {
        let last = last_line;
        assert_eq!(last("one\n two \n\n\0\0\n").as_deref(), Some("two"));
        assert_eq!(last("\x1b[1mred\r\n").as_deref(), Some("[1mred"));
        assert_eq!(last("\0\n"), None);
        let long = last(&"x".repeat(10_000)).unwrap();
        assert_eq!(long.chars().count(), LINE_MAX + 1);
    }
}
