//! The stacks of a profile, with the names of the functions.

use recording::{Episode, Profile};

use crate::explain::call_stack::CallStack;

/// The name of the function at that place of the profile's list; `[nameless]` if it has none.
pub(crate) fn function_name(profile: &Profile, place: usize) -> &str {
    profile.names.get(place).map_or("[nameless]", String::as_str)
}

/// The stacks of an episode, with the names of the functions.
pub fn episode_stacks<'a>(
    profile: &'a Profile,
    episode: &'a Episode,
) -> Vec<CallStack<'a>> {
    let name = |place: &usize| function_name(profile, *place);
    let stack = |stack: &'a recording::Stack| {
        CallStack::new(stack.frames.iter().map(name).collect(), stack.own)
    };
    episode.stacks.iter().map(stack).collect()
}
