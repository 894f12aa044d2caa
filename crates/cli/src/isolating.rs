//! Isolation of CPUs during a measurement or a program: options, refused settings, and the outcome
//! of their restoration.

use ::facts::Facts;
use isolate::{
    Isolation, IsolationOptions, Kind, Pick, Reason, RestoreOutcome, Returned,
};
use units::{CpuSet, chain};

use crate::outcome::Failure;
use crate::printing::say;

/// Isolation options.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Isolation (root; settings are restored at the end)")]
pub(crate) struct Free {
    /// Keep RT throttling enabled; by default it is disabled during the run.
    #[arg(long)]
    pub(crate) throttled: bool,
    #[command(flatten)]
    pub(crate) kept_off: KeptOff,
}

/// The same for threads that mostly sleep, and so are never throttled.
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
    /// No option set.
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
    /// RT throttling is disabled, and no other setting is changed.
    pub(crate) const UNTHROTTLED: Self =
        Self { throttled: false, kept_off: KeptOff::NONE };

    /// The same for a thread of that priority; an ordinary thread is never throttled.
    pub(crate) fn at(self, fifo: u8) -> Self {
        Self { throttled: self.throttled || fifo == 0, ..self }
    }

    fn options(self, cpus: CpuSet) -> IsolationOptions {
        IsolationOptions {
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

/// Isolates CPUs, reports refused settings, calls the function, and restores all settings, however
/// the function ends. The caller must handle signals already; otherwise a signal would end the
/// process before the settings are restored.
pub(crate) fn kept_free<T>(
    cpus: impl Into<CpuSet>,
    free: Free,
    facts: &Facts,
    quiet: bool,
    run: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let isolation = Isolation::begin(&free.options(cpus.into()), facts)?;
    isolation.left().iter().for_each(|left| remark(quiet, &left_line(left)));
    isolation.refused().iter().for_each(|why| remark(quiet, &chain(why)));
    let ran = run();
    match isolation.end() {
        Ok(returned) => {
            returned.iter().filter_map(unusual).for_each(|line| remark(quiet, &line));
        }
        Err(why) => remark(quiet, &format!("{}; hint: noisefloor restore", chain(&why))),
    }
    ran
}

/// Reports the CPU and the reason for its choice, unless the user named it.
pub(crate) fn tell_pick(pick: &Pick, quiet: bool) {
    reason(pick).iter().for_each(|line| remark(quiet, line));
}

/// The reason for the choice of this CPU, unless the user named it.
fn reason(pick: &Pick) -> Option<String> {
    let why = match pick.why {
        Reason::Asked => return None,
        Reason::NohzFull => "its tick stops while a single task runs there (nohz_full)",
        Reason::Isolated => "the scheduler does not balance tasks to it (isolated)",
        Reason::LeastInterrupted => "it had the fewest interrupts since boot",
    };
    let siblings = match pick.siblings.is_empty() {
        true => String::new(),
        false => format!("; CPU {} shares its core: keep it idle", pick.siblings),
    };
    Some(format!("CPU {}: {why}{siblings}", pick.cpu))
}

/// Restores settings left behind by a killed run, and reports them; prints nothing if there are
/// none.
pub(crate) fn clean_up(quiet: bool) {
    match isolate::restore() {
        Ok(returned) => {
            let left = returned
                .iter()
                .filter(|one| !matches!(one.outcome, RestoreOutcome::Needed(_)));
            left.for_each(|left| remark(quiet, &left_line(left)));
        }
        // Another user's home (`sudo -u` preserves HOME) has no journal of this user.
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
    format!("left behind by a killed run: {}", line(left))
}

/// The outcomes to report at the end of a successful run.
fn unusual(returned: &Returned) -> Option<String> {
    match returned.outcome {
        RestoreOutcome::Restored | RestoreOutcome::Gone | RestoreOutcome::Needed(_) => {
            None
        }
        RestoreOutcome::LeftAlone(_) | RestoreOutcome::Refused(_) => Some(line(returned)),
    }
}

/// The outcome for one setting, as a line.
pub(crate) fn line(returned: &Returned) -> String {
    let Returned { setting, old, outcome } = returned;
    match outcome {
        RestoreOutcome::Restored => format!("{setting}: restored to {old}"),
        RestoreOutcome::Gone => format!("{setting}: no longer exists; was {old}"),
        RestoreOutcome::LeftAlone(now) => format!(
            "{setting}: not restored to {old}: another program changed it to {now}"
        ),
        RestoreOutcome::Refused(why) => {
            format!("{setting}: failed to restore {old}: {why}")
        }
        RestoreOutcome::Needed(processes) => {
            let processes: Vec<String> =
                processes.iter().copied().map(isolate::described).collect();
            format!(
                "{setting}: not restored to {old}: still needed by {}",
                processes.join(", ")
            )
        }
    }
}
