//! The causes of gaps: the events that gaps are attributed to, and the share of each.

use crate::tuple::tuple_form;
use facts::Unit;
use serde::{Deserialize, Serialize};
use units::{Nanos, Span};

/// The source of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// eBPF programs at the kernel's tracepoints.
    Bpf,
    /// The same at classic tracepoints, which cost more: for comparison in the lab.
    BpfClassic,
    /// The kernel's trace events, read from tracefs.
    Tracefs,
    /// Totals of `/proc`: no single events.
    Proc,
    /// A simulation knows all events.
    Simulation,
    /// A source of a later version.
    #[serde(other)]
    Other,
}

impl Source {
    /// The name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bpf => "bpf",
            Self::BpfClassic => "bpf_classic",
            Self::Tracefs => "tracefs",
            Self::Proc => "proc",
            Self::Simulation => "simulation",
            Self::Other => "other",
        }
    }
}

/// The kind of event that a gap is attributed to.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum CulpritKind {
    /// The timer interrupt.
    Timer,
    /// An inter-processor interrupt, or another interrupt of the local APIC.
    Ipi,
    /// A device interrupt.
    Irq,
    /// A softirq.
    Softirq,
    /// A non-maskable interrupt.
    Nmi,
    /// Another thread.
    Thread,
    /// The CPU quota of a cgroup: the measured thread could not run before its next period.
    Quota,
    /// Time that the hypervisor took.
    Steal,
    /// Firmware, in a system management interrupt.
    Firmware,
    /// No known event explains it; or a kind of a later version.
    #[serde(other)]
    Unexplained,
}

impl CulpritKind {
    /// Whether it is an event that the kernel sees.
    pub fn is_event(self) -> bool {
        match self {
            Self::Timer
            | Self::Ipi
            | Self::Irq
            | Self::Softirq
            | Self::Nmi
            | Self::Thread
            | Self::Quota => true,
            Self::Steal | Self::Firmware | Self::Unexplained => false,
        }
    }

    /// The word before the name of an event of this kind; empty if the name says it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Timer => "timer",
            Self::Ipi => "IPI",
            Self::Irq => "device",
            Self::Softirq => "softirq",
            Self::Nmi => "NMI",
            Self::Thread => "thread",
            Self::Steal => "steal",
            Self::Firmware => "SMI",
            Self::Quota | Self::Unexplained => "",
        }
    }
}

/// A thread that used the CPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Thread {
    /// The thread ID in the initial PID namespace.
    pub tid: u32,
    /// The process ID; the thread ID for a kernel thread.
    pub pid: u32,
    /// The kernel's internal priority: -1 deadline, 0 to 98 real time, 100 to 139 ordinary.
    pub prio: i32,
    /// Its owner; `None` if it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<ThreadOwner>,
    /// The unit of systemd or the container of its process; `None` if it belongs to none, or if that is
    /// not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<Unit>,
    /// Whether it belongs to the process that measured, by the process's ID: its time is a cost of
    /// the measurement. Older files do not say so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
}

/// The owner of a thread.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadOwner {
    /// The kernel.
    Kernel,
    /// A program: the name of the process.
    Program(String),
}

/// A cause of gaps.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Culprit {
    /// The kind of event.
    pub kind: CulpritKind,
    /// The name of the vector, the device, the softirq or the thread; for a timer interrupt the
    /// function of the expired timer, if it is known.
    pub name: String,
    /// The thread, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<Thread>,
}

impl Culprit {
    /// Whether it is a thread of the process that measured.
    pub fn is_own(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| thread.own)
    }
}

/// The name of the source that a culprit belongs to: the program of its threads, a kernel thread's name
/// without its number (`kworker` of `kworker/1:2-events`, `ksoftirqd` of `ksoftirqd/0`, `kdamond` of
/// `kdamond.0`), or its own.
pub fn source_name<'a>(name: &'a str, thread: Option<&'a Thread>) -> &'a str {
    match thread.and_then(|thread| thread.owner.as_ref()) {
        Some(ThreadOwner::Kernel) => name.split(['/', '.', ':']).next().unwrap_or(name),
        Some(ThreadOwner::Program(program)) => program,
        None => name,
    }
}

/// The share of one culprit in one gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "ShareParts", into = "ShareParts")]
pub struct Share {
    /// The gap's index in the list of gaps.
    pub gap: usize,
    /// The culprit's index in the list of culprits.
    pub culprit: usize,
    /// Its time: the event, and its edges outside of its tracepoints.
    pub ns: Nanos,
    /// The part between the event's tracepoints.
    pub inside_ns: Nanos,
    /// The part before the gap's first event: entry to the kernel, and a hypervisor's work before
    /// that. The rest is after an event. `None` in older files.
    pub entry_ns: Option<Nanos>,
}

/// A share in files.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum ShareParts {
    Whole(usize, usize, Nanos, Nanos, Nanos),
    /// Before edges were recorded.
    Older(usize, usize, Nanos, Nanos),
}

/// The clock of steal time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StealClock {
    /// The clock that the scheduler reads at each tick and switch
    /// (`CONFIG_PARAVIRT_TIME_ACCOUNTING`).
    Paravirt,
    /// `/proc/stat`, read before and after the run, in steps of 10 ms.
    Proc,
    /// A clock of a later version.
    #[serde(other)]
    Other,
}

