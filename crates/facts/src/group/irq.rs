//! Interrupts: the timer's line, the default affinity, and threaded handlers.
//!
//! From `/proc/irq/default_smp_affinity`, a mask that applies to interrupts that are requested
//! later; handlers run as threads with `PREEMPT_RT`, or with the boot parameter `threadirqs` (since
//! 2.6.39). Drivers that request threads themselves, and the affinity of single interrupts, are not
//! included, except for those whose affinity the kernel sets itself: managed ones of devices with
//! several queues, and per-CPU ones. Their `smp_affinity_list` has no write permission since about
//! 6.12 (`register_irq_proc` in `kernel/irq/proc.c`).

use serde::{Deserialize, Serialize};
use units::CpuSet;

use crate::fact::{Fact, Unknown, Why, group};
use crate::format::command_line;
use crate::format::interrupts::Interrupts;
use crate::format::mounts::{Mount, Mounts};
use crate::group::kernel;
use crate::sources::Sources;

const IRQS: &str = "/proc/irq";
const DEFAULT_AFFINITY: &str = "/proc/irq/default_smp_affinity";
const FIXED: &str = "/proc/irq/*/smp_affinity_list (permissions)";
const BOUND: &str = "/proc/irq/*/effective_affinity_list, /proc/interrupts";
/// The configuration of irqbalance: Debian's, Red Hat's, SUSE's.
const BALANCER: [&str; 2] = ["/etc/default/irqbalance", "/etc/sysconfig/irqbalance"];
const VERSION: &str = "/proc/version";
const FORCED_THREADING: &str = "IRQ_FORCED_THREADING";

group! {
    /// Interrupts.
    "irq" Irq {
        /// The timer's line in `/proc/interrupts`: `LOC Local timer interrupts`.
        timer: String,
        /// The affinity of new interrupts (`/proc/irq/default_smp_affinity`).
        default_affinity: CpuSet,
        /// Whether all handlers run as threads.
        threaded: bool,
        /// Interrupts whose affinity cannot be changed.
        fixed: Vec<u32>,
        /// Those of them that only some of the online CPUs get, with these CPUs.
        bound: Vec<BoundIrq>,
        /// The CPUs to which irqbalance moves no interrupt, by its configuration. Isolated and `nohz_full` CPUs are
        /// left alone besides, unless others are named.
        banned: CpuSet,
    }
}

/// An interrupt that cannot be moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundIrq {
    /// Its number.
    pub number: u32,
    /// The names of its handlers.
    pub name: String,
    /// The CPUs that get it.
    pub cpus: CpuSet,
}

impl Irq {
    pub(crate) fn read(sources: &Sources) -> Self {
        let text = sources.root.text(Interrupts::FILE);
        let lines = text.and_then(|text| Interrupts::parse(&text, Interrupts::FILE));
        let fixed = fixed(sources, &lines);
        let bound = fixed.as_ref().map_err(Clone::clone);
        let bound = bound.and_then(|numbers| bound_to(sources, &lines, numbers));
        Self {
            timer: Fact::of(timer(&lines), Interrupts::FILE),
            default_affinity: Fact::of(sources.mask(DEFAULT_AFFINITY), DEFAULT_AFFINITY),
            threaded: threaded(sources),
            fixed: Fact::of(fixed, FIXED),
            bound: Fact::of(bound, BOUND),
            banned: banned(sources),
        }
    }
}

/// `/proc/interrupts`.
type Lines = Result<Interrupts, Unknown>;

fn timer(lines: &Lines) -> Result<String, Unknown> {
    let interrupts = lines.as_ref().map_err(Clone::clone)?;
    let timers = interrupts.lines().iter().filter(|line| line.timer);
    let names: Vec<String> = timers
        .map(|line| format!("{} {}", line.label, line.name).trim().to_owned())
        .collect();
    if names.is_empty() {
        let text = "no line of /proc/interrupts is a timer known here";
        return Err(Unknown::new(Why::NotApplicable, text));
    }
    Ok(names.join(", "))
}

