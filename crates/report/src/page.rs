//! The page of facts for the terminal: group by group, each fact with its value in words
//! and, at the right margin, where it was read; below them those that are not known.

use facts::{Entry, Facts};

use crate::paragraph::{WIDTH, paragraph, wrapped};
use crate::table::{Side, aligned, columns};
use crate::value;

/// Where values start.
const INDENT: usize = 23;

/// All facts as text.
pub fn facts_text(facts: &Facts) -> String {
    let page = facts.page();
    page.groups().map(group).collect::<Vec<_>>().join("\n")
}

fn group(entries: &[Entry]) -> String {
    let title = entries.first().map_or("", |entry| title(entry.group()));
    let known: String = entries.iter().map(known).collect();
    format!("{title}\n{known}{}", unknown(entries))
}

fn title(group: &'static str) -> &'static str {
    match group {
        "kernel" => "Kernel",
        "tick" => "Tick: the kernel's regular interruption of a CPU",
        "cpus" => "CPUs",
        "preempt" => "Preemption: may a task be interrupted inside the kernel?",
        "sched" => "Scheduler",
        "irq" => "Interrupts",
        "clock" => "Clock",
        "virt" => "Virtualisation",
        "power" => "Power",
        "cgroup" => "Control group of this process",
        "security" => "What this process may do",
        "tracing" => "Tracing: what this kernel can tell about itself",
        "boot" => "Boot parameters",
        other => other,
    }
}

/// A fact's lines; nothing where it is not known.
fn known(entry: &Entry) -> String {
    let Ok(value) = &entry.value else { return String::new() };
    let lead = aligned(&format!("  {}", value::label(entry.name())), INDENT, Side::Left);
    let text = paragraph(&lead, &value::words(entry.key, value));
    with_source(&text, &entry.source)
}

/// Puts the source at the right margin: of the last line where there is room, else of
/// lines of its own.
fn with_source(text: &str, source: &str) -> String {
    let text = text.trim_end();
    let used = text.lines().last().map_or(0, columns);
    if source.is_empty() {
        format!("{text}\n")
    } else if used + 2 + columns(source) <= WIDTH {
        format!("{text}{}\n", aligned(source, WIDTH - used, Side::Right))
    } else {
        let lines = wrapped(source, WIDTH - 2);
        let lines = lines.iter().map(|line| aligned(line, WIDTH, Side::Right) + "\n");
        format!("{text}\n{}", lines.collect::<String>())
    }
}

/// The facts that are not known, those with the same reason together. Where they would
/// have been read, reasons mostly say; JSON always does.
fn unknown(entries: &[Entry]) -> String {
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for entry in entries {
        let Err(unknown) = &entry.value else { continue };
        let label = value::label(entry.name());
        match reasons.iter_mut().find(|(reason, _)| *reason == unknown.text) {
            Some((_, labels)) => labels.push(label),
            None => reasons.push((&unknown.text, vec![label])),
        }
    }
    let lines = reasons.iter().enumerate().map(|(at, (reason, labels))| {
        let lead = if at == 0 { "  not known" } else { "" };
        let lead = aligned(lead, INDENT, Side::Left);
        paragraph(&lead, &format!("{}: {reason}", labels.join(", ")))
    });
    lines.collect()
}
