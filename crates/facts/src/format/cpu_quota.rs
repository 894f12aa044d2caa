//! The CPU time that a cgroup may use (CFS bandwidth control), and how often it was throttled.
//!
//! v2: `cpu.max` (`max 100000`, `20000 100000`: quota and period in us), `cpu.max.burst` (since 5.14) and
//! `cpu.stat` (`throttled_usec`). v1, since 3.2: `cpu.cfs_quota_us` (-1: none), `cpu.cfs_period_us`,
//! `cpu.cfs_burst_us` (since 5.14) and `cpu.stat` (`throttled_time`, in ns). See
//! `Documentation/scheduler/sched-bwc.rst` of the kernel.
//!
//! The quotas of ancestors apply, too. Those outside of a container are not visible.

use serde::{Deserialize, Serialize};

use crate::fact::{Unknown, Why};
use crate::format::hierarchy::Hierarchy;
use crate::format::mounts::Mounts;
use crate::tree::root::Root;

const MAX: &str = "cpu.max";
const BURST: [&str; 2] = ["cpu.max.burst", "cpu.cfs_burst_us"];
const QUOTA: &str = "cpu.cfs_quota_us";
const PERIOD: &str = "cpu.cfs_period_us";
const STAT: &str = "cpu.stat";
/// The controller.
pub(crate) const CONTROLLER: &str = "cpu";

/// The CPU time that the threads of a cgroup may use in each period, on all CPUs together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuQuota {
    /// The directory of the cgroup: that of this process, or an ancestor.
    pub cgroup: String,
    /// The quota, in microseconds.
    pub quota_us: u64,
    /// The period, in microseconds.
    pub period_us: u64,
    /// How much unused time of earlier periods may be used later, in microseconds; `None` before 5.14.
    pub burst_us: Option<u64>,
}

/// How often a cgroup was throttled since it was created.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttling {
    /// Its directory.
    pub cgroup: String,
    /// The number of periods in which it used CPU time.
    pub periods: u64,
    /// The number of periods in which the quota was used up.
    pub times: u64,
    /// How long its threads waited for the next period, in nanoseconds: of each CPU for itself.
    pub ns: u64,
    /// The number of periods in which it used unused time of earlier ones; `None` before 5.14.
    pub bursts: Option<u64>,
    /// That time, in nanoseconds.
    pub burst_ns: Option<u64>,
}

impl CpuQuota {
    /// The quota of the cgroup in that directory; `None` if it has none.
    ///
    /// # Errors
    /// The files cannot be read, or are not as expected.
    fn read(root: &Root, directory: &str) -> Result<Option<Self>, Unknown> {
        let Some((quota_us, period_us)) = limit(root, directory)? else {
            return Ok(None);
        };
        let burst = BURST.iter().map(|name| format!("{directory}/{name}"));
        let mut burst = burst.filter_map(|file| root.parsed(&file, "microseconds").ok());
        let (cgroup, burst_us) = (directory.to_owned(), burst.next());
        Ok(Some(Self { cgroup, quota_us, period_us, burst_us }))
    }

    /// The quota that allows the smallest share of a CPU.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn smallest(
        root: &Root,
        hierarchy: &Hierarchy,
    ) -> Result<Option<Self>, Unknown> {
        let mut smallest: Option<Self> = None;
        for directory in &hierarchy.directories {
            let Some(quota) = Self::read(root, directory)? else { continue };
            if smallest.as_ref().is_none_or(|other| quota.is_smaller(other)) {
                smallest = Some(quota);
            }
        }
        Ok(smallest)
    }

    fn is_smaller(&self, other: &Self) -> bool {
        let share =
            |one: &Self, of: &Self| u128::from(one.quota_us) * u128::from(of.period_us);
        share(self, other) < share(other, self)
    }
}

