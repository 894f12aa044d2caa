//! A stack of functions, and their names: those in a profile, and those in the source.

use recording::{Episode, Profile, Stack};
use units::{Instructions, Ppm};

/// The name of instructions in no known function.
const UNKNOWN: &str = "[unknown]";

/// The instructions executed in one function, with its callers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallStack<'a> {
    frames: Vec<&'a str>,
    own: Instructions,
}

impl<'a> CallStack<'a> {
    /// `frames` are the functions from the outermost to the innermost. Without any they become
    /// `[unknown]`, so that no instruction is dropped.
    pub fn new(frames: Vec<&'a str>, own: Instructions) -> Self {
        let frames = if frames.is_empty() { vec![UNKNOWN] } else { frames };
        Self { frames, own }
    }

    /// From the outermost function to the innermost; never empty.
    pub fn frames(&self) -> &[&'a str] {
        &self.frames
    }

    /// Instructions of the innermost function itself.
    pub fn own(&self) -> Instructions {
        self.own
    }

    /// The innermost function.
    pub(crate) fn innermost(&self) -> &'a str {
        self.frames.last().copied().unwrap_or(UNKNOWN)
    }

    /// The stack with the names of functions in the source.
    fn based(&self) -> Self {
        let frames = self.frames.iter().map(|name| base_name(name)).collect();
        Self { frames, own: self.own }
    }
}

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
    let stack = |stack: &'a Stack| {
        CallStack::new(stack.frames.iter().map(name).collect(), stack.own)
    };
    episode.stacks.iter().map(stack).collect()
}

/// The instructions of all stacks.
pub(crate) fn total(stacks: &[CallStack<'_>]) -> Instructions {
    stacks.iter().map(|stack| stack.own).sum()
}

/// Stacks with the names of functions in the source.
pub(crate) fn based<'a>(stacks: &[CallStack<'a>]) -> Vec<CallStack<'a>> {
    stacks.iter().map(CallStack::based).collect()
}

/// Suffixes that compilers and linkers append to the name of a part or a copy of a function.
const SUFFIXES: [&str; 6] = ["isra", "constprop", "part", "cold", "lto_priv", "llvm"];

/// A function's name in the source: `foo` for `foo.isra.0.cold`.
fn base_name(name: &str) -> &str {
    let mut parts = name.split('.');
    let base = parts.next().unwrap_or(name);
    let is_suffixed = parts.next().is_some_and(|suffix| SUFFIXES.contains(&suffix));
    if is_suffixed && !base.is_empty() { base } else { name }
}

/// A part of the whole; `None` if the whole is zero.
pub(crate) fn share(part: Instructions, whole: Instructions) -> Option<Ppm> {
    (whole != Instructions::ZERO)
        .then(|| Ppm::new(part.get() as f64 / whole.get() as f64 * 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check which suffixes are removed from names.
    #[test]
    fn base_names() {
        for (name, base) in [
            ("update_load_avg.isra.0", "update_load_avg"),
            ("foo.constprop.0.isra.1", "foo"),
            ("foo.llvm.123456", "foo"),
            ("foo.cold", "foo"),
            ("foo", "foo"),
            ("init.text", "init.text"),
            (".cold", ".cold"),
            ("__part", "__part"),
        ] {
            assert_eq!(base_name(name), base);
        }
    }
}
