//! The boot parameters of a plan. `nohz_full=` (3.10) has no twin at run time; flags of `isolcpus=` are of
//! 4.15, `managed_irq` of 5.6. Each line names the rule of the tables that has its price and source.

use serde::Serialize;
use units::CpuSet;

use crate::isolation_plan::kernel::Kernel;

/// As many CPUs contend for locks when their ticks fall on one moment.
const MANY_CPUS: usize = 16;

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// The tick.
    Tick,
    /// Where the scheduler places tasks.
    Tasks,
    /// A partition of cpusets, which keeps tasks off at run time.
    Partition,
    /// Device interrupts.
    Interrupts,
    /// RCU.
    Rcu,
    /// Workqueues.
    Workqueues,
    /// Kernel threads.
    KernelThreads,
    /// Timers.
    Timers,
    /// Lockup detectors.
    Watchdog,
    /// The fair servers of deadline scheduling.
    FairServers,
    /// The statistics of memory.
    Statistics,
}

/// When a line is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// At boot.
    Boot,
    /// After each boot, also with the boot parameters.
    AfterBoot,
    /// Without the boot parameters, in their place.
    Instead,
}

/// Whether it is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "code", content = "value", rename_all = "snake_case")]
pub enum State {
    /// It is not.
    New,
    /// It is.
    InForce,
    /// Another value is set, which it replaces.
    Replaces(String),
}

/// A line of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanLine {
    /// What it is about.
    pub subject: Subject,
    /// When it is needed.
    pub when: When,
    /// The boot parameter, or the commands, as root.
    pub text: Vec<String>,
    /// Why.
    pub reason: &'static str,
    /// The rule of the tables that has its price and source; null if none has.
    pub rule: Option<&'static str>,
    /// Whether it is done.
    pub state: State,
}

/// What a machine cannot do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotPossible {
    /// What it is about.
    pub subject: Subject,
    /// Why not, and what follows.
    pub reason: &'static str,
}

impl NotPossible {
    pub(crate) fn new(subject: Subject, reason: &'static str) -> Self {
        Self { subject, reason }
    }
}

