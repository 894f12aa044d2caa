//! Selection of two CPUs for programs that run at once: the nearer they are to each other, the more of the noise
//! of one hits the other, too. CPUs of one core share everything; then come those of one last-level cache, and of
//! one NUMA node. Of pairs that are equally near, CPUs that are set apart (`nohz_full`, isolated) come first, then
//! those without CPU 0, then those with the fewest interrupts since boot.
//!
//! Cannot see: the topology of the host, if this machine is virtual and the hypervisor does not show it.

use std::cmp::Reverse;

use facts::{Fact, Facts};
use units::{Cpu, CpuSet};

use crate::cpus::choice::choose;
use crate::cpus::pick::interrupts_since_boot;
use crate::error::{Error, Kind};

/// Two CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuPair {
    /// In ascending order.
    pub cpus: [Cpu; 2],
    /// What they share.
    pub nearness: Nearness,
    /// Whether they were requested.
    pub is_requested: bool,
}

/// What two CPUs share, the nearest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Nearness {
    /// A core: they are its hardware threads.
    Core,
    /// The last-level cache.
    Cache,
    /// A NUMA node.
    Node,
    /// None of these, as far as the kernel knows.
    Machine,
}

impl Nearness {
    /// All of them, the nearest first.
    const ALL: [Self; 4] = [Self::Core, Self::Cache, Self::Node, Self::Machine];

    /// The sets of CPUs that share it, among these.
    fn groups(self, among: &CpuSet, facts: &Facts) -> Vec<CpuSet> {
        let cpus = &facts.cpus;
        let known = |fact: &Fact<Vec<CpuSet>>| fact.get().cloned().unwrap_or_default();
        let groups = match self {
            Self::Core => known(&cpus.cores),
            Self::Cache => known(&cpus.caches),
            Self::Node => known(&cpus.nodes),
            Self::Machine => vec![among.clone()],
        };
        groups.iter().map(|group| group.and(among)).collect()
    }
}

/// Selects the two requested CPUs, or the nearest two.
///
/// # Errors
/// Those of [`choose`] for a requested CPU that cannot be used; `Kind::Affinity` if this process may not use two
/// CPUs; `Kind::NoSuchCpu` if another number of CPUs is requested.
pub fn pick_pair(requested: Option<&CpuSet>, facts: &Facts) -> Result<CpuPair, Error> {
    let among = match requested {
        Some(cpus) => choose(Some(cpus), facts)?,
        None => usable(facts)?,
    };
    if let Some(cpus) = requested.filter(|cpus| cpus.len() != 2) {
        let text = format!("expected two CPUs, not {} ({cpus})", cpus.len());
        return Err(Error::new(Kind::NoSuchCpu, text));
    }
    let found = nearest(&among, facts, interrupts_since_boot());
    let (cpus, nearness) = found.ok_or_else(|| {
        let text = format!(
            "two programs at once need two CPUs, and this process may use CPU {among} only"
        );
        Error::new(Kind::Affinity, text)
    })?;
    Ok(CpuPair { cpus, nearness, is_requested: requested.is_some() })
}

/// The CPUs that this process may use, and those that are set apart.
fn usable(facts: &Facts) -> Result<CpuSet, Error> {
    let allowed = choose(None, facts)?;
    let apart = facts.set_apart();
    let is_usable = |cpu: &Cpu| choose(Some(&(*cpu).into()), facts).is_ok();
    Ok(allowed.iter().chain(apart.iter().filter(is_usable)).collect())
}

