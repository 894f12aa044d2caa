//! Which of the kept episodes is typical of a cell, and the functions it went through.

use recording::{Cell, Episode, Level, Profile, What};
use stats::{CellSummary, Spread, StackInput, is_timer_entry};

use crate::cell_summary::{answer, cell_summary};

/// A place in a stack that has no name in the profile's list.
const NAMELESS: &str = "[nameless]";

/// An episode's stacks with the functions' names: what [`stats::Explanation`],
/// [`stats::Difference`], [`crate::folded`] and the flame graphs are made of.
pub fn stacks<'a>(profile: &'a Profile, episode: &'a Episode) -> Vec<StackInput<'a>> {
    let name = |place: &usize| profile.names.get(*place).map_or(NAMELESS, String::as_str);
    let stack = |stack: &'a recording::Stack| {
        StackInput::new(stack.frames.iter().map(name).collect(), stack.own)
    };
    episode.stacks.iter().map(stack).collect()
}

/// The kept episode that is typical of a cell: a timer interrupt, or (with the name of a
/// call) one repeat of that call, that cost the most frequent number of instructions;
/// and the profile it is in. `None` where no such episode was kept.
pub fn typical_episode<'a>(
    cell: &'a Cell,
    call: Option<&str>,
) -> Option<(&'a Profile, &'a Episode)> {
    let profile = answer(cell)?.profile.as_ref()?;
    let (kind, spread) = kind(cell_summary(cell)?, call)?;
    let is_typical =
        |episode: &&Episode| Some(episode.total) == spread.mode && kind.is_of(episode);
    Some((profile, profile.episodes.iter().find(is_typical)?))
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
    use recording::Call;

    use super::*;
    use crate::cell_example::{
        OLD, call_costs, cell, idle_cost, tick_cost, with_profile,
    };

    /// Check that a spinner's typical tick is one that interrupted a program, an idle
    /// CPU's any, and a call's a step; and that there is none where none was kept.
    #[test]
    fn typical() {
        let place = |ending, call| {
            let cell = with_profile(cell("a cell", OLD, ending));
            let (profile, episode) = typical_episode(&cell, call)?;
            profile.episodes.iter().position(|kept| kept == episode)
        };
        assert_eq!(place(tick_cost(&[2584], &[(2571, 2), (2999, 1)]), None), Some(2));
        assert_eq!(place(tick_cost(&[2584], &[(2570, 2)]), None), None);
        assert_eq!(place(idle_cost(2, &[(2571, 1)]), None), Some(0));
        let calls =
            || call_costs(&[(Call::Getpid, &[(412, 9)]), (Call::Pipe, &[(412, 9)])]);
        assert_eq!(place(calls(), Some("getpid")), Some(3));
        assert_eq!(place(calls(), Some("pipe")), None);
        assert_eq!(place(calls(), None), None);
    }

    /// Check that places become names, and that one without a name is not dropped.
    #[test]
    fn names() {
        let cell = with_profile(cell("a cell", OLD, tick_cost(&[2584], &[(2571, 2)])));
        let (profile, episode) = typical_episode(&cell, None).unwrap();
        let stacks = stacks(profile, episode);
        assert_eq!(stacks[1].frames()[1], "sysvec_apic_timer_interrupt");
        assert_eq!(stacks[2].frames()[2], "[nameless]");
        assert_eq!(stacks.iter().map(|stack| stack.own().get()).sum::<u64>(), 2_571);
    }
}
