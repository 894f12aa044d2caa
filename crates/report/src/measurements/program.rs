//! The report of a program's run in a guest: how it ended, and the end of its output.

use summary::{EndedSummary, ProgramSummary};

use crate::document::text::{Text, text};
use crate::document::{Content, Document};
use crate::number;

/// The number of lines of output that are shown.
const LINES: usize = 20;
/// How much of a command line is shown.
const COMMAND: usize = 300;

pub(crate) fn program(summary: &ProgramSummary) -> Document {
    let result = text!(
        "{} {}, after {}.",
        Text::command(beginning(&summary.command)),
        end(summary.ended.as_ref()),
        summary.elapsed_ns
    );
    let failure = summary.failure.as_deref();
    let services = summary.services.iter().map(|service| {
        output(text!("Output of {}", Text::name(&service.name)), &service.output.text)
    });
    Document::from(result)
        .add(failure.map(|why| text!("The run is not valid: {}.", why)))
        .add(output("Output".into(), &summary.output.text))
        .add_all(services)
}

/// The beginning of a command line, or all of it.
pub(crate) fn beginning(command: &str) -> String {
    match command.char_indices().nth(COMMAND) {
        Some((at, _)) => format!("{}…", &command[..at]),
        None => command.to_owned(),
    }
}

fn end(ended: Option<&EndedSummary>) -> Text {
    match ended {
        Some(EndedSummary { signal: Some(signal), .. }) => {
            text!("was killed by signal {}", signal.to_string())
        }
        Some(EndedSummary { code, .. }) => {
            text!(
                "ended with exit code {}",
                number::any(code.map(|code| code.to_string()))
            )
        }
        None => "did not end".into(),
    }
}

/// The last lines of an output, with a title.
fn output(title: Text, output: &str) -> Document {
    let lines: Vec<&str> = output.lines().collect();
    let (all, omitted) = (lines.len(), lines.len().saturating_sub(LINES));
    let title = match omitted {
        0 => title,
        _ => text!("{}, the last {} of {} lines", title, LINES, all),
    };
    // Marked, so that no line looks like one of the report.
    let lines = lines[omitted..].iter().map(|line| format!("| {line}\n"));
    Document::section(title, Content::Verbatim(lines.collect()))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::Recording;
    use summary::Summary;

    use super::*;
    use crate::terminal::full_text;

    fn example() -> ProgramSummary {
        let golden = include_str!("../../../recording/tests/golden/program-1.json");
        let recording = Recording::from_json(golden, "program.json".as_ref()).unwrap();
        let Summary::Program(summary) = Summary::of(&recording) else { panic!() };
        summary
    }

    fn text_of(summary: &ProgramSummary) -> String {
        full_text(&program(summary))
    }

    /// Check the end of a program, and the outputs.
    #[test]
    fn outputs() {
        let mut summary = example();
        summary.output.text = (1..=22).map(|line| format!("line {line}\n")).collect();
        assert_snapshot!(text_of(&summary));
    }

    /// Check a program without output that was killed, and one that did not end.
    #[test]
    fn failures() {
        let mut summary = example();
        summary.output.text.clear();
        summary.services.clear();
        summary.ended = Some(EndedSummary { signal: Some(9), code: None });
        summary.failure = Some("killed".to_owned());
        assert_snapshot!(text_of(&summary), @r#"
        cat /proc/version /run/ready was killed by signal 9, after 1.62 ms.

        The run is not valid: killed.
        "#);
        (summary.ended, summary.failure) = (None, None);
        assert_snapshot!(text_of(&summary), @"cat /proc/version /run/ready did not end, after 1.62 ms.");
    }
}
