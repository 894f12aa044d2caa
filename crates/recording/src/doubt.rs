//! Reasons not to trust a number, stored with it and printed beside it.

use std::fmt;

use serde::{Deserialize, Serialize};
use units::CpuSet;

/// The kind of doubt. Codes are part of the file format: codes are added and never changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The measurement was ended early.
    Interrupted,
    /// The counter and the kernel's clock disagree about the length of the run.
    ClockDrift,
    /// The counter went backwards.
    ClockBackwards,
    /// The kernel has rejected the counter as a clock source.
    ClockRejected,
    /// The machine was suspended during the run.
    Suspended,
    /// The ring was full: later gaps are counted, not stored.
    GapsLost,
    /// The buffer for wake-ups was full: later samples are counted, not stored.
    SamplesLost,
    /// A thread was found on another CPU than the one it was pinned to.
    Migrated,
    /// The CPUs, or the processes, were not all measured at the same time.
    Unequal,
    /// RT throttling takes a share of each second from a real-time task.
    RtThrottled,
    /// A cgroup of this process has used up its CPU quota, so that its threads had to wait.
    Throttled,
    /// Heat or a power limit has throttled a measured CPU.
    HardwareThrottled,
    /// The frequency of a measured CPU has changed.
    FrequencyChanged,
    /// A measured CPU had a machine check exception.
    MachineCheck,
    /// A counter went back to a smaller value: its delta is not known.
    CounterReset,
    /// The run is too short for a result that was requested.
    TooShort,
    /// The clock's step is longer than what is measured with it.
    CoarseClock,
    /// A file could not be read, so that a value is missing.
    Unreadable,
    /// Online CPUs were not measured.
    CpusLeftOut,
    /// The processor was emulated: durations have no meaning.
    Emulated,
    /// The kernel printed a warning during the measurement.
    KernelComplained,
    /// Two ways of counting the same thing do not agree.
    CountsDiffer,
    /// A repeat of an exact measurement gave another result.
    NotRepeated,
    /// Instructions were not counted: there is only the guest's own measurement.
    Uncounted,
    /// An exact result may depend on the load of the host.
    Races,
    /// Events were lost: the gaps that they caused are unexplained.
    EventsLost,
    /// Events, or some kinds of events, could not be traced.
    Untraced,
    /// A CPU was idle during its busy loop: the loop was stopped, moved or throttled.
    Idled,
    /// The buffer for tests was full: later tests are counted, not stored.
    TestsLost,
    /// A tick that should have stopped did not.
    TickNotStopped,
    /// Reading the values takes CPU time from the measured tasks.
    Competes,
    /// Timers are coarser than the requested interval.
    CoarseTimer,
    /// A boot parameter names only CPUs that do not exist, or has a list that the kernel rejects.
    NoSuchCpu,
    /// A real-time task starved a measuring thread.
    Starved,
    /// A process of another user claims the same CPU.
    ClaimedByOther,
    /// A real-time program starved a task, and was changed to `SCHED_OTHER`.
    MadeOrdinary,
    /// Processes that the program had started remained when it ended.
    Survivors,
    /// The program ran on other CPUs than those it was given.
    RanElsewhere,
    /// A process of the program was stopped while others were not.
    PartlyStopped,
    /// Threads of a guest have no names that tell their purpose.
    ThreadsUnnamed,
    /// CPU time of the host includes more than the measurement.
    HostTime,
    /// Another program has changed a setting that was changed for the measurement.
    SettingChanged,
    /// A CPU was not isolated as requested.
    NotIsolated,
    /// A number is known within bounds only, or not at all.
    Imprecise,
    /// A measured CPU was offline for a time.
    Offline,
    /// A variation of a cell was lost: its mean is that of the others.
    VariationLost,
    /// The measurement ended before it had a value.
    NothingMeasured,
    /// Repeated runs have a trend, a jump, two modes, or a first run that differs.
    NotStationary,
    /// Programs that were to run at once ran at once for a part of the time only.
    RanAlone,
    /// The rules of advice may not hold for this kernel.
    RulesUncertain,
    /// Another scheduler was loaded, or the loaded one ended, during the measurement.
    SchedulerChanged,
    /// A doubt of a later version.
    #[serde(other)]
    Other,
}

/// One reason not to trust a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    /// The kind of doubt, for programs.
    pub code: Code,
    /// The doubt as a sentence without its full stop.
    pub text: String,
}

impl Doubt {
    /// A doubt of that kind with that text.
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// The measurement was ended early, by a request or by what `by` adds.
    pub fn ended_early(by: &str) -> Self {
        let text = format!("ended early{by}: the numbers cover the time until then");
        Self::new(Code::Interrupted, text)
    }

    /// The CPUs that its text begins with (`CPU 1: ...`, `CPUs 0-3: ...`), if it does.
    pub fn cpus(&self) -> Option<CpuSet> {
        let list = self.text.strip_prefix("CPUs ").or(self.text.strip_prefix("CPU "))?;
        let cpus: CpuSet = list.split([' ', ':']).next()?.parse().ok()?;
        (!cpus.is_empty()).then_some(cpus)
    }

    /// Whether it is about CPUs of this set only.
    pub fn is_about(&self, cpus: &CpuSet) -> bool {
        self.cpus().is_some_and(|own| own.without(cpus).is_empty())
    }

    /// Whether the measurement is unreliable (exit code 4).
    pub fn is_grave(&self) -> bool {
        matches!(
            self.code,
            Code::ClockDrift
                | Code::ClockBackwards
                | Code::Migrated
                | Code::Offline
                | Code::Starved
                | Code::NotRepeated
                | Code::Emulated
                | Code::NothingMeasured
                | Code::VariationLost
                | Code::SchedulerChanged
        )
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that only doubts about CPUs of the set are about it.
    #[test]
    fn cpus_of_a_doubt() {
        let is_about = |text: &str, cpus: &str| {
            Doubt::new(Code::Migrated, text).is_about(&cpus.parse().unwrap())
        };
        assert!(is_about("CPU 1: the thread was moved", "1"));
        assert!(is_about("CPUs 0-2,5: the threads were moved", "0-5"));
        assert!(is_about("CPU 1 was idle", "1"));
        assert!(!is_about("CPUs 0-2: the threads were moved", "1"));
        assert!(!is_about("CPU time is missing", "1"));
        assert!(!is_about("the machine was suspended", "1"));
        assert!(!is_about("CPU : x", "1"));
    }
}
