//! What is explained of a cell: one tick, or one repeat of a call, as it typically is;
//! and the functions it went through.
//!
//! The typical tick is of the cheapest kind that at least 10 % of the ticks are of; the
//! typical repeat of a call is that whose cost is nearest to the median. Not known where the
//! lab kept no episodes: of timed cells, and without a counter.

use std::ops::Range;

use recording::{Body, Cell, Episode, Level, Profile, What};
use serde::Serialize;
use stats::{CellSummary, Spread, StackInput, is_timer_entry};
use units::Instructions;

use crate::cell_summary::{answer, cell_summary, phases_each};

/// A place in a stack that has no name in the profile's list.
const NAMELESS: &str = "[nameless]";

/// One tick of a cell, or one repeat of a call, as it typically is: what explanations
/// and flame graphs are made of.
#[derive(Debug, Clone)]
pub struct Typical<'a> {
    pub(crate) cell: &'a Cell,
    /// Which call; `None`: a timer interrupt.
    pub(crate) call: Option<&'a str>,
    /// Which kind of tick, by its place in the cell's list; 0 is the typical one.
    pub(crate) place: usize,
    /// The median of the call's repeats.
    pub(crate) median: Option<Instructions>,
    pub(crate) stacks: Vec<StackInput<'a>>,
    pub(crate) seen: Seen,
}

/// How often a cell saw such an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Seen {
    /// How many cost just as much,
    pub(crate) times: u64,
    /// of so many.
    pub(crate) of: u64,
}

impl<'a> Typical<'a> {
    /// The typical timer interrupt of a cell, or (with the name of a call) the typical
    /// repeat of that call. `None` where no such episode was kept.
    pub fn of(cell: &'a Cell, call: Option<&'a str>) -> Option<Self> {
        Self::of_kind(cell, call, 0)
    }

    /// The same of a kind of tick by its place in the cell's list, from 0. `None` where there
    /// is no such kind.
    pub fn of_kind(cell: &'a Cell, call: Option<&'a str>, place: usize) -> Option<Self> {
        let profile = answer(cell)?.profile.as_ref()?;
        let about = about(cell, call, place)?;
        let episode = about.typical(profile)?;
        let times = about.spread.times(episode.total);
        let seen = Seen { times, of: about.spread.count() };
        let median = call.and(about.spread.p50);
        Some(Self { cell, call, place, median, stacks: stacks(profile, episode), seen })
    }

    /// Its stacks with the functions' names, as [`crate::folded`] takes them.
    pub fn stacks(&self) -> &[StackInput<'a>] {
        &self.stacks
    }
}

pub(crate) fn stacks<'a>(
    profile: &'a Profile,
    episode: &'a Episode,
) -> Vec<StackInput<'a>> {
    let name = |place: &usize| profile.names.get(*place).map_or(NAMELESS, String::as_str);
    let stack = |stack: &'a recording::Stack| {
        StackInput::new(stack.frames.iter().map(name).collect(), stack.own)
    };
    episode.stacks.iter().map(stack).collect()
}

/// The episodes that a cell is about, and what is typical among them.
struct About {
    kind: Kind,
    /// What the typical one costs, or nearly so.
    cost: Instructions,
    spread: Spread,
}

/// A kind of episodes.
enum Kind {
    /// Timer interrupts of programs.
    Tick,
    /// Timer interrupts of whatever ran.
    AnyTick,
    /// Steps of those phases.
    Steps(Range<usize>),
}

