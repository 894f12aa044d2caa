//! What is said about the chosen CPUs: where they are, what stays on them, and why the others were not
//! chosen.

use advise::{Choice, IsolationPlan, Rejected, WhyNot};

use crate::document::text::{Text, text};
use crate::number;

/// The names of interrupts in a sentence.
const NAMES: usize = 3;

/// What is particular about the choice.
pub(crate) fn remarks(plan: &IsolationPlan, choice: &Choice) -> Vec<Text> {
    let idle = (!choice.idle.is_empty()).then(|| {
        text!(
            "CPU {} is isolated, too, and stays idle: it is a thread of the same core.",
            &choice.idle
        )
    });
    let split = match (choice.nodes, choice.caches) {
        (1, 1) => None,
        (1, caches) => Some(text!(
            "They share {} last-level caches: none has enough CPUs.",
            caches.to_string()
        )),
        (nodes, _) => Some(text!(
            "They are on {} NUMA nodes: none has enough CPUs.",
            nodes.to_string()
        )),
    };
    let full = choice.without_housekeeping.iter().map(|node| {
        text!(
            "The NUMA node of CPU {} has memory, and no core left for housekeeping.",
            node
        )
    });
    let unequal = choice.unequal.then(|| {
        Text::from(
            "Their cores differ in the number of threads, and so probably in speed.",
        )
    });
    let names: Vec<Text> = plan.bound.iter().map(|irq| Text::name(&*irq.name)).collect();
    let bound = (!names.is_empty()).then(|| {
        text!(
            "Interrupts that cannot be moved stay on them: {}.",
            Text::first(NAMES, names, ", ")
        )
    });
    let all = [near(plan, choice), idle, split].into_iter().flatten();
    all.chain(full).chain(unequal).chain(bound).collect()
}

/// Whether the CPUs are near the device.
fn near(plan: &IsolationPlan, choice: &Choice) -> Option<Text> {
    let device = plan.near.as_ref()?;
    let name = Text::name(&*device.name);
    let node = device.node.map(|node| node.to_string());
    Some(match (choice.near, node) {
        (Some(true), Some(node)) => {
            text!("Chosen on NUMA node {}, that of {}.", node, name)
        }
        (Some(false), Some(node)) => {
            text!(
                "Not all are on NUMA node {}, that of {}: it has too few free cores.",
                node,
                name
            )
        }
        (_, Some(node)) => text!("NUMA node {}, that of {}, has no CPU.", node, name),
        (_, None) => text!("This machine does not tell which NUMA node {} is on.", name),
    })
}

/// The other CPUs, in one line, with at most so many reasons.
pub(crate) fn rejected(all: &[Rejected], most: usize) -> Text {
    let each = all.iter().map(|one| text!("{} ({})", &one.cpus, why_not(&one.why)));
    text!("Not chosen: CPU {}.", Text::first(most, each.collect(), "; "))
}

pub(crate) fn why_not(why: &WhyNot) -> Text {
    match why {
        WhyNot::BootCore => "core of the boot CPU".into(),
        WhyNot::Housekeeping => "left for the housekeeping of its NUMA node".into(),
        WhyNot::OtherNode => "another NUMA node".into(),
        WhyNot::OtherCache => "another last-level cache".into(),
        WhyNot::FewerThreads => "cores with fewer threads, probably slower".into(),
        WhyNot::BoundIrqs { names } => {
            let names = names.iter().map(Text::name).collect();
            text!("interrupts that cannot be moved: {}", Text::first(NAMES, names, ", "))
        }
        WhyNot::Steal { ppm } => {
            text!("the hypervisor takes up to {}", number::known(*ppm))
        }
        WhyNot::Noise { ppm } => text!("loses up to {} of its time", number::known(*ppm)),
        WhyNot::NotNeeded => "would do as well".into(),
        WhyNot::Offline => "offline".into(),
    }
}
