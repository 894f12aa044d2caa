//! The reference of the rules of advice, in Markdown: `docs/advice.md`.

use advise::{Change, Rule, Table, general_action};

use crate::document::list::{Item, List};
use crate::document::text::{Text, text};
use crate::document::{Content, Document};

/// The reference of all rules, by subject, in Markdown.
pub fn rules_reference() -> String {
    let tables = advise::tables();
    let count: usize = tables.iter().map(|table| table.rules.len()).sum();
    let document = Document::default()
        .add(Content::Title("Advice".into()))
        .add(text!(
            "The {} rules of {}, by subject. Each has the condition under which it holds, with the kernels for which that \
             is known, what it changes, what becomes better and worse, and where that is documented. This file is \
             generated from the tables in {}: do not edit it.",
            count.to_string(),
            Text::command("noisefloor advise"),
            Text::command("crates/advise/rules/"),
        ))
        .add_all(tables.iter().map(section));
    crate::markdown::markdown_text(&document)
}

/// The rules of one subject.
fn section(table: &Table) -> Document {
    Document::section(
        table.subject.as_str(),
        List::bullets(table.rules.iter().map(reference)),
    )
}

/// One rule.
fn reference(rule: &Rule) -> Item {
    let goals: Vec<&str> = rule.goals.iter().map(|goal| goal.name()).collect();
    let goals = if goals.is_empty() { "all".to_owned() } else { goals.join(", ") };
    let when = rule.when.iter().map(|condition| Text::command(condition.to_string()));
    Item::new(text!(
        "{}: {}. {}",
        Text::command(&*rule.name),
        planned(&rule.change),
        &*rule.reason
    ))
    .and(text!("Gain: {} Price: {}", &*rule.gain, &*rule.price))
    .and(text!(
        "If {}; {}; goals: {}. Source: {}",
        Text::join(when, " and "),
        rule.kernels.to_string(),
        goals,
        &*rule.source
    ))
}

/// A change of a rule, in words.
fn planned(change: &Change) -> Text {
    match change {
        Change::Set { name, to } => {
            text!("set {} to {}", Text::command(&**name), Text::command(&**to))
        }
        Change::Boot { parameter } => text!("boot with {}", Text::command(&**parameter)),
        Change::Unboot { parameter } => {
            text!("remove {} from the boot parameters", Text::command(&**parameter))
        }
        Change::Build { option, to } => {
            text!("use a kernel with {}", Text::command(format!("CONFIG_{option}={to}")))
        }
        Change::Action { text } => general_action(text).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the reference in `docs/` is that of the tables.
    #[test]
    fn reference_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/advice.md");
        let stored = std::fs::read_to_string(path).unwrap();
        assert!(
            stored == rules_reference(),
            "docs/advice.md is out of date; hint: cargo run -- generate advice docs"
        );
    }
}
