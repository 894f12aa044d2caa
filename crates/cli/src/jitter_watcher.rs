//! What a person sees while jitter is measured: first what will be run, then how far it is:
//! one line of standard error that changes where that is a terminal, else rows of standard
//! output, at most one a second.

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
    /// Whether standard output is for people.
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

    /// Says something on standard error that stays, unless told to be quiet.
    pub(crate) fn remark(&mut self, text: &str) {
        self.terminal.remark(text);
    }

    /// Takes the line away, or ends the rows.
    pub(crate) fn close(&mut self) {
        self.terminal.clear();
        if std::mem::take(&mut self.are_rows_begun) {
            self.show("\n");
        }
    }

    /// Prints; a reader that went away ends the measurement.
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
