//! Samples of the frequencies of measured CPUs, taken by a CPU that is not measured.
//!
//! Since 5.18 x86 kernels average a CPU's frequency at each of its ticks, and `scaling_cur_freq` has
//! that figure: reading it does not interrupt the CPU, as it did before. A CPU without a tick for
//! 20 ms, idle or `nohz_full`, has another figure there. So a sample counts only if the CPU was not
//! idle since the one before, by the counts of its idle states, and `nohz_full` CPUs have none.
//! Other architectures have the frequency that the driver has last set.

use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use facts::{Facts, Root, current_khz, idle_counts};
use isolate::Retain;
use units::{Cpu, CpuSet};

use crate::hardware::Files;

/// The time between two samples; several ticks.
const INTERVAL: Duration = Duration::from_millis(100);

/// The lowest and the highest frequency of each CPU with two samples or more.
type Ranges = BTreeMap<Cpu, [u64; 2]>;

/// A thread that takes samples until it is ended.
pub(super) struct Sampler {
    thread: JoinHandle<Samples>,
    /// Closed at the end.
    over: Sender<()>,
}

impl Sampler {
    /// Takes samples of these CPUs; `None` if that would disturb them, or if there are no frequencies.
    /// `is_busy`: none of them is ever idle.
    pub(super) fn start(
        files: &Files,
        cpus: &CpuSet,
        is_busy: bool,
        facts: &Facts,
    ) -> Option<Self> {
        let others = isolate::allowed().ok()?.without(cpus);
        let with_tick = match facts.tick.nohz_full.get() {
            Some(tickless) => cpus.without(tickless),
            None => cpus.clone(),
        };
        let first = with_tick.iter().next()?;
        let has_frequency = current_khz(&files(), first).is_ok();
        if others.is_empty() || !has_frequency || !is_silent(facts) {
            return None;
        }
        let (over, is_over) = channel::<()>();
        let files = files.clone();
        let life = move || {
            // It reads files that everyone may read.
            let _ = isolate::drop_capabilities(Retain::Nothing);
            let _ = isolate::restrict_thread(0, &others);
            let mut samples = Samples::new(is_busy);
            while is_over.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                samples.take(&files(), &with_tick);
            }
            samples
        };
        let thread = Builder::new().name("frequency".to_owned()).spawn(life).ok()?;
        Some(Self { thread, over })
    }

    /// Ends it; the ranges so far.
    pub(super) fn end(self) -> Ranges {
        drop(self.over);
        self.thread.join().map(Samples::ranges).unwrap_or_default()
    }
}

/// Whether reading a CPU's frequency does not interrupt it.
fn is_silent(facts: &Facts) -> bool {
    let is_x86 = facts.kernel.arch.get().is_none_or(|arch| arch.contains("86"));
    !is_x86 || facts.kernel_at_least(5, 18) == Some(true)
}

/// The samples of all CPUs so far.
pub(super) struct Samples {
    is_busy: bool,
    /// How often each CPU has entered an idle state, at the last sample.
    idle: BTreeMap<Cpu, Option<u64>>,
    /// The number of valid samples of each CPU, the lowest and the highest.
    found: BTreeMap<Cpu, (u64, [u64; 2])>,
}

impl Samples {
    pub(super) fn new(is_busy: bool) -> Self {
        Self { is_busy, idle: BTreeMap::new(), found: BTreeMap::new() }
    }

    /// Takes one of each CPU that was not idle since the last one.
    pub(super) fn take(&mut self, root: &Root, cpus: &CpuSet) {
        for cpu in cpus.iter() {
            let was_busy = self.is_busy || self.was_busy(root, cpu);
            let Some(khz) = current_khz(root, cpu).ok().filter(|_| was_busy) else {
                continue;
            };
            let (count, [low, high]) = self.found.entry(cpu).or_insert((0, [khz, khz]));
            *count += 1;
            (*low, *high) = (khz.min(*low), khz.max(*high));
        }
    }

    fn was_busy(&mut self, root: &Root, cpu: Cpu) -> bool {
        let counts = idle_counts(root, cpu).ok();
        let entered = counts.map(|states| states.iter().map(|state| state.entered).sum());
        let before = self.idle.insert(cpu, entered);
        matches!((before, entered), (Some(Some(before)), Some(now)) if before == now)
    }

    pub(super) fn ranges(self) -> Ranges {
        let several = self.found.into_iter().filter(|(_, (count, _))| *count > 1);
        several.map(|(cpu, (_, range))| (cpu, range)).collect()
    }
}
