//! Steal time, as sentences.

use recording::CulpritKind;
use summary::{NoiseSummary, StealSummary};

use crate::number;
use crate::text::layout::paragraph::paragraph;
use crate::text::noise::culprits::CPUS;

/// The steal time of each CPU, or of all together if they are many. Empty without steal time, or
/// if it is unknown.
pub(crate) fn steal(summary: &NoiseSummary) -> String {
    let cpus = summary.cpus.iter();
    let mut each: Vec<(String, &StealSummary)> = cpus
        .filter_map(|cpu| Some((format!("CPU {}", cpu.cpu), cpu.steal.as_ref()?)))
        .collect();
    if each.is_empty() && summary.culprits.iter().any(|c| c.kind == CulpritKind::Steal) {
        let text = "\"steal\" is an estimate in recordings of this version: the longest gaps without \
                    events, up to the steal time in /proc/stat.";
        return "\n".to_owned() + &paragraph("", text);
    }
    if each.len() > CPUS {
        let all = summary.steal.as_ref().map(|all| ("All CPUs".to_owned(), all));
        each = all.into_iter().collect();
    }
    let is_some = |(_, steal): &(String, &StealSummary)| !steal.at_most_ns.is_zero();
    let each = each.iter().filter(|each| is_some(each));
    let text: String = each.map(|(cpus, steal)| sentence(cpus, steal)).collect();
    if text.is_empty() { text } else { "\n".to_owned() + &text }
}

fn sentence(cpus: &str, steal: &StealSummary) -> String {
    let all = number::bounds(steal.at_least_ns, steal.at_most_ns);
    let [proven, unexplained, others] =
        [steal.proven_ns, steal.unexplained_max_ns, steal.others_min_ns]
            .map(number::duration);
    let text = if steal.clock == "paravirt" {
        format!(
            "{cpus}: {all} of steal time (read at each tick and context switch). {proven} of it is \
             proven to be in gaps (\"steal\" above), up to {unexplained} more may be in unexplained \
             gaps, and at least {others} is part of the time of threads and interrupts."
        )
    } else {
        format!(
            "{cpus}: {all} of steal time (/proc/stat, in steps of 10 ms). {proven} of it \
             is proven to be in gaps (\"steal\" above), up to {unexplained} more may be in \
             unexplained gaps."
        )
    };
    paragraph("", &text)
}
