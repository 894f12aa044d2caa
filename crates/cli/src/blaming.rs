//! Measurements during which the kernel's events are traced, and the attribution of gaps to them.

use blame::Watcher;
use measure::Spec;
use recording::Recording;
use units::chain;

use crate::args::Source;
use crate::measuring::Place;
use crate::outcome::Failure;
use crate::terminal::Terminal;

/// How gaps are attributed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blaming {
    /// The event source; the best available, if none.
    pub(crate) source: Option<Source>,
    /// Whether the events themselves are stored.
    pub(crate) trace: bool,
}

impl Blaming {
    /// Measures, and attributes gaps. Without a usable event source, that is a doubt; if the
    /// source was requested, it is an error.
    pub(crate) fn measure(
        self,
        place: &Place,
        spec: &Spec,
        terminal: &mut Terminal,
    ) -> Result<Recording, Failure> {
        let source = self.source.map(Source::of_recording);
        let watcher = Watcher::open(&place.cpus, source, &place.facts)?;
        for folder in watcher.removed() {
            terminal.remark(&format!(
                "removed {}, left behind by a killed run",
                folder.display()
            ));
        }
        if self.trace && watcher.source() == recording::Source::Proc {
            return Err(no_events(watcher.why_not()));
        }
        let watching = watcher.begin();
        let recording = place.measure(spec, terminal);
        let events = watching.end();
        let mut recording = recording?;
        events.blame_in(&mut recording, self.trace);
        Ok(recording)
    }
}

fn no_events(why: &[blame::Error]) -> Failure {
    let why: Vec<String> = why.iter().map(|why| chain(why)).collect();
    let why =
        if why.is_empty() { "/proc has totals only".to_owned() } else { why.join("; ") };
    Failure::refused(format!("events cannot be traced: {why}"))
}
