//! Progress of `jitter`: a header, then a progress line on standard error if that is a terminal,
//! else rows on standard output, at most one per second.

use ::facts::Facts;
use measure::{Control, Notice as Of};
use recording::{JitterPlan, JitterSpec, Workload};
use session::{Event, Observer};
use units::Nanos;

use crate::args::Output;
use crate::outcome::Failure;
use crate::printing::print;
use crate::supervisor;
use crate::terminal::Terminal;

pub(crate) struct JitterWatcher {
    terminal: Terminal,
    facts: Facts,
    spec: JitterSpec,
    /// Whether standard output is for the text report.
    is_text: bool,
    has_rows: bool,
    are_rows_begun: bool,
}

impl JitterWatcher {
    pub(crate) fn new(
        spec: JitterSpec,
        facts: Facts,
        output: Output,
    ) -> Result<Self, Failure> {
        let terminal = Terminal::new(output.quiet, None)?;
        let (is_text, has_line) = (output.is_text(), terminal.control().period.is_some());
        let has_rows = is_text && !output.quiet && !has_line;
        Ok(Self { terminal, facts, spec, is_text, has_rows, are_rows_begun: false })
    }

    /// The conditions of the measurement.
    pub(crate) fn control(&self) -> Control {
        let rows = self.has_rows.then_some(Nanos::from_secs(1));
        let control = self.terminal.control();
        Control { period: control.period.or(rows), ..control }
    }

    /// Prints a permanent message to standard error, unless `--quiet` is given.
    pub(crate) fn remark(&mut self, text: &str) {
        self.terminal.remark(text);
    }

    /// Removes the progress line, or ends the rows.
    fn close(&mut self) {
        self.terminal.event(Event::Finished);
        if std::mem::take(&mut self.are_rows_begun) {
            self.show("\n");
        }
    }

    /// Prints the headers.
    fn plan(&mut self, plan: &JitterPlan) {
        if self.is_text {
            let plan = report::jitter_plan(&self.facts, &self.spec, plan);
            self.show(&(report::terminal_text(&plan, report::View::FULL) + "\n"));
        }
        if self.has_rows {
            self.show(&report::jitter_rows_header(self.spec.unit));
            self.are_rows_begun = true;
        }
    }

    /// Prints; if the reader has closed the pipe, the measurement ends.
    fn show(&mut self, text: &str) {
        if print(text).is_ok_and(|is_read| !is_read) {
            self.terminal.end();
        }
    }
}

impl Observer for JitterWatcher {
    fn event(&mut self, event: Event<'_>) {
        #[expect(clippy::wildcard_enum_match_arm, reason = "the others are passed on")]
        match event {
            Event::Measurement(Of::Plan(plan)) => self.plan(plan),
            Event::Measurement(Of::Jitter { so_far, hz }) if self.has_rows => {
                self.show(&report::jitter_row(self.spec.unit, so_far, hz));
            }
            Event::Measurement(Of::Jitter { so_far, hz }) => {
                self.terminal.draw(&report::jitter_so_far(self.spec.unit, so_far, hz));
            }
            Event::Measurement(Of::NeverReturns(after)) => {
                if let Workload::Exec(library) = &self.spec.workload {
                    supervisor::give_up(library, after);
                }
            }
            Event::Finished => self.close(),
            event => self.terminal.event(event),
        }
    }
}
