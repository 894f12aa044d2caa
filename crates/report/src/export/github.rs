//! Annotations of GitHub Actions: workflow commands, which a program prints as lines of its output
//! (docs.github.com, "Workflow commands for GitHub Actions").
//!
//! A step shows at most ten errors and ten warnings. Names of metrics are not part of a command: line feeds and percent
//! signs are escaped as the runner reads them.

use summary::{Compared, Judged, MetricChange, is_worse};
use units::{Ppm, printable};

use crate::comparisons::ComparedSets;
use crate::comparisons::verdict::verdict;
use crate::{metric_names, number};

/// The most annotations of each level that a step shows.
const SHOWN: usize = 10;
const TITLE: &str = "noisefloor";

/// The lines with an error for each metric that is worse by more than `limit`, and a warning for each other that
/// is worse, and for those without enough data together.
pub fn github_annotations(compared: &ComparedSets<'_>, limit: Option<Ppm>) -> String {
    let all = || compared.comparisons.iter().flat_map(|one| &one.metrics);
    let is_beyond =
        |one: &Compared| limit.is_some_and(|by| is_worse(one, by) == Judged::True);
    let mut text = String::new();
    let failed: Vec<String> = all().filter(|one| is_beyond(one)).map(sentence).collect();
    add(&mut text, "error", &failed);
    let worse = all()
        .filter(|one| MetricChange::of(one) == MetricChange::Worse && !is_beyond(one));
    let mut warnings: Vec<String> = worse.map(sentence).collect();
    let unknown = all().filter(|one| match limit {
        Some(by) => is_worse(one, by) == Judged::Undecided,
        None => MetricChange::of(one) == MetricChange::Unknown,
    });
    let unknown = unknown.count();
    if unknown > 0 {
        let metrics = number::counted(unknown as u64, "metric");
        warnings.push(format!("not enough data to compare {metrics}"));
    }
    let only = compared.comparisons.iter().flat_map(|one| &one.only_benchmarks).flatten();
    let only = only.count();
    if only > 0 {
        let metrics = number::counted(only as u64, "metric");
        warnings
            .push(format!("not compared: {metrics} of benchmarks that only one set has"));
    }
    add(&mut text, "warning", &warnings);
    text
}

/// The metric, and the verdict on it.
fn sentence(compared: &Compared) -> String {
    let name = metric_names::name(compared.quantity.metric().unwrap_or_default());
    let cpu =
        compared.quantity.cpu().map_or(String::new(), |cpu| format!(" of CPU {cpu}"));
    let [verdict, more] = verdict(compared);
    let more = if more.is_empty() { String::new() } else { format!(" ({more})") };
    format!("{name}{cpu} is {verdict}{more}")
}

fn add(text: &mut String, level: &str, messages: &[String]) {
    let shown = if messages.len() > SHOWN { SHOWN - 1 } else { messages.len() };
    let left_out = messages.len() - shown;
    let rest = (left_out > 0).then(|| format!("{left_out} more: see the report"));
    for message in messages[..shown].iter().chain(&rest) {
        let message = escaped(message);
        text.push_str(&format!("::{level} title={TITLE}::{message}\n"));
    }
}

/// The data of a command.
fn escaped(message: &str) -> String {
    let message = printable(message);
    message.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a name ends no line, and begins no command or escape sequence.
    #[test]
    fn names_are_no_commands() {
        let mut text = String::new();
        add(&mut text, "error", &["50 %\n::error::x\r\x1b[31m".to_owned()]);
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.starts_with("::error title=noisefloor::50 %25"), "{text}");
        assert!(!text.contains('\x1b') && !text.contains('\r'), "{text}");
    }

    /// Check that a step has at most ten of a level.
    #[test]
    fn few() {
        let messages: Vec<String> = (0..25).map(|at| at.to_string()).collect();
        let mut text = String::new();
        add(&mut text, "warning", &messages);
        assert_eq!(text.lines().count(), SHOWN);
        assert!(text.ends_with("::16 more: see the report\n"), "{text}");
    }
}
