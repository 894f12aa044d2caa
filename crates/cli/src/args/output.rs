//! Options of every command: the output.

use report::{Importance, View};

use crate::destination::Destination;
use crate::outcome::Failure;
use crate::printing::has_wide_terminal;

/// Output options, valid for every command.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Output {
    /// Print a single JSON object, and nothing else, to standard output.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Include the raw series in the JSON object.
    #[arg(long, global = true, requires = "json")]
    pub(crate) series: bool,
    /// Print the whole report, not only what fits one screen.
    #[arg(long, global = true, conflicts_with = "json")]
    pub(crate) full: bool,
    /// Print no pictures in the terminal.
    #[arg(long, global = true)]
    pub(crate) no_pictures: bool,
    /// Suppress progress and notes on standard error.
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Whether the measurement is appended to the history of this machine.
    #[arg(skip)]
    pub(crate) save: bool,
    /// Whether standard output is for the report, and not for what `-o -` writes.
    #[arg(skip = true)]
    pub(crate) has_report: bool,
}

impl Output {
    /// What standard output shows of a report.
    pub(crate) fn view(self) -> View {
        let size = if self.full { Importance::Full } else { Importance::Screen };
        View { size, has_pictures: !self.no_pictures && has_wide_terminal() }
    }

    /// Whether standard output is for the text report.
    pub(crate) fn is_text(self) -> bool {
        self.has_report && !self.json
    }

    /// Checks before the measurement that all of these can be written; the options that remain for
    /// the report, which is not printed if one of them is standard output.
    pub(crate) fn beside<'a>(
        self,
        destinations: impl IntoIterator<Item = Destination<'a>>,
    ) -> Result<Self, Failure> {
        let mut has_report = self.has_report;
        for destination in destinations {
            if !destination.is_stdout() {
                destination.check()?;
            } else if self.json {
                return Err(destination.refuse("standard output is for --json"));
            } else if !std::mem::take(&mut has_report) {
                let why = "standard output is already in use; name a file";
                return Err(destination.refuse(why));
            }
        }
        Ok(Self { has_report, ..self })
    }
}
