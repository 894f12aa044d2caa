//! The levels of concurrent activities on a CPU, as the BPF programs number them.

/// An activity that can interrupt those of lower levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Level {
    Thread,
    Softirq,
    Handler,
    Vector,
    Nmi,
    /// No activity: the time in which a measured thread could not run because of its CPU quota.
    Quota,
}

impl Level {
    /// `enum level` in `bpf/events.bpf.c`.
    pub(crate) const ALL: [Self; 6] = [
        Self::Thread,
        Self::Softirq,
        Self::Handler,
        Self::Vector,
        Self::Nmi,
        Self::Quota,
    ];
}