impl Throttling {
    /// Those of this process's cgroup and of its ancestors, as far as the kernel counts them; none if no
    /// hierarchy with the controller is visible.
    pub fn now(root: &Root) -> Vec<Self> {
        let hierarchy = Mounts::read(root)
            .and_then(|mounts| Hierarchy::with(root, &mounts, CONTROLLER));
        let directories = hierarchy.ok().flatten().map(|found| found.directories);
        let counted = directories.into_iter().flatten().filter_map(|cgroup| {
            let text = root.text(&format!("{cgroup}/{STAT}")).ok()?;
            Self::parse(&text, cgroup)
        });
        counted.collect()
    }

    /// That of the cgroup in that directory; `None` if the kernel does not count it.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn read(root: &Root, directory: &str) -> Result<Option<Self>, Unknown> {
        let text = root.text(&format!("{directory}/{STAT}"))?;
        Ok(Self::parse(&text, directory.to_owned()))
    }

    /// The contents of the file; `None` if it has no counts: the root of the machine cannot be throttled.
    fn parse(text: &str, cgroup: String) -> Option<Self> {
        let number = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            lines.find(|(key, _)| *key == name)?.1.trim().parse::<u64>().ok()
        };
        let time = |nanos: &str, micros: &str| {
            number(nanos).or_else(|| number(micros)?.checked_mul(1_000))
        };
        Some(Self {
            cgroup,
            periods: number("nr_periods")?,
            times: number("nr_throttled")?,
            ns: time("throttled_time", "throttled_usec")?,
            bursts: number("nr_bursts"),
            burst_ns: time("burst_time", "burst_usec"),
        })
    }

    /// What was counted since an earlier reading; `None` if nothing was.
    pub fn since(&self, earlier: &[Self]) -> Option<Self> {
        let before = earlier.iter().find(|before| before.cgroup == self.cgroup)?;
        let since = |of: fn(&Self) -> u64| of(self).checked_sub(of(before));
        let since_any = |of: fn(&Self) -> Option<u64>| of(self)?.checked_sub(of(before)?);
        let found = Self {
            cgroup: self.cgroup.clone(),
            periods: since(|it| it.periods)?,
            times: since(|it| it.times)?,
            ns: since(|it| it.ns)?,
            bursts: since_any(|it| it.bursts),
            burst_ns: since_any(|it| it.burst_ns),
        };
        (found.times > 0).then_some(found)
    }
}

/// Quota and period in microseconds; `None` without a quota, or without the controller.
fn limit(root: &Root, directory: &str) -> Result<Option<(u64, u64)>, Unknown> {
    let max = format!("{directory}/{MAX}");
    if let Some(text) = if_present(root.text(&max))? {
        return limit_of_v2(text.trim(), &max);
    }
    let micros = |name: &str| format!("{directory}/{name}");
    let quota = if_present(root.parsed::<i64>(&micros(QUOTA), "microseconds"))?;
    let Some(quota) = quota.and_then(|quota| u64::try_from(quota).ok()) else {
        return Ok(None);
    };
    Ok(Some((quota, root.parsed(&micros(PERIOD), "microseconds")?)))
}

/// The contents of `cpu.max`.
fn limit_of_v2(text: &str, file: &str) -> Result<Option<(u64, u64)>, Unknown> {
    let expected = "a quota and a period in microseconds";
    let garbage = || Unknown::garbage(file, 1, text, expected);
    let (quota, period) = text.split_once(' ').ok_or_else(garbage)?;
    let number = |text: &str| text.parse().map_err(|_| garbage());
    match quota {
        "max" => Ok(None),
        _ => Ok(Some((number(quota)?, number(period)?))),
    }
}

