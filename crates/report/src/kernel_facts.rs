//! The report of `facts`: group by group, each fact with its value in words and its source; below them
//! the unknown ones, with the reason.

pub(crate) mod value;

use facts::{Entry, Facts};
use serde_json::Value;

use crate::document::Document;
use crate::document::table::{Column, Table, cells};
use crate::document::text::{Text, text};
use crate::grouped::grouped;

/// All facts.
pub fn facts_document(facts: &Facts) -> Document {
    let mut document = Document::default();
    for entries in facts.page().groups() {
        let name = entries.first().map_or("", |entry| entry.group());
        document = document.heading(title(name));
        document = document.add(table(entries));
    }
    document.titled("noisefloor facts")
}

/// The known facts of a group, and the unknown ones.
fn table(entries: &[Entry]) -> Table {
    let mut table = Table::new([Column::words(""), Column::prose(""), Column::margin()]);
    for entry in entries {
        let Ok(value) = &entry.value else { continue };
        let values = value::lines(entry.key, value);
        add(&mut table, &value::label(entry.name()), values, &entry.source);
    }
    if entries.iter().any(has_hidden) {
        let why = "values of parameters that noisefloor does not know are neither shown nor \
                   recorded: they may be passwords or keys";
        add(&mut table, "\"...\"", vec![why.into()], "");
    }
    add(&mut table, "unknown", unknown(entries), "");
    table
}

/// Adds a row for each value; the first has the label, the last the source.
fn add(table: &mut Table, label: &str, values: Vec<Text>, source: &str) {
    let last = values.len().saturating_sub(1);
    for (at, value) in values.into_iter().enumerate() {
        let label = if at == 0 { label } else { "" };
        let source = if at == last { source } else { "" };
        table.row(cells![label, value, Text::name(source)]);
    }
}

/// Whether the values of some parameters are hidden.
fn has_hidden(entry: &Entry) -> bool {
    let is_hidden = |word: &Value| word.as_str().is_some_and(|it| it.ends_with("=..."));
    let list = entry.value.as_ref().ok().and_then(Value::as_array);
    list.is_some_and(|list| list.iter().any(is_hidden))
}

fn title(group: &'static str) -> &'static str {
    match group {
        "kernel" => "Kernel",
        "tick" => "Tick: the scheduling-clock interrupt",
        "cpus" => "CPUs",
        "preempt" => "Preemption of kernel code",
        "sched" => "Scheduler",
        "irq" => "Interrupts",
        "clock" => "Clock",
        "virt" => "Virtualisation",
        "power" => "Power",
        "hardware" => "Below the kernel: firmware, heat, frequency",
        "cgroup" => "Control group of this process",
        "pressure" => "Pressure: tasks that wait",
        "security" => "Privileges of this process, and CPU vulnerabilities",
        "tracing" => "Tracing",
        "boot" => "Boot parameters",
        "settings" => "Settings",
        other => other,
    }
}

/// The unknown facts, those with the same reason together. Most reasons name the source; JSON
/// always has it.
fn unknown(entries: &[Entry]) -> Vec<Text> {
    let reasons = entries.iter().filter_map(|entry| {
        let why = entry.value.as_ref().err()?;
        Some((&why.text, value::label(entry.name())))
    });
    let reasons = grouped(reasons).into_iter();
    reasons.map(|(why, labels)| text!("{}: {}", labels.join(", "), &**why)).collect()
}

#[cfg(test)]
mod tests {
    use crate::terminal::full_text;
    use insta::assert_snapshot;

    use crate::example::{self, GUEST};

    /// Check the text of facts: sources at the right, and reasons.
    #[test]
    fn page_of_facts() {
        let page = full_text(&crate::facts_document(&example::facts(GUEST)));
        let titles = ["Kernel", "Tick", "Scheduler", "Power", "Boot"];
        let is_listed =
            |group: &&str| titles.iter().any(|title| group.starts_with(title));
        let groups: Vec<&str> = page.split("\n\n").filter(is_listed).collect();
        assert_snapshot!(groups.join("\n\n"));
    }
}
