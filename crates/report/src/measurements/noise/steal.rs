//! Steal time, as sentences.

use recording::CulpritKind;
use summary::{NoiseSummary, StealSummary};

use crate::document::text::{Text, text};
use crate::measurements::noise::culprits::CPUS;
use crate::number;

/// The steal time of each CPU, or of all together if they are many. Empty without steal time, or
/// if it is unknown.
pub(crate) fn steal(summary: &NoiseSummary) -> Vec<Text> {
    let cpus = summary.cpus.iter();
    let mut each: Vec<(Text, &StealSummary)> = cpus
        .filter_map(|cpu| Some((text!("CPU {}", cpu.cpu), cpu.steal.as_ref()?)))
        .collect();
    if each.is_empty() && summary.culprits.iter().any(|c| c.kind == CulpritKind::Steal) {
        let text = "\"steal\" is an estimate in recordings of this version: the longest gaps without \
                    events, up to the steal time in /proc/stat.";
        return vec![text.into()];
    }
    if each.len() > CPUS {
        let all = summary.steal.as_ref().map(|all| (Text::from("All CPUs"), all));
        each = all.into_iter().collect();
    }
    each.retain(|(_, steal)| !steal.at_most_ns.is_zero());
    each.into_iter().map(|(cpus, steal)| sentence(cpus, steal)).collect()
}

fn sentence(cpus: Text, steal: &StealSummary) -> Text {
    let is_precise = steal.clock == "paravirt";
    let clock = match is_precise {
        true => "read at each tick and context switch",
        false => "/proc/stat, in steps of 10 ms",
    };
    let others = match is_precise {
        true => text!(
            ", and at least {} is part of the time of threads and interrupts",
            steal.others_min_ns
        ),
        false => Text::default(),
    };
    text!(
        "{}: {} of steal time ({}). {} of it is proven to be in gaps (\"steal\" above), up to {} \
         more may be in unexplained gaps{}.",
        cpus,
        number::bounds(steal.at_least_ns, steal.at_most_ns),
        clock,
        steal.proven_ns,
        steal.unexplained_max_ns,
        others,
    )
}
