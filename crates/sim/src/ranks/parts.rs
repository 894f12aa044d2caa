//! The parts of the noise: all of it, or the co-scheduled sources and all others.

use recording::{Coscheduled, ScaleSource};
use units::Nanos;

use super::assigned::{Assigned, Machine};
use super::error::Error;
use super::recorded::Recorded;

/// The most co-scheduled gaps of a run, which takes minutes: each of them is simulated.
const GAPS_MAX: u128 = 1 << 33;

/// The noise in one or two parts.
pub(super) struct Parts(Vec<Part>);

struct Part {
    machines: Vec<Machine>,
    /// Whether all nodes have it at the same time.
    coscheduled: bool,
}

impl Parts {
    /// The noise without a source.
    pub(super) fn new(
        recorded: &Recorded,
        coscheduled: &Coscheduled,
        without: Option<&ScaleSource>,
    ) -> Self {
        let without: Vec<ScaleSource> = without.into_iter().cloned().collect();
        Self(match coscheduled {
            Coscheduled::All(all) => {
                let machines = recorded.without(&without);
                vec![Part { machines, coscheduled: *all }]
            }
            Coscheduled::Sources(sources) => {
                let is_same = |one: &ScaleSource, other: &ScaleSource| {
                    (one.kind, &one.name) == (other.kind, &other.name)
                };
                let mut common = sources.clone();
                common.retain(|one| !without.iter().any(|other| is_same(one, other)));
                let own = [sources.as_slice(), &without].concat();
                let (own, common) = (recorded.without(&own), recorded.only(&common));
                vec![
                    Part { machines: own, coscheduled: false },
                    Part { machines: common, coscheduled: true },
                ]
            }
        })
    }

    /// Checks that runs of these numbers of ranks, which take so long without noise, end in minutes.
    ///
    /// # Errors
    /// Gaps of a CPU overlap, so that the parts together have no time without noise; or a run has too many
    /// co-scheduled gaps.
    pub(super) fn check(&self, runs: &[(u64, Nanos)]) -> Result<(), Error> {
        let [own, common] = &self.0[..] else { return Ok(()) };
        let pairs = own.machines.iter().flatten().zip(common.machines.iter().flatten());
        for (own, common) in pairs {
            let free = own.window().saturating_sub(own.noise() + common.noise());
            if free.is_zero() {
                let text = "the co-scheduled sources and the others of a CPU take all of its time";
                return Err(Error::Spec(text.to_owned()));
            }
            for (ranks, base) in runs {
                let busy = u128::from(*ranks) * u128::from(base.get());
                let windows = busy / u128::from(free.get());
                let gaps = windows.saturating_mul(common.count() as u128);
                if gaps > GAPS_MAX {
                    return Err(Error::Spec(format!(
                        "{ranks} ranks have {gaps} gaps of co-scheduled sources: choose fewer ranks, or \
                         fewer or shorter steps"
                    )));
                }
            }
        }
        Ok(())
    }

    /// The parts as a run needs them.
    pub(super) fn assigned(&self, ranks_per_node: u64, seed: u64) -> Vec<Assigned<'_>> {
        let parts = self.0.iter().map(|Part { machines, coscheduled }| Assigned {
            machines,
            ranks_per_node,
            coscheduled: *coscheduled,
            seed,
        });
        parts.collect()
    }
}
