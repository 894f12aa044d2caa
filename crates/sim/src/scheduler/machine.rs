//! The machine: its CPUs, its tick, and the time that the kernel's own work takes.

use units::{Hz, Nanos};

/// A machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The number of CPUs.
    pub cpus: u32,
    /// `CONFIG_HZ`.
    pub hz: Hz,
    /// When the first tick is.
    pub tick_phase_ns: Nanos,
    /// A tick's interrupt begins up to that much later than its time, at random.
    pub tick_jitter_ns: Nanos,
    /// Whether the tick stops on an idle CPU.
    pub stops_idle_tick: bool,
    /// How much later than requested a sleep may end (`PR_SET_TIMERSLACK`).
    pub timer_slack_ns: Nanos,
    /// Time that a hypervisor takes from each CPU.
    pub steal: Option<Steal>,
    /// The time of the kernel's own work.
    pub costs: Costs,
}

/// Time that a hypervisor takes, at regular intervals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Steal {
    /// The interval.
    pub every_ns: Nanos,
    /// The time that is taken at each.
    pub ns: Nanos,
}

/// The time of the kernel's own work, from one of its readings of the clock to the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Costs {
    /// From a timer interrupt until its handler reads the clock.
    pub interrupt_ns: Nanos,
    /// A wake-up: from the expired timer to the update of the queue, and from there on.
    pub wakeup_ns: [Nanos; 2],
    /// A tick: the same.
    pub tick_ns: [Nanos; 2],
    /// From the last handler to `schedule()`, and to user mode.
    pub exit_ns: [Nanos; 2],
    /// From `schedule()`'s update of the queue until the next task is in user mode, after an
    /// interrupt.
    pub switch_ns: Nanos,
    /// From a system call that sleeps until its timer is set, and from there to `schedule()`.
    pub sleep_ns: [Nanos; 2],
    /// From the switch to a task that slept until it is in user mode.
    pub resume_ns: Nanos,
    /// From user mode until a system call updates the queue, and back.
    pub call_ns: [Nanos; 2],
}

impl Costs {
    /// None: what the rules alone do.
    pub const NONE: Self = Self {
        interrupt_ns: Nanos::ZERO,
        wakeup_ns: [Nanos::ZERO; 2],
        tick_ns: [Nanos::ZERO; 2],
        exit_ns: [Nanos::ZERO; 2],
        switch_ns: Nanos::ZERO,
        sleep_ns: [Nanos::ZERO; 2],
        resume_ns: Nanos::ZERO,
        call_ns: [Nanos::ZERO; 2],
    };
}

impl Machine {
    /// One with these CPUs and this tick, whose kernel takes no time.
    pub fn new(cpus: u32, hz: Hz) -> Self {
        Self {
            cpus,
            hz,
            tick_phase_ns: Nanos::ZERO,
            tick_jitter_ns: Nanos::ZERO,
            stops_idle_tick: true,
            timer_slack_ns: Nanos::from_micros(50),
            steal: None,
            costs: Costs::NONE,
        }
    }
}
