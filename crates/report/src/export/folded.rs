//! Folded stacks: one line for each stack, `outermost;...;innermost number`, as read by
//! `flamegraph.pl` and similar tools.

use std::collections::BTreeMap;

use summary::CallStack;
use units::Instructions;

/// Stacks as folded lines, sorted; equal stacks are added up.
pub fn folded_stacks(stacks: &[CallStack<'_>]) -> String {
    let mut lines: BTreeMap<String, Instructions> = BTreeMap::new();
    for stack in stacks {
        let sum = lines.entry(line(stack)).or_default();
        *sum = *sum + stack.own();
    }
    lines.iter().map(|(frames, own)| format!("{frames} {own}\n")).collect()
}

/// Stacks of two sides in the format of `difffolded.pl`: a line for each stack,
/// `outer;inner 123 145`, sorted.
pub fn folded_stacks_diff(before: &[CallStack<'_>], after: &[CallStack<'_>]) -> String {
    let mut lines: BTreeMap<String, [Instructions; 2]> = BTreeMap::new();
    for (side, stacks) in [before, after].into_iter().enumerate() {
        for stack in stacks {
            let sums = lines.entry(line(stack)).or_default();
            sums[side] = sums[side] + stack.own();
        }
    }
    lines.iter().map(|(frames, [a, b])| format!("{frames} {a} {b}\n")).collect()
}

fn line(stack: &CallStack<'_>) -> String {
    let frames: Vec<String> = stack.frames().iter().map(|name| escape(name)).collect();
    frames.join(";")
}

/// The name with `_` for characters that have a meaning in the format.
fn escape(name: &str) -> String {
    name.replace(|c: char| c == ';' || c.is_control(), "_")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::example::cell as cell_example;

    /// Check the lines of a tick.
    #[test]
    fn tick() {
        assert_snapshot!(folded_stacks(&cell_example::old_tick()));
    }

    /// Check that equal stacks are added up, and that separators in names are replaced.
    #[test]
    fn odd() {
        let stack = |frames: &[&'static str], own| {
            CallStack::new(frames.to_vec(), Instructions::new(own))
        };
        let stacks = [stack(&["b"], 1), stack(&["a;c", "d\n"], 2), stack(&["b"], 3)];
        assert_eq!(folded_stacks(&stacks), "a_c;d_ 2\nb 4\n");
    }
}
