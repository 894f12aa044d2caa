//! Facts and labels that go with noise.

use summary::{FleetGroup, FleetSummary};

use crate::document::Document;
use crate::document::table::{Column, Table};
use crate::document::text::{Text, text};
use crate::fleet::facts::fact_text;
use crate::number;

/// The most groups on one screen, and in all.
const SCREEN: usize = 3;
const ALL: usize = 60;
/// The most facts of a group on one screen, and in all.
const FACTS: [usize; 2] = [2, 12];

/// One row for each group; a sentence if there is none.
pub(super) fn section(fleet: &FleetSummary) -> Document {
    if fleet.groups.is_empty() {
        let text = match (fleet.tested, fleet.noisy.is_empty()) {
            (0, _) => "No fact or label differs between nodes, as far as known.",
            (_, false) => {
                "No fact or label goes with noise more often than by chance: see --labels for racks \
                 and roles."
            }
            (_, true) => return Document::default(),
        };
        return text.into();
    }
    let table = |most: usize, facts: usize| rows(fleet, most, facts);
    let both = Document::default().add_or(table(ALL, FACTS[1]), table(SCREEN, FACTS[0]));
    Document::section("Facts and labels that go with noise", both)
}

fn rows(fleet: &FleetSummary, most: usize, facts: usize) -> Table {
    let shown = &fleet.groups[..most.min(fleet.groups.len())];
    let value = |value: f64| number::in_unit(value, fleet.unit);
    let table = Table::of(shown)
        .number("nodes", |group| group.nodes)
        .number("noisy", |group| group.noisy)
        .number("median", |group| value(group.median))
        .number("others", |group| value(group.others))
        .number("chance", |group| chance(group.p_value))
        .column(Column::prose("fact or label"), |group| names(group, facts))
        .table;
    let left_out = fleet.groups.len() - shown.len();
    table.rest(number::more(left_out, "more groups")).legend(
        "chance: the probability that so many of them are noisy, or above the median, by chance, \
         adjusted for all tests",
    )
}

fn names(group: &FleetGroup, most: usize) -> Text {
    Text::first(most, group.facts.iter().map(fact_text).collect(), ", ")
}

fn chance(p: f64) -> Text {
    match p {
        ..0.0001 => Text::number("<0.01 %"),
        p => text!("{}", number::share(units::Ppm::new(p * 1e6))),
    }
}
