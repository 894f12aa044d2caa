//! What the processor and its firmware count on the measured CPUs: SMIs, throttling by heat and power
//! limits, the frequency, machine checks.
//!
//! Everything is read before and after a measurement, outside of its timed loops. Reading a perf event
//! interrupts its CPU; so during the measurement only the frequency is sampled, by another CPU, and
//! only where that interrupts nothing ([`samples`]).
//!
//! Cannot see firmware that runs without an SMI.

mod doubts;
mod events;
mod samples;

use std::collections::BTreeMap;
use std::sync::Arc;

use facts::{Facts, Interrupts, Root, SlowDowns, Unknown, Why, current_khz};
use recording::{CpuHardware, Frequency, HardwareCounts, Throttled};
use units::{Cpu, CpuSet, Nanos};

pub(crate) use crate::hardware::doubts::of_hardware;
use crate::hardware::events::Events;
use crate::hardware::samples::Sampler;
use crate::time::counter;

/// Opens the files of this machine, or those of a test, which are cached by each root.
type Files = Arc<dyn Fn() -> Root + Send + Sync>;

/// The counts of each CPU, or why they are unknown.
type OfCpus<T> = Result<BTreeMap<Cpu, T>, Unknown>;

/// The first reading, and the events that are being counted.
pub(crate) struct HardwareMeter {
    files: Files,
    cpus: CpuSet,
    base_khz: Option<u64>,
    began: Nanos,
    before: Reading,
    events: Events,
    sampler: Option<Sampler>,
}

impl HardwareMeter {
    /// Starts counting on these CPUs. `is_busy`: the measurement keeps them busy all the time.
    pub(crate) fn start(cpus: &CpuSet, is_busy: bool, facts: &Facts) -> Self {
        let files = Arc::new(Root::live);
        let events = Events::open(&files(), cpus);
        Self::with(files, events, cpus, is_busy, facts)
    }

    fn with(
        files: Files,
        events: Events,
        cpus: &CpuSet,
        is_busy: bool,
        facts: &Facts,
    ) -> Self {
        let sampler = Sampler::start(&files, cpus, is_busy, facts);
        let before = Reading::now(&files(), cpus);
        let began = counter::kernel(libc::CLOCK_MONOTONIC_RAW);
        let (cpus, base_khz) = (cpus.clone(), base_khz(facts));
        Self { files, cpus, base_khz, began, before, events, sampler }
    }

    /// The counts up to now.
    pub(crate) fn end(self) -> HardwareCounts {
        let span_ns =
            counter::kernel(libc::CLOCK_MONOTONIC_RAW).saturating_sub(self.began);
        let root = (self.files)();
        // First of all, before the frequency changes again.
        let current = now_khz(&root, &self.cpus);
        let smis = self.events.smis();
        let means = self.events.mean_khz(self.base_khz).or(current);
        let ranges = self.sampler.map(Sampler::end).unwrap_or_default();
        let after = Reading::now(&root, &self.cpus);
        let slow = both(self.before.slow, after.slow);
        let interrupts = both(self.before.interrupts, after.interrupts);
        let checks = |label| machine_checks(&interrupts, label, &self.cpus);
        let (exceptions, polls) = (checks("MCE"), checks("MCP"));
        let unknown = [
            ("smis", smis.as_ref().err()),
            ("throttled", slow.as_ref().err()),
            ("frequency", means.as_ref().err()),
            ("machine_checks", exceptions.as_ref().err()),
            ("machine_check_polls", polls.as_ref().err()),
        ];
        let unknown = unknown
            .into_iter()
            .filter_map(|(key, why)| Some((key.to_owned(), why?.clone())));
        let of = |cpu: Cpu| CpuHardware {
            cpu,
            smis: value(&smis, cpu),
            throttled: slow.as_ref().ok().and_then(|(before, after)| {
                Some(throttled(after.get(&cpu)?.since(before.get(&cpu)?)))
            }),
            frequency: value(&means, cpu).map(|mean_khz| Frequency {
                mean_khz,
                range_khz: ranges.get(&cpu).copied(),
            }),
            machine_checks: value(&exceptions, cpu),
            machine_check_polls: value(&polls, cpu),
        };
        let cpus = self.cpus.iter().map(of).collect();
        HardwareCounts { span_ns, cpus, unknown: unknown.collect() }
    }
}

/// The counts of files at one moment.
struct Reading {
    slow: OfCpus<SlowDowns>,
    interrupts: Result<Interrupts, Unknown>,
}

impl Reading {
    fn now(root: &Root, cpus: &CpuSet) -> Self {
        let slow = cpus.iter().map(|cpu| Ok((cpu, SlowDowns::now(root, cpu)?))).collect();
        let interrupts = root.text(Interrupts::FILE);
        let interrupts =
            interrupts.and_then(|text| Interrupts::parse(&text, Interrupts::FILE));
        Self { slow, interrupts }
    }
}

/// Both readings, or why one of them failed.
fn both<T>(
    before: Result<T, Unknown>,
    after: Result<T, Unknown>,
) -> Result<(T, T), Unknown> {
    Ok((before?, after?))
}

fn value(values: &OfCpus<u64>, cpu: Cpu) -> Option<u64> {
    values.as_ref().ok()?.get(&cpu).copied()
}

/// The frequency by which the ratio of the registers is multiplied.
fn base_khz(facts: &Facts) -> Option<u64> {
    let counter = facts.clock.tsc_hz.get().map(|hz| hz.get() / 1_000);
    facts.hardware.base_khz.get().copied().or(counter)
}

/// The current frequency of each CPU.
fn now_khz(root: &Root, cpus: &CpuSet) -> OfCpus<u64> {
    cpus.iter().map(|cpu| Ok((cpu, current_khz(root, cpu)?))).collect()
}

fn throttled(counts: SlowDowns) -> Throttled {
    Throttled {
        core_heat: counts.core_heat,
        package_heat: counts.package_heat,
        heat_ms: counts.core_heat_ms.max(counts.package_heat_ms),
        power_limits: counts.power_limits,
    }
}

/// How much a line of `/proc/interrupts` has grown on each CPU.
fn machine_checks(
    interrupts: &Result<(Interrupts, Interrupts), Unknown>,
    label: &str,
    cpus: &CpuSet,
) -> OfCpus<u64> {
    let (before, after) = interrupts.as_ref().map_err(Clone::clone)?;
    if after.lines().iter().all(|line| line.label != label) {
        let text = format!("this kernel has no line {label} in {}", Interrupts::FILE);
        return Err(Unknown::new(Why::NotApplicable, text));
    }
    let grown = |cpu| {
        let now = after.labelled(label, cpu)?;
        Some((cpu, now.checked_sub(before.labelled(label, cpu)?)?))
    };
    Ok(cpus.iter().filter_map(grown).collect())
}

#[cfg(test)]
mod tests;
