//! The report of a program's run in a guest: how it ended, its resource usage and its output.

use summary::{EndedSummary, ProgramSummary};

use crate::number;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::cut;

/// A longer command is cut to this length.
const COMMAND: usize = 200;
/// The number of lines of output that are printed, and their width.
const LINES: usize = 20;
const WIDTH: usize = 76;

pub(crate) fn program_text(summary: &ProgramSummary) -> String {
    let end = match summary.ended {
        Some(EndedSummary { signal: Some(signal), .. }) => {
            format!("was killed by signal {signal}")
        }
        Some(EndedSummary { code, .. }) => {
            format!("ended with exit code {}", number::any(code, |code| code.to_string()))
        }
        None => "did not end".to_owned(),
    };
    let command = cut(&summary.command, COMMAND);
    let time = number::duration(summary.elapsed_ns);
    let mut text = paragraph("", &format!("{command} {end}, after {time}."));
    if let Some(failure) = &summary.failure {
        text += &paragraph("", &format!("The run is not valid: {failure}."));
    }
    text += &output_text("Output", &summary.output.text);
    for service in &summary.services {
        text +=
            &output_text(&format!("Output of {}", service.name), &service.output.text);
    }
    text
}

/// The last lines of an output.
pub(crate) fn output_text(title: &str, output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let omitted = lines.len().saturating_sub(LINES);
    if lines.is_empty() {
        return String::new();
    }
    let omitted_text = match omitted {
        0 => String::new(),
        omitted => format!("  [{omitted} lines omitted]\n"),
    };
    let line = |line: &&str| {
        format!("  {}", cut(&line.replace('\t', "    "), WIDTH)).trim_end().to_owned()
            + "\n"
    };
    let lines: String = lines[omitted..].iter().map(line).collect();
    format!("\n{title}\n{omitted_text}{lines}")
}
