//! The scheduler: which one, how long its slices are, and what it keeps for whom.

use units::Nanos;

use crate::fact::group;

group! {
    /// The scheduler.
    "sched" Sched {
        /// `cfs`, `eevdf`, or the name of a sched_ext scheduler in charge.
        policy: String,
        /// How much of each period real-time tasks may run, in microseconds; -1: all.
        rt_runtime_us: i64,
        /// The period, in microseconds.
        rt_period_us: i64,
        /// How long ordinary tasks run in each second although real-time ones want to,
        /// CPU by CPU where they differ (the fair server, since 6.12).
        fair_server_runtime_ns: Vec<Nanos>,
        /// EEVDF's slice (since 6.6).
        base_slice_ns: Nanos,
        /// CFS's period (until 6.5).
        latency_ns: Nanos,
        /// CFS's shortest slice (until 6.5).
        min_granularity_ns: Nanos,
        /// How far ahead a waking task must be to preempt (CFS, until 6.5).
        wakeup_granularity_ns: Nanos,
        /// Scheduler features that are on.
        features: Vec<String>,
        /// Whether sessions are grouped.
        autogroup: bool,
        /// The slice of `SCHED_RR`, in milliseconds.
        rr_timeslice_ms: u64,
    }
}
