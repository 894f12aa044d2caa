//! Which CPUs are isolated: whole cores, not that of the boot CPU, which does the timekeeping; on one NUMA
//! node and below one last-level cache as far as possible; of these the ones against which the least speaks.
//! Each node with memory keeps a core for its housekeeping, if there are enough others.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde::Serialize;
use units::{CpuSet, Ppm};

use crate::isolation_plan::Impossible;
use crate::isolation_plan::candidates::{Candidates, Core, Cost};

/// The chosen CPUs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Choice {
    /// The CPUs for programs.
    pub cpus: CpuSet,
    /// Siblings of one of them, which are isolated too and stay idle.
    pub idle: CpuSet,
    /// The CPUs for all else.
    pub housekeeping: CpuSet,
    /// The number of NUMA nodes that they are on.
    pub nodes: usize,
    /// The number of last-level caches that they share.
    pub caches: usize,
    /// Whether they are on the node of the device; null if its node is unknown, or none was named.
    pub near: Option<bool>,
    /// CPUs of NUMA nodes with memory on which no core is left for housekeeping.
    pub without_housekeeping: Vec<CpuSet>,
    /// Whether they are of cores with different numbers of threads, and so probably of different speed.
    pub unequal: bool,
    /// The other CPUs.
    pub rejected: Vec<Rejected>,
}

/// CPUs that were not chosen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rejected {
    /// The CPUs.
    pub cpus: CpuSet,
    /// Why.
    #[serde(flatten)]
    pub why: WhyNot,
}

/// Why CPUs were not chosen.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "code", rename_all = "snake_case")]
pub enum WhyNot {
    /// They are of the core of the boot CPU.
    BootCore,
    /// They are left for the housekeeping of their NUMA node.
    Housekeeping,
    /// They are on another NUMA node.
    OtherNode,
    /// They have another last-level cache.
    OtherCache,
    /// Their cores have fewer threads than those of the others.
    FewerThreads,
    /// They get interrupts that cannot be moved.
    BoundIrqs {
        /// The names of these.
        names: Vec<String>,
    },
    /// The hypervisor takes more of their time.
    Steal {
        /// The largest share.
        ppm: Option<Ppm>,
    },
    /// They lose more of their time.
    Noise {
        /// The largest share.
        ppm: Option<Ppm>,
    },
    /// They would do as well.
    NotNeeded,
    /// They are offline.
    Offline,
}

impl Choice {
    /// The best CPUs, near these.
    pub(crate) fn of(
        all: &Candidates,
        wanted: usize,
        near: &CpuSet,
    ) -> Result<Self, Impossible> {
        let most = all.cores.iter().map(|core| core.cpus.len()).sum();
        if wanted > most || wanted == 0 {
            return Err(Impossible::TooFew { most });
        }
        let kept = kept(all, wanted, near);
        let is_kept = |core: &&Core| kept.contains(&core.cpus.first());
        let free = all.cores.iter().filter(|core| !is_kept(core)).collect();
        let chosen = choose(free, wanted, near, &all.first);
        let isolated = union(chosen.iter().copied());
        let cpus: CpuSet =
            chosen.iter().flat_map(|core| core.cpus.iter()).take(wanted).collect();
        let everyone = union(all.cores.iter().chain([&all.first]));
        let count = |place: fn(&Core) -> usize| {
            chosen.iter().map(|core| place(core)).collect::<BTreeSet<_>>().len()
        };
        let sizes: BTreeSet<usize> = chosen.iter().map(|core| core.cpus.len()).collect();
        Ok(Self {
            idle: isolated.without(&cpus),
            housekeeping: everyone.without(&isolated),
            nodes: count(|core| core.node),
            caches: count(|core| core.cache),
            near: (!near.is_empty()).then(|| cpus.without(near).is_empty()),
            without_housekeeping: without_housekeeping(all, &isolated),
            unequal: sizes.len() > 1,
            rejected: rejected(all, &chosen, &kept),
            cpus,
        })
    }

    /// All isolated CPUs.
    pub fn isolated(&self) -> CpuSet {
        self.cpus.iter().chain(self.idle.iter()).collect()
    }
}

