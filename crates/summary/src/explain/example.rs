//! Small stacks, for tests.

use proptest::prelude::*;
use units::Instructions;

use crate::explain::call_stack::CallStack;

/// Stacks from lines: `a;b 12`.
pub(crate) fn stacks<'a>(lines: &[&'a str]) -> Vec<CallStack<'a>> {
    let stack = |line: &&'a str| {
        let (frames, own) = line.rsplit_once(' ').unwrap();
        let own = Instructions::new(own.parse().unwrap());
        CallStack::new(frames.split(';').filter(|name| !name.is_empty()).collect(), own)
    };
    lines.iter().map(stack).collect()
}

/// Random stacks of few names, so that functions recur and call themselves.
pub(crate) fn any_stacks() -> impl Strategy<Value = Vec<CallStack<'static>>> {
    const NAMES: [&str; 8] = [
        "tick",
        "update",
        "update.isra.0",
        "update.part.0.cold",
        "timer",
        "__timer",
        "rcu",
        "update_rcu",
    ];
    let frames = prop::collection::vec(prop::sample::select(&NAMES[..]), 0..6);
    let stack = (frames, 0u64..5_000)
        .prop_map(|(frames, own)| CallStack::new(frames, Instructions::new(own)));
    prop::collection::vec(stack, 0..30)
}
