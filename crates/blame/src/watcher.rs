//! The event source: the best one that the machine permits, read during a measurement.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use facts::{Facts, Root};
use recording::Source;
use units::CpuSet;

use crate::bpf::{Points, Programs};
use crate::error::{Error, Kind};
use crate::events::Events;
use crate::feedback::Feedback;
use crate::names::Names;
use crate::reader::{End, Reader};
use crate::records::{Lane, Outside};
use crate::source::{EventSource, Threads};
use crate::tracefs::Trace;
use crate::tracefs::leftovers;

/// The sources, the cheapest first.
const BEST_FIRST: [Source; 3] = [Source::Bpf, Source::Tracefs, Source::Proc];

/// Traces some CPUs.
pub struct Watcher {
    cpus: CpuSet,
    source: Source,
    events: Option<(Box<dyn EventSource>, End)>,
    why_not: Arc<Vec<Error>>,
    removed: Vec<PathBuf>,
}

impl Watcher {
    /// Starts to trace these CPUs with that source, or with the best available one: eBPF, else
    /// tracefs; `/proc` always is, and has no single events. Removes traces that killed runs left
    /// behind.
    ///
    /// # Errors
    /// That source is not available; the message names its requirements.
    pub fn open(
        cpus: &CpuSet,
        source: Option<Source>,
        facts: &Facts,
    ) -> Result<Self, Error> {
        Self::open_for(cpus, source, Threads::Others, facts)
    }

    /// The same, for selected threads.
    ///
    /// # Errors
    /// That source is not available; the message names its requirements.
    pub fn open_for(
        cpus: &CpuSet,
        source: Option<Source>,
        threads: Threads,
        facts: &Facts,
    ) -> Result<Self, Error> {
        let wanted = source.map_or_else(|| BEST_FIRST.to_vec(), |source| vec![source]);
        let mut why_not = Vec::new();
        for kind in wanted {
            let events = match open(cpus, kind, threads, facts) {
                Ok(events) => events,
                Err(error) if source.is_some() => return Err(error),
                Err(error) => {
                    why_not.push(error);
                    continue;
                }
            };
            let end = |events| Ok((events, End::new().map_err(no_end)?));
            let events = events.map(end).transpose()?;
            let (cpus, removed) = (cpus.clone(), leftovers::remove());
            let why_not = Arc::new(why_not);
            return Ok(Self { cpus, source: kind, events, why_not, removed });
        }
        Err(Error::new(Kind::Missing, "no event source is available"))
    }

    /// The CPUs.
    pub fn cpus(&self) -> &CpuSet {
        &self.cpus
    }

    /// The source.
    pub fn source(&self) -> Source {
        self.source
    }

    /// Why it is not a better one.
    pub fn why_not(&self) -> &[Error] {
        &self.why_not
    }

    /// The removed traces of killed runs: folders of tracefs.
    pub fn removed(&self) -> impl Iterator<Item = &Path> {
        self.removed.iter().map(PathBuf::as_path)
    }

    /// Starts to read the events, just before the measurement. Those since the start of the trace, or
    /// since its pause, are discarded.
    pub fn begin(self) -> Watching {
        self.begin_with(None)
    }

    /// The same, with feedback from the measurement.
    pub fn begin_with(self, feedback: Option<Feedback>) -> Watching {
        let Self { cpus, source, events, why_not, .. } = self;
        let lanes = || cpus.iter().map(Lane::new).collect::<Vec<_>>();
        let reader = events.map(|(mut events, end)| {
            events.read_all(&mut lanes());
            events.take_outside();
            Reader::begin(events, lanes(), cpus.clone(), end, feedback)
        });
        Watching { cpus, source, why_not, reader }
    }
}

/// Events that are being read.
pub struct Watching {
    cpus: CpuSet,
    source: Source,
    why_not: Arc<Vec<Error>>,
    reader: Option<Reader>,
}

impl Watching {
    /// Ends the trace; returns its events.
    pub fn end(self) -> Events {
        self.pause().0
    }

    /// Stops reading, and leaves the trace as it is for the next measurement; returns its events. `None`
    /// if it has ended: its source has to be stopped, or there are too many open files.
    pub fn pause(self) -> (Events, Option<Watcher>) {
        let Self { cpus, source, why_not, reader } = self;
        let (mut lanes, mut missing) = (Vec::new(), Vec::new());
        let mut outside = Outside::default();
        let mut goes_on = true;
        let events = reader.map(|reader| {
            let mut events;
            (events, lanes) = reader.end();
            goes_on = events.read_all(&mut lanes);
            if !goes_on {
                events.stop();
                events.read(&mut lanes);
            }
            (missing, outside) = (events.missing(), events.take_outside());
            events
        });
        let names = Names::read(&Root::live(), &lanes);
        let not_used = Arc::clone(&why_not);
        let found = Events { source, lanes, outside, missing, why_not: not_used, names };
        let with_end = |events| Ok::<_, io::Error>((events, End::new()?));
        let events = goes_on.then(|| events.map(with_end).transpose().ok()).flatten();
        let removed = Vec::new();
        let watcher =
            events.map(|events| Watcher { cpus, source, events, why_not, removed });
        (found, watcher)
    }
}

fn no_end(error: io::Error) -> Error {
    Error::new(Kind::System, "failed to start a trace").caused_by(error)
}

fn open(
    cpus: &CpuSet,
    source: Source,
    threads: Threads,
    facts: &Facts,
) -> Result<Option<Box<dyn EventSource>>, Error> {
    let programs = |points| Programs::load(cpus, points, threads, facts);
    match source {
        Source::Bpf => Ok(Some(Box::new(programs(Points::Raw)?))),
        Source::BpfClassic => Ok(Some(Box::new(programs(Points::Classic)?))),
        Source::Tracefs if threads == Threads::Marked => {
            let text = "failed to use tracefs: it cannot distinguish a program's own \
                        processes";
            Err(Error::new(Kind::Missing, text))
        }
        Source::Tracefs => Ok(Some(Box::new(Trace::begin(cpus)?))),
        Source::Proc => Ok(None),
        Source::Simulation | Source::Other => {
            Err(Error::new(Kind::Missing, "unknown event source"))
        }
    }
}
