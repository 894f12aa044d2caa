//! Measuring while the kernel's events are watched, by whom the order names.
//!
//! Noise is blamed on what was seen; of idle CPUs, what ran there is kept. Of calls it counts only
//! what being watched costs them: what is seen of those is dropped, and the threads that make them
//! are watched like others.

use blame::{Threads, Watcher, Watching};
use facts::Facts;
use measure::{Control, Silent, Spec};
use recording::{Recording, Source};
use units::CpuSet;

use crate::error::Error;

const WATCH: &str = "failed to watch the kernel's events";

/// Begins to watch the CPU that will be measured; `None` where nobody is to watch.
///
/// # Errors
/// That source is impossible here, and what it would need; or it would watch nothing.
pub(crate) fn open(
    source: Option<Source>,
    spec: &Spec,
    facts: &Facts,
) -> Result<Option<Watcher>, Error> {
    let Some(source) = source else { return Ok(None) };
    let (cpus, threads) = match spec {
        Spec::Noise(spec) => (spec.cpus.clone(), Threads::Others),
        Spec::Calls(spec) => (CpuSet::from_iter([spec.cpu]), Threads::All),
        Spec::Ticks(spec) => (spec.cpus.clone(), Threads::All),
        _ => return Err(Error::new(WATCH, "only noise, ticks and calls can be watched")),
    };
    let opened = Watcher::open_for(&cpus, Some(source), threads, facts);
    opened.map(Some).map_err(|why| Error::new(WATCH, why))
}

/// Measures, and blames noise on what was seen.
///
/// # Errors
/// What could not be measured, and why.
pub(crate) fn measure(
    watcher: Option<Watcher>,
    spec: &Spec,
    facts: &Facts,
) -> Result<Recording, Error> {
    let control = Control::new().map_err(|why| Error::new("failed to measure", why))?;
    let watching = watcher.map(Watcher::begin);
    let recording = measure::run(spec, facts, &control, &mut Silent);
    let events = watching.map(Watching::end);
    let mut recording = recording?;
    if let Some(events) = events {
        events.blame_in(&mut recording, false);
    }
    Ok(recording)
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::TicksSpec;
    use units::{Cpu, Nanos};

    /// Check that who cannot watch, and what cannot be watched, is told.
    #[test]
    fn refusals() {
        let cpus = CpuSet::from_iter([Cpu::new(0)]);
        let interval_ns = Nanos::from_secs(1);
        let ticks = Spec::Ticks(TicksSpec { cpus, interval_ns, count: Some(1) });
        let nohz = Spec::NohzTest(recording::NohzSpec {
            cpu: Cpu::new(0),
            tries: Some(1),
            limit_ns: interval_ns,
            forced: false,
            fifo: None,
            stay_ns: Nanos::ZERO,
            phases: None,
        });
        let facts = Facts::read(&facts::Root::live());
        let told =
            |source, spec| open(source, spec, &facts).err().map(|why| units::chain(&why));
        assert!(told(Some(Source::Bpf), &nohz).is_some_and(|why| why.contains("calls")));
        assert_eq!(told(None, &ticks), None);
        let calls = recording::CallsSpec {
            cpu: Cpu::new(0),
            calls: vec![],
            repeats: 1,
            phases: None,
        };
        let why = told(Some(Source::Other), &Spec::Calls(calls));
        assert!(why.is_some_and(|why| why.starts_with(WATCH)));
    }
}
