//! The enabled scheduler features.
//!
//! From debugfs, `sched/features` since 5.13 and `sched_features` before, where a disabled feature
//! has the prefix `NO_`. If lockdown blocks that file, the header of the debug file still has a
//! number with one bit per feature. Since the bits change between releases
//! (`kernel/sched/features.h`), such a number is decoded only if it matches a table, and the source
//! then says so.
//!
//! Releases without a table, and changes by a distribution within a release, cannot be decoded.

use crate::absence::Needs;
use crate::fact::{Fact, Unknown};
use crate::format::release::Release;
use crate::group::sched_debug::SchedDebug;
use crate::sources::Sources;

const NAME: &str = "sysctl_sched_features";
/// If more bits differ from their defaults, the table is considered wrong. Two are known to differ:
/// `RT_PUSH_IPI` (off by default since 2026 in all stable series) and `TTWU_QUEUE` (off with
/// `PREEMPT_RT`).
const DIFFERENCES_MAX: u32 = 2;

/// A release's features in the order of their bits; `!` means off by default.
struct Table {
    since: (u32, u32),
    until: (u32, u32),
    names: &'static str,
}

const TABLES: [Table; 5] = [
    Table {
        since: (5, 10),
        until: (5, 10),
        names: "GENTLE_FAIR_SLEEPERS START_DEBIT !NEXT_BUDDY LAST_BUDDY CACHE_HOT_BUDDY \
                WAKEUP_PREEMPTION !HRTICK !DOUBLE_TICK NONTASK_CAPACITY TTWU_QUEUE \
                !SIS_AVG_CPU SIS_PROP !WARN_DOUBLE_CLOCK RT_PUSH_IPI !RT_RUNTIME_SHARE \
                !LB_MIN ATTACH_AGE_LOAD WA_IDLE WA_WEIGHT WA_BIAS UTIL_EST \
                UTIL_EST_FASTUP ALT_PERIOD BASE_SLICE",
    },
    Table {
        since: (6, 1),
        until: (6, 1),
        names: "GENTLE_FAIR_SLEEPERS START_DEBIT !NEXT_BUDDY LAST_BUDDY CACHE_HOT_BUDDY \
                WAKEUP_PREEMPTION !HRTICK !HRTICK_DL !DOUBLE_TICK NONTASK_CAPACITY \
                TTWU_QUEUE !SIS_PROP SIS_UTIL !WARN_DOUBLE_CLOCK RT_PUSH_IPI \
                !RT_RUNTIME_SHARE !LB_MIN ATTACH_AGE_LOAD WA_IDLE WA_WEIGHT WA_BIAS \
                UTIL_EST UTIL_EST_FASTUP !LATENCY_WARN ALT_PERIOD BASE_SLICE",
    },
    // The stable series inserted a feature before the last two.
    Table {
        since: (6, 1),
        until: (6, 1),
        names: "GENTLE_FAIR_SLEEPERS START_DEBIT !NEXT_BUDDY LAST_BUDDY CACHE_HOT_BUDDY \
                WAKEUP_PREEMPTION !HRTICK !HRTICK_DL !DOUBLE_TICK NONTASK_CAPACITY \
                TTWU_QUEUE !SIS_PROP SIS_UTIL !WARN_DOUBLE_CLOCK RT_PUSH_IPI \
                !RT_RUNTIME_SHARE !LB_MIN ATTACH_AGE_LOAD WA_IDLE WA_WEIGHT WA_BIAS \
                UTIL_EST UTIL_EST_FASTUP !LATENCY_WARN NI_RANDOM ALT_PERIOD BASE_SLICE",
    },
    Table {
        since: (6, 12),
        until: (6, 12),
        names: "PLACE_LAG PLACE_DEADLINE_INITIAL PLACE_REL_DEADLINE RUN_TO_PARITY \
                PREEMPT_SHORT !NEXT_BUDDY PICK_BUDDY CACHE_HOT_BUDDY DELAY_DEQUEUE \
                DELAY_ZERO WAKEUP_PREEMPTION !HRTICK !HRTICK_DL !DOUBLE_TICK \
                NONTASK_CAPACITY TTWU_QUEUE SIS_UTIL !WARN_DOUBLE_CLOCK RT_PUSH_IPI \
                !RT_RUNTIME_SHARE !LB_MIN ATTACH_AGE_LOAD WA_IDLE WA_WEIGHT WA_BIAS \
                UTIL_EST !LATENCY_WARN NI_RANDOM",
    },
    Table {
        since: (6, 14),
        until: (7, 0),
        names: "PLACE_LAG PLACE_DEADLINE_INITIAL PLACE_REL_DEADLINE RUN_TO_PARITY \
                PREEMPT_SHORT !NEXT_BUDDY PICK_BUDDY CACHE_HOT_BUDDY DELAY_DEQUEUE \
                DELAY_ZERO WAKEUP_PREEMPTION !HRTICK !HRTICK_DL NONTASK_CAPACITY \
                TTWU_QUEUE SIS_UTIL !WARN_DOUBLE_CLOCK RT_PUSH_IPI !RT_RUNTIME_SHARE \
                !LB_MIN ATTACH_AGE_LOAD WA_IDLE WA_WEIGHT WA_BIAS UTIL_EST \
                !LATENCY_WARN NI_RANDOM",
    },
];