/// The nearest two of these CPUs; `None` of fewer.
fn nearest(
    among: &CpuSet,
    facts: &Facts,
    interrupted: impl Fn(Cpu) -> Option<u64>,
) -> Option<([Cpu; 2], Nearness)> {
    let (apart, first) = (facts.set_apart(), Cpu::new(0));
    let order = |pair: &[Cpu; 2]| {
        let are_apart = pair.iter().filter(|cpu| apart.contains(**cpu)).count();
        let total = |cpu: Cpu| interrupted(cpu).unwrap_or(u64::MAX);
        let interrupts =
            pair.map(total).iter().fold(0, |sum: u64, one| sum.saturating_add(*one));
        (Reverse(are_apart), pair.contains(&first), interrupts)
    };
    Nearness::ALL.into_iter().find_map(|nearness| {
        let groups = nearness.groups(among, facts);
        let best = groups.iter().flat_map(pairs).min_by_key(order)?;
        Some((best, nearness))
    })
}

/// All pairs of a set, each in ascending order.
fn pairs(group: &CpuSet) -> impl Iterator<Item = [Cpu; 2]> {
    let cpus: Vec<Cpu> = group.iter().collect();
    let firsts = cpus.clone().into_iter().zip(1..);
    firsts.flat_map(move |(first, next)| {
        let others: Vec<Cpu> = cpus[next..].to_vec();
        others.into_iter().map(move |other| [first, other])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(cores: &[&str], caches: &[&str], nodes: &[&str], isolated: &str) -> Facts {
        let page = serde_json::json!({
            "cpus": {"present": "0-7", "online": "0-7", "allowed": "0-7",
                "isolated": isolated, "cores": cores, "caches": caches, "nodes": nodes},
            "tick": {"nohz_full": ""}, "sources": {}, "unknown": {},
        });
        serde_json::from_value(page).unwrap()
    }

    fn found(among: &str, facts: &Facts) -> Option<(String, Nearness)> {
        // CPUs with larger numbers have fewer interrupts.
        let interrupts = |cpu: Cpu| u64::try_from(100 - cpu.index()).ok();
        let found = nearest(&among.parse().unwrap(), facts, interrupts);
        found.map(|([one, other], nearness)| (format!("{one},{other}"), nearness))
    }

    /// Check the order: what they share, then whether they are set apart, then CPU 0, then interrupts.
    #[test]
    fn nearest_ones_first() {
        let pair = |cpus: &str, nearness| Some((cpus.to_owned(), nearness));
        let smt = ["0,4", "1,5", "2,6", "3,7"];
        let halves = ["0-1,4-5", "2-3,6-7"];
        let facts = machine(&smt, &halves, &["0-7"], "");
        assert_eq!(found("0-7", &facts), pair("3,7", Nearness::Core));
        assert_eq!(found("0,3,4", &facts), pair("0,4", Nearness::Core));
        assert_eq!(found("0-3", &facts), pair("2,3", Nearness::Cache));
        assert_eq!(found("0,1", &facts), pair("0,1", Nearness::Cache));
        assert_eq!(found("1-2", &facts), pair("1,2", Nearness::Node));
        let isolated = machine(&smt, &halves, &["0-7"], "1,5");
        assert_eq!(found("0-7", &isolated), pair("1,5", Nearness::Core));
        let unknown = machine(&[], &[], &[], "");
        assert_eq!(found("0-2", &unknown), pair("1,2", Nearness::Machine));
        assert_eq!(found("3", &unknown), None);
    }

    /// Check that requested CPUs are taken, with what they share, and that another number of them is refused.
    #[test]
    fn requested() {
        let facts = machine(&["0,4", "1,5"], &["0-7"], &[], "");
        let pick = |cpus: &str| pick_pair(Some(&cpus.parse().unwrap()), &facts);
        let pair = pick("0,5").unwrap();
        assert_eq!((pair.nearness, pair.is_requested), (Nearness::Cache, true));
        assert_eq!(pair.cpus, [0, 5].map(Cpu::new));
        assert_eq!(pick("3").unwrap_err().kind(), Kind::NoSuchCpu);
        assert_eq!(pick("1-3").unwrap_err().kind(), Kind::NoSuchCpu);
        assert_eq!(pick("7-8").unwrap_err().kind(), Kind::NoSuchCpu);
    }
}
