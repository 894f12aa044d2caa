//! The sources of the time that each CPU lost: what a picture of it shows.

use std::collections::BTreeMap;

use itertools::Itertools;
use units::{Cpu, Nanos, Ppm};

use crate::noise::NoiseSummary;
use crate::noise::verdict::{LossCategory, TimePart, groups, source_of};

/// The sources of all CPUs, and what they took of each.
#[derive(Debug, Clone, PartialEq)]
pub struct NoiseByCpu {
    /// The CPUs, in rising order.
    pub cpus: Vec<Cpu>,
    /// The sources, the largest first, and the sum of all others.
    pub sources: Vec<SourceByCpu>,
}

/// What one source took of each CPU.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceByCpu {
    /// Its name; `None` for the sum of all others.
    pub name: Option<String>,
    /// Whether it is the measuring process.
    pub is_own: bool,
    /// Its time on each CPU as a share of the CPU's time; `None` if no time passed.
    pub shares: Vec<Option<Ppm>>,
}

impl NoiseSummary {
    /// What `most` sources and all others took of each CPU; `None` if events were not traced.
    pub fn by_cpu(&self, most: usize) -> Option<NoiseByCpu> {
        self.own?;
        let mut cpus: Vec<_> = self.cpus.iter().collect();
        cpus.sort_by_key(|cpu| cpu.cpu);
        let part = |ns| TimePart::of(ns, Nanos::ZERO);
        let mut all = groups(&self.culprits, part);
        all.sort_by_key(|group| std::cmp::Reverse(group.part.ns));
        let keys = all.iter().map(|one| (one.category, one.name.as_str()));
        let keys: Vec<_> = keys.unique().collect();
        let most = if keys.len() > most + 1 { most } else { keys.len() };
        let rank: BTreeMap<_, usize> = keys.iter().take(most).copied().zip(0..).collect();
        let mut times = vec![vec![Nanos::ZERO; cpus.len()]; most + 1];
        for (at, cpu) in cpus.iter().enumerate() {
            for culprit in &cpu.culprits {
                let (category, _, name) =
                    source_of(culprit.kind, &culprit.name, culprit.thread.as_ref());
                let rank = rank.get(&(category, name)).copied().unwrap_or(most);
                if let Some(sum) = times.get_mut(rank).and_then(|times| times.get_mut(at))
                {
                    *sum = *sum + culprit.ns;
                }
            }
        }
        let source = |(rank, times): (usize, Vec<Nanos>)| SourceByCpu {
            name: keys
                .get(rank)
                .filter(|_| rank < most)
                .map(|(_, name)| (*name).to_owned()),
            is_own: rank < most
                && keys.get(rank).is_some_and(|one| one.0 == LossCategory::Own),
            shares: times
                .into_iter()
                .zip(&cpus)
                .map(|(ns, cpu)| Ppm::of(ns, cpu.elapsed_ns))
                .collect(),
        };
        let some = |times: &Vec<Nanos>| times.iter().any(|ns| !ns.is_zero());
        let sources = times.into_iter().enumerate().filter(|(_, times)| some(times));
        Some(NoiseByCpu {
            cpus: cpus.iter().map(|cpu| cpu.cpu).collect(),
            sources: sources.map(source).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use recording::CulpritKind;
    use units::Span;

    use super::*;
    use crate::example;

    /// Check that the shares of each CPU are those of its culprits, small ones added up.
    #[test]
    fn two_cpus() {
        let gap = Span { start: Nanos::ZERO, length: Nanos::from_millis(3) };
        let cpu = |number: u32, shares: [(&str, u64); 2]| {
            let mut cpu = example::cpu_noise(&[gap]);
            cpu.cpu = Cpu::new(number);
            cpu.blamed = Some(example::blamed(&shares.map(|(name, ms)| {
                example::share(0, CulpritKind::Irq, name, None, ms * 1_000_000)
            })));
            cpu
        };
        let cpus =
            vec![cpu(1, [("disk", 2), ("usb", 1)]), cpu(0, [("net", 1), ("disk", 2)])];
        let summary = NoiseSummary::of(&example::noise(None, cpus));
        let found = summary.by_cpu(1).unwrap();
        assert_eq!(found.cpus, [0, 1].map(Cpu::new));
        let share = |ppm| Some(Ppm::new(ppm));
        let source = |name: Option<&str>, shares: [f64; 2]| SourceByCpu {
            name: name.map(str::to_owned),
            is_own: false,
            shares: shares.map(share).to_vec(),
        };
        let expected = [source(Some("disk"), [2e3, 2e3]), source(None, [1e3, 1e3])];
        assert_eq!(found.sources, expected);
        assert_eq!(summary.by_cpu(9).unwrap().sources.len(), 3);
        let untraced = example::noise(None, vec![example::cpu_noise(&[gap])]);
        assert_eq!(NoiseSummary::of(&untraced).by_cpu(9), None);
    }
}