/// Reads the enabled features.
pub(crate) fn read(sources: &Sources) -> Fact<Vec<String>> {
    let old = sources.at_least(5, 13) == Some(false);
    let file = match old {
        true => "/sys/kernel/debug/sched_features",
        false => "/sys/kernel/debug/sched/features",
    };
    let listed = sources.root.text(file).and_then(|text| parse(&text, file));
    let unknown = match listed {
        Ok(features) => return Fact::known(features, file),
        Err(unknown) => unknown,
    };
    if let Some(fact) = decoded(sources) {
        return fact;
    }
    // Until 6.14, the files required SCHED_DEBUG, which was then removed.
    let options: &[&str] = match sources.at_least(6, 15) {
        Some(false) => &["SCHED_DEBUG", "DEBUG_FS"],
        _ => &["DEBUG_FS"],
    };
    let needs = Needs::since("2.6.28").with(options).on("debugfs");
    Fact::of(Err(sources.why(&unknown, &needs)), file)
}

/// Parses the text of the features' file.
fn parse(text: &str, file: &str) -> Result<Vec<String>, Unknown> {
    let fits = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    if text.trim().is_empty()
        || text.split_whitespace().any(|word| !word.chars().all(fits))
    {
        return Err(Unknown::garbage(file, 1, text, "a list of features"));
    }
    let on = text.split_whitespace().filter(|word| !word.starts_with("NO_"));
    Ok(on.map(str::to_owned).collect())
}

fn decoded(sources: &Sources) -> Option<Fact<Vec<String>>> {
    let debug = SchedDebug::read(sources).ok()?;
    let mask = debug.value(NAME)?.parse().ok()?;
    let features = decode(sources.release.as_ref().ok()?, mask)?;
    Some(Fact::known(features, format!("{}, decoded, not read", debug.source(NAME))))
}

/// Decodes a number, if it matches a table of this release.
fn decode(release: &Release, mask: u64) -> Option<Vec<String>> {
    let (major, minor, _) = release.numbers();
    let tables = TABLES.iter().filter(|table| {
        (table.since..=table.until).contains(&(major, minor)) && table.fits(mask)
    });
    let table = tables.min_by_key(|table| table.differences(mask))?;
    let on = table.bits().filter(|(bit, _)| mask & bit != 0);
    Some(on.map(|(_, name)| name.trim_start_matches('!').to_owned()).collect())
}

impl Table {
    fn bits(&self) -> impl Iterator<Item = (u64, &'static str)> {
        self.names.split_whitespace().enumerate().map(|(index, name)| (1 << index, name))
    }

    fn fits(&self, mask: u64) -> bool {
        let all: u64 = self.bits().map(|(bit, _)| bit).sum();
        mask & !all == 0 && self.differences(mask) <= DIFFERENCES_MAX
    }

