//! The sources of the time that each CPU lost: what a picture of it shows.

use std::collections::BTreeMap;

use units::{Cpu, Nanos};

use crate::noise::NoiseSummary;
use crate::noise::largest::{SourceShares, Times};
use crate::noise::verdict::source_of;

/// The sources of all CPUs, and what they took of each.
#[derive(Debug, Clone, PartialEq)]
pub struct NoiseByCpu {
    /// The CPUs, in rising order.
    pub cpus: Vec<Cpu>,
    /// The sources with their share of the time of each CPU, the largest first, and the sum of all
    /// others.
    pub sources: Vec<SourceShares>,
}

impl NoiseSummary {
    /// What `most` sources and all others took of each CPU; `None` if events were not traced.
    pub fn by_cpu(&self, most: usize) -> Option<NoiseByCpu> {
        self.own?;
        let mut cpus: Vec<_> = self.cpus.iter().collect();
        cpus.sort_by_key(|cpu| cpu.cpu);
        let mut times: Times<'_> = BTreeMap::new();
        for (at, cpu) in cpus.iter().enumerate() {
            for culprit in &cpu.culprits {
                let thread = culprit.thread.as_ref();
                let (category, _, name) = source_of(culprit.kind, &culprit.name, thread);
                let sums = times.entry(Some((category, name)));
                let sums = sums.or_insert_with(|| vec![Nanos::ZERO; cpus.len()]);
                sums[at] = sums[at] + culprit.ns;
            }
        }
        let elapsed: Vec<Nanos> = cpus.iter().map(|cpu| cpu.elapsed_ns).collect();
        Some(NoiseByCpu {
            cpus: cpus.iter().map(|cpu| cpu.cpu).collect(),
            sources: SourceShares::largest(times, most, &elapsed),
        })
    }
}

#[cfg(test)]
mod tests {
    use recording::CulpritKind;
    use units::{Ppm, Span};

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
        let source = |name: Option<&str>, shares: [f64; 2]| SourceShares {
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
