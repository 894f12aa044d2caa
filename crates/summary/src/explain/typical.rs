//! The typical tick of a cell, or the typical repeat of a call, with its functions.
//!
//! The typical tick is one of the cheapest kind with at least 10 % of the ticks; the typical repeat of
//! a call is the one with the cost nearest to the median. Unknown if the lab recorded no episodes: for
//! timed cells, and without a counter.

use std::ops::Range;

use recording::{Cell, Episode, Level, Profile, What};
use serde::Serialize;
use stats::Spread;
use units::Instructions;

use crate::cell::counts::{call_phases, is_tick};
use crate::cell::{CellSummary, answer};
use crate::explain::call_stack::{CallStack, episode_stacks};

/// The typical tick of a cell, or the typical repeat of a call: the input of explanations and flame
/// graphs.
#[derive(Debug, Clone)]
pub struct Typical<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// The call; `None` for a timer interrupt.
    pub call: Option<&'a str>,
    /// The kind of tick, by its place in the cell's list; 0 is the typical one.
    pub place: usize,
    /// The median of the call's repeats.
    pub median: Option<Instructions>,
    /// Its stacks.
    pub stacks: Vec<CallStack<'a>>,
    /// The frequency of such an episode in the cell.
    pub frequency: Frequency,
}

/// The frequency of an episode in a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Frequency {
    /// The number of episodes with exactly this cost.
    pub times: u64,
    /// The number of all episodes.
    pub of: u64,
}

impl<'a> Typical<'a> {
    /// The typical timer interrupt of a cell, or (with the name of a call) the typical repeat of that
    /// call. `None` if no such episode was recorded.
    pub fn of(cell: &'a Cell, call: Option<&'a str>) -> Option<Self> {
        Self::of_kind(cell, call, 0)
    }

    /// The same for a kind of tick by its place in the cell's list, from 0. `None` without such a
    /// kind.
    pub fn of_kind(cell: &'a Cell, call: Option<&'a str>, place: usize) -> Option<Self> {
        let profile = answer(cell)?.profile.as_ref()?;
        let Selection { kind, cost, spread } = selection(cell, call, place)?;
        let episode = typical(profile, &kind, cost)?;
        let times = spread.times(episode.total);
        let frequency = Frequency { times, of: spread.count() };
        let median = call.and(spread.p50);
        Some(Self {
            cell,
            call,
            place,
            median,
            stacks: episode_stacks(profile, episode),
            frequency,
        })
    }
}

/// The episodes to choose from, and their typical cost.
struct Selection {
    kind: Kind,
    cost: Instructions,
    spread: Spread,
}

/// A kind of episodes.
enum Kind {
    /// Timer interrupts at these privilege levels.
    Ticks(&'static [Level]),
    /// Repeats of a call in these phases.
    Steps(Range<usize>),
}

fn selection(cell: &Cell, call: Option<&str>, place: usize) -> Option<Selection> {
    match (CellSummary::of(cell)?, call) {
        (CellSummary::TickCost(cost), None) => {
            let spread = cost.kernel_instructions?;
            let cost = cost.kinds?.kinds.get(place)?.instructions;
            Some(Selection { kind: Kind::Ticks(&[Level::User]), cost, spread })
        }
        (CellSummary::IdleCost(cost), None) => {
            let (spread, kinds) = (cost.tick_kernel_instructions, cost.kinds.kinds);
            let cost = kinds.get(place)?.instructions;
            let kind = Kind::Ticks(&[Level::User, Level::Kernel]);
            Some(Selection { kind, cost, spread })
        }
        (CellSummary::CallCosts(costs), Some(name)) => {
            let call = costs.calls.into_iter().find(|call| call.name == name)?;
            let kind = Kind::Steps(call_phases(answer(cell)?, name)?);
            let (cost, spread) = (call.instructions.p50?, call.instructions);
            Some(Selection { kind, cost, spread })
        }
        _ => None,
    }
}

/// The episode with the cost nearest to the typical one; of several such, the most frequent one.
fn typical<'a>(
    profile: &'a Profile,
    kind: &Kind,
    cost: Instructions,
) -> Option<&'a Episode> {
    let episodes = profile.episodes.iter().filter(|episode| kind.is_of(episode));
    episodes.min_by_key(|episode| {
        let times: u64 = episode.times.iter().map(|(_, times)| times).sum();
        (episode.total.get().abs_diff(cost.get()), u64::MAX - times)
    })
}

impl Kind {
    fn is_of(&self, episode: &Episode) -> bool {
        match self {
            Self::Ticks(levels) => is_tick(&episode.what, levels),
            Self::Steps(phases) => {
                let mut times = episode.times.iter();
                episode.what == What::Step
                    && times.any(|(phase, _)| phases.contains(phase))
            }
        }
    }
}
