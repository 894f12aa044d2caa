//! CPU lists of boot parameters, parsed as by the kernel of that version.
//!
//! The kernel's parser is `bitmap_parselist` (`lib/bitmap-str.c`; `lib/bitmap.c` until 6.5): regions
//! `3`, `0-3` or `0-7:2/4` (strides since 4.11), separated by any number of commas and spaces. `N`
//! is the last CPU since 5.13; `all` is all CPUs since 5.14, in any case. It ends at the first
//! region that is invalid, or that has a number beyond the width of the kernel's CPU masks.

use std::fmt;

use units::{Cpu, CpuSet};

use crate::sources::Sources;

/// The CPUs that can ever be present.
pub(crate) const POSSIBLE: &str = "/sys/devices/system/cpu/possible";

/// What the parser of a kernel accepts.
#[derive(Debug, Clone)]
pub(crate) struct Grammar {
    /// `nr_cpumask_bits`: all numbers must be smaller.
    pub(crate) width: u32,
    pub(crate) has_strides: bool,
    pub(crate) has_last: bool,
    pub(crate) has_all: bool,
}

/// A list that the kernel rejects.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rejected {
    /// The CPUs before the first error, which some parameters use.
    pub(crate) before: CpuSet,
    pub(crate) why: Why,
}

/// Why the kernel rejects a list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// A region that does not have the format, or that is contradictory.
    Format { region: String, fault: &'static str },
    /// A number beyond the last CPU.
    Beyond { number: String, last: u32 },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format { region, fault } => write!(f, "'{region}' {fault}"),
            Self::Beyond { number, last } => {
                write!(f, "there is no CPU {number}: the last one is CPU {last}")
            }
        }
    }
}

/// A region: each `used` of `group` CPUs from `start` to `end`.
struct Region {
    start: u32,
    end: u32,
    used: u32,
    group: u32,
}

impl Grammar {
    /// The grammar of a kernel; `None` if its release or its CPUs are unknown.
    pub(crate) fn of(sources: &Sources) -> Option<Self> {
        let possible = sources.cpus(POSSIBLE);
        let cpus = possible.get()?.iter().last()?.get() + 1;
        Some(Self {
            width: width(sources, cpus)?,
            has_strides: sources.at_least(4, 11)?,
            has_last: sources.at_least(5, 13)?,
            has_all: sources.at_least(5, 14)?,
        })
    }

    /// The CPUs of a list, including those that do not exist but for which the kernel has bits.
    pub(crate) fn parse(&self, list: &str) -> Result<CpuSet, Rejected> {
        let list = list.split('\n').next().unwrap_or_default();
        let mut cpus = Vec::new();
        for text in list.split(|c: char| c == ',' || c.is_ascii_whitespace()) {
            if text.is_empty() {
                continue;
            }
            match self.region(text) {
                Ok(region) => cpus.extend(region.cpus()),
                Err(why) => {
                    return Err(Rejected { before: cpus.into_iter().collect(), why });
                }
            }
        }
        Ok(cpus.into_iter().collect())
    }

    fn region(&self, text: &str) -> Result<Region, Why> {
        let region = self.numbers(text).map_err(|fault| {
            let region = text.to_owned();
            Why::Format { region, fault }
        })?;
        let fault = if region.start > region.end {
            "begins after its end"
        } else if region.group == 0 {
            "has groups without CPUs"
        } else if region.used > region.group {
            "uses more CPUs than a group has"
        } else if region.end >= self.width {
            let number =
                if region.start >= self.width { region.start } else { region.end };
            let last = self.width - 1;
            return Err(Why::Beyond { number: number.to_string(), last });
        } else {
            return Ok(region);
        };
        Err(Why::Format { region: text.to_owned(), fault })
    }

    fn numbers(&self, text: &str) -> Result<Region, &'static str> {
        let (range, stride) = match text.split_once(':') {
            Some((range, stride)) => (range, Some(stride)),
            None => (text, None),
        };
        let (start, end) = if range.eq_ignore_ascii_case("all") {
            if !self.has_all {
                return Err("is known since 5.14, and this kernel is older");
            }
            (0, self.width - 1)
        } else if let Some((start, end)) = range.split_once('-') {
            (self.number(start)?, self.number(end)?)
        } else if stride.is_some() {
            return Err("has a stride, but is no range");
        } else {
            let number = self.number(range)?;
            (number, number)
        };
        let (used, group) = match stride {
            None => (u32::MAX, u32::MAX),
            Some(_) if !self.has_strides => {
                return Err(
                    "has a stride, which is known since 4.11, and this kernel is older",
                );
            }
            Some(stride) => {
                let (used, group) = stride
                    .split_once('/')
                    .ok_or("has a stride without '/': the format is 0-7:2/4")?;
                (self.number(used)?, self.number(group)?)
            }
        };
        Ok(Region { start, end, used, group })
    }

    fn number(&self, text: &str) -> Result<u32, &'static str> {
        match text {
            "" => Err("lacks a number"),
            "N" if self.has_last => Ok(self.width - 1),
            "N" => Err(
                "has N for the last CPU, which is known since 5.13, and this kernel is older",
            ),
            digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().map_err(|_| "is no number of a CPU")
            }
            _ => Err("is no number of a CPU"),
        }
    }
}

