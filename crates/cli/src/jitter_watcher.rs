//! Progress of `jitter`: a header, then a progress line on standard error if that is a terminal,
//! else rows on standard output, at most one per second.

use std::sync::atomic::Ordering;

use ::facts::Facts;
use measure::{Stop, Watch};
use recording::{JitterPlan, JitterSoFar, JitterSpec, Workload};
use units::{Nanos, TscHz};

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
        let (is_text, has_line) = (output.is_text(), terminal.period().is_some());
        let has_rows = is_text && !output.quiet && !has_line;
        Ok(Self { terminal, facts, spec, is_text, has_rows, are_rows_begun: false })
    }

    /// Prints a permanent message to standard error, unless `--quiet` is given.
    pub(crate) fn remark(&mut self, text: &str) {
        self.terminal.remark(text);
    }

    /// Removes the progress line, or ends the rows.
    pub(crate) fn close(&mut self) {
        self.terminal.clear();
        if std::mem::take(&mut self.are_rows_begun) {
            self.show("\n");
        }
    }

    /// Prints; if the reader has closed the pipe, the measurement ends.
    fn show(&mut self, text: &str) {
        if print(text).is_ok_and(|is_read| !is_read) {
            self.stop().flag().store(true, Ordering::Relaxed);
        }
    }
}

impl Watch for JitterWatcher {
    fn has_neighbours(&self) -> bool {
        true
    }

    fn stop(&self) -> &Stop {
        self.terminal.stop()
    }

    fn never_returns(&mut self, after: Nanos) {
        if let Workload::Exec(library) = &self.spec.workload {
            supervisor::give_up(library, after);
        }
    }

    fn period(&self) -> Option<Nanos> {
        let rows = self.has_rows.then_some(Nanos::from_secs(1));
        self.terminal.period().or(rows)
    }

    fn plan(&mut self, plan: &JitterPlan) {
        if self.is_text {
            self.show(&report::jitter_header(&self.facts, &self.spec, plan));
        }
        if self.has_rows {
            self.show(&report::jitter_rows_header(self.spec.unit));
            self.are_rows_begun = true;
        }
    }

    fn jitter(&mut self, so_far: &JitterSoFar, hz: TscHz) {
        if self.has_rows {
            self.show(&report::jitter_row(self.spec.unit, so_far, hz));
        } else {
            self.terminal.draw(&report::jitter_so_far(self.spec.unit, so_far, hz));
        }
    }
}
