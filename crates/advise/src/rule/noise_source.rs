//! The noise on which a rule acts, as a table names it: `timer`, `softirq:NET_RX`, `thread:kworker/u*`.

use std::fmt;

use recording::{CulpritKind, ThreadOwner};
use serde::Deserialize;
use summary::CulpritSummary;

/// Noise by its source.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct NoiseSource {
    text: String,
    which: Which,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Which {
    /// All events of a kind.
    Kind(CulpritKind),
    /// The tick.
    Tick,
    /// Timer interrupts by the function of their first timer.
    Timer(String),
    /// A softirq by its name.
    Softirq(String),
    /// Threads by a pattern of their names, with `*` for any letters at its end.
    Thread(String),
    /// Threads of programs, and those with an unknown owner.
    Programs,
    /// Threads of the kernel.
    KernelThreads,
    /// What a measurement of OS noise does not have: late wake-ups, and ticks of idle CPUs.
    Elsewhere,
}

impl NoiseSource {
    /// Whether a culprit belongs to it.
    pub(crate) fn has(&self, culprit: &CulpritSummary) -> bool {
        if culprit.is_own() {
            return false;
        }
        let is_thread = culprit.kind == CulpritKind::Thread;
        let owner = culprit.thread.as_ref().and_then(|thread| thread.owner.as_ref());
        let is_kernel = owner == Some(&ThreadOwner::Kernel);
        match &self.which {
            Which::Kind(kind) => culprit.kind == *kind,
            // tick_sched_timer, tick_nohz_handler; without a name, it is the tick mostly.
            Which::Tick => {
                culprit.kind == CulpritKind::Timer
                    && (culprit.name.starts_with("tick_") || culprit.name.contains(' '))
            }
            Which::Timer(name) => {
                culprit.kind == CulpritKind::Timer && culprit.name == *name
            }
            Which::Softirq(name) => {
                culprit.kind == CulpritKind::Softirq && culprit.name == *name
            }
            Which::Thread(pattern) => {
                let of_program = match owner {
                    Some(ThreadOwner::Program(program)) => matches(pattern, program),
                    Some(ThreadOwner::Kernel) | None => false,
                };
                is_thread && (of_program || matches(pattern, &culprit.name))
            }
            Which::Programs => is_thread && !is_kernel,
            Which::KernelThreads => is_thread && is_kernel,
            Which::Elsewhere => false,
        }
    }

    /// Whether a measurement of OS noise shows it.
    pub(crate) fn is_noise(&self) -> bool {
        self.which != Which::Elsewhere
    }

    /// Whether it is all programs.
    pub(crate) fn is_programs(&self) -> bool {
        self.which == Which::Programs
    }

    /// Whether several programs, threads or interrupts can belong to it.
    pub(crate) fn has_several(&self) -> bool {
        match &self.which {
            Which::Kind(kind) => matches!(kind, CulpritKind::Irq | CulpritKind::Softirq),
            Which::Thread(pattern) => pattern.ends_with('*'),
            Which::Programs | Which::KernelThreads => true,
            Which::Tick | Which::Timer(_) | Which::Softirq(_) | Which::Elsewhere => false,
        }
    }

    /// Its name in the tables.
    pub fn name(&self) -> &str {
        &self.text
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

impl TryFrom<String> for NoiseSource {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let which = match (text.as_str(), text.split_once(':')) {
            (_, Some(("timer", name))) => Which::Timer(name.to_owned()),
            ("tick", _) => Which::Tick,
            (_, Some(("softirq", name))) => Which::Softirq(name.to_owned()),
            (_, Some(("thread", name))) => Which::Thread(name.to_owned()),
            ("timer", _) => Which::Kind(CulpritKind::Timer),
            ("irq", _) => Which::Kind(CulpritKind::Irq),
            ("ipi", _) => Which::Kind(CulpritKind::Ipi),
            ("nmi", _) => Which::Kind(CulpritKind::Nmi),
            ("softirq", _) => Which::Kind(CulpritKind::Softirq),
            ("programs", _) => Which::Programs,
            ("kernel-threads", _) => Which::KernelThreads,
            ("steal", _) => Which::Kind(CulpritKind::Steal),
            ("quota", _) => Which::Kind(CulpritKind::Quota),
            ("firmware", _) => Which::Kind(CulpritKind::Firmware),
            ("unexplained", _) => Which::Kind(CulpritKind::Unexplained),
            ("wake-up" | "idle", _) => Which::Elsewhere,
            _ => return Err(format!("unknown source of noise '{text}'")),
        };
        Ok(Self { text, which })
    }
}

impl fmt::Display for NoiseSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
