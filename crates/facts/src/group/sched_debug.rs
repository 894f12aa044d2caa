//! The header of the scheduler's debug file, which has the tunables even if lockdown blocks their
//! own files: `/sys/kernel/debug/sched/debug` since 5.13, before that `/proc/sched_debug`, which
//! every user can read.
//!
//! ```text
//! sysctl_sched
//!   .sysctl_sched_base_slice                 : 1.400000
//!   .sysctl_sched_features                   : 99674079
//! ```
//!
//! Times are in milliseconds with six decimals. The following sections of CPUs and tasks are not
//! read, since the kernel takes long to generate them on large machines.

use units::Nanos;

use crate::fact::Unknown;
use crate::sources::Sources;

/// The files with the header, the current one first.
pub(crate) const FILES: [&str; 2] =
    ["/sys/kernel/debug/sched/debug", "/proc/sched_debug"];

/// The header of the scheduler's debug file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SchedDebug {
    file: &'static str,
    text: String,
}

impl SchedDebug {
    /// Reads the header.
    pub(crate) fn read(sources: &Sources) -> Result<Self, Unknown> {
        let [new, old] = FILES.map(|file| {
            let text = sources.root.head(file)?;
            Ok(Self { file, text })
        });
        new.or_else(|unknown| old.map_err(|_: Unknown| unknown))
    }

    /// The text of a tunable, if the header has it.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let header = self.text.lines().take_while(|line| !line.starts_with("cpu#"));
        header
            .filter_map(|line| line.trim_start().strip_prefix('.')?.split_once(':'))
            .find_map(|(other, value)| (other.trim_end() == name).then(|| value.trim()))
    }

    /// The value of a tunable time.
    pub(crate) fn time(&self, name: &str) -> Option<Nanos> {
        milliseconds(self.value(name)?)
    }

    /// The source of a tunable.
    pub(crate) fn source(&self, name: &str) -> String {
        format!("{} (.{name})", self.file)
    }
}

/// Parses milliseconds with six decimals: `1.400000`.
fn milliseconds(text: &str) -> Option<Nanos> {
    let (whole, decimals) = text.split_once('.')?;
    if decimals.len() != 6 || !decimals.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let nanos = whole.checked_mul(1_000_000)?.checked_add(decimals.parse().ok()?)?;
    Some(Nanos::from_nanos(nanos))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::tree;
    use proptest::prelude::*;

    const TEXT: &str = "\
Sched Debug Version: v0.11, 6.18.44-fc #1
ktime                                   : 1362856.224789
sched_clock_stable()                    : 1

sysctl_sched
  .sysctl_sched_base_slice                 : 1.400000
  .sysctl_sched_features                   : 99674079
  .sysctl_sched_tunable_scaling            : 1 (logarithmic)

cpu#0, 2596.122 MHz
  .nr_running                    : 1
";

    /// Check that the header is parsed, and later sections are not.
    #[test]
    fn reads_the_header() {
        let tree = tree(&[("/sys/kernel/debug/sched/debug", TEXT)]);
        let debug = SchedDebug::read(&tree.sources()).unwrap();
        let slice = debug.time("sysctl_sched_base_slice");
        assert_eq!(slice, Some(Nanos::from_nanos(1_400_000)));
        assert_eq!(debug.value("sysctl_sched_features"), Some("99674079"));
        assert_eq!(debug.value("nr_running"), None);
        assert_eq!(debug.time("sysctl_sched_features"), None);
        let source = debug.source("sysctl_sched_features");
        assert_eq!(source, "/sys/kernel/debug/sched/debug (.sysctl_sched_features)");
    }

    /// Check the file until 5.12.
    #[test]
    fn older_file() {
        let tree =
            tree(&[("/proc/sched_debug", "  .sysctl_sched_latency : 12.000000\n")]);
        let debug = SchedDebug::read(&tree.sources()).unwrap();
        assert_eq!(debug.time("sysctl_sched_latency"), Some(Nanos::from_millis(12)));
        assert!(debug.source("x").starts_with("/proc/sched_debug"));
    }

    /// Check that invalid times are rejected.
    #[test]
    fn rejects_invalid_times() {
        for bad in ["", "1", "1.4", "-1.400000", "1.4000000", "1.40000x", "1.+40000"] {
            assert_eq!(milliseconds(bad), None, "{bad}");
        }
        assert_eq!(milliseconds("18446744073709551615.000000"), None);
    }

    proptest! {
        /// Check that every time in the kernel's format is parsed.
        #[test]
        fn times(nanos in 0..u64::MAX) {
            let text = format!("{}.{:06}", nanos / 1_000_000, nanos % 1_000_000);
            prop_assert_eq!(milliseconds(&text), Some(Nanos::from_nanos(nanos)));
        }
    }
}