    fn differences(&self, mask: u64) -> u32 {
        let on = self.bits().filter(|(_, name)| !name.starts_with('!'));
        let usual: u64 = on.map(|(bit, _)| bit).sum();
        (usual ^ mask).count_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Why;
    use crate::test_tree::{tree, tree_refusing};
    use proptest::prelude::*;

    fn decode_for(release: &str, mask: u64) -> Option<Vec<String>> {
        decode(&Release::parse(release).unwrap(), mask)
    }

    /// Check that features with the prefix `NO_` are off, and `NONTASK_CAPACITY` is on.
    #[test]
    fn reads_the_file() {
        let text = "PLACE_LAG NO_NEXT_BUDDY NONTASK_CAPACITY NO_HRTICK \n";
        assert_eq!(parse(text, "f").unwrap(), ["PLACE_LAG", "NONTASK_CAPACITY"]);
        for bad in ["", " \n", "PLACE_LAG no", "\u{0}"] {
            assert_eq!(parse(bad, "f").unwrap_err().code, Why::Garbage, "{bad:?}");
        }
    }

    /// Check the numbers of two 6.18 kernels; the first one has `RT_PUSH_IPI` on, the second one,
    /// whose list was also readable, has it off.
    #[test]
    fn decodes_known_kernels() {
        let debian = decode_for("6.18.15", 99_805_151).unwrap();
        assert!(debian.iter().any(|name| name == "RT_PUSH_IPI"));
        let here = decode_for("6.18.44-fc", 99_674_079).unwrap();
        let expected = debian.iter().filter(|name| *name != "RT_PUSH_IPI");
        assert!(here.iter().eq(expected));
        assert!(here.iter().any(|name| name == "NI_RANDOM"));
        assert!(!here.iter().any(|name| name == "HRTICK"));
    }

    /// Check that a number is not decoded with another release's table.
    #[test]
    fn rejects_other_releases() {
        let mask = 99_805_151;
        for release in ["6.12.107", "6.13.1", "6.1.192", "5.10.223", "7.2.13", "6.6.1"] {
            assert_eq!(decode_for(release, mask), None, "{release}");
        }
        assert_eq!(decode_for("6.18.15", mask | (1 << 40)), None);
        assert_eq!(decode_for("6.18.15", 0), None);
    }

    /// Check that the default features of each table are decoded with that table.
    #[test]
    fn tables_are_distinguished() {
        for table in &TABLES {
            let on = table.bits().filter(|(_, name)| !name.starts_with('!'));
            let (bits, names): (Vec<u64>, Vec<&str>) = on.unzip();
            let release = format!("{}.{}.0", table.since.0, table.since.1);
            assert_eq!(decode_for(&release, bits.iter().sum()).unwrap(), names);
        }
    }

    /// Check that with lockdown, the number is decoded, and the source says so.
    #[test]
    fn with_lockdown() {
        let files = [
            ("/proc/sys/kernel/osrelease", "6.18.44"),
            ("/sys/kernel/debug/sched/debug", "  .sysctl_sched_features : 99674079\n"),
        ];
        let refused = [("/sys/kernel/debug/sched/features", Why::Lockdown)];
        let fact = read(&tree_refusing(&files, &refused).sources());
        assert_eq!(fact.get().map(Vec::len), Some(19));
        let source =
            "/sys/kernel/debug/sched/debug (.sysctl_sched_features), decoded, not read";
        assert_eq!(fact.source(), source);
        let unknown = read(&tree_refusing(&files[..1], &refused).sources());
        assert_eq!(unknown.value().unwrap_err().code, Why::Lockdown);
    }

    /// Check the file of older kernels.
    #[test]
    fn older_file() {
        let files = [
            ("/proc/sys/kernel/osrelease", "5.10.0-30-amd64"),
            ("/sys/kernel/debug/sched_features", "START_DEBIT NO_HRTICK\n"),
        ];
        let fact = read(&tree(&files).sources());
        assert_eq!(fact.get().unwrap(), &["START_DEBIT"]);
        assert_eq!(fact.source(), "/sys/kernel/debug/sched_features");
    }

    proptest! {
        /// Check that decoding never panics.
        #[test]
        fn never_panics(mask in any::<u64>(), minor in 0u32..20) {
            let _ = decode_for(&format!("6.{minor}"), mask);
        }
    }
}
