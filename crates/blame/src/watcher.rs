//! Who sees the events: the best source that the machine allows, read while something is
//! measured.

use std::path::{Path, PathBuf};

use facts::{Facts, Root};
use recording::Source;
use units::CpuSet;

use crate::bpf::{Points, Programs};
use crate::error::{Error, Kind};
use crate::events::Events;
use crate::leftovers;
use crate::names::Names;
use crate::reader::read_beside;
use crate::seen::Lane;
use crate::source::{EventSource, Threads};
use crate::tracefs::Trace;

/// The sources, the one that costs least first.
const BEST_FIRST: [Source; 3] = [Source::Bpf, Source::Tracefs, Source::Proc];

/// Watches some CPUs.
pub struct Watcher {
    cpus: CpuSet,
    source: Source,
    events: Option<Box<dyn EventSource>>,
    why_not: Vec<Error>,
    removed: Vec<PathBuf>,
}

impl Watcher {
    /// Begins to watch these CPUs with that source, or with the best that is possible here:
    /// eBPF, else tracefs; `/proc` always is, and sees no single event. What killed runs left
    /// is removed.
    ///
    /// # Errors
    /// That source is impossible; the message says what it would need.
    pub fn open(
        cpus: &CpuSet,
        source: Option<Source>,
        facts: &Facts,
    ) -> Result<Self, Error> {
        Self::open_for(cpus, source, Threads::Others, facts)
    }

    /// The same, and says whose threads count.
    ///
    /// # Errors
    /// That source is impossible; the message says what it would need.
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
            let (cpus, removed) = (cpus.clone(), leftovers::remove());
            return Ok(Self { cpus, source: kind, events, why_not, removed });
        }
        Err(Error::new(Kind::Missing, "there is no source of events"))
    }

    /// The source.
    pub fn source(&self) -> Source {
        self.source
    }

    /// Why it is not a better one.
    pub fn why_not(&self) -> &[Error] {
        &self.why_not
    }

    /// What killed runs had left behind, and was removed: folders of tracefs.
    pub fn removed(&self) -> impl Iterator<Item = &Path> {
        self.removed.iter().map(PathBuf::as_path)
    }

    /// Watches while `measure` runs, and says what it returned and what was seen.
    pub fn watch<T>(mut self, measure: impl FnOnce() -> T) -> (T, Events) {
        let mut lanes = Vec::new();
        let mut missing = Vec::new();
        let result = match &mut self.events {
            None => measure(),
            Some(events) => {
                lanes.extend(self.cpus.iter().map(Lane::new));
                let result =
                    read_beside(events.as_mut(), &mut lanes, &self.cpus, measure);
                missing = events.stop();
                events.read(&mut lanes);
                result
            }
        };
        let names = Names::read(&Root::live(), &lanes);
        let Self { source, why_not, .. } = self;
        (result, Events { source, lanes, missing, why_not, names })
    }
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
            let text = "failed to use tracefs: it does not tell which processes are a program's own";
            Err(Error::new(Kind::Missing, text))
        }
        Source::Tracefs => Ok(Some(Box::new(Trace::begin(cpus)?))),
        Source::Proc => Ok(None),
        Source::Other => {
            Err(Error::new(Kind::Missing, "there is no such source of events"))
        }
    }
}
