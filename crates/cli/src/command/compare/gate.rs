//! The options of `compare` for jobs of continuous integration: an exit code for what became worse, a short summary for a
//! pull request, and annotations.

use std::env;
use std::fs::OpenOptions;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::path::{Path, PathBuf};

use report::{ComparedSets, github_annotations, markdown_text, verdicts_document};
use stats::Better;
use summary::{Comparison, Judged};
use units::Ppm;

use crate::args::{Output, percent};
use crate::destination::Destination;
use crate::outcome::{Failure, Outcome};
use crate::printing::{print_content, say};

/// The file of the summary of a step, set by the runner; ignored in programs with file capabilities, as all such
/// variables.
const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

#[derive(Debug, clap::Args)]
pub(crate) struct GateOptions {
    /// Exit code 1 if any metric is worse than in the first set by more than PERCENT (beyond chance: see
    /// the verdict). Metrics of which it is unknown which values are better do not count. Exit code 4 if
    /// there is not enough data.
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) fail_if_worse: Option<Ppm>,
    /// Exit code 0 instead of 4 if there is not enough data for --fail-if or --fail-if-worse.
    #[arg(long)]
    pub(crate) allow_undecided: bool,
    /// Write a short summary to FILE, as Markdown for a comment on a pull request: how many metrics are
    /// worse and better, and those that differ.
    #[arg(long, value_name = "FILE")]
    pub(crate) summary: Option<PathBuf>,
    /// Print annotations for GitHub Actions: errors for --fail-if-worse, and warnings. The short summary
    /// is appended to the file that GITHUB_STEP_SUMMARY names.
    #[arg(long, conflicts_with = "json")]
    pub(crate) github: bool,
}

impl GateOptions {
    /// Checks that the summary can be written.
    pub(crate) fn check(&self, output: Output) -> Result<(), Failure> {
        let Some(file) = &self.summary else { return Ok(()) };
        output.beside([Destination::new("--summary", file)]).map(drop)
    }

    /// Refuses what cells do not have.
    pub(crate) fn refuse_cells(&self) -> Result<(), Failure> {
        let named = [(self.summary.is_some(), "--summary"), (self.github, "--github")];
        match named.iter().find(|(is_set, _)| *is_set) {
            Some((_, option)) => Err(Failure::usage(format!(
                "{option}: cells of the lab have no verdicts; hint: -o FILE.md"
            ))),
            None => Ok(()),
        }
    }

    /// Refuses sets of which no metric could be worse: the gate would always be open.
    pub(crate) fn refuse_undirected(
        &self,
        comparisons: &[Comparison],
    ) -> Result<(), Failure> {
        let mut metrics = comparisons.iter().flat_map(|one| &one.metrics);
        if self.fail_if_worse.is_none()
            || metrics.any(|one| one.better != Better::Neither)
        {
            return Ok(());
        }
        Err(Failure::usage(
            "--fail-if-worse: it is unknown which values of these metrics are better; hint: values with \
             a unit of time, or --fail-if 'METRIC>+5%'",
        ))
    }

    /// Prints the report with `show`, and writes what was requested besides.
    pub(crate) fn show(
        &self,
        compared: &ComparedSets<'_>,
        show: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        // No name in the report is a command to the runner.
        let token = token();
        if self.github {
            print_content(&format!("::stop-commands::{token}\n"))?;
        }
        show()?;
        if self.github {
            print_content(&format!("::{token}::\n"))?;
            print_content(&github_annotations(compared, self.fail_if_worse))?;
        }
        let short = || markdown_text(&verdicts_document(compared));
        if let Some(file) = &self.summary {
            Destination::new("--summary", file).write(&short())?;
        }
        let step = env::var_os(STEP_SUMMARY).filter(|_| !isolate::is_privileged());
        match step.filter(|name| self.github && !name.is_empty()) {
            Some(file) => append(Path::new(&file), &short()),
            None => Ok(()),
        }
    }

    /// Whether a metric is worse by more than the limit; says so.
    pub(crate) fn judge(&self, judge: impl Fn(Ppm) -> Judged) -> Judged {
        let Some(by) = self.fail_if_worse else { return Judged::False };
        let judged = judge(by);
        match judged {
            Judged::True => say("--fail-if-worse: a metric is worse by more"),
            Judged::Undecided => say("--fail-if-worse: not enough data to decide"),
            Judged::False => {}
        }
        judged
    }

    /// The exit code that follows.
    pub(crate) fn outcome(&self, judged: [Judged; 2]) -> Outcome {
        match Judged::any(judged) {
            Judged::True => Outcome::Exceeded,
            Judged::Undecided if !self.allow_undecided => Outcome::Doubtful,
            Judged::Undecided | Judged::False => Outcome::Done,
        }
    }
}

/// A word that no name contains: the runner obeys no command until it comes again.
fn token() -> String {
    let word = || RandomState::new().build_hasher().finish();
    format!("noisefloor-{:016x}{:016x}", word(), word())
}

fn append(file: &Path, text: &str) -> Result<(), Failure> {
    let opened = OpenOptions::new().append(true).create(true).open(file);
    let written =
        opened.and_then(|mut file| file.write_all(format!("{text}\n").as_bytes()));
    written.map_err(|why| {
        let file = file.display();
        Failure::refused(format!("failed to append to {file} ({STEP_SUMMARY}): {why}"))
    })
}
