//! `fleet`: which nodes are noisy, and why.

pub(crate) mod doubts;
mod facts;
mod groups;
mod noisy;

use summary::FleetSummary;

use crate::document::Document;
use crate::document::text::{Text, text};
use crate::json::object;
use crate::{metric_names, number};

/// The report of a fleet.
pub fn fleet_document(fleet: &FleetSummary) -> Document {
    Document::default()
        .add(verdict(fleet))
        .add(noisy::table(fleet))
        .add(groups::section(fleet))
        .add(facts::section(fleet))
        .add_full(quietest(fleet))
        .add_full(method(fleet))
        .add_full(metric_names::glossary([fleet.metric.as_str()]))
        .reasons(doubts::sentences(&fleet.doubts))
        .titled("noisefloor fleet")
}

/// The fleet as one JSON object.
///
/// # Errors
/// None that is known: all fields can be written.
pub fn fleet_json(fleet: &FleetSummary) -> serde_json::Result<String> {
    object("fleet", fleet)
}

/// How many nodes are noisy, beside what is usual.
fn verdict(fleet: &FleetSummary) -> Text {
    let metric = metric_names::name(&fleet.metric);
    let median = number::in_unit(fleet.median, fleet.unit);
    let nodes = number::counted(fleet.nodes as u64, "node");
    let of = text!(
        "{} of {}, {} of {}",
        metric,
        Text::name(&fleet.measurement),
        number::counted(fleet.recordings as u64, "recording"),
        taken(fleet)
    );
    let Some(limit) = fleet.limit else {
        let min = number::count(fleet.nodes_min as u64);
        return text!(
            "{}, median {} ({}). Fewer than {} nodes: none is called noisy.",
            nodes,
            median,
            of,
            min
        );
    };
    let limit = number::in_unit(limit, fleet.unit);
    let noisy = match fleet.noisy.len() {
        0 => text!("None of {} is noisy", nodes),
        1 => text!("1 of {} is noisy", nodes),
        more => text!("{} of {} are noisy", more, nodes),
    };
    text!(
        "{}: more than {}, where the median is {} ({}). In a fleet without a noisy node, one is \
         called noisy with a probability of {}.",
        noisy,
        limit,
        median,
        of,
        number::share(units::Ppm::new(fleet.false_alarm_rate * 1e6))
    )
}

/// When the recordings were taken, in days.
fn taken(fleet: &FleetSummary) -> Text {
    const DATE: usize = "2026-11-26".len();
    let [first, last] =
        fleet.taken.each_ref().map(|taken| taken.get(..DATE).unwrap_or(taken.as_str()));
    match first == last {
        true => Text::name(first),
        false => text!("{} to {}", Text::name(first), Text::name(last)),
    }
}

/// The range of the nodes that are not noisy.
fn quietest(fleet: &FleetSummary) -> Text {
    let order =
        |a: &&summary::NodeValue, b: &&summary::NodeValue| a.value.total_cmp(&b.value);
    let is_quiet = |one: &&summary::NodeValue| {
        !fleet.noisy.iter().any(|noisy| noisy.node.node == one.node)
    };
    let least = fleet.values.iter().min_by(order);
    let most = fleet.values.iter().filter(is_quiet).max_by(order);
    let Some((least, most)) = least.zip(most) else { return Text::default() };
    let value = |one: &summary::NodeValue| number::in_unit(one.value, fleet.unit);
    text!(
        "The quietest node is {} with {}; of those that are not noisy, the one with most is {} with \
         {}.",
        Text::name(&least.node),
        value(least),
        Text::name(&most.node),
        value(most)
    )
}

/// How noisy nodes and groups are found.
fn method(fleet: &FleetSummary) -> Text {
    let scales = fleet.scales.map(number::factor);
    text!(
        "A node has the median of its recordings. It is noisy if the logarithm of its value is more \
         than {} standard deviations above the median of the fleet, estimated from the median absolute \
         deviation, and the value at least a tenth larger; of nodes with lognormal noise, or noise of a \
         shorter tail, chance names one in 5 % of fleets at most. The {} ways in which facts and labels divide \
         the fleet are each tested twice with Fisher's exact test; the probability that any group is \
         listed by chance is 5 % at most (Holm).",
        number::any(scales),
        fleet.tested
    )
}

#[cfg(test)]
mod tests;
