//! The progress line on standard error, if that is a terminal.

use std::io::{self, IsTerminal};

use crate::printing::{draw_line, say};

pub(crate) struct ProgressLine {
    is_quiet: bool,
    /// Whether there are remarks: standard error is a terminal.
    is_heard: bool,
    /// Whether that terminal can replace a line.
    is_shown: bool,
    is_drawn: bool,
}

impl ProgressLine {
    /// Never shown with `--quiet`.
    pub(crate) fn new(quiet: bool) -> Self {
        let is_heard = !quiet && io::stderr().is_terminal();
        Self {
            is_quiet: quiet,
            is_heard,
            is_shown: is_heard && !is_dumb(),
            is_drawn: false,
        }
    }

    pub(crate) fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// Whether standard error is a terminal, and messages are not suppressed.
    pub(crate) fn is_heard(&self) -> bool {
        self.is_heard
    }

    /// Replaces the text of the line.
    pub(crate) fn draw(&mut self, text: &str) {
        if self.is_shown {
            draw_line(Some(&format!("noisefloor: {text}")));
            self.is_drawn = true;
        }
    }

    /// Removes the line.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            draw_line(None);
        }
    }

    /// Prints a message that is not only for people who watch: nothing with `--quiet`.
    pub(crate) fn remark(&mut self, text: &str) {
        if !self.is_quiet {
            self.clear();
            say(text);
        }
    }

    /// Prints a permanent message above the line.
    pub(crate) fn say(&mut self, text: &str) {
        if self.is_heard {
            self.clear();
            say(text);
        }
    }
}

/// Whether the terminal does not support escape sequences (`term(7)`).
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}