/// What was read; `None` if the file does not exist.
fn if_present<T>(read: Result<T, Unknown>) -> Result<Option<T>, Unknown> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(unknown) if unknown.code == Why::Absent => Ok(None),
        Err(unknown) => Err(unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::hierarchy::GROUPS;
    use crate::format::mounts;
    use crate::test_tree::tree;

    const V1: &str =
        "cgroup /cg/cpu cgroup rw,cpu 0 0\ncgroup2 /cg/unified cgroup2 rw 0 0\n";
    const V2: &str = "cgroup2 /cg cgroup2 rw 0 0\n";

    fn smallest(files: &[(&str, &str)]) -> Result<Option<CpuQuota>, Unknown> {
        let tree = tree(files);
        let mounts = Mounts::read(&tree.root).unwrap();
        let hierarchy =
            Hierarchy::with(&tree.root, &mounts, CONTROLLER).unwrap().unwrap();
        CpuQuota::smallest(&tree.root, &hierarchy)
    }

    /// Check that the smallest quota of a cgroup and its ancestors is found, in both versions.
    #[test]
    fn ancestors() {
        let found = smallest(&[
            (mounts::FILE, V2),
            (GROUPS, "0::/a/b\n"),
            ("/cg/a/b/cpu.max", "300000 100000\n"),
            ("/cg/a/b/cpu.max.burst", "0\n"),
            ("/cg/a/cpu.max", "50000 50000\n"),
            ("/cg/a/cpu.max.burst", "7\n"),
        ]);
        let cgroup = "/cg/a".to_owned();
        let (quota_us, period_us) = (50_000, 50_000);
        let expected = CpuQuota { cgroup, quota_us, period_us, burst_us: Some(7) };
        assert_eq!(found.unwrap(), Some(expected));
        let found = smallest(&[
            (mounts::FILE, V1),
            (GROUPS, "1:cpu:/job\n0::/\n"),
            ("/cg/cpu/job/cpu.cfs_quota_us", "20000\n"),
            ("/cg/cpu/job/cpu.cfs_period_us", "100000\n"),
            ("/cg/cpu/cpu.cfs_quota_us", "-1\n"),
            ("/cg/cpu/cpu.cfs_period_us", "100000\n"),
        ]);
        let cgroup = "/cg/cpu/job".to_owned();
        let (quota_us, period_us) = (20_000, 100_000);
        let expected = CpuQuota { cgroup, quota_us, period_us, burst_us: None };
        assert_eq!(found.unwrap(), Some(expected));
    }

    /// Check that no quota, no controller, and invalid files are distinguished.
    #[test]
    fn none_and_garbage() {
        let of = |max: &[(&str, &str)]| {
            let files = [&[(mounts::FILE, V2), (GROUPS, "0::/a\n")], max].concat();
            smallest(&files).map_err(|unknown| unknown.code)
        };
        assert_eq!(of(&[]), Ok(None));
        assert_eq!(of(&[("/cg/a/cpu.max", "max 100000\n")]), Ok(None));
        for invalid in ["max\n", "x 100000\n", "5 -1\n", ""] {
            let found = of(&[("/cg/a/cpu.max", invalid)]);
            assert_eq!(found, Err(Why::Garbage), "{invalid}");
        }
    }

    /// Check the counts of both versions, and that a counter that went backwards counts nothing.
    #[test]
    fn counts() {
        let parse = |text: &str| Throttling::parse(text, "/cg/a".to_owned());
        let of = |times, ns| Throttling {
            cgroup: "/cg/a".to_owned(),
            periods: 9,
            times,
            ns,
            bursts: None,
            burst_ns: None,
        };
        let v2 = "usage_usec 5\nnr_periods 9\nnr_throttled 4\nthrottled_usec 70\n";
        assert_eq!(parse(v2), Some(of(4, 70_000)));
        let v1 = "nr_periods 9\nnr_throttled 4\nthrottled_time 70\n";
        assert_eq!(parse(v1), Some(of(4, 70)));
        let bursts = parse(&format!("{v1}nr_bursts 2\nburst_time 30\n")).unwrap();
        assert_eq!((bursts.bursts, bursts.burst_ns), (Some(2), Some(30)));
        assert_eq!(parse("usage_usec 5\n"), None);
        let expected = Throttling { periods: 0, ..of(5, 30) };
        assert_eq!(of(9, 50).since(&[of(4, 20)]), Some(expected));
        assert_eq!(of(4, 20).since(&[of(4, 20)]), None);
        assert_eq!(of(1, 2).since(&[of(4, 20)]), None);
        assert_eq!(of(1, 2).since(&[]), None);
    }
}
