//! The one line of standard error that tells how far something is, where that is a
//! terminal.

use std::io::{self, IsTerminal};

pub(crate) struct ProgressLine {
    is_shown: bool,
    is_drawn: bool,
}

impl ProgressLine {
    /// One that is never shown if told to be quiet.
    pub(crate) fn new(quiet: bool) -> Self {
        Self { is_shown: !quiet && io::stderr().is_terminal(), is_drawn: false }
    }

    pub(crate) fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// Shows this instead of what was shown.
    pub(crate) fn draw(&mut self, text: &str) {
        if self.is_shown {
            eprint!("\r\x1b[Knoisefloor: {text}");
            self.is_drawn = true;
        }
    }

    /// Takes the line away.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.is_drawn) {
            eprint!("\r\x1b[K");
        }
    }

    /// Says something that stays, above the line.
    pub(crate) fn say(&mut self, text: &str) {
        if self.is_shown {
            self.clear();
            eprintln!("noisefloor: {text}");
        }
    }
}