fn about(cell: &Cell, call: Option<&str>, place: usize) -> Option<About> {
    match (cell_summary(cell)?, call) {
        (CellSummary::TickCost(cost), None) => {
            let spread = cost.kernel_instructions?;
            let cost = cost.kinds?.kinds.get(place)?.instructions;
            Some(About { kind: Kind::Tick, cost, spread })
        }
        (CellSummary::IdleCost(cost), None) => {
            let (spread, kinds) = (cost.tick_kernel_instructions, cost.kinds.kinds);
            let cost = kinds.get(place)?.instructions;
            Some(About { kind: Kind::AnyTick, cost, spread })
        }
        (CellSummary::CallCosts(costs), Some(name)) => {
            let mut calls = costs.calls.into_iter().enumerate();
            let (place, call) = calls.find(|(_, call)| call.name == name)?;
            let each = match &answer(cell)?.recording.body {
                Body::Calls { spec, .. } => phases_each(spec),
                _ => return None,
            };
            let kind = Kind::Steps(place * each..(place + 1) * each);
            Some(About { kind, cost: call.instructions.p50?, spread: call.instructions })
        }
        _ => None,
    }
}

impl About {
    /// The episode that costs what is typical, or else most nearly so; of equals the most
    /// frequent one.
    fn typical<'a>(&self, profile: &'a Profile) -> Option<&'a Episode> {
        let episodes = profile.episodes.iter().filter(|episode| self.kind.is_of(episode));
        episodes.min_by_key(|episode| {
            let times: u64 = episode.times.iter().map(|(_, times)| times).sum();
            (episode.total.get().abs_diff(self.cost.get()), u64::MAX - times)
        })
    }
}

impl Kind {
    fn is_of(&self, episode: &Episode) -> bool {
        match (&episode.what, self) {
            (What::Step, Self::Steps(phases)) => {
                episode.times.iter().any(|(phase, _)| phases.contains(phase))
            }
            (What::Interruption { entry, from }, Self::Tick) => {
                is_timer_entry(entry) && *from == Level::User
            }
            (What::Interruption { entry, .. }, Self::AnyTick) => is_timer_entry(entry),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use recording::{Call, Ending};

    use super::*;
    use crate::cell_example::{
        OLD, call_costs, cell, idle_cost, tick_cost, with_profile,
    };

    /// The place of the typical episode, found again by its stacks.
    fn place(ending: Ending, call: Option<&str>) -> Option<usize> {
        let cell = with_profile(cell("a cell", OLD, ending));
        let typical = Typical::of(&cell, call)?;
        let profile = answer(&cell)?.profile.as_ref()?;
        let is_it = |kept: &Episode| stacks(profile, kept) == typical.stacks;
        profile.episodes.iter().position(is_it)
    }

    /// Check that a spinner's typical tick is one that interrupted a program, an idle
    /// CPU's any, and a call's a step; and that there is none where none was kept.
    #[test]
    fn typical() {
        assert_eq!(place(tick_cost(&[2584], &[(2571, 2), (2999, 1)]), None), Some(2));
        assert_eq!(place(idle_cost(2, &[(2571, 1)]), None), Some(0));
        let calls =
            || call_costs(&[(Call::Getpid, &[(412, 9)]), (Call::Pipe, &[(412, 9)])]);
        assert_eq!(place(calls(), Some("getpid")), Some(3));
        assert_eq!(place(calls(), Some("pipe")), None);
        let spread = [(300, 1), (410, 1), (413, 1), (9_000, 1)];
        assert_eq!(place(call_costs(&[(Call::Fork, &spread)]), Some("fork")), Some(3));
        assert_eq!(place(calls(), None), None);
    }

    /// Check that places become names, that one without a name is not dropped, and how
    /// often such a tick was seen.
    #[test]
    fn names() {
        let ending = tick_cost(&[2584], &[(2571, 2), (2999, 1)]);
        let cell = with_profile(cell("a cell", OLD, ending));
        let Typical { stacks, seen, .. } = Typical::of(&cell, None).unwrap();
        assert_eq!(stacks[1].frames()[1], "sysvec_apic_timer_interrupt");
        assert_eq!(stacks[2].frames()[2], "[nameless]");
        assert_eq!(stacks.iter().map(|stack| stack.own().get()).sum::<u64>(), 2_571);
        assert_eq!(seen, Seen { times: 2, of: 3 });
    }
}