impl StealClock {
    /// A step of [`Self::Proc`] (`USER_HZ`).
    pub const STEP: Nanos = Nanos::from_millis(10);

    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paravirt => "paravirt",
            Self::Proc => "proc",
            Self::Other => "other",
        }
    }
}

/// Steal time during the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steal {
    /// The clock.
    pub clock: StealClock,
    /// The lower bound, in gaps and in the time of events.
    pub at_least_ns: Nanos,
    /// The upper bound.
    pub at_most_ns: Nanos,
    /// The upper bound of steal time in the unexplained time.
    pub unexplained_max_ns: Nanos,
}

/// What the count of system management interrupts (SMIs) proves of a CPU's gaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Firmware {
    /// The number of SMIs during the measurement.
    pub smis: u64,
    /// The upper bound of their time in the unexplained time.
    pub unexplained_max_ns: Nanos,
}

/// An event, in a gap or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(usize, Span)", into = "(usize, Span)")]
pub struct Event {
    /// Its culprit's index in the list of culprits.
    pub culprit: usize,
    /// The time between its tracepoints, on the clock of the gaps.
    pub span: Span,
}

tuple_form!(Event { culprit: usize, span: Span });

/// The causes of one CPU's gaps. For each gap the shares add up to its length.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blamed {
    /// All culprits.
    pub culprits: Vec<Culprit>,
    /// Their shares, by gap, as `[gap, culprit, ns, inside_ns, entry_ns]`.
    pub shares: Vec<Share>,
    /// The number of events of each culprit, in gaps or not.
    pub events: Vec<u64>,
    /// The number of events that were lost during the loop.
    pub lost: u64,
    /// When they were lost, on the clock of the gaps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<Span>,
    /// Steal time; `None` if no clock counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal: Option<Steal>,
    /// What the count of system management interrupts proves; `None` if they were not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firmware: Option<Firmware>,
    /// All events in the order in which they began, as `[culprit, [start_ns, length_ns]]`; `None`
    /// unless they were requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Vec<Event>>,
}

impl From<ShareParts> for Share {
    fn from(parts: ShareParts) -> Self {
        match parts {
            ShareParts::Whole(gap, culprit, ns, inside_ns, entry_ns) => {
                Self { gap, culprit, ns, inside_ns, entry_ns: Some(entry_ns) }
            }
            ShareParts::Older(gap, culprit, ns, inside_ns) => {
                Self { gap, culprit, ns, inside_ns, entry_ns: None }
            }
        }
    }
}

impl From<Share> for ShareParts {
    fn from(share: Share) -> Self {
        let Share { gap, culprit, ns, inside_ns, entry_ns } = share;
        match entry_ns {
            Some(entry_ns) => Self::Whole(gap, culprit, ns, inside_ns, entry_ns),
            None => Self::Older(gap, culprit, ns, inside_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the keys and the form of every value in files.
    #[test]
    fn contract() {
        let unit = facts::Unit::of_path("/system.slice/a.service");
        let thread =
            Thread { tid: 40, pid: 40, prio: 120, owner: None, unit, own: false };
        let own = Thread { own: true, unit: None, ..thread.clone() };
        let culprit =
            |kind, name: &str, thread| Culprit { kind, name: name.into(), thread };
        let (ns, inside_ns) = (Nanos::from_nanos(900), Nanos::from_nanos(700));
        let share = |entry_ns| Share { gap: 3, culprit: 0, ns, inside_ns, entry_ns };
        let blamed = Blamed {
            culprits: vec![
                culprit(CulpritKind::Thread, "kworker/1:1", Some(thread)),
                culprit(CulpritKind::Unexplained, "unexplained", None),
                culprit(CulpritKind::Thread, "noisefloor", Some(own)),
            ],
            shares: vec![share(None), share(Some(Nanos::from_nanos(150)))],
            events: vec![12, 0],
            lost: 0,
            losses: vec![],
            steal: Some(Steal {
                clock: StealClock::Paravirt,
                at_least_ns: Nanos::from_nanos(5),
                at_most_ns: Nanos::from_nanos(6),
                unexplained_max_ns: Nanos::from_nanos(1),
            }),
            firmware: Some(Firmware {
                smis: 2,
                unexplained_max_ns: Nanos::from_nanos(7),
            }),
            trace: Some(vec![Event { culprit: 0, span: (inside_ns, ns).into() }]),
        };
        let expected = serde_json::json!({
            "culprits": [
                {"kind": "thread", "name": "kworker/1:1",
                    "thread": {"tid": 40, "pid": 40, "prio": 120,
                        "unit": {"kind": "systemd", "name": "a.service"}}},
                {"kind": "unexplained", "name": "unexplained"},
                {"kind": "thread", "name": "noisefloor",
                    "thread": {"tid": 40, "pid": 40, "prio": 120, "own": true}},
            ],
            "shares": [[3, 0, 900, 700], [3, 0, 900, 700, 150]], "events": [12, 0], "lost": 0,
            "steal": {"clock": "paravirt", "at_least_ns": 5, "at_most_ns": 6, "unexplained_max_ns": 1},
            "firmware": {"smis": 2, "unexplained_max_ns": 7},
            "trace": [[0, [700, 900]]],
        });
        assert_eq!(serde_json::to_value(&blamed).unwrap(), expected);
        assert_eq!(serde_json::from_value::<Blamed>(expected).unwrap(), blamed);
    }
}
