//! The `sched_ext` scheduler of a machine, in words: it has the ordinary tasks instead of the fair class.

use facts::Facts;

use crate::document::text::{Text, text};

/// The scheduler of ordinary tasks in short, if it is not the kernel's own: `lavd (sched_ext)`. One that has
/// some of the tasks only is none.
pub(crate) fn name(facts: &Facts) -> Option<Text> {
    let (name, _) = facts.sched.ext_scheduler().filter(|(_, has_all)| *has_all)?;
    Some(text!("{} (sched_ext)", Text::name(name)))
}

/// A sentence about it, also if it has some of the tasks only.
pub(crate) fn sentence(facts: &Facts) -> Option<Text> {
    let (ops, has_all) = facts.sched.ext_scheduler()?;
    let ops = Text::name(ops);
    Some(match has_all {
        true => text!("Scheduler: {} (sched_ext), not the fair class.", ops),
        false => text!(
            "Scheduler: the fair class; tasks of SCHED_EXT have {} (sched_ext).",
            ops
        ),
    })
}
