//! Small counts, for tests.

use recording::{CpuCounts, Interruption, Level, Values};
use units::{Cpu, Instructions};

pub(crate) const TIMER: &str = "asm_sysvec_apic_timer_interrupt";

pub(crate) fn values(pairs: &[(u64, u64)]) -> Values {
    pairs.iter().map(|&(value, count)| (Instructions::new(value), count)).collect()
}

pub(crate) fn counts(cpu: u32, entries: &[(&str, Level)], kernel: &Values) -> CpuCounts {
    let way = |&(entry, from): &(&str, Level)| Interruption {
        entry: entry.to_owned(),
        from,
        kernel: kernel.clone(),
    };
    CpuCounts {
        cpu: Cpu::new(cpu),
        user: Instructions::new(40),
        kernel: Instructions::new(5_000),
        steps: kernel.clone(),
        interruptions: entries.iter().map(way).collect(),
        groups: Vec::new(),
        idle_ns: None,
    }
}
