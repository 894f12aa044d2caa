//! Who took it: the events that gaps are blamed on, and which share each has.

use serde::{Deserialize, Serialize};
use units::{Nanos, Span};

/// Where the events of a run are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// eBPF programs at the kernel's tracepoints.
    Bpf,
    /// The same at classic tracepoints, which cost more: only the lab compares them.
    BpfClassic,
    /// The kernel's trace events, read from tracefs.
    Tracefs,
    /// What `/proc` counts: no single events.
    Proc,
    /// A source of a later version.
    #[serde(other)]
    Other,
}

impl Source {
    /// What it is called, in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bpf => "bpf",
            Self::BpfClassic => "bpf_classic",
            Self::Tracefs => "tracefs",
            Self::Proc => "proc",
            Self::Other => "other",
        }
    }
}

/// The kind of event that a gap is blamed on.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The timer interrupt.
    Timer,
    /// An interrupt from another CPU, or one that the CPU's own parts raise.
    Ipi,
    /// A device's interrupt.
    Irq,
    /// Work that an interrupt left for after it.
    Softirq,
    /// An interrupt that cannot be held back.
    Nmi,
    /// Another thread.
    Thread,
    /// The hypervisor.
    Steal,
    /// No event is known that explains it; or a kind of a later version.
    #[serde(other)]
    Unexplained,
}

/// A thread that took the CPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Thread {
    /// Its number, as the kernel counts outside of containers.
    pub tid: u32,
    /// Its process; the same for a kernel thread.
    pub pid: u32,
    /// The kernel's own priority: 0 to 98 real time, -1 deadline, 100 to 139 ordinary.
    pub prio: i32,
    /// Whose it is; `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<ThreadOwner>,
}

/// Whose a thread is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadOwner {
    /// The kernel.
    Kernel,
    /// A program: the name of the process.
    Program(String),
}

/// Something that gaps are blamed on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Culprit {
    /// What kind of event it is.
    pub kind: Kind,
    /// The vector's, the device's, the softirq's or the thread's name; of a timer
    /// interrupt the function of the timer that expired, where that is known.
    pub name: String,
    /// Of a thread, who it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<Thread>,
}

/// What one culprit took of one gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "ShareParts", into = "ShareParts")]
pub struct Share {
    /// The gap's place in the list of gaps.
    pub gap: usize,
    /// The culprit's place in the list of culprits.
    pub culprit: usize,
    /// What it took: the event and its edges, which lie outside of its tracepoints.
    pub ns: Nanos,
    /// What of it lay between the event's tracepoints.
    pub inside_ns: Nanos,
    /// What of it lay before the gap's first event: the way into the kernel, and what a
    /// hypervisor does before that. What is neither this nor inside came after an event. `None`
    /// in files that do not say.
    pub entry_ns: Option<Nanos>,
}

/// A share as files hold it.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum ShareParts {
    Whole(usize, usize, Nanos, Nanos, Nanos),
    /// Before edges were recorded.
    Older(usize, usize, Nanos, Nanos),
}

/// The clock that says what a hypervisor took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StealClock {
    /// The one that the scheduler reads at each tick and switch, and the events with it
    /// (`CONFIG_PARAVIRT_TIME_ACCOUNTING`).
    Paravirt,
    /// `/proc/stat`, read before and after the run, in steps of 10 ms.
    Proc,
    /// A clock of a later version.
    #[serde(other)]
    Other,
}

impl StealClock {
    /// What it is called in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paravirt => "paravirt",
            Self::Proc => "proc",
            Self::Other => "other",
        }
    }
}

/// What the hypervisor took while the loop ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steal {
    /// Who counted it.
    pub clock: StealClock,
    /// At least so much, in gaps and in the time of events.
    pub at_least_ns: Nanos,
    /// At most so much.
    pub at_most_ns: Nanos,
    /// What of the unexplained time may have been its, at most.
    pub unexplained_max_ns: Nanos,
}

/// Something that went on, whether in a gap or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(usize, Span)", into = "(usize, Span)")]
pub struct Event {
    /// Its culprit's place in the list of culprits.
    pub culprit: usize,
    /// Between its tracepoints, counted as gaps are.
    pub span: Span,
}

/// Who took one CPU's gaps. For each gap the shares add up to its length.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blamed {
    /// Everyone who took something.
    pub culprits: Vec<Culprit>,
    /// What they took, gap by gap, as `[gap, culprit, ns, inside_ns, entry_ns]`.
    pub shares: Vec<Share>,
    /// How many events of each of them were seen, in gaps or not.
    pub events: Vec<u64>,
    /// How many more there were of any that were not kept, while the loop ran.
    pub lost: u64,
    /// When those were, as gaps are counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<Span>,
    /// What the hypervisor took; `None` where no clock says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal: Option<Steal>,
    /// All of them in the order in which they began, as `[culprit, [start_ns, length_ns]]`;
    /// `None` where nobody asked for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Vec<Event>>,
}

impl From<(usize, Span)> for Event {
    fn from((culprit, span): (usize, Span)) -> Self {
        Self { culprit, span }
    }
}

impl From<Event> for (usize, Span) {
    fn from(event: Event) -> Self {
        (event.culprit, event.span)
    }
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

    /// Check the keys and the form of every value: this is what files hold.
    #[test]
    fn contract() {
        let thread = Thread { tid: 40, pid: 40, prio: 120, owner: None };
        let culprit =
            |kind, name: &str, thread| Culprit { kind, name: name.into(), thread };
        let (ns, inside_ns) = (Nanos::from_nanos(900), Nanos::from_nanos(700));
        let share = |entry_ns| Share { gap: 3, culprit: 0, ns, inside_ns, entry_ns };
        let blamed = Blamed {
            culprits: vec![
                culprit(Kind::Thread, "kworker/1:1", Some(thread)),
                culprit(Kind::Unexplained, "unexplained", None),
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
            trace: Some(vec![Event { culprit: 0, span: (inside_ns, ns).into() }]),
        };
        let expected = serde_json::json!({
            "culprits": [
                {"kind": "thread", "name": "kworker/1:1",
                    "thread": {"tid": 40, "pid": 40, "prio": 120}},
                {"kind": "unexplained", "name": "unexplained"},
            ],
            "shares": [[3, 0, 900, 700], [3, 0, 900, 700, 150]], "events": [12, 0], "lost": 0,
            "steal": {"clock": "paravirt", "at_least_ns": 5, "at_most_ns": 6, "unexplained_max_ns": 1},
            "trace": [[0, [700, 900]]],
        });
        assert_eq!(serde_json::to_value(&blamed).unwrap(), expected);
        assert_eq!(serde_json::from_value::<Blamed>(expected).unwrap(), blamed);
    }
}
