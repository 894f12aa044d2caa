//! Messages and progress of the lab on standard error: one line that is replaced, if that is a terminal;
//! otherwise each message, a line for each cell that has run, and one after half a minute without any.

use std::time::{Duration, Instant};

use ::lab::{CellObserver, Progress};
use kernels::BuildSpec;
use recording::{Cell, Ending};

use crate::printing::say;
use crate::progress_line::ProgressLine;

/// The longest time without a line, where standard error is no terminal.
const SILENCE: Duration = Duration::from_secs(30);

/// Shows messages and progress.
pub(crate) struct Watcher {
    line: ProgressLine,
    log: Option<Log>,
}

/// The lines of a standard error that is no terminal.
struct Log {
    last: Instant,
    /// The cell that has ended since.
    ended: Option<String>,
}

impl Watcher {
    /// Shows nothing with `--quiet`.
    pub(crate) fn new(quiet: bool) -> Self {
        let line = ProgressLine::new(quiet);
        let is_logged = !quiet && !line.is_heard();
        let log = is_logged.then(|| Log { last: Instant::now(), ended: None });
        Self { line, log }
    }

    /// Removes the progress line.
    pub(crate) fn clear(&mut self) {
        self.line.clear();
    }
}

impl CellObserver for Watcher {
    fn say(&mut self, text: &str) {
        match &mut self.log {
            Some(log) => {
                say(text);
                log.last = Instant::now();
            }
            None => self.line.say(text),
        }
    }

    fn ended(&mut self, cell: &Cell) {
        if let Some(log) = self.log.as_mut().filter(|_| !cell.cached) {
            let how = match cell.ending {
                Ending::Done(_) => "done",
                Ending::Lost { .. } => "lost",
            };
            let kernel = BuildSpec::label_of(&cell.asked);
            let kernel = kernel.as_ref().unwrap_or(&cell.asked);
            log.ended = Some(format!("{} on {kernel}: {how}; ", cell.name));
        }
    }

    fn remark(&mut self, text: &str) {
        self.line.remark(text);
    }

    fn progress(&mut self, progress: Progress) {
        self.line.draw(&line(progress));
        let Some(log) = &mut self.log else { return };
        let ended = log.ended.take();
        if ended.is_some() || log.last.elapsed() >= SILENCE {
            say(ended.unwrap_or_default() + &line(progress));
            log.last = Instant::now();
        }
    }
}

/// The progress as one line, of cells and their variations; counts of zero are omitted.
fn line(progress: Progress) -> String {
    let Progress { cells, ran, cached, lost, running, left } = progress;
    let mut line = format!("{} of {cells} guests done", ran + cached);
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
        assert_eq!(line(begun), "0 of 6 guests done, 2 running");
        let left = Some(Duration::from_millis(31_400));
        let later = Progress { ran: 2, cached: 1, lost: 1, left, ..begun };
        let expected =
            "3 of 6 guests done, 2 running, 1 from the cache, 1 lost, about 31 s left";
        assert_eq!(line(later), expected);
    }
}
