//! Reasons not to trust a number, stored with it and printed beside it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kind of doubt. Codes are part of the file format: they are added to, never changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The measurement was ended before its time.
    Interrupted,
    /// The counter and the kernel's clock disagree about how long the run took.
    ClockDrift,
    /// The counter went backwards.
    ClockBackwards,
    /// The kernel does not trust the counter.
    ClockRejected,
    /// The machine was suspended during the run.
    Suspended,
    /// The ring was full: later gaps are counted, not kept.
    GapsLost,
    /// The room for wake-ups was full: later samples are counted, not kept.
    SamplesLost,
    /// A thread was found on another CPU than the one it was pinned to.
    Migrated,
    /// The CPUs, or the processes, were not all measured at the same time.
    Unequal,
    /// The kernel keeps a share of each second from a real-time spinner.
    RtThrottled,
    /// A counter went back to a smaller value: its delta is not known.
    CounterReset,
    /// The run is too short for what it is asked to say.
    TooShort,
    /// The clock's step is longer than what is measured with it.
    CoarseClock,
    /// Something that would have been told could not be read.
    Unreadable,
    /// Online CPUs were left out.
    CpusLeftOut,
    /// The processor was emulated: lengths of time say nothing.
    Emulated,
    /// The kernel complained while it was measured.
    KernelComplained,
    /// Two ways of counting the same thing do not agree.
    CountsDiffer,
    /// Run again, what must not change gave another result.
    NotRepeated,
    /// Nothing was counted beside what the guest itself measured.
    Uncounted,
    /// The host's load may show in what should be exact.
    Races,
    /// Events were not kept: whom they took is unexplained.
    EventsLost,
    /// Events could not be watched, or not all kinds of them.
    Unwatched,
    /// A CPU was idle while its loop should have spun: it was stopped, moved or throttled.
    Idled,
    /// There was no room for all tests: later ones are counted, not kept.
    TestsLost,
    /// A tick that should have stopped did not.
    TickKept,
    /// What reads the numbers takes time from what they are about.
    Competes,
    /// Timers are coarser than what was asked of them.
    CoarseTimer,
    /// A boot parameter names only CPUs that the machine does not have.
    NoSuchCpu,
    /// A real-time task kept a measuring thread off its CPU.
    Starved,
    /// A process of another user says that it measures on the same CPU.
    ClaimedByOther,
    /// A real-time program kept a task from running, and was made an ordinary one.
    MadeOrdinary,
    /// Processes that the program started were left when it ended.
    Survivors,
    /// A doubt of a later version.
    #[serde(other)]
    Other,
}

/// One reason not to trust a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    /// The kind of doubt, for programs.
    pub code: Code,
    /// The doubt in words, for people: a sentence without its full stop.
    pub text: String,
}

impl Doubt {
    /// A doubt of that kind, in words.
    pub fn new(code: Code, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// Whether the numbers must not be trusted at all (exit code 4), rather than with
    /// the doubt in mind.
    pub fn is_grave(&self) -> bool {
        matches!(
            self.code,
            Code::ClockDrift
                | Code::ClockBackwards
                | Code::Migrated
                | Code::Starved
                | Code::NotRepeated
                | Code::Emulated
        )
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