/// The interrupts whose affinity cannot be changed. That there is none is known only if the kernel
/// sets the permissions for sure.
fn fixed(sources: &Sources, lines: &Lines) -> Result<Vec<u32>, Unknown> {
    let mounts = Mounts::read(sources.root);
    let is_protected = |mount: &Mount| mount.directory == IRQS && mount.has("ro");
    if mounts.is_ok_and(|mounts| mounts.of_kind("proc").any(is_protected)) {
        let text = format!("{IRQS} is mounted read-only (a container)");
        return Err(Unknown::new(Why::NotApplicable, text));
    }
    let interrupts = lines.as_ref().map_err(Clone::clone)?;
    let numbers = interrupts.lines().iter().filter_map(|line| line.label.parse().ok());
    let mut fixed = Vec::new();
    for number in numbers {
        if sources.root.is_read_only(&format!("{IRQS}/{number}/smp_affinity_list"))? {
            fixed.push(number);
        }
    }
    if fixed.is_empty() && sources.at_least(6, 13) != Some(true) {
        let text = "kernels before 6.13 may not show which interrupts these are";
        return Err(Unknown::new(Why::TooOld, text));
    }
    Ok(fixed)
}

/// The fixed interrupts that only some of the online CPUs get: the others are per-CPU ones. The CPUs that
/// really get an interrupt are known since 4.13, on most architectures.
fn bound_to(
    sources: &Sources,
    lines: &Lines,
    fixed: &[u32],
) -> Result<Vec<BoundIrq>, Unknown> {
    let interrupts = lines.as_ref().map_err(Clone::clone)?;
    let all = interrupts.cpus();
    let mut bound = Vec::new();
    for &number in fixed {
        let file = |name: &str| sources.cpus(&format!("{IRQS}/{number}/{name}"));
        let effective = file("effective_affinity_list");
        let cpus = match effective.get().filter(|cpus| !cpus.is_empty()) {
            Some(cpus) => cpus.clone(),
            None => file("smp_affinity_list").value().cloned().map_err(Clone::clone)?,
        };
        let line =
            interrupts.lines().iter().find(|line| line.label.parse() == Ok(number));
        if let Some(line) = line.filter(|_| !all.without(&cpus).is_empty()) {
            bound.push(BoundIrq { number, name: line.name.clone(), cpus });
        }
    }
    Ok(bound)
}

/// From `IRQBALANCE_BANNED_CPULIST=` (since irqbalance 1.8), else from the mask `IRQBALANCE_BANNED_CPUS=`.
fn banned(sources: &Sources) -> Fact<CpuSet> {
    let files = BALANCER.iter().map(|file| (*file, sources.root.text(file)));
    let Some((file, text)) =
        files.into_iter().find_map(|(file, text)| Some((file, text.ok()?)))
    else {
        let text = "irqbalance has no configuration here";
        return Fact::unknown(Unknown::new(Why::Absent, text), BALANCER[0]);
    };
    let value = |name: &str| {
        let lines = text.lines().map(str::trim);
        let value = lines
            .filter_map(|line| line.strip_prefix(name)?.strip_prefix('='))
            .next_back()?;
        Some(value.trim_matches(['"', '\'']).trim().to_owned())
            .filter(|value| !value.is_empty())
    };
    let garbage = |value: &str| Unknown::garbage(file, 1, value, "CPUs");
    let cpus = match (value("IRQBALANCE_BANNED_CPULIST"), value("IRQBALANCE_BANNED_CPUS"))
    {
        (Some(list), _) => list.parse().map_err(|_| garbage(&list)),
        (None, Some(mask)) => CpuSet::from_mask(&mask).map_err(|_| garbage(&mask)),
        (None, None) => {
            let text = "the configuration of irqbalance bans no CPU";
            Err(Unknown::new(Why::NotApplicable, text))
        }
    };
    Fact::of(cpus, file)
}

