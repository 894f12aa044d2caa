//! The noisy nodes, each with what takes its time and what it has that others have not.

use summary::{FleetGroup, FleetSummary, NoisyNode, SourceExcess};

use crate::document::Document;
use crate::document::table::{Column, Table};
use crate::document::text::{Text, text};
use crate::fleet::facts::{fact_text, text_of};
use crate::measurements::noise::culprits::of_kind;
use crate::number;

/// The most nodes on one screen, and in all.
const SCREEN: usize = 8;
const ALL: usize = 200;
/// The most sources, groups and rare facts of a node.
const SOURCES: usize = 2;
const GROUPS: usize = 2;
const RARE: usize = 3;

/// One row for each noisy node.
pub(super) fn table(fleet: &FleetSummary) -> Document {
    let (long, short) = (rows(fleet, ALL, why), rows(fleet, SCREEN, in_short));
    Document::default().add_or(long, short)
}

fn rows(
    fleet: &FleetSummary,
    most: usize,
    why: fn(&FleetSummary, &NoisyNode) -> Text,
) -> Table {
    let shown = &fleet.noisy[..most.min(fleet.noisy.len())];
    let has_sources = shown.iter().any(|one| one.sources.is_some());
    let head = if has_sources { "why (part of the excess)" } else { "why" };
    let has_several = shown.iter().any(|one| one.node.recordings > 1);
    let mut table = Table::of(shown)
        .column(Column::name("node", 8..=24), |one| Text::name(&one.node.node))
        .number("value", |one| number::in_unit(one.node.value, fleet.unit))
        .number("× median", |one| number::any(one.times.map(number::factor)));
    if has_several {
        table = table
            .number("runs", |one| one.node.recordings)
            .number("spread", |one| number::any(one.spread.map(spread)));
    }
    let table = table.column(Column::prose(head), |one| why(fleet, one)).table;
    let left_out = fleet.noisy.len() - shown.len();
    let rest =
        number::more(left_out, if left_out == 1 { "more node" } else { "more nodes" });
    let legend = match has_several {
        true => "spread: the factor by which a node's own recordings typically differ",
        false => "",
    };
    table.rest(rest).legend(legend)
}

fn spread(factor: f64) -> Text {
    text!("×{}", number::factor(factor))
}

/// The largest source in few words; other reasons only if none is known.
fn in_short(fleet: &FleetSummary, node: &NoisyNode) -> Text {
    let Some(largest) = node.sources.iter().flatten().next() else {
        return why(fleet, node);
    };
    let name = of_kind(largest.kind, Text::name(&largest.name));
    match largest.part_ppm {
        Some(part) => text!("{} ({})", name, number::share(part)),
        None => name,
    }
}

/// The groups of a node that are noisier than the others, the most certain first.
fn groups<'a>(
    fleet: &'a FleetSummary,
    node: &'a NoisyNode,
) -> impl Iterator<Item = &'a FleetGroup> {
    let groups = node.groups.iter().filter_map(|at| fleet.groups.get(*at));
    groups.filter(|group| group.by_noisy || group.median > group.others)
}

/// The reasons, the most certain ones first.
fn why(fleet: &FleetSummary, node: &NoisyNode) -> Text {
    let sources = node.sources.iter().flatten().take(SOURCES).map(source);
    let groups = groups(fleet, node).take(GROUPS).map(|group| {
        let fact = group.facts.first().map(fact_text);
        text!("{} ({} of {} such nodes)", fact, group.noisy, group.nodes)
    });
    let rare = node.rare.iter().take(RARE).map(|one| {
        let fact = text_of(&one.key, &one.value);
        match one.nodes {
            1 => text!("alone has {}", fact),
            nodes => text!("has {}, as {} nodes", fact, nodes),
        }
    });
    let all: Vec<Text> = sources.chain(groups).chain(rare).collect();
    match (all.is_empty(), &node.sources) {
        (false, _) => Text::join(all, "; "),
        (true, Some(_)) => "no source, fact or label stands out".into(),
        (true, None) => {
            "unknown: events were not traced, and no fact or label stands out".into()
        }
    }
}

/// A source with its share, and the part of the excess that it is.
fn source(of: &SourceExcess) -> Text {
    let name = of_kind(of.kind, Text::name(&of.name));
    match of.part_ppm {
        Some(part) => text!(
            "{}: {} of the excess ({}, usually {})",
            name,
            number::share(part),
            number::share(of.ppm),
            number::share(of.median_ppm)
        ),
        None => {
            text!(
                "{}: {}, usually {}",
                name,
                number::share(of.ppm),
                number::share(of.median_ppm)
            )
        }
    }
}
