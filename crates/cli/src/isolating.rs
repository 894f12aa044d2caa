//! Keeping CPUs free while something is measured or run there: what may be asked for, what
//! could not be done, and what became of it afterwards.

use ::facts::Facts;
use isolate::{Fate, Isolation, Kind, Pick, Reason, Returned, Wishes};
use units::{CpuSet, chain};

use crate::outcome::Failure;
use crate::printing::say;

/// What may be asked for beside the CPU.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Isolation (root; settings are restored at the end)")]
pub(crate) struct Free {
    /// Keep RT throttling enabled; by default it is disabled during the run.
    #[arg(long)]
    pub(crate) throttled: bool,
    #[command(flatten)]
    pub(crate) kept_off: KeptOff,
}

/// The same for threads that mostly sleep: they are never throttled.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Isolation (root; settings are restored at the end)")]
pub(crate) struct KeptOff {
    /// Set the affinity of device interrupts to other CPUs.
    #[arg(long)]
    pub(crate) irqs: bool,
    /// Set the affinity of unbound workqueues to other CPUs.
    #[arg(long)]
    pub(crate) workqueues: bool,
    /// Move kernel threads to other CPUs, except for per-CPU threads.
    #[arg(long)]
    pub(crate) kthreads: bool,
    /// Run in an isolated cpuset partition (cgroup v2, Linux 6.1).
    #[arg(long)]
    pub(crate) partition: bool,
    /// Longest exit latency of the idle states that CPUs may enter, in microseconds
    /// (/dev/cpu_dma_latency); 0 allows only the first state, as cyclictest does by default.
    #[arg(long, value_name = "US")]
    pub(crate) dma_latency: Option<u32>,
}

impl KeptOff {
    /// Nothing.
    const NONE: Self = Self {
        irqs: false,
        workqueues: false,
        kthreads: false,
        partition: false,
        dma_latency: None,
    };
}

impl From<KeptOff> for Free {
    fn from(kept_off: KeptOff) -> Self {
        Self { throttled: true, kept_off }
    }
}

impl Free {
    /// Real-time tasks may have all of the CPU, and nothing else is changed.
    pub(crate) const UNTHROTTLED: Self =
        Self { throttled: false, kept_off: KeptOff::NONE };

    /// The same for a thread of that priority: an ordinary one is not throttled anyway.
    pub(crate) fn at(self, fifo: u8) -> Self {
        Self { throttled: self.throttled || fifo == 0, ..self }
    }

    fn wishes(self, cpus: CpuSet) -> Wishes {
        Wishes {
            cpus: Some(cpus),
            unthrottled: !self.throttled,
            irqs: self.kept_off.irqs,
            workqueues: self.kept_off.workqueues,
            kthreads: self.kept_off.kthreads,
            partition: self.kept_off.partition,
            dma_latency_us: self.kept_off.dma_latency,
        }
    }
}

/// Keeps CPUs free, tells what could not be done, runs, and gives everything back, however
/// that ends. Who calls it listens to signals already: else they would end it in between.
pub(crate) fn kept_free<T>(
    cpus: impl Into<CpuSet>,
    free: Free,
    facts: &Facts,
    quiet: bool,
    run: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let isolation = Isolation::begin(&free.wishes(cpus.into()), facts)?;
    isolation.left().iter().for_each(|left| remark(quiet, &left_line(left)));
    isolation.refused().iter().for_each(|why| remark(quiet, &chain(why)));
    let ran = run();
    match isolation.end() {
        Ok(returned) => {
            returned.iter().filter_map(unusual).for_each(|line| remark(quiet, &line));
        }
        Err(why) => remark(quiet, &format!("{}; try: noisefloor restore", chain(&why))),
    }
    ran
}

/// Tells which CPU it is and why, where nobody asked for it.
pub(crate) fn tell_pick(pick: &Pick, quiet: bool) {
    reason(pick).iter().for_each(|line| remark(quiet, line));
}

/// Why this CPU, where nobody asked for it.
fn reason(pick: &Pick) -> Option<String> {
    let why = match pick.why {
        Reason::Asked => return None,
        Reason::NohzFull => "its tick stops while one task runs there (nohz_full)",
        Reason::Isolated => "the scheduler keeps others off it (isolated)",
        Reason::LeastInterrupted => "it was interrupted least since boot",
    };
    let siblings = match pick.siblings.is_empty() {
        true => String::new(),
        false => format!("; CPU {} shares its core: keep it idle", pick.siblings),
    };
    Some(format!("CPU {}: {why}{siblings}", pick.cpu))
}

/// Puts back what a killed run left, and tells it. Nothing is said where nothing was left.
pub(crate) fn clean_up(quiet: bool) {
    match isolate::restore() {
        Ok(returned) => {
            let left = returned.iter().filter(|one| !matches!(one.fate, Fate::Needed(_)));
            left.for_each(|left| remark(quiet, &left_line(left)));
        }
        // Another user's home (`sudo -u` keeps HOME): there is none of this user's in it.
        Err(why) if why.kind() == Kind::Privilege => {}
        Err(why) => remark(quiet, &chain(&why)),
    }
}

pub(crate) fn remark(quiet: bool, text: &str) {
    if !quiet {
        say(text);
    }
}

fn left_line(left: &Returned) -> String {
    format!("a killed run had changed a setting: {}", line(left))
}

/// What is worth telling at the end of a run that went well.
fn unusual(returned: &Returned) -> Option<String> {
    match returned.fate {
        Fate::Restored | Fate::Gone | Fate::Needed(_) => None,
        Fate::LeftAlone(_) | Fate::Refused(_) => Some(line(returned)),
    }
}

/// What became of a setting, in a line.
pub(crate) fn line(returned: &Returned) -> String {
    let Returned { setting, old, fate } = returned;
    match fate {
        Fate::Restored => format!("{setting} is {old} again"),
        Fate::Gone => format!("{setting} is gone, and was {old}"),
        Fate::LeftAlone(now) => format!(
            "{setting} was {old}, and stays {now}: somebody else changed it meanwhile"
        ),
        Fate::Refused(why) => {
            format!("{setting} was {old}, and could not be put back: {why}")
        }
        Fate::Needed(processes) => {
            let processes: Vec<String> =
                processes.iter().copied().map(isolate::described).collect();
            format!(
                "{setting} was {old}, and stays changed: {} needs it",
                processes.join(", ")
            )
        }
    }
}
