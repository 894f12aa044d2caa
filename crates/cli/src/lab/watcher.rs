//! Messages and progress of the lab, on standard error, if that is a terminal.

use std::time::Duration;

use ::lab::{CellObserver, Progress};

use crate::progress_line::ProgressLine;

/// Shows progress on standard error, if that is a terminal.
pub(crate) struct Watcher(ProgressLine);

impl Watcher {
    /// Shows nothing with `--quiet`.
    pub(crate) fn new(quiet: bool) -> Self {
        Self(ProgressLine::new(quiet))
    }

    /// Removes the progress line.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

impl CellObserver for Watcher {
    fn say(&mut self, text: &str) {
        self.0.say(text);
    }

    fn progress(&mut self, progress: Progress) {
        self.0.draw(&line(progress));
    }
}

/// The progress as one line; counts of zero are omitted.
fn line(progress: Progress) -> String {
    let Progress { cells, ran, cached, lost, running, left } = progress;
    let mut line = format!("{} of {cells} cells done", ran + cached);
    let parts = [(running, "running"), (cached, "from the cache"), (lost, "lost")];
    for (count, what) in parts.into_iter().filter(|(count, _)| *count > 0) {
        line += &format!(", {count} {what}");
    }
    if let Some(left) = left.filter(|left| *left > Duration::from_secs(1)) {
        line += &format!(", about {} s left", left.as_secs());
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the line contains all counts but those of zero.
    #[test]
    fn lines() {
        let begun = Progress { cells: 6, running: 2, ..Progress::default() };
        assert_eq!(line(begun), "0 of 6 cells done, 2 running");
        let left = Some(Duration::from_millis(31_400));
        let later = Progress { ran: 2, cached: 1, lost: 1, left, ..begun };
        let expected =
            "3 of 6 cells done, 2 running, 1 from the cache, 1 lost, about 31 s left";
        assert_eq!(line(later), expected);
    }
}
