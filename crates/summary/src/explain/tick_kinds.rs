//! Kinds of tick: ticks of one kind took the same path through the kernel, with the same number of
//! instructions in each function.
//!
//! The cost of a kind depends on the kernel only. Its frequency depends on the start of the
//! measurement, too, and is therefore the share of the ticks of all phases.

use recording::{Answer, Episode, Level, Profile};
use serde::Serialize;
use units::{CpuSet, Instructions, Ppm};

use crate::cell::counts::is_tick;
use crate::explain::call_stack::{CallStack, episode_stacks};
use crate::explain::difference::Difference;

/// The most frequent kinds are listed, until they are at least this part of all ticks.
const LISTED_PERCENT: u64 = 95;
/// A frequent kind has at least this part of all ticks.
const FREQUENT_PERCENT: u64 = 10;
/// Kinds between these parts of all ticks may be frequent in another run.
const DOUBTFUL_PERCENT: [u64; 2] = [5, 20];
/// The number of functions that are listed for a kind's difference from the first one.
const NAMED: usize = 3;

/// The input: one kind of tick, with its stacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TickPath<'a> {
    /// Kernel instructions of each tick of this kind.
    pub(crate) instructions: Instructions,
    /// Its frequency.
    pub(crate) times: u64,
    /// The instructions by function.
    pub(crate) stacks: Vec<CallStack<'a>>,
}

impl<'a> TickPath<'a> {
    fn of(profile: &'a Profile, episode: &'a Episode) -> Self {
        Self {
            instructions: episode.total,
            times: episode.times.iter().map(|(_, times)| times).sum(),
            stacks: episode_stacks(profile, episode),
        }
    }
}

/// The difference of a function from the same one in the first kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KindDifference {
    /// The function.
    pub name: String,
    /// How many more instructions; negative if fewer.
    pub difference: i128,
}

/// One kind of tick.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TickKind {
    /// Kernel instructions of each tick of this kind.
    pub instructions: Instructions,
    /// Its frequency.
    pub times: u64,
    /// That as a share of all ticks.
    pub share_ppm: Option<Ppm>,
    /// The functions that differ most from the first kind; empty for the first one.
    pub differs: Vec<KindDifference>,
}

/// The kinds of tick of a cell.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TickKinds {
    /// The cheapest kind with at least 10 % of the ticks; null without such a kind.
    pub frequent_min: Option<Instructions>,
    /// The most expensive such kind.
    pub frequent_max: Option<Instructions>,
    /// The number of ticks.
    pub ticks: u64,
    /// The ticks of kinds that are not listed, which are the rarest.
    pub ticks_not_listed: u64,
    /// Kinds with together at least 95 % of the ticks, if so many are known: first the cheapest
    /// frequent one, then the others in descending order of frequency.
    pub kinds: Vec<TickKind>,
}

impl TickKinds {
    /// The kinds of so many timer interrupts of these CPUs at these privilege levels, as recorded by
    /// the lab.
    pub(crate) fn of_answer(
        ticks: u64,
        answer: &Answer,
        cpus: &CpuSet,
        levels: &[Level],
    ) -> Self {
        let Some(profile) = &answer.profile else { return Self::of(ticks, Vec::new()) };
        let is_own = |episode: &&Episode| {
            cpus.contains(episode.cpu) && is_tick(&episode.what, levels)
        };
        let path = |episode| TickPath::of(profile, episode);
        Self::of(ticks, profile.episodes.iter().filter(is_own).map(path).collect())
    }

    /// Sorts the kinds of so many ticks, and adds up equal ones.
    pub(crate) fn of(ticks: u64, kinds: Vec<TickPath<'_>>) -> Self {
        let mut kinds = same_added_up(kinds);
        kinds.sort_by(|a, b| {
            b.times.cmp(&a.times).then_with(|| a.instructions.cmp(&b.instructions))
        });
        let costs = kinds.iter().map(|kind| (kind.instructions, kind.times));
        let [frequent_min, frequent_max] = frequent(costs, ticks, FREQUENT_PERCENT);
        if let Some(first) = first(&kinds, ticks) {
            kinds[..=first].rotate_right(1);
        }
        let mut listed = 0;
        let needed = ticks.saturating_mul(LISTED_PERCENT).div_ceil(100);
        kinds.retain(|kind| {
            let is_needed = listed < needed;
            listed += if is_needed { kind.times } else { 0 };
            is_needed
        });
        let kinds = kinds.iter().map(|kind| TickKind {
            instructions: kind.instructions,
            times: kind.times,
            share_ppm: Ppm::of_count(kind.times, ticks),
            differs: differs(&kinds[0], kind),
        });
        let ticks_not_listed = ticks.saturating_sub(listed);
        Self {
            frequent_min,
            frequent_max,
            ticks,
            ticks_not_listed,
            kinds: kinds.collect(),
        }
    }

    /// By how much the minimum and the maximum of frequent kinds would change, if nearly frequent
    /// kinds were frequent, or barely frequent ones were not.
    pub(crate) fn deviations(&self) -> [Option<u64>; 2] {
        let [min, max] = [self.frequent_min, self.frequent_max];
        let costs = || self.kinds.iter().map(|kind| (kind.instructions, kind.times));
        let others =
            DOUBTFUL_PERCENT.map(|percent| frequent(costs(), self.ticks, percent));
        let off = |cost: Option<Instructions>, place: usize| {
            let apart = |other: &[Option<Instructions>; 2]| {
                Some(other[place]?.get().abs_diff(cost?.get()))
            };
            others.iter().filter_map(apart).max()
        };
        [off(min, 0), off(max, 1)]
    }
}