impl Kernel<'_> {
    /// The boot parameters, and what none can do.
    pub(crate) fn boot(&self) -> (Vec<PlanLine>, Vec<NotPossible>) {
        let lines = [
            self.nohz_full(),
            self.rcu_nocbs(),
            self.isolcpus(),
            self.irqaffinity(),
            self.patience(),
            self.unbound_cpus(),
            self.skew_tick(),
        ];
        let left_out = [self.no_nohz_full(), self.no_isolcpus(), self.no_managed()];
        (lines.into_iter().flatten().collect(), left_out.into_iter().flatten().collect())
    }

    fn nohz_full(&self) -> Option<PlanLine> {
        self.stops_tick().then(|| {
            let reason = "stops the tick while one task runs, offloads RCU callbacks, moves unpinned timers away";
            self.listed("nohz_full", "", &self.cpus, Subject::Tick, reason)
                .by("nohz-full-for-busy-cpus")
        })
    }

    fn no_nohz_full(&self) -> Option<NotPossible> {
        let reason = match self.has_nohz_full() {
            Some(true) if self.parameter("nohz") == Some("off") => {
                "with nohz=off, which this kernel booted with, nohz_full= has no effect: remove it"
            }
            Some(true) => return None,
            Some(false) => {
                "this kernel is built without NO_HZ_FULL: busy CPUs keep their tick"
            }
            None => {
                "whether this kernel is built with NO_HZ_FULL is unknown: if it is, also boot with nohz_full="
            }
        };
        Some(NotPossible::new(Subject::Tick, reason))
    }

    /// `nohz_full=` includes it.
    fn rcu_nocbs(&self) -> Option<PlanLine> {
        let can = !self.stops_tick() && self.has("RCU_NOCB_CPU") == Some(true);
        can.then(|| {
            let reason =
                "runs RCU callbacks in threads, on other CPUs, in place of softirqs";
            self.listed("rcu_nocbs", "", &self.cpus, Subject::Rcu, reason)
                .by("rcu-nocbs-for-isolcpus")
        })
    }

    fn isolcpus(&self) -> Option<PlanLine> {
        self.has_isolcpus().then(|| {
            let (flags, reason) = if self.since(5, 6) {
                ("managed_irq,domain,", "keeps tasks off that are not bound there, and managed interrupts, until the next boot")
            } else if self.since(4, 15) {
                ("domain,", "keeps tasks off that are not bound there, until the next boot")
            } else {
                ("", "keeps tasks off that are not bound there, until the next boot")
            };
            let line = self.listed("isolcpus", flags, &self.cpus, Subject::Tasks, reason);
            if self.since(5, 6) { line.by("managed-irqs-with-isolcpus") } else { line }
        })
    }

    fn no_isolcpus(&self) -> Option<NotPossible> {
        let reason = match self.facts.cpus.isolcpus.get() {
            Some(true) => return None,
            Some(false) => {
                "this kernel is built without CPU_ISOLATION: isolcpus= has no effect"
            }
            None => {
                "whether this kernel is built with CPU_ISOLATION is unknown: if it is, also boot with isolcpus="
            }
        };
        Some(NotPossible::new(Subject::Tasks, reason))
    }

    fn no_managed(&self) -> Option<NotPossible> {
        let reason = "interrupts that the kernel manages (of NVMe and network queues) stay: isolcpus=managed_irq is of 5.6";
        let is_old = self.has_isolcpus() && !self.since(5, 6) && self.since(4, 8);
        is_old.then(|| NotPossible::new(Subject::Interrupts, reason))
    }

    fn irqaffinity(&self) -> Option<PlanLine> {
        self.since(4, 10).then(|| {
            let reason = "gives interrupts that are requested later to the other CPUs";
            self.listed("irqaffinity", "", &self.rest, Subject::Interrupts, reason)
                .by("irqaffinity-with-isolation")
        })
    }

    fn patience(&self) -> Option<PlanLine> {
        (self.stops_tick() && self.since(6, 12)).then(|| {
            let reason =
                "lets RCU leave these CPUs alone for the first second of a grace period";
            self.valued("rcutree.nohz_full_patience_delay", "1000", Subject::Rcu, reason)
                .by("rcu-patience-delay")
        })
    }

    /// Whether unbound workqueues stay off these CPUs after a boot with these parameters.
    pub(crate) fn boot_moves_workqueues(&self) -> bool {
        self.has_isolcpus() || (self.stops_tick() && !self.since(7, 1))
    }

    fn unbound_cpus(&self) -> Option<PlanLine> {
        (!self.boot_moves_workqueues() && self.since(6, 6)).then(|| {
            let reason = "keeps unbound workqueues on the other CPUs";
            self.listed(
                "workqueue.unbound_cpus",
                "",
                &self.rest,
                Subject::Workqueues,
                reason,
            )
            .by("unbound-cpus-from-boot")
        })
    }

    fn skew_tick(&self) -> Option<PlanLine> {
        let online = self.cpus.len() + self.rest.len();
        (online >= MANY_CPUS && self.since(3, 10)).then(|| {
            let reason = "spreads the ticks of many CPUs, which else contend for locks at one moment";
            self.valued("skew_tick", "1", Subject::Tick, reason).by("skew-tick-many-cpus")
        })
    }

    /// A parameter with a list of CPUs, after flags. Lists are compared as sets.
    fn listed(
        &self,
        name: &str,
        flags: &str,
        cpus: &CpuSet,
        subject: Subject,
        reason: &'static str,
    ) -> PlanLine {
        let split = |value: &str| {
            let first = value.find(|first: char| first.is_ascii_digit());
            let (flags, list) = value.split_at(first.unwrap_or(value.len()));
            let mut flags: Vec<String> = flags
                .split(',')
                .filter(|flag| !flag.is_empty())
                .map(str::to_owned)
                .collect();
            flags.sort();
            (flags, list.parse::<CpuSet>().ok())
        };
        let value = format!("{flags}{cpus}");
        let is_same = |old: &str| split(old) == split(&value);
        self.line(name, &value, is_same, subject, reason)
    }

    fn valued(
        &self,
        name: &str,
        value: &str,
        subject: Subject,
        reason: &'static str,
    ) -> PlanLine {
        self.line(name, value, |old| old == value, subject, reason)
    }

    fn line(
        &self,
        name: &str,
        value: &str,
        is_same: impl Fn(&str) -> bool,
        subject: Subject,
        reason: &'static str,
    ) -> PlanLine {
        let state = match self.parameter(name) {
            None => State::New,
            Some(old) if is_same(old) => State::InForce,
            Some(old) => State::Replaces(format!("{name}={old}")),
        };
        let text = vec![format!("{name}={value}")];
        PlanLine { subject, when: When::Boot, text, reason, rule: None, state }
    }
}

impl PlanLine {
    /// With the rule that has its price and source.
    pub(crate) fn by(self, rule: &'static str) -> Self {
        Self { rule: Some(rule), ..self }
    }
}