/// The CPUs of nodes with memory of which all are isolated.
fn without_housekeeping(all: &Candidates, isolated: &CpuSet) -> Vec<CpuSet> {
    let on_node = |node: &usize| {
        let cores = all.cores.iter().chain([&all.first]);
        union(cores.filter(|core| core.node == *node))
    };
    let is_full = |node: &CpuSet| !node.is_empty() && node.without(isolated).is_empty();
    all.memory_nodes.iter().map(on_node).filter(is_full).collect()
}

/// The first CPUs of the cores that are left for the housekeeping of their nodes: on each node with memory
/// the worst one. Nodes give theirs up if there are not enough others, first those that are used anyway.
fn kept(all: &Candidates, wanted: usize, near: &CpuSet) -> BTreeSet<Option<units::Cpu>> {
    let mut kept: Vec<&Core> = Vec::new();
    for node in &all.memory_nodes {
        let own = all.cores.iter().filter(|core| core.node == *node);
        if *node != all.first.node {
            kept.extend(own.max_by_key(|core| rank(core)));
        }
    }
    kept.sort_by_key(|core| !core.cpus.and(near).is_empty());
    let total: usize = all.cores.iter().map(|core| core.cpus.len()).sum();
    let size = |kept: &[&Core]| kept.iter().map(|core| core.cpus.len()).sum::<usize>();
    while total - size(&kept) < wanted && kept.pop().is_some() {}
    kept.into_iter().map(|core| core.cpus.first()).collect()
}

/// The order in which cores of one place are taken: large cores first, then by what speaks against them; of
/// equal ones the last, as the first CPUs have more to do.
fn rank(core: &Core) -> (Reverse<usize>, Cost, Reverse<Option<units::Cpu>>) {
    (Reverse(core.cpus.len()), core.cost, Reverse(core.cpus.first()))
}

/// Cores with as many CPUs, node by node, cache by cache.
fn choose<'a>(
    free: Vec<&'a Core>,
    wanted: usize,
    near: &CpuSet,
    first: &Core,
) -> Vec<&'a Core> {
    let node = Place { of: |core| core.node, near, first };
    let cache = Place { of: |core| core.cache, near, first };
    node.fill(free, wanted, |free, wanted| cache.fill(free, wanted, take))
}

/// A kind of places: nodes, or caches.
struct Place<'a> {
    /// The index of the place that a core is in.
    of: fn(&Core) -> usize,
    near: &'a CpuSet,
    first: &'a Core,
}

impl Place<'_> {
    /// Cores with as many CPUs from as few places as possible: always from the best place for the rest.
    fn fill<'c>(
        &self,
        mut free: Vec<&'c Core>,
        wanted: usize,
        inner: impl Fn(Vec<&'c Core>, usize) -> Vec<&'c Core>,
    ) -> Vec<&'c Core> {
        let mut chosen = Vec::new();
        loop {
            let left = wanted.saturating_sub(size(&chosen));
            let places: BTreeSet<usize> =
                free.iter().map(|core| (self.of)(core)).collect();
            let at = |place: usize| {
                let own = free.iter().copied().filter(|core| (self.of)(core) == place);
                own.collect::<Vec<&Core>>()
            };
            let best =
                places.into_iter().min_by_key(|place| self.worth(at(*place), left));
            let Some(best) = best.filter(|_| left > 0) else { return chosen };
            chosen.extend(inner(at(best), left));
            free.retain(|core| (self.of)(core) != best);
        }
    }

    /// What is compared of places, of which the least is the best: one near the device, with enough CPUs,
    /// with the least against it, without the busy first core, with the fewest CPUs to spare; of equal ones
    /// the last.
    fn worth(
        &self,
        cores: Vec<&Core>,
        wanted: usize,
    ) -> (bool, Reverse<usize>, Cost, bool, usize, Reverse<usize>) {
        let all = size(&cores);
        let place = cores.first().map_or(0, |core| (self.of)(core));
        let is_far = union(cores.iter().copied()).and(self.near).is_empty();
        let has_first = place == (self.of)(self.first);
        let taken = take(cores, wanted);
        let cost = taken.iter().fold(Cost::default(), |cost, core| cost.and(core.cost));
        (is_far, Reverse(all.min(wanted)), cost, has_first, all, Reverse(place))
    }
}

