//! What the hypervisor took, in words.

use recording::CulpritKind;
use stats::{NoiseSummary, StealSummary};

use crate::number;
use crate::text::layout::paragraph::paragraph;
use crate::text::noise::culprits::CPUS;

/// What the hypervisor took, CPU by CPU, and of all together where they are many. Nothing where
/// it took nothing, or no clock says so.
pub(crate) fn steal(summary: &NoiseSummary) -> String {
    let cpus = summary.cpus.iter();
    let mut each: Vec<(String, &StealSummary)> = cpus
        .filter_map(|cpu| Some((format!("CPU {}", cpu.cpu), cpu.steal.as_ref()?)))
        .collect();
    if each.is_empty() && summary.culprits.iter().any(|c| c.kind == CulpritKind::Steal) {
        let text = "\"steal\": in recordings of this version a guess: gaps without an event, the \
                    longest first, as long as /proc/stat counted.";
        return "\n".to_owned() + &paragraph("", text);
    }
    if each.len() > CPUS {
        let all = summary.steal.as_ref().map(|all| ("All CPUs".to_owned(), all));
        each = all.into_iter().collect();
    }
    let is_some = |(_, steal): &(String, &StealSummary)| !steal.at_most_ns.is_zero();
    let said: String = each
        .iter()
        .filter(|each| is_some(each))
        .map(|(who, steal)| took(who, steal))
        .collect();
    if said.is_empty() { said } else { "\n".to_owned() + &said }
}

/// A paragraph about what the hypervisor took of these CPUs.
fn took(who: &str, steal: &StealSummary) -> String {
    let [least, most, proven, unexplained, others] = [
        steal.at_least_ns,
        steal.at_most_ns,
        steal.proven_ns,
        steal.unexplained_max_ns,
        steal.others_min_ns,
    ]
    .map(number::duration);
    let text = if steal.clock == "paravirt" {
        let all = if least == most { most } else { format!("{least} to {most}") };
        format!(
            "{who}: the hypervisor took {all} (steal time, read at each tick and switch). {proven} \
             of it are proven to be gaps (\"steal\" above), up to {unexplained} more may be \
             unexplained gaps, and at least {others} fell into the time of threads and interrupts."
        )
    } else {
        format!(
            "{who}: the hypervisor took {least} to {most} (steal time, which /proc/stat counts in \
             steps of 10 ms). {proven} of it are proven to be gaps (\"steal\" above), up to \
             {unexplained} more may be unexplained gaps."
        )
    };
    paragraph("", &text)
}
