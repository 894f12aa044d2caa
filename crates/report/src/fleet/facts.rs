//! Facts and labels that differ between nodes, with the nodes that have each value.

use serde_json::Value;
use summary::{DifferingFact, FactNodes, FleetFact, FleetSummary};

use crate::comparisons::differing;
use crate::document::Document;
use crate::document::table::Table;
use crate::document::text::{Text, text};
use crate::number;

/// Prefixes of keys, and what stands for them.
const PREFIXES: [(&str, &str); 5] = [
    ("label.", ""),
    ("settings.values.", ""),
    ("settings.options.", "CONFIG_"),
    ("settings.configured.", "configured "),
    ("measurement.", "measurement's "),
];
/// The most facts on one screen, and of values.
const SCREEN: usize = 5;
const VALUES: usize = 4;
/// The most named nodes of a value.
const NAMES: usize = 4;
/// The longest value.
const VALUE: usize = 120;

/// A fact in words: `kernel release 6.1.0`.
pub(super) fn fact_text(fact: &FleetFact) -> Text {
    text_of(&fact.key, &fact.value)
}

/// The same from its parts.
pub(super) fn text_of(key: &str, value: &Value) -> Text {
    text!("{} {}", label(key), value_text(key, value))
}

fn label(key: &str) -> Text {
    if key == "boot.parameters" {
        return "boot parameter".into();
    }
    let prefix = PREFIXES.iter().find_map(|(begin, words)| {
        Some(text!("{}{}", *words, Text::name(key.strip_prefix(begin)?)))
    });
    prefix.unwrap_or_else(|| differing::label(key))
}

fn value_text(key: &str, value: &Value) -> Text {
    let words = differing::words(key, value);
    let long = words.to_string();
    match long.char_indices().nth(VALUE) {
        Some((end, _)) => Text::name(format!("{}…", &long[..end])),
        None => words,
    }
}

/// The facts that differ: on one screen the first ones, and those that differ everywhere not.
pub(super) fn section(fleet: &FleetSummary) -> Document {
    let (individual, shared): (Vec<&DifferingFact>, Vec<_>) =
        fleet.facts.iter().partition(|fact| fact.is_individual);
    let all = shared.len() + individual.len();
    if all == 0 {
        return Document::default();
    }
    let names: Vec<Text> =
        shared.iter().chain(&individual).map(|fact| label(&fact.key)).collect();
    let short = text!(
        "{} between nodes: {}.",
        match all {
            1 => text!("1 fact differs"),
            all => text!("{} facts differ", all),
        },
        Text::first(SCREEN, names, ", ")
    );
    let names = individual.iter().map(|fact| label(&fact.key)).collect::<Vec<_>>();
    let individual = (!names.is_empty()).then(|| {
        text!(
            "Different on most nodes, and therefore not tested: {}.",
            Text::join(names, ", ")
        )
    });
    let long =
        Document::section("Facts and labels that differ", table(&shared)).add(individual);
    Document::default().add_or(long, short)
}

fn table(facts: &[&DifferingFact]) -> Table {
    Table::terms(facts.iter().map(|fact| {
        let mut values: Vec<Text> =
            fact.values.iter().take(VALUES).map(|one| nodes(&fact.key, one)).collect();
        let more = fact.count.saturating_sub(VALUES);
        values.extend((more > 0).then(|| text!("{} more values", more)));
        [label(&fact.key), Text::join(values, "; ")]
    }))
}

/// A value with its nodes.
fn nodes(key: &str, one: &FactNodes) -> Text {
    let names = one.names.iter().take(NAMES).map(Text::name);
    let names = Text::join(names, ", ");
    let names = match one.nodes.saturating_sub(NAMES) {
        0 => names,
        more => text!("{}, {} more", names, more),
    };
    text!(
        "{} ({}: {})",
        value_text(key, &one.value),
        number::counted(one.nodes as u64, "node"),
        names
    )
}