fn threaded(sources: &Sources) -> Fact<bool> {
    if sources.root.text(VERSION).is_ok_and(|text| kernel::says_rt(&text)) {
        return Fact::known(true, VERSION);
    }
    let is_requested = match &sources.command_line {
        Ok(line) => line.has("threadirqs"),
        Err(unknown) => return Fact::unknown(unknown.clone(), command_line::FILE),
    };
    if !is_requested {
        return Fact::known(false, command_line::FILE);
    }
    let built = sources.config.as_ref().map(|config| config.is_set(FORCED_THREADING));
    Fact::of(built.map_err(Clone::clone), sources.option_source(FORCED_THREADING))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::{tree, tree_with_permissions};
    use crate::tree::root::Root;

    const RELEASE: (&str, &str) = ("/proc/sys/kernel/osrelease", "6.1.0");
    const CONFIG: &str = "/boot/config-6.1.0";

    fn read(files: &[(&str, &str)]) -> Irq {
        let files: Vec<_> = [RELEASE].iter().chain(files).copied().collect();
        Irq::read(&tree(&files).sources())
    }

    /// Check banned CPUs as a list and as a mask, and their absence.
    #[test]
    fn banned_by_irqbalance() {
        let of = |text: &str| {
            read(&[(BALANCER[0], text)]).banned.get().map(ToString::to_string)
        };
        assert_eq!(of("#\nIRQBALANCE_BANNED_CPULIST=\"2-3\"\n").unwrap(), "2,3");
        assert_eq!(of("IRQBALANCE_BANNED_CPUS=c\nOPTIONS=\n").unwrap(), "2,3");
        assert_eq!(of("IRQBALANCE_BANNED_CPUS=\n"), None);
        assert!(read(&[]).banned.get().is_none());
    }

    /// Check that interrupts without a write permission are those that are fixed, that their absence
    /// is known of new kernels only, and that a container's read-only files are not interrupts' own.
    #[test]
    fn fixed() {
        const LINES: &str = "      CPU0 CPU1\n 24: 0 1 IO-APIC 5-edge a\n 36: 0 7 MSI 1-edge b\n\
                             LOC: 1 1 Local timer interrupts\n";
        const LIST: &str = "/proc/irq/36/smp_affinity_list";
        let read = |release, read_only: Option<&[&str]>, mounts| {
            let files = [
                ("/proc/sys/kernel/osrelease", release),
                (Interrupts::FILE, LINES),
                ("/proc/self/mounts", mounts),
            ];
            Irq::read(&tree_with_permissions(&files, read_only).sources()).fixed
        };
        let proc = "proc /proc proc rw 0 0\n";
        let docker = "proc /proc proc rw 0 0\nproc /proc/irq proc ro,nosuid 0 0\n";
        let code = |fact: Fact<Vec<u32>>| fact.value().map_err(|why| why.code).cloned();
        assert_eq!(code(read("6.18.0", Some(&[LIST]), proc)), Ok(vec![36]));
        assert_eq!(code(read("6.12.0", Some(&[LIST]), proc)), Ok(vec![36]));
        assert_eq!(code(read("6.18.0", Some(&[]), proc)), Ok(vec![]));
        assert_eq!(code(read("6.1.0", Some(&[]), proc)), Err(Why::TooOld));
        assert_eq!(code(read("6.18.0", None, proc)), Err(Why::NotRecorded));
        assert_eq!(code(read("6.18.0", Some(&[]), docker)), Err(Why::NotApplicable));
    }

    /// Check that fixed interrupts have their names and CPUs, apart from those that all CPUs get.
    #[test]
    fn bound() {
        let lines = "      CPU0 CPU1\n 24: 0 1 IO-APIC 5-edge  a\n 36: 0 7 MSI 1-edge  nvme0q2\n\
                     37: 0 7 GICv3 26 Level  arch_timer\n 38: 1 0 MSI 2-edge  nvme0q1\n";
        let list = |number: u32| format!("/proc/irq/{number}/smp_affinity_list");
        let (managed, timer, other) = (list(36), list(37), list(38));
        let files = [
            ("/proc/sys/kernel/osrelease", "6.18.0"),
            (Interrupts::FILE, lines),
            ("/proc/self/mounts", "proc /proc proc rw 0 0\n"),
            (&managed, "0-1\n"),
            ("/proc/irq/36/effective_affinity_list", "1\n"),
            (&timer, "0-1\n"),
            (&other, "0\n"),
            ("/proc/irq/38/effective_affinity_list", "\n"),
        ];
        let read_only = [&*managed, &timer, &other];
        let tree = tree_with_permissions(&files, Some(&read_only));
        let bound = Irq::read(&tree.sources()).bound;
        let of = |number, name: &str, cpus: &str| BoundIrq {
            number,
            name: name.to_owned(),
            cpus: cpus.parse().unwrap(),
        };
        let expected = [of(36, "nvme0q2", "1"), of(38, "nvme0q1", "0")];
        assert_eq!(bound.value().unwrap(), &expected);
    }

    /// Check that a recorded tree has the permissions of the files of this machine.
    #[test]
    fn recorded_permissions() {
        let dir = tempfile::tempdir().unwrap();
        let live = Root::live();
        let folder = std::fs::File::open(dir.path()).unwrap();
        crate::record(&live, dir.path(), folder).unwrap();
        let value = |root: &Root| {
            let fixed = Irq::read(&Sources::read(root)).fixed;
            fixed.value().cloned().map_err(|why| why.code)
        };
        assert_eq!(value(&Root::tree(dir.path()).unwrap()), value(&live));
    }

    /// Check masks of one and several words, and an invalid one.
    #[test]
    fn default_affinity() {
        let cpus = |mask: &str| {
            let fact = read(&[(DEFAULT_AFFINITY, mask)]).default_affinity;
            fact.value().map(ToString::to_string).map_err(|unknown| unknown.text.clone())
        };
        assert_eq!(cpus("3\n").unwrap(), "0,1");
        assert_eq!(cpus("ff,00000000\n").unwrap(), "32-39");
        let garbage = cpus("all\n").unwrap_err();
        assert!(garbage.starts_with("/proc/irq/default_smp_affinity: line 1: 'all'"));
    }

    /// Check that handlers are threads with `PREEMPT_RT` in both spellings.
    #[test]
    fn threaded_by_rt() {
        for version in ["#1 SMP PREEMPT_RT Debian 6.12", "#1 SMP PREEMPT RT Debian 4.19"]
        {
            let files = [("/proc/version", version), ("/proc/cmdline", "quiet")];
            assert_eq!(read(&files).threaded, Fact::known(true, "/proc/version"));
        }
    }

    /// Check that `threadirqs` requires a kernel option, and that the value is unknown without the
    /// configuration.
    #[test]
    fn threaded_by_parameter() {
        let (built, not) = ("CONFIG_IRQ_FORCED_THREADING=y\n", "CONFIG_HZ=250\n");
        let threaded = |line: &str, config: &str| {
            read(&[("/proc/cmdline", line), (CONFIG, config)]).threaded
        };
        assert_eq!(threaded("threadirqs", built).get(), Some(&true));
        assert_eq!(threaded("threadirqs", not).get(), Some(&false));
        assert!(threaded("threadirqs", built).source().contains(CONFIG));
        let not_requested = threaded("quiet -- threadirqs", built);
        assert_eq!(not_requested, Fact::known(false, "/proc/cmdline"));
        let unknown = read(&[("/proc/cmdline", "threadirqs")]).threaded;
        assert_eq!(unknown.value().unwrap_err().code, Why::Absent);
        assert!(read(&[]).threaded.get().is_none());
    }

    /// Check the timer's line, and that an invalid file and an unknown timer are distinguished.
    #[test]
    fn the_timer_is_named() {
        let timer = |text: &str| read(&[("/proc/interrupts", text)]).timer;
        let loc = timer("CPU0\nLOC: 5  Local timer interrupts\n");
        assert_eq!(loc.get().unwrap(), "LOC Local timer interrupts");
        assert_eq!(timer("hello\n").value().unwrap_err().code, Why::Garbage);
        assert_eq!(
            timer("CPU0\nRES: 5 x\n").value().unwrap_err().code,
            Why::NotApplicable
        );
    }
}