fn is_frequent(times: u64, ticks: u64, percent: u64) -> bool {
    times > 0 && u128::from(times) * 100 >= u128::from(ticks) * u128::from(percent)
}

/// The smallest and the largest cost of the kinds that are at least so frequent.
fn frequent(
    costs: impl Iterator<Item = (Instructions, u64)>,
    ticks: u64,
    percent: u64,
) -> [Option<Instructions>; 2] {
    let frequent: Vec<Instructions> = costs
        .filter(|&(_, times)| is_frequent(times, ticks, percent))
        .map(|(cost, _)| cost)
        .collect();
    [frequent.iter().min().copied(), frequent.iter().max().copied()]
}

/// The index of the kind that the others are compared with: the cheapest frequent one, or else the
/// most frequent one. `kinds` are sorted by frequency.
fn first(kinds: &[TickPath<'_>], ticks: u64) -> Option<usize> {
    let places = kinds.iter().enumerate();
    let frequent =
        places.filter(|(_, kind)| is_frequent(kind.times, ticks, FREQUENT_PERCENT));
    let cheapest = frequent.min_by_key(|(_, kind)| kind.instructions);
    cheapest.map(|(place, _)| place).or_else(|| (!kinds.is_empty()).then_some(0))
}

fn same_added_up(kinds: Vec<TickPath<'_>>) -> Vec<TickPath<'_>> {
    let mut sums: Vec<TickPath<'_>> = Vec::new();
    for mut kind in kinds {
        kind.stacks.sort_unstable_by(|a, b| a.frames().cmp(b.frames()));
        match sums.iter_mut().find(|sum| sum.stacks == kind.stacks) {
            Some(sum) => sum.times = sum.times.saturating_add(kind.times),
            None => sums.push(kind),
        }
    }
    sums
}

fn differs(first: &TickPath<'_>, kind: &TickPath<'_>) -> Vec<KindDifference> {
    let differences = Difference::in_one_kernel(&first.stacks, &kind.stacks).functions;
    let differs = differences.into_iter().filter(|function| function.difference != 0);
    let named = differs.map(|function| KindDifference {
        name: function.name,
        difference: function.difference,
    });
    named.take(NAMED).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(own: &[(&'static str, u64)], times: u64) -> TickPath<'static> {
        let stack = |&(name, own): &(&'static str, u64)| {
            CallStack::new(vec!["entry", name], Instructions::new(own))
        };
        let total = own.iter().map(|(_, own)| own).sum();
        TickPath {
            instructions: Instructions::new(total),
            times,
            stacks: own.iter().map(stack).collect(),
        }
    }

    fn costs(kinds: &TickKinds) -> Vec<(u64, u64)> {
        kinds.kinds.iter().map(|kind| (kind.instructions.get(), kind.times)).collect()
    }

    /// Check the keys and values of the JSON contract, that the cheapest frequent kind is first, and
    /// that the others have the functions that differ.
    #[test]
    fn contract() {
        let kinds = vec![
            kind(&[("tick", 50), ("vsyscall", 28)], 60),
            kind(&[("tick", 50), ("vsyscall", 10)], 40),
        ];
        let found = serde_json::to_value(TickKinds::of(100, kinds)).unwrap();
        let expected = serde_json::json!({
            "frequent_min": 60, "frequent_max": 78, "ticks": 100, "ticks_not_listed": 0,
            "kinds": [
                {"instructions": 60, "times": 40, "share_ppm": 400_000.0, "differs": []},
                {"instructions": 78, "times": 60, "share_ppm": 600_000.0,
                 "differs": [{"name": "vsyscall", "difference": 18}]},
            ],
        });
        assert_eq!(found, expected);
    }

    /// Check that functions of two paths stay two functions, as similar as their names may be.
    #[test]
    fn no_renames() {
        let kinds =
            vec![kind(&[("timer_sched", 50)], 60), kind(&[("timer_scheduler", 40)], 40)];
        let found = TickKinds::of(100, kinds);
        let differs = found.kinds[1].differs.iter();
        let differs: Vec<_> = differs.map(|f| (f.name.as_str(), f.difference)).collect();
        assert_eq!(differs, [("timer_sched", 50), ("timer_scheduler", -40)]);
    }

    /// Check that kinds beyond 95 % of the ticks are counted but not listed, and that a rare kind is
    /// never the first, even if it is the cheapest.
    #[test]
    fn rare_kinds() {
        let of = |own, times| kind(&[("tick", own)], times);
        let found =
            TickKinds::of(1000, vec![of(7, 20), of(60, 900), of(90, 60), of(80, 15)]);
        assert_eq!(costs(&found), [(60, 900), (90, 60)]);
        assert_eq!(found.ticks_not_listed, 40);
        let frequent = [found.frequent_min, found.frequent_max];
        assert_eq!(frequent, [Some(Instructions::new(60)); 2]);
        assert_eq!(found.deviations(), [Some(0), Some(30)]);
    }

    /// Check that the same path on two CPUs is one kind, in any order of its stacks.
    #[test]
    fn same_path_on_two_cpus() {
        let (a, b) = (("a", 1), ("b", 2));
        let found = TickKinds::of(5, vec![kind(&[a, b], 2), kind(&[b, a], 3)]);
        assert_eq!(costs(&found), [(3, 5)]);
    }

    /// Check that there are no kinds without ticks.
    #[test]
    fn none() {
        let found = TickKinds::of(0, Vec::new());
        assert_eq!(found, TickKinds::default());
        assert_eq!(found.deviations(), [None, None]);
    }
}
