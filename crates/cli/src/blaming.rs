//! Measuring while the kernel's events are watched, and blaming gaps on them.

use measure::Spec;
use recording::{Code, Doubt, Recording};

use crate::measuring::Place;
use crate::outcome::Failure;
use crate::terminal::Terminal;

/// Who is to see the events that gaps are blamed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Source {
    /// eBPF programs at the kernel's tracepoints (root, or CAP_BPF and CAP_PERFMON).
    Bpf,
    /// What /proc counts meanwhile, without privileges: nobody is blamed for single gaps.
    Proc,
}

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
        if self.source == Some(Source::Proc) {
            return place.measure(spec, terminal);
        }
        match blame::watch(&place.cpus, || place.measure(spec, terminal)) {
            Ok((recording, events)) => {
                let mut recording = recording?;
                let noise = recording.body.noise_mut();
                let doubts = noise.map(|series| events.blame(series, self.trace));
                recording.doubts.extend(doubts.into_iter().flatten());
                Ok(recording)
            }
            Err(error) if self.source.is_some() || self.trace => {
                Err(Failure::refused(error))
            }
            Err(error) => {
                let mut recording = place.measure(spec, terminal)?;
                let text = format!("who took it is not known: {error}");
                recording.doubts.push(Doubt::new(Code::Unwatched, text));
                Ok(recording)
            }
        }
    }
}
