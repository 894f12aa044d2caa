//! The idle stretches of CPUs, and the idle states that a processor could use in them.
//!
//! A processor saves energy in an idle state only if it stays there for at least the state's target
//! residency: entering and leaving it costs energy, too. So what an idle CPU can save depends on the
//! share of its idle time in stretches of that length, whatever the average. Cannot see the
//! predictions of a cpuidle governor, which may choose a shallower state, nor the energy itself.

use serde::Serialize;
use units::{Nanos, Ppm};

/// An idle state in the kernel's table of a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ProcessorState {
    /// The processors: `Skylake`.
    pub processor: &'static str,
    /// The table's array in the kernel's source.
    #[serde(skip)]
    pub table: &'static str,
    /// The state's name: `C6`.
    #[serde(rename = "state")]
    pub name: &'static str,
    /// How long the processor must stay there to save energy, in microseconds.
    pub target_residency_us: u64,
}

/// The file of the tables, in Linux 6.1.
pub const IDLE_TABLES: &str = "drivers/idle/intel_idle.c of Linux 6.1";

const SKYLAKE: (&str, &str) = ("Skylake", "skl_cstates");
const SAPPHIRE_RAPIDS: (&str, &str) = ("Sapphire Rapids", "spr_cstates");

/// The idle states of a client and of a server processor, the shallowest first ([`IDLE_TABLES`];
/// `target_residency` of each entry).
pub const PROCESSOR_STATES: [ProcessorState; 11] = [
    state(SKYLAKE, "C1", 2),
    state(SKYLAKE, "C1E", 20),
    state(SKYLAKE, "C3", 100),
    state(SKYLAKE, "C6", 200),
    state(SKYLAKE, "C7s", 800),
    state(SKYLAKE, "C8", 800),
    state(SKYLAKE, "C9", 5000),
    state(SKYLAKE, "C10", 5000),
    state(SAPPHIRE_RAPIDS, "C1", 1),
    state(SAPPHIRE_RAPIDS, "C1E", 4),
    state(SAPPHIRE_RAPIDS, "C6", 800),
];

const fn state(
    (processor, table): (&'static str, &'static str),
    name: &'static str,
    target_residency_us: u64,
) -> ProcessorState {
    ProcessorState { processor, table, name, target_residency_us }
}

/// The idle stretches of a CPU: guest time from each `hlt` to the next instruction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IdleStretches {
    /// Their number. One that an interval begins or ends within counts in both.
    pub stretches: u64,
    /// Their total length.
    pub halted_ns: Nanos,
    /// Their mean length; null without one.
    pub mean_ns: Option<Nanos>,
    /// The length of the longest one.
    pub max_ns: Option<Nanos>,
    /// The share of the total length that each processor could spend in each of its states, or a
    /// deeper one.
    pub states: Vec<StateShare>,
    /// Every distinct length in ascending order, with its frequency.
    pub values: Vec<(Nanos, u64)>,
}

/// The share of idle time in stretches that are long enough for an idle state.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StateShare {
    /// The state.
    #[serde(flatten)]
    pub state: ProcessorState,
    /// The share of idle time in stretches of at least that length; null without idle time.
    pub share_ppm: Option<Ppm>,
}

impl IdleStretches {
    /// Those of several CPUs or phases together; `None` if those of one are unknown.
    pub(crate) fn together<'a>(
        parts: impl Iterator<Item = Option<&'a Vec<(Nanos, u64)>>>,
    ) -> Option<Self> {
        let parts = parts.collect::<Option<Vec<_>>>()?;
        Some(Self::of(parts.into_iter().flatten().copied()))
    }

    /// From lengths with their frequencies, in any order.
    fn of(lengths: impl IntoIterator<Item = (Nanos, u64)>) -> Self {
        let mut values = std::collections::BTreeMap::<Nanos, u64>::new();
        for (length, count) in lengths {
            let times = values.entry(length).or_default();
            *times = times.saturating_add(count);
        }
        let values: Vec<(Nanos, u64)> = values.into_iter().collect();
        let stretches = values.iter().map(|(_, count)| count).sum();
        let halted_ns = total(&values, Nanos::ZERO);
        let share = |state: ProcessorState| StateShare {
            state,
            share_ppm: Ppm::of(
                total(&values, Nanos::from_micros(state.target_residency_us)),
                halted_ns,
            ),
        };
        Self {
            stretches,
            halted_ns,
            mean_ns: halted_ns.get().checked_div(stretches).map(Nanos::from_nanos),
            max_ns: values.last().map(|(length, _)| *length),
            states: PROCESSOR_STATES.map(share).to_vec(),
            values,
        }
    }

    /// A state of a processor.
    pub fn state(&self, processor: &str, name: &str) -> Option<&StateShare> {
        let mut states = self.states.iter();
        states.find(|one| (one.state.processor, one.state.name) == (processor, name))
    }
}

/// The total length of the stretches that are at least that long.
fn total(values: &[(Nanos, u64)], least: Nanos) -> Nanos {
    let long = values.iter().filter(|(length, _)| *length >= least);
    long.map(|(length, count)| length.saturating_mul(*count)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the total, the mean, and the shares by time and not by number, with a stretch exactly as
    /// long as a target residency.
    #[test]
    fn shares() {
        let lengths = [(800, 1), (100, 2), (8, 125), (100, 8)];
        let found = IdleStretches::of(
            lengths.map(|(length, count)| (Nanos::from_micros(length), count)),
        );
        assert_eq!((found.stretches, found.halted_ns), (136, Nanos::from_micros(2800)));
        assert_eq!(found.mean_ns, Some(Nanos::from_nanos(20_588)));
        assert_eq!(found.values.len(), 3);
        let share = |processor, state| {
            found.state(processor, state).unwrap().share_ppm.unwrap().get()
        };
        assert_eq!(share("Skylake", "C1"), 1e6);
        assert!((share("Skylake", "C3") - 1.8 / 2.8 * 1e6).abs() < 1e-3);
        assert!((share("Sapphire Rapids", "C6") - 0.8 / 2.8 * 1e6).abs() < 1e-3);
        assert_eq!(share("Skylake", "C10"), 0.0);
    }

    /// Check that a CPU that was never idle has no shares.
    #[test]
    fn never_idle() {
        let found = IdleStretches::of([]);
        assert_eq!((found.stretches, found.mean_ns, found.max_ns), (0, None, None));
        assert!(found.states.iter().all(|state| state.share_ppm.is_none()));
    }

    /// Check that the states of each processor are listed from the shallowest on.
    #[test]
    fn rising() {
        for states in PROCESSOR_STATES.chunk_by(|a, b| a.processor == b.processor) {
            assert!(states.is_sorted_by_key(|state| state.target_residency_us));
        }
    }
}
