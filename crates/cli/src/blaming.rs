//! Measuring while the kernel's events are watched, and blaming gaps on them.

use blame::Watcher;
use measure::Spec;
use recording::Recording;
use units::chain;

use crate::args::Source;
use crate::measuring::Place;
use crate::outcome::Failure;
use crate::terminal::Terminal;

/// How gaps are to be blamed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blaming {
    /// Who has to see the events; whoever can, if none.
    pub(crate) source: Option<Source>,
    /// Whether the events themselves are to be kept.
    pub(crate) trace: bool,
}

impl Blaming {
    /// Measures, and blames. Where nobody can watch and nobody insisted, that is a doubt.
    pub(crate) fn measure(
        self,
        place: &Place,
        spec: &Spec,
        terminal: &mut Terminal,
    ) -> Result<Recording, Failure> {
        let source = self.source.map(Source::of_recording);
        let watcher = Watcher::open(&place.cpus, source, &place.facts)?;
        for folder in watcher.removed() {
            terminal
                .remark(&format!("removed what a killed run left: {}", folder.display()));
        }
        if self.trace && watcher.source() == recording::Source::Proc {
            return Err(no_events(watcher.why_not()));
        }
        let (recording, events) = watcher.watch(|| place.measure(spec, terminal));
        let mut recording = recording?;
        events.blame_in(&mut recording, self.trace);
        Ok(recording)
    }
}

fn no_events(why: &[blame::Error]) -> Failure {
    let why: Vec<String> = why.iter().map(|why| chain(why)).collect();
    let why =
        if why.is_empty() { "/proc only counts".to_owned() } else { why.join("; ") };
    Failure::refused(format!("no single event can be seen: {why}"))
}
