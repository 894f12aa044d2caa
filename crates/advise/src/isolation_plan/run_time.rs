//! What a plan sets at run time. A partition of cpusets takes CPUs from the load balancer (6.1), from unbound
//! workqueues (6.8), from kernel threads and timers (7.0), but never stops their tick; so the lines for what
//! the boot parameters do are in their place, and few are needed beside them. None lasts beyond the next boot.

use facts::Why;
use units::CpuSet;

use crate::isolation_plan::kernel::Kernel;
use crate::isolation_plan::lines::{NotPossible, PlanLine, State, Subject, When};
use crate::lasting::mask;

const WATCHED: &str = "kernel.watchdog_cpumask";
const MIGRATION: &str = "kernel.timer_migration";
const STATISTICS: &str = "vm.stat_interval";
const RT_RUNTIME: &str = "kernel.sched_rt_runtime_us";
const RT_RUNTIME_DEFAULT: i64 = 950_000;
const MOUNT: &str = "mount -t debugfs debugfs /sys/kernel/debug";
const NORMAL: &str = "/sys/kernel/rcu_normal";

impl Kernel<'_> {
    /// The settings at run time, and what none can do.
    pub(crate) fn run_time(&self) -> (Vec<PlanLine>, Vec<NotPossible>) {
        let lines = [
            self.partition(),
            self.irqs(),
            self.balancer(),
            self.workqueues(),
            self.kernel_threads(),
            self.expedited(),
            self.migration(),
            self.watchdog(),
            self.statistics(),
            self.fair_servers(),
        ];
        let left_out = [self.no_partition(), self.no_fair_servers()];
        (lines.into_iter().flatten().collect(), left_out.into_iter().flatten().collect())
    }

    fn partition(&self) -> Option<PlanLine> {
        let root = self.facts.cgroup.partitions.get().filter(|_| self.can_partition())?;
        let reason = if self.since(7, 0) {
            "keeps tasks, kernel threads, unbound workqueues and migrated timers off; programs enter through its cgroup.procs"
        } else if self.since(6, 8) {
            "keeps tasks and unbound workqueues off; programs enter through its cgroup.procs"
        } else {
            "keeps tasks off; programs enter through its cgroup.procs"
        };
        let commands = vec![
            format!("echo +cpuset > {root}/cgroup.subtree_control"),
            format!("mkdir {root}/isolated"),
            format!("echo {} > {root}/isolated/cpuset.cpus", self.cpus),
            format!("echo isolated > {root}/isolated/cpuset.cpus.partition"),
        ];
        let line = PlanLine::instead(Subject::Partition, commands, reason);
        // Without isolcpus= it is needed beside the other boot parameters.
        let when = if self.has_isolcpus() { When::Instead } else { When::AfterBoot };
        let rule = match self.since(6, 15) {
            true => "partition-for-isolation",
            false => "partition-without-other-isolation",
        };
        Some(PlanLine { when, ..line }.by(rule))
    }

    fn no_partition(&self) -> Option<NotPossible> {
        let reason = if self.can_partition() {
            return None;
        } else if !self.since(6, 1) {
            "kernels have isolated ones since 6.1; at run time only affinity keeps programs off"
        } else if self.facts.cgroup.partitions.get().is_none() {
            "cgroup v2 with the cpuset controller is not mounted, or not writable"
        } else {
            "before 6.15 one would reset the affinity of workers that the current boot parameters restrict"
        };
        Some(NotPossible::new(Subject::Partition, reason))
    }

    fn irqs(&self) -> Option<PlanLine> {
        let commands = vec![
            format!("echo {} > /proc/irq/default_smp_affinity", mask(&self.rest)),
            format!(
                "for f in /proc/irq/*/smp_affinity_list; do echo {} > $f; done 2> /dev/null",
                self.rest
            ),
        ];
        let reason = "moves device interrupts to the other CPUs; the kernel refuses that for those it manages";
        let is_moved = |cpus: &CpuSet| cpus.and(&self.cpus).is_empty();
        let state = self.facts.irq.default_affinity.get().is_some_and(is_moved);
        let line = PlanLine::instead(Subject::Interrupts, commands, reason);
        // Interrupts that were requested before can still be elsewhere: the line is done only if it was by boot.
        let is_done = state && self.parameter("irqaffinity").is_some();
        Some(line.done(is_done).by("irqaffinity-with-isolation"))
    }

    /// irqbalance leaves CPUs alone that the boot parameters isolate, but not those of a partition.
    fn balancer(&self) -> Option<PlanLine> {
        let is_banned = |banned: &CpuSet| self.cpus.without(banned).is_empty();
        let is_done = self.facts.irq.banned.get().is_some_and(is_banned);
        self.runs("irqbalance").then(|| {
            let source = self.facts.irq.banned.source();
            let file = if source.starts_with('/') { source } else { "/etc/default/irqbalance" };
            let commands = vec![
                format!("echo IRQBALANCE_BANNED_CPULIST={} >> {file}", self.cpus),
                "systemctl restart irqbalance".to_owned(),
            ];
            let reason = "irqbalance runs, and moves interrupts back to CPUs that only a partition isolates";
            PlanLine::instead(Subject::Interrupts, commands, reason)
                .done(is_done)
                .by("irqaffinity-undone-by-irqbalance")
        })
    }

    fn workqueues(&self) -> Option<PlanLine> {
        let follows = self.can_partition() && self.since(6, 8);
        (self.since(4, 10) && !follows).then(|| {
            let file = "/sys/devices/virtual/workqueue/cpumask";
            let commands = vec![format!("echo {} > {file}", mask(&self.rest))];
            let reason = "keeps unbound workqueues on the other CPUs";
            let by_boot = self.boot_moves_workqueues() || self.since(6, 6);
            let when = if by_boot { When::Instead } else { When::AfterBoot };
            let line = PlanLine::instead(Subject::Workqueues, commands, reason);
            PlanLine { when, ..line }.by("unbound-workqueues-everywhere")
        })
    }

    /// `nohz_full=` moves unbound ones until 6.19; since 7.0 `isolcpus=` and partitions do.
    fn kernel_threads(&self) -> Option<PlanLine> {
        let by_boot =
            if self.since(7, 0) { self.has_isolcpus() } else { self.stops_tick() };
        let by_partition = self.since(7, 0) && self.can_partition();
        (!by_partition).then(|| {
            let command = format!(
                "for p in $(pgrep -P 2); do taskset -pc {} $p; done > /dev/null 2>&1",
                self.rest
            );
            let reason = "moves kernel threads, those of RCU too; those that the kernel binds itself stay";
            let line = PlanLine::instead(Subject::KernelThreads, vec![command], reason);
            let when = if by_boot { When::Instead } else { When::AfterBoot };
            PlanLine { when, ..line }.by("rcuo-threads-on-isolated")
        })
    }

    fn expedited(&self) -> Option<PlanLine> {
        let value = self.setting(NORMAL)?;
        let reason = "turns expedited RCU grace periods, which interrupt all CPUs, into normal ones";
        let commands = vec![format!("echo 1 > {NORMAL}")];
        let line = PlanLine::instead(Subject::Rcu, commands, reason).done(value == "1");
        Some(self.unless_nohz_full(line).by("rcu-normal-for-isolated"))
    }

    fn migration(&self) -> Option<PlanLine> {
        let is_off = self.setting(MIGRATION) == Some("0");
        (is_off && self.stops_tick()).then(|| {
            let reason = "timers that these CPUs start expire on the other CPUs";
            let line = PlanLine::sysctl(Subject::Timers, MIGRATION, "1", reason);
            line.by(if self.since(6, 9) {
                "timer-migration-hrtimers-only"
            } else {
                "timer-migration-off-nohz-full"
            })
        })
    }

    fn watchdog(&self) -> Option<PlanLine> {
        let watched: CpuSet = self.setting(WATCHED)?.parse().ok()?;
        let runs = self.setting("kernel.watchdog") == Some("1");
        runs.then(|| {
            let reason = "keeps the timer of the lockup detectors off; nohz_full= does that itself";
            let rest = self.rest.to_string();
            let line = PlanLine::sysctl(Subject::Watchdog, WATCHED, &rest, reason)
                .done(watched.and(&self.cpus).is_empty());
            let line = PlanLine { when: When::Instead, ..line };
            self.unless_nohz_full(line).by("watchdog-timer-all-cpus")
        })
    }

    /// Since 6.5 isolated CPUs are left out.
    fn statistics(&self) -> Option<PlanLine> {
        let seconds: u64 = self.setting(STATISTICS)?.parse().ok()?;
        (self.since(3, 18) && !self.since(6, 5)).then(|| {
            let reason = "folds the statistics of memory less often: before 6.5 that interrupts isolated CPUs, too";
            PlanLine::sysctl(Subject::Statistics, STATISTICS, "120", reason)
                .done(seconds >= 120)
                .by("vmstat-interval-old-kernel")
        })
    }

    /// Whether a fair server restarts the tick of a `nohz_full` CPU.
    fn has_fair_servers(&self) -> bool {
        self.stops_tick() && self.since(6, 12) && !self.since(6, 18)
    }

    fn fair_servers(&self) -> Option<PlanLine> {
        let servers = self.facts.sched.fair_server_runtime_ns.value();
        let is_off = match servers {
            Ok(runtimes) => runtimes.iter().all(|runtime| runtime.is_zero()),
            Err(unknown) if unknown.code == Why::NeedsRoot => false,
            Err(unknown) if unknown.code == Why::NotMounted => false,
            Err(_) => return None,
        };
        (self.has_fair_servers() && !self.is_locked_down()).then(|| {
            let file = "/sys/kernel/debug/sched/fair_server";
            let cpus: Vec<String> = self.cpus.iter().map(|cpu| cpu.to_string()).collect();
            let command =
                format!("for c in {}; do echo 0 > {file}/cpu$c/runtime; done", cpus.join(" "));
            let reason = "its timer restarts the tick, until 6.17; a real-time task that never sleeps then starves all others there";
            let is_mounted =
                servers.err().is_none_or(|unknown| unknown.code != Why::NotMounted);
            let mount = (!is_mounted).then(|| MOUNT.to_owned());
            let commands = mount.into_iter().chain(self.unlimited(command)).collect();
            let line = PlanLine::instead(Subject::FairServers, commands, reason);
            let line = PlanLine { when: When::AfterBoot, ..line };
            line.done(is_off).by("fair-server-on-nohz-full")
        })
    }

    /// The command, while the bandwidth of deadline tasks is unlimited: 6.12 counts the servers wrongly after
    /// scheduler domains were rebuilt, and then refuses to stop them (EBUSY; seen with Debian's 6.12.117).
    fn unlimited(&self, command: String) -> Vec<String> {
        let set = |value: i64| format!("sysctl {RT_RUNTIME}={value}");
        match self.facts.sched.rt_runtime_us.get() {
            Some(-1) => vec![command],
            Some(&now) => vec![set(-1), command, set(now)],
            None => vec![set(-1), command, set(RT_RUNTIME_DEFAULT)],
        }
    }

    fn is_locked_down(&self) -> bool {
        self.facts.security.lockdown.get().is_some_and(|level| level != "none")
    }

    fn no_fair_servers(&self) -> Option<NotPossible> {
        let reason = "kernel lockdown refuses writes to debugfs: the fair servers stay, with about one timer interrupt a second";
        let applies = self.has_fair_servers() && self.is_locked_down();
        applies.then(|| NotPossible::new(Subject::FairServers, reason))
    }

    /// The line is needed after each boot if `nohz_full=` cannot do it.
    fn unless_nohz_full(&self, line: PlanLine) -> PlanLine {
        let when = if self.stops_tick() { When::Instead } else { When::AfterBoot };
        PlanLine { when, ..line }
    }

    /// The command that isolates the CPUs for one program, and restores everything after it.
    pub(crate) fn program(&self, cpus: &CpuSet) -> Option<String> {
        let partition = if self.can_partition() { " --partition" } else { "" };
        Some(format!(
            "sudo noisefloor run -c {cpus} --irqs --workqueues --kthreads{partition} -- PROGRAM"
        ))
    }

    /// The commands that prove the isolation.
    pub(crate) fn proof(&self, cpus: &CpuSet) -> Vec<String> {
        let first = cpus.first().filter(|_| self.stops_tick());
        let tick = first.map(|cpu| format!("sudo noisefloor nohz test -a {cpu}"));
        let noise = format!("sudo noisefloor noise -c {cpus} -d 60");
        tick.into_iter().chain([noise]).collect()
    }
}

impl PlanLine {
    fn instead(subject: Subject, text: Vec<String>, reason: &'static str) -> Self {
        let (when, state) = (When::Instead, State::New);
        Self { subject, when, text, reason, rule: None, state }
    }

    fn sysctl(subject: Subject, name: &str, value: &str, reason: &'static str) -> Self {
        let line = Self::instead(subject, vec![format!("sysctl {name}={value}")], reason);
        Self { when: When::AfterBoot, ..line }
    }

    fn done(self, is_done: bool) -> Self {
        let state = if is_done { State::InForce } else { State::New };
        Self { state, ..self }
    }
}
