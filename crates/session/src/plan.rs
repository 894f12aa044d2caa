//! The plan of a session.

use blame::Threads;
use facts::Facts;
use isolate::IsolationOptions;
use recording::{Source, Spec};

/// A measurement with its preparation and cleanup.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The measurement; its CPUs are those that are claimed, isolated and traced.
    pub spec: Spec,
    /// The facts of this machine.
    pub facts: Facts,
    /// Whether the CPUs are shared with other measurements.
    pub access: Access,
    /// Lock this process's memory, if permitted.
    pub locks_memory: bool,
    /// The settings to change during the session; the CPUs are those of `spec`.
    pub isolation: Option<IsolationPlan>,
    /// What is traced during the measurement.
    pub trace: Trace,
}

impl Plan {
    /// A measurement without preparation.
    pub fn new(spec: Spec, facts: Facts) -> Self {
        let (access, trace) = (Access::Unchecked, Trace::Nothing);
        Self { spec, facts, access, locks_memory: false, isolation: None, trace }
    }
}

/// The settings that are changed during a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsolationPlan {
    /// The settings.
    pub options: IsolationOptions,
    /// Whether a setting that cannot be changed is an error, before the measurement starts; else it
    /// is a doubt.
    pub is_required: bool,
}

/// Whether the CPUs of a session are shared with other measurements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Nothing is checked: there are no others (a guest), or the CPUs are only observed.
    Unchecked,
    /// Shared, but a CPU that a real-time task occupies is refused.
    Shared,
    /// Not shared: no other noisefloor may claim them, and a CPU that a real-time task occupies is
    /// refused.
    Exclusive {
        /// Whether to wait until no other noisefloor claims them, instead of failing.
        waits: bool,
    },
}

/// What is traced during a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trace {
    /// Nothing.
    Nothing,
    /// The kernel's events, to which gaps and interruptions are attributed.
    Events {
        /// The event source; `None`: the best available, and its absence is a doubt.
        source: Option<Source>,
        /// The threads whose events count.
        threads: Threads,
        /// Whether the events themselves are stored, which needs a source that has them.
        stores: bool,
    },
    /// Every context switch, and wake-ups if permitted. If switches cannot be traced, there is a
    /// doubt.
    Switches,
    /// Switches are not traced by request, which causes a doubt.
    NoSwitches,
}
