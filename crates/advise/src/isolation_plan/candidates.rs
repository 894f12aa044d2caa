//! The cores of a machine, as candidates for isolation: where each is, and what speaks against it.

use facts::{BoundIrq, Facts};
use summary::{CpuNoiseSummary, Summary};
use units::{Cpu, CpuSet, Ppm};

use crate::isolation_plan::Impossible;

/// Smaller differences between CPUs are not larger than those between two measurements: of stolen time, and
/// of all lost time.
const STEAL_STEP: f64 = 1_000.0;
const NOISE_STEP: f64 = 10_000.0;

/// A core.
#[derive(Debug, Clone)]
pub(crate) struct Core {
    /// Its online CPUs.
    pub(crate) cpus: CpuSet,
    /// The index of its NUMA node.
    pub(crate) node: usize,
    /// The index of its last-level cache.
    pub(crate) cache: usize,
    /// What speaks against it.
    pub(crate) cost: Cost,
    /// The names of interrupts that it gets and that cannot be moved.
    pub(crate) bound: Vec<String>,
    /// The share of time that the hypervisor took, and that of all lost time.
    pub(crate) steal: Option<Ppm>,
    pub(crate) noise: Option<Ppm>,
}

/// What speaks against isolating a core, the most important first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Cost {
    /// The number of interrupts that cannot be moved.
    pub(crate) bound: usize,
    /// The steps of stolen time.
    pub(crate) steal: u64,
    /// The steps of lost time.
    pub(crate) noise: u64,
    /// Its CPUs that are not isolated yet.
    pub(crate) mixed: usize,
}

impl Cost {
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            bound: self.bound + other.bound,
            steal: self.steal + other.steal,
            noise: self.noise + other.noise,
            mixed: self.mixed + other.mixed,
        }
    }
}

/// All cores.
#[derive(Debug)]
pub(crate) struct Candidates {
    /// The core of the boot CPU, which is no candidate.
    pub(crate) first: Core,
    /// The others.
    pub(crate) cores: Vec<Core>,
    /// The indices of the NUMA nodes that have memory.
    pub(crate) memory_nodes: Vec<usize>,
    /// CPUs that are offline.
    pub(crate) offline: CpuSet,
}

impl Candidates {
    /// The cores of a machine, of which the noise may have been measured.
    pub(crate) fn of(
        facts: &Facts,
        measured: Option<&Summary>,
    ) -> Result<Self, Impossible> {
        let online = facts.cpus.online.get().filter(|online| !online.is_empty());
        let online = online.ok_or(Impossible::UnknownCpus)?;
        let noise = measured.and_then(Summary::noise).map(|noise| &*noise.cpus);
        let boot_cpu =
            if online.contains(Cpu::new(0)) { Some(Cpu::new(0)) } else { None };
        let boot_cpu = boot_cpu.or(online.first()).unwrap_or(Cpu::new(0));
        let mut cores: Vec<Core> = sets(facts, online)
            .into_iter()
            .map(|cpus| Core::of(cpus, facts, noise.unwrap_or_default()))
            .collect();
        let first = cores.iter().position(|core| core.cpus.contains(boot_cpu));
        let first = cores.remove(first.ok_or(Impossible::UnknownCpus)?);
        if cores.is_empty() {
            let one = online.len() == 1;
            return Err(if one { Impossible::OneCpu } else { Impossible::OneCore });
        }
        // CPUs that were measured are not better or worse than others of which nothing is known.
        if cores.iter().any(|core| core.noise.is_none()) {
            cores.iter_mut().for_each(|core| (core.cost.steal, core.cost.noise) = (0, 0));
        }
        let present = facts.cpus.present.get().cloned().unwrap_or_default();
        let memory = facts.cpus.memory_nodes.get().or(facts.cpus.nodes.get());
        let places = memory.into_iter().flatten().filter_map(CpuSet::first);
        Ok(Self {
            memory_nodes: places.map(|cpu| place(facts.cpus.nodes.get(), cpu)).collect(),
            offline: present.without(online),
            first,
            cores,
        })
    }

    /// Whether the noise of all was measured.
    pub(crate) fn is_measured(&self) -> bool {
        self.cores.iter().all(|core| core.noise.is_some())
    }
}

impl Core {
    fn of(cpus: CpuSet, facts: &Facts, noise: &[CpuNoiseSummary]) -> Self {
        let cpu = cpus.first().unwrap_or(Cpu::new(0));
        let own: Vec<_> = noise.iter().filter(|noise| cpus.contains(noise.cpu)).collect();
        let is_measured = own.len() == cpus.len();
        let worst = |share: fn(&CpuNoiseSummary) -> Option<Ppm>| {
            let shares = own.iter().filter_map(|noise| share(noise));
            let worst = shares.max_by(|a, b| a.get().total_cmp(&b.get()));
            worst.filter(|_| is_measured)
        };
        let steal = worst(|noise| noise.stolen_ppm().map(|[at_least, _]| at_least));
        let noise = worst(|noise| noise.noise_ppm);
        let irqs = facts.irq.bound.get().into_iter().flatten();
        let is_here = |irq: &&BoundIrq| !irq.cpus.and(&cpus).is_empty();
        let bound: Vec<String> =
            irqs.filter(is_here).map(|irq| irq.name.clone()).collect();
        let caches = facts.cpus.caches.get().or(facts.cpus.packages.get());
        let cost = Cost {
            bound: bound.len(),
            steal: steps(steal, STEAL_STEP),
            noise: steps(noise, NOISE_STEP),
            mixed: cpus.without(&facts.set_apart()).len(),
        };
        Self {
            node: place(facts.cpus.nodes.get(), cpu),
            cache: place(caches, cpu),
            cpus,
            cost,
            bound,
            steal,
            noise,
        }
    }
}

/// A share in steps, so that small differences count for nothing.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share is at most a million, and not negative"
)]
fn steps(share: Option<Ppm>, step: f64) -> u64 {
    share.map_or(0, |share| (share.get() / step).round().max(0.0) as u64)
}

/// The online CPUs of each core; a CPU of which no core is known is one itself.
fn sets(facts: &Facts, online: &CpuSet) -> Vec<CpuSet> {
    let (mut sets, mut left) = (Vec::new(), online.clone());
    for core in facts.cpus.cores.get().into_iter().flatten() {
        let own = core.and(&left);
        if !own.is_empty() {
            left = left.without(&own);
            sets.push(own);
        }
    }
    sets.extend(left.iter().map(CpuSet::from));
    sets
}

/// The index of the set with a CPU; one behind the last if none has it.
fn place(sets: Option<&Vec<CpuSet>>, cpu: Cpu) -> usize {
    let sets = sets.map_or(&[][..], |sets| sets);
    sets.iter().position(|set| set.contains(cpu)).unwrap_or(sets.len())
}
