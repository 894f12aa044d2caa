//! Small recordings, for tests.

use recording::{
    Blamed, CpuNoise, Culprit, CulpritKind, Meanwhile, NoiseSeries, Share, Source, Thread,
};
use units::{Cpu, Nanos, Span, TscHz};

/// A culprit, and what it took of a gap.
pub(crate) fn share(
    gap: usize,
    kind: CulpritKind,
    name: &str,
    thread: Option<Thread>,
    ns: u64,
) -> (Culprit, Share) {
    let ns = Nanos::from_nanos(ns);
    let (inside_ns, entry_ns) = (Nanos::ZERO, Some(Nanos::ZERO));
    let share = Share { gap, culprit: 0, ns, inside_ns, entry_ns };
    (Culprit { kind, name: name.to_owned(), thread }, share)
}

/// What culprits took of one CPU's gaps.
pub(crate) fn blamed(all: &[(Culprit, Share)]) -> Blamed {
    let share =
        |(culprit, (_, share)): (usize, &(Culprit, Share))| Share { culprit, ..*share };
    Blamed {
        culprits: all.iter().map(|(culprit, _)| culprit.clone()).collect(),
        shares: all.iter().enumerate().map(share).collect(),
        ..Blamed::default()
    }
}

/// One CPU on which a loop spun for a second.
pub(crate) fn cpu_noise(gaps: &[Span]) -> CpuNoise {
    CpuNoise {
        cpu: Cpu::new(3),
        began_ns: Nanos::ZERO,
        elapsed_ns: Nanos::from_secs(1),
        phases: Vec::new(),
        loop_ns: Nanos::from_nanos(20),
        passes: 1,
        gaps: gaps.to_vec(),
        lost: None,
        blamed: None,
        backwards: 0,
        meanwhile: Meanwhile::default(),
    }
}

/// CPUs on which loops spun, and gaps from 100 ns were kept.
pub(crate) fn noise(source: Option<Source>, cpus: Vec<CpuNoise>) -> NoiseSeries {
    NoiseSeries {
        clock: "tsc".to_owned(),
        clock_hz: TscHz::new(2_000_000_000).unwrap(),
        began_raw_ns: Nanos::ZERO,
        monotonic: None,
        source,
        threshold_ns: Nanos::from_nanos(100),
        cpus,
    }
}
