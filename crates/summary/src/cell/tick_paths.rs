//! The paths of a cell's timer interrupts through the kernel, as recorded by the lab.

use recording::{Answer, Episode, Level, What};
use units::CpuSet;

use crate::cell::counts::is_timer_entry;
use crate::explain::stacks::episode_stacks;
use crate::explain::tick_kinds::TickPath;

/// The recorded timer interrupts of these CPUs at these privilege levels.
pub(super) fn paths<'a>(
    answer: &'a Answer,
    cpus: &CpuSet,
    levels: &[Level],
) -> Vec<TickPath<'a>> {
    let Some(profile) = &answer.profile else { return Vec::new() };
    let is_tick = |episode: &&Episode| match &episode.what {
        What::Interruption { entry, from } => {
            is_timer_entry(entry) && levels.contains(from) && cpus.contains(episode.cpu)
        }
        What::Step => false,
    };
    let path = |episode: &'a Episode| TickPath {
        instructions: episode.total,
        times: episode.times.iter().map(|(_, times)| times).sum(),
        stacks: episode_stacks(profile, episode),
    };
    profile.episodes.iter().filter(is_tick).map(path).collect()
}
