//! Measurements in a guest while the kernel's events are traced by the source in the order.
//!
//! Noise and late wake-ups are attributed to the events; of idle CPUs, what ran there is recorded. With
//! calls only the cost of tracing is measured: their events are dropped.

use facts::Facts;
use recording::{Source, Spec};
use session::{Plan, Prepared, Silent, Threads, Trace};

use crate::error::Error;

const TRACE: &str = "failed to trace the kernel's events";

/// Starts to trace the CPUs that will be measured; nothing without a source.
///
/// # Errors
/// The source is not available, with its requirements; or there is nothing to trace.
pub(crate) fn prepare(
    source: Option<Source>,
    spec: &Spec,
    facts: &Facts,
) -> Result<Prepared, Error> {
    let traced = |threads| Trace::Events { source, threads, stores: false };
    let trace = match (source, spec) {
        (None, _) => Trace::Nothing,
        _ if spec.is_attributed() => traced(Threads::Others),
        // With calls the cost of tracing is measured: their threads are traced like others.
        (_, Spec::Ticks(_) | Spec::Calls(_)) => traced(Threads::All),
        (Some(_), _) => {
            return Err(Error::new(
                TRACE,
                "only noise, ticks, calls and latency can be traced",
            ));
        }
    };
    let plan = Plan { trace, ..Plan::new(spec.clone(), facts.clone()) };
    let prepared = plan.claim(&mut Silent).and_then(|own| own.prepare(&mut Silent));
    prepared.map_err(|error| {
        let session::Error::Trace(why) = error else { return Error::Session(error) };
        Error::new(TRACE, why)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use recording::TicksSpec;
    use units::{Cpu, CpuSet, Nanos};

    /// Check that an unavailable source, and a measurement that cannot be traced, are reported.
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
            observe_ns: Nanos::ZERO,
            phases: None,
        });
        let facts = Facts::read(&facts::Root::live());
        let told = |source, spec| {
            prepare(source, spec, &facts).err().map(|why| units::chain(&why))
        };
        assert!(told(Some(Source::Bpf), &nohz).is_some_and(|why| why.contains("calls")));
        assert_eq!(told(None, &ticks), None);
        let calls = recording::CallsSpec {
            cpu: Cpu::new(0),
            calls: vec![],
            repeats: 1,
            phases: None,
        };
        let why = told(Some(Source::Other), &Spec::Calls(calls));
        assert!(why.is_some_and(|why| why.starts_with(TRACE)));
    }
}
