//! Interrupts: the timer's line, the default affinity, and threaded handlers.
//!
//! From `/proc/irq/default_smp_affinity`, a mask that applies to interrupts that are requested
//! later; handlers run as threads with `PREEMPT_RT`, or with the boot parameter `threadirqs` (since
//! 2.6.39). The affinity of single interrupts, and drivers that request threads themselves, are not
//! included.

use units::CpuSet;

use crate::fact::{Fact, Unknown, Why, group};
use crate::format::command_line;
use crate::format::interrupts::Interrupts;
use crate::group::kernel;
use crate::sources::Sources;

const DEFAULT_AFFINITY: &str = "/proc/irq/default_smp_affinity";
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
    }
}

impl Irq {
    pub(crate) fn read(sources: &Sources) -> Self {
        Self {
            timer: Fact::of(timer(sources), Interrupts::FILE),
            default_affinity: Fact::of(sources.mask(DEFAULT_AFFINITY), DEFAULT_AFFINITY),
            threaded: threaded(sources),
        }
    }
}

fn timer(sources: &Sources) -> Result<String, Unknown> {
    let text = sources.root.text(Interrupts::FILE)?;
    let interrupts = Interrupts::parse(&text, Interrupts::FILE)?;
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
    use crate::test_tree::tree;

    const RELEASE: (&str, &str) = ("/proc/sys/kernel/osrelease", "6.1.0");
    const CONFIG: &str = "/boot/config-6.1.0";

    fn read(files: &[(&str, &str)]) -> Irq {
        let files: Vec<_> = [RELEASE].iter().chain(files).copied().collect();
        Irq::read(&tree(&files).sources())
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
