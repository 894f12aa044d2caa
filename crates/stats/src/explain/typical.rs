//! What is explained of a cell: one tick, or one repeat of a call, as it typically is;
//! and the functions it went through.
//!
//! The typical tick is of the cheapest kind that at least 10 % of the ticks are of; the
//! typical repeat of a call is that whose cost is nearest to the median. Not known where the
//! lab recorded no episodes: of timed cells, and without a counter.

use std::ops::Range;

use recording::{Body, Cell, Episode, Level, Profile, What};
use serde::Serialize;
use units::Instructions;

use crate::counts::{is_timer_entry, phases_each};
use crate::{CallStack, CellSummary, Spread, answer};

/// A place in a stack that has no name in the profile's list.
pub(crate) const NAMELESS: &str = "[nameless]";

/// One tick of a cell, or one repeat of a call, as it typically is: what explanations
/// and flame graphs are made of.
#[derive(Debug, Clone)]
pub struct Typical<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// Which call; `None`: a timer interrupt.
    pub call: Option<&'a str>,
    /// Which kind of tick, by its place in the cell's list; 0 is the typical one.
    pub place: usize,
    /// The median of the call's repeats.
    pub median: Option<Instructions>,
    /// Its stacks with the functions' names.
    pub stacks: Vec<CallStack<'a>>,
    /// How often the cell saw such an episode.
    pub seen: Frequency,
}

/// How often a cell saw such an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Frequency {
    /// How many cost just as much,
    pub times: u64,
    /// of so many.
    pub of: u64,
}

impl<'a> Typical<'a> {
    /// The typical timer interrupt of a cell, or (with the name of a call) the typical
    /// repeat of that call. `None` where no such episode was recorded.
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
        let seen = Frequency { times, of: about.spread.count() };
        let median = call.and(about.spread.p50);
        Some(Self {
            cell,
            call,
            place,
            median,
            stacks: episode_stacks(profile, episode),
            seen,
        })
    }
}

/// The stacks of an episode, with the functions' names.
pub fn episode_stacks<'a>(
    profile: &'a Profile,
    episode: &'a Episode,
) -> Vec<CallStack<'a>> {
    let name = |place: &usize| profile.names.get(*place).map_or(NAMELESS, String::as_str);
    let stack = |stack: &'a recording::Stack| {
        CallStack::new(stack.frames.iter().map(name).collect(), stack.own)
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
    match (CellSummary::of(cell)?, call) {
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
            let body = &answer(cell)?.recording.body;
            let Body::Calls { spec, .. } = body else { return None };
            let each = phases_each(spec);
            let kind = Kind::Steps(place * each..(place + 1) * each);
            Some(About { kind, cost: call.instructions.p50?, spread: call.instructions })
        }
        (CellSummary::TickCost(_) | CellSummary::IdleCost(_), Some(_))
        | (CellSummary::CallCosts(_), None)
        | (CellSummary::NohzCost(_), _)
        | (CellSummary::SlicesCost(_) | CellSummary::Measured(_), _) => None,
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
            (What::Step, Self::Tick | Self::AnyTick)
            | (What::Interruption { .. }, Self::Steps(_)) => false,
        }
    }
}
