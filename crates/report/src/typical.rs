//! What is explained of a cell: one tick, or one repeat of a call, as it typically is;
//! and the functions it went through.
//!
//! Typical is what cost the most frequent number of instructions. Cannot be told where
//! the lab kept no such episode: of timed cells, and without a counter.

use recording::{Cell, Episode, Level, Profile, What};
use serde::Serialize;
use stats::{CellSummary, Spread, StackInput, is_timer_entry};

use crate::cell_summary::{answer, cell_summary};

/// A place in a stack that has no name in the profile's list.
const NAMELESS: &str = "[nameless]";

/// One tick of a cell, or one repeat of a call, as it typically is: what explanations
/// and flame graphs are made of.
#[derive(Debug, Clone)]
pub struct Typical<'a> {
    pub(crate) cell: &'a Cell,
    /// Which call; `None`: a timer interrupt.
    pub(crate) call: Option<&'a str>,
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
        let profile = answer(cell)?.profile.as_ref()?;
        let (kind, spread) = kind(cell_summary(cell)?, call)?;
        let is_typical = |episode: &&Episode| {
            Some(episode.total) == spread.mode && kind.is_of(episode)
        };
        let episode = profile.episodes.iter().find(is_typical)?;
        let seen = Seen { times: spread.times(), of: spread.count() };
        Some(Self { cell, call, stacks: stacks(profile, episode), seen })
    }

    /// Its stacks with the functions' names, as [`crate::folded`] takes them.
    pub fn stacks(&self) -> &[StackInput<'a>] {
        &self.stacks
    }
}

fn stacks<'a>(profile: &'a Profile, episode: &'a Episode) -> Vec<StackInput<'a>> {
    let name = |place: &usize| profile.names.get(*place).map_or(NAMELESS, String::as_str);
    let stack = |stack: &'a recording::Stack| {
        StackInput::new(stack.frames.iter().map(name).collect(), stack.own)
    };
    episode.stacks.iter().map(stack).collect()
}

/// The episodes that a cell is about.
enum Kind {
    /// Timer interrupts of programs.
    Tick,
    /// Timer interrupts of whatever ran.
    AnyTick,
    /// Steps of that phase.
    Step(usize),
}

fn kind(summary: CellSummary, call: Option<&str>) -> Option<(Kind, Spread)> {
    match (summary, call) {
        (CellSummary::TickCost(cost), None) => {
            Some((Kind::Tick, cost.kernel_instructions?))
        }
        (CellSummary::IdleCost(cost), None) => {
            Some((Kind::AnyTick, cost.tick_kernel_instructions))
        }
        (CellSummary::CallCosts(costs), Some(name)) => {
            let mut calls = costs.calls.into_iter().enumerate();
            let (phase, call) = calls.find(|(_, call)| call.name == name)?;
            Some((Kind::Step(phase), call.instructions))
        }
        _ => None,
    }
}

impl Kind {
    fn is_of(&self, episode: &Episode) -> bool {
        match (&episode.what, self) {
            (What::Step, Self::Step(phase)) => episode.phase == *phase,
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
        assert_eq!(place(tick_cost(&[2584], &[(2570, 2)]), None), None);
        assert_eq!(place(idle_cost(2, &[(2571, 1)]), None), Some(0));
        let calls =
            || call_costs(&[(Call::Getpid, &[(412, 9)]), (Call::Pipe, &[(412, 9)])]);
        assert_eq!(place(calls(), Some("getpid")), Some(3));
        assert_eq!(place(calls(), Some("pipe")), None);
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