/// The best cores of one place.
fn take(mut cores: Vec<&Core>, wanted: usize) -> Vec<&Core> {
    cores.sort_by_key(|core| rank(core));
    let mut count = 0;
    cores.retain(|core| {
        let is_needed = count < wanted;
        count += core.cpus.len();
        is_needed
    });
    cores
}

fn size(cores: &[&Core]) -> usize {
    cores.iter().map(|core| core.cpus.len()).sum()
}

fn union<'a>(cores: impl Iterator<Item = &'a Core>) -> CpuSet {
    cores.flat_map(|core| core.cpus.iter()).collect()
}

/// The other CPUs, by the reason.
fn rejected(
    all: &Candidates,
    chosen: &[&Core],
    kept: &BTreeSet<Option<units::Cpu>>,
) -> Vec<Rejected> {
    let is_chosen = |core: &Core| chosen.iter().any(|other| other.cpus == core.cpus);
    let others = all.cores.iter().filter(|core| !is_chosen(core));
    let reasons = others.map(|core| match kept.contains(&core.cpus.first()) {
        true => (core.cpus.clone(), WhyNot::Housekeeping),
        false => (core.cpus.clone(), why_not(core, chosen)),
    });
    let first = [(all.first.cpus.clone(), WhyNot::BootCore)];
    let offline =
        (!all.offline.is_empty()).then(|| (all.offline.clone(), WhyNot::Offline));
    let mut rejected: Vec<Rejected> = Vec::new();
    for (cpus, why) in first.into_iter().chain(reasons).chain(offline) {
        match rejected
            .iter_mut()
            .find_map(|one| one.why.with(&why).map(|both| (one, both)))
        {
            Some((one, both)) => {
                one.cpus = one.cpus.iter().chain(cpus.iter()).collect();
                one.why = both;
            }
            None => rejected.push(Rejected { cpus, why }),
        }
    }
    rejected
}

/// Why a core was not chosen that could have been.
fn why_not(core: &Core, chosen: &[&Core]) -> WhyNot {
    if chosen.iter().all(|other| other.node != core.node) {
        return WhyNot::OtherNode;
    }
    if chosen.iter().all(|other| other.cache != core.cache) {
        return WhyNot::OtherCache;
    }
    let worst = chosen
        .iter()
        .filter(|other| other.cache == core.cache)
        .max_by_key(|other| rank(other));
    let Some(worst) = worst else { return WhyNot::NotNeeded };
    if core.cpus.len() < worst.cpus.len() {
        WhyNot::FewerThreads
    } else if core.cost.bound > worst.cost.bound {
        WhyNot::BoundIrqs { names: core.bound.clone() }
    } else if core.cost.steal > worst.cost.steal {
        WhyNot::Steal { ppm: core.steal }
    } else if core.cost.noise > worst.cost.noise {
        WhyNot::Noise { ppm: core.noise }
    } else {
        WhyNot::NotNeeded
    }
}

impl WhyNot {
    /// A reason that is both, if they are of one kind.
    fn with(&self, other: &Self) -> Option<Self> {
        let larger = |a: &Option<Ppm>, b: &Option<Ppm>| {
            [*a, *b].into_iter().flatten().max_by(|a, b| a.get().total_cmp(&b.get()))
        };
        match (self, other) {
            (Self::BoundIrqs { names }, Self::BoundIrqs { names: more }) => {
                let mut names: Vec<String> = names.iter().chain(more).cloned().collect();
                names.sort();
                names.dedup();
                Some(Self::BoundIrqs { names })
            }
            (Self::Steal { ppm }, Self::Steal { ppm: other }) => {
                Some(Self::Steal { ppm: larger(ppm, other) })
            }
            (Self::Noise { ppm }, Self::Noise { ppm: other }) => {
                Some(Self::Noise { ppm: larger(ppm, other) })
            }
            (one, other) => (one == other).then(|| one.clone()),
        }
    }
}
