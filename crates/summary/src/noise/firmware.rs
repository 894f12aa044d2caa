//! The firmware's time: the gaps that are proven to be system management interrupts (SMIs), and the upper
//! bound of further ones.

use recording::{CulpritKind, Firmware};
use serde::Serialize;
use units::Nanos;

use crate::noise::culprits::CulpritSummary;

/// The firmware's time in gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FirmwareSummary {
    /// The number of SMIs during the measurement; of several CPUs, that of the CPU with the most.
    pub smis: u64,
    /// The time of gaps that are proven to be SMIs: the culprit `firmware`.
    pub proven_ns: Nanos,
    /// The upper bound of the time of SMIs in the unexplained time.
    pub unexplained_max_ns: Nanos,
}

impl FirmwareSummary {
    /// The proven part is among the culprits.
    pub(crate) fn of(firmware: Firmware, culprits: &[CulpritSummary]) -> Self {
        let own = culprits.iter().filter(|one| one.kind == CulpritKind::Firmware);
        Self {
            smis: firmware.smis,
            proven_ns: own.map(|culprit| culprit.ns).sum(),
            unexplained_max_ns: firmware.unexplained_max_ns,
        }
    }

    /// Those of several CPUs; `None` if unknown for one of them.
    pub(crate) fn together<'a>(
        all: impl IntoIterator<Item = Option<&'a Self>>,
    ) -> Option<Self> {
        let mut all = all.into_iter();
        let first = *all.next()??;
        all.try_fold(first, |sum, next| {
            let next = next?;
            Some(Self {
                smis: sum.smis.max(next.smis),
                proven_ns: sum.proven_ns + next.proven_ns,
                unexplained_max_ns: sum.unexplained_max_ns + next.unexplained_max_ns,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    /// Check the keys and values of the JSON contract, and the sum of CPUs.
    #[test]
    fn contract() {
        let nanos = Nanos::from_nanos;
        let of = |smis, proven| {
            let share =
                example::share(0, CulpritKind::Firmware, "firmware", None, proven);
            let blamed = example::blamed(&[share]);
            let culprits = CulpritSummary::of(Some(&blamed), None, nanos(proven));
            let firmware = Firmware { smis, unexplained_max_ns: nanos(5) };
            FirmwareSummary::of(firmware, &culprits)
        };
        let (one, other) = (of(2, 80), of(3, 10));
        let expected =
            serde_json::json!({"smis": 2, "proven_ns": 80, "unexplained_max_ns": 5});
        assert_eq!(serde_json::to_value(one).unwrap(), expected);
        let both = FirmwareSummary::together([Some(&one), Some(&other)]).unwrap();
        assert_eq!(
            (both.smis, both.proven_ns.get(), both.unexplained_max_ns.get()),
            (3, 90, 10)
        );
        assert_eq!(FirmwareSummary::together([Some(&one), None]), None);
        assert_eq!(FirmwareSummary::together([]), None);
    }
}
