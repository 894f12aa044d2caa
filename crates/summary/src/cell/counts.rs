//! The counts of the lab's counter on a guest's CPUs.

use std::collections::BTreeSet;
use std::ops::Range;

use recording::{
    Answer, Body, CallsSpec, CpuCounts, Interruption, Level, PhaseCounts, Phases, What,
};
use serde::Serialize;
use units::{Cpu, Instructions, Nanos, PerSecond};

/// The kernel's names for the timer interrupt's entry on x86: since 5.8, and before. On arm64, where all
/// interrupts have one entry, the handlers that the counter names it after.
const TIMER_ENTRIES: [&str; 4] = [
    "asm_sysvec_apic_timer_interrupt",
    "apic_timer_interrupt",
    "arch_timer_handler_virt",
    "arch_timer_handler_phys",
];

/// Whether this is the kernel's name of the timer interrupt's entry.
pub(crate) fn is_timer_entry(entry: &str) -> bool {
    TIMER_ENTRIES.contains(&entry)
}

/// Whether an episode is a timer interrupt at one of these privilege levels.
pub(crate) fn is_tick(what: &What, levels: &[Level]) -> bool {
    match what {
        What::Interruption { entry, from } => {
            is_timer_entry(entry) && levels.contains(from)
        }
        What::Step => false,
    }
}

/// The number of phases of each call.
pub(crate) fn phases_each(spec: &CallsSpec) -> usize {
    usize::try_from(Phases::parts(spec.phases.as_ref())).unwrap_or(usize::MAX)
}

/// The phases of a call: each call has its own, one after the other.
pub(crate) fn call_phases(answer: &Answer, name: &str) -> Option<Range<usize>> {
    let Body::Calls { spec, .. } = &answer.recording.body else { return None };
    let place = spec.calls.iter().position(|call| call.name() == name)?;
    let each = phases_each(spec);
    Some(place * each..(place + 1) * each)
}

/// The counts of a CPU in a phase.
pub(crate) fn on_cpu(phase: &PhaseCounts, cpu: Cpu) -> Option<&CpuCounts> {
    phase.cpus.iter().find(|counts| counts.cpu == cpu)
}

/// The timer interrupts of a CPU.
pub(crate) fn timer(counts: &CpuCounts) -> impl Iterator<Item = &Interruption> {
    counts.interruptions.iter().filter(|way| is_timer_entry(&way.entry))
}

/// The kernel instructions of these timer interrupts, each with its frequency.
pub(crate) fn timer_costs(
    counts: &CpuCounts,
) -> impl Iterator<Item = (Instructions, u64)> {
    timer(counts).flat_map(|way| way.kernel.iter().copied())
}

/// The number of these timer interrupts.
pub(crate) fn timer_entries(counts: &CpuCounts) -> u64 {
    timer_costs(counts).map(|(_, count)| count).sum()
}

/// The instructions of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CpuWork {
    /// The CPU.
    pub cpu: Cpu,
    /// Instructions of programs and of the kernel.
    pub instructions: Instructions,
    /// Those of the kernel.
    pub kernel_instructions: Instructions,
    /// The number of timer interrupts.
    pub timer_entries: u64,
    /// That per second; null if not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_entries_hz: Option<PerSecond>,
}

impl CpuWork {
    /// Adds up the counts of each CPU in these phases; `span` is their duration, if rates are
    /// requested.
    pub(crate) fn of<'a>(
        phases: impl IntoIterator<Item = &'a PhaseCounts>,
        span: Option<Nanos>,
    ) -> Vec<Self> {
        let counts: Vec<&CpuCounts> =
            phases.into_iter().flat_map(|phase| &phase.cpus).collect();
        let cpus: BTreeSet<Cpu> = counts.iter().map(|counts| counts.cpu).collect();
        let work = |cpu: Cpu| {
            let own = || counts.iter().filter(|counts| counts.cpu == cpu);
            let timer_entries = own().map(|counts| timer_entries(counts)).sum();
            let kernel_instructions = own().map(|counts| counts.kernel).sum();
            Self {
                cpu,
                instructions: own().map(|c| c.user).sum::<Instructions>()
                    + kernel_instructions,
                kernel_instructions,
                timer_entries,
                timer_entries_hz: span
                    .and_then(|span| PerSecond::of(timer_entries, span)),
            }
        };
        cpus.into_iter().map(work).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the instructions of several phases are added up for each CPU.
    #[test]
    fn work_of_phases() {
        let counts = |cpu, user| CpuCounts {
            cpu: Cpu::new(cpu),
            user: Instructions::new(user),
            kernel: Instructions::new(7),
            steps: Vec::new(),
            interruptions: Vec::new(),
            groups: Vec::new(),
            idle_ns: None,
        };
        let phase = |a, b| PhaseCounts { cpus: vec![counts(0, a), counts(1, b)] };
        let phases = [phase(100, 10), phase(200, 20)];
        let work = CpuWork::of(&phases, Some(Nanos::from_secs(1)));
        let found = work.iter().map(|work| (work.cpu.get(), work.instructions.get()));
        assert_eq!(found.collect::<Vec<_>>(), [(0, 314), (1, 44)]);
        assert!(work.iter().all(|work| work.kernel_instructions.get() == 14));
    }
}