impl Region {
    fn cpus(&self) -> impl Iterator<Item = Cpu> + use<> {
        let Self { start, end, used, group } = *self;
        (start..=end).filter(move |cpu| (cpu - start) % group < used).map(Cpu::new)
    }
}

/// The width of CPU masks: the number of possible CPUs, except that before 6.1, masks of kernels
/// without `CPUMASK_OFFSTACK` had `NR_CPUS` bits.
fn width(sources: &Sources, cpus: u32) -> Option<u32> {
    if sources.at_least(6, 1)? && sources.is_set("FORCE_NR_CPUS") != Some(true) {
        return Some(cpus);
    }
    let config = sources.config.as_ref().ok()?;
    if !config.is_set("FORCE_NR_CPUS") && config.is_set("CPUMASK_OFFSTACK") {
        return Some(cpus);
    }
    // Without SMP, there is no NR_CPUS.
    let bits = config.value("NR_CPUS").map_or(Some(cpus), |text| text.parse().ok())?;
    (bits >= cpus).then_some(bits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NEW: Grammar =
        Grammar { width: 8, has_strides: true, has_last: true, has_all: true };

    fn parse(grammar: &Grammar, list: &str) -> Result<String, String> {
        grammar
            .parse(list)
            .map(|cpus| cpus.to_list())
            .map_err(|error| error.why.to_string())
    }

    /// Check the lists that the kernel accepts (`lib/test_bitmap.c` has most of them).
    #[test]
    fn accepted_lists() {
        for (list, cpus) in [
            ("0", "0"),
            ("1-3,7", "1-3,7"),
            ("0-7:2/4", "0-1,4-5"),
            ("0-7:1/1", "0-7"),
            ("0-7:0/4", ""),
            ("0-6:2/5", "0-1,5-6"),
            ("all", "0-7"),
            ("ALL", "0-7"),
            ("all:1/2", "0,2,4,6"),
            ("N", "7"),
            ("2-N", "2-7"),
            ("N-N:1/N", "7"),
            ("0-N:1/N", "0,7"),
            ("", ""),
            (",1,,2,", "1-2"),
            (" 1 2", "1-2"),
            ("00003", "3"),
            ("3\n9", "3"),
            ("1,1-2", "1-2"),
        ] {
            assert_eq!(parse(&NEW, list), Ok(cpus.to_owned()), "{list}");
        }
    }

    /// Check the lists that the kernel rejects, with the reason.
    #[test]
    fn rejected_lists() {
        for (list, why) in [
            ("4-3", "'4-3' begins after its end"),
            ("2-9", "there is no CPU 9: the last one is CPU 7"),
            ("8", "there is no CPU 8"),
            ("8-9", "there is no CPU 8"),
            ("1,nohz", "'nohz' is no number"),
            ("-1", "'-1' lacks a number"),
            ("1-", "lacks a number"),
            ("1:1/2", "is no range"),
            ("0-7:2", "without '/'"),
            ("0-7:5/4", "more CPUs than a group"),
            ("0-7:0/0", "groups without CPUs"),
            ("0-7:2/", "lacks a number"),
            ("n", "is no number"),
            ("0-n", "is no number"),
            ("0x1", "is no number"),
            ("+1", "is no number"),
            ("4294967296", "is no number"),
            ("all1", "is no number"),
            ("0-all", "is no number"),
        ] {
            let error = parse(&NEW, list).unwrap_err();
            assert!(error.contains(why), "{list}: {error}");
        }
    }

    /// Check that older kernels do not know `N`, `all` and strides.
    #[test]
    fn older_kernels() {
        let old = Grammar { has_strides: false, has_last: false, has_all: false, ..NEW };
        for (list, since) in [("1-N", "5.13"), ("all", "5.14"), ("0-7:2/4", "4.11")] {
            let error = parse(&old, list).unwrap_err();
            assert!(error.contains(since), "{list}: {error}");
        }
        assert_eq!(parse(&old, "1-3"), Ok("1-3".to_owned()));
    }

    /// Check that the CPUs before the first error remain.
    #[test]
    fn before_the_error() {
        let rejected = NEW.parse("1,3,9,4").unwrap_err();
        assert_eq!(rejected.before.to_list(), "1,3");
    }

    proptest! {
        /// Check that lists of existing CPUs in the kernel's own notation are accepted, unchanged.
        #[test]
        fn own_lists(numbers in prop::collection::btree_set(0u32..8, 0..8)) {
            let cpus: CpuSet = numbers.into_iter().map(Cpu::new).collect();
            prop_assert_eq!(NEW.parse(&cpus.to_list()).unwrap(), cpus);
        }

        /// Check that parsing never panics, and never yields a CPU beyond the width.
        #[test]
        fn never_panics(list in "[0-9N,:/ al-]{0,20}") {
            let (Ok(cpus) | Err(Rejected { before: cpus, .. })) = NEW.parse(&list);
            prop_assert!(cpus.iter().all(|cpu| cpu.get() < 8));
        }
    }
}
