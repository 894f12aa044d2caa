//! The text of `facts`: group by group, each fact with its value in words and, at the right margin,
//! its source; below them the unknown ones, with the reason.

pub(crate) mod value;

use facts::{Entry, Facts};
use recording::printable;
use serde_json::Value;

use crate::text::layout::paragraph::{paragraph, wrapped};
use crate::text::layout::table::{Side, aligned, columns};
use crate::text::layout::width::width;

/// The column of values.
const INDENT: usize = 23;

/// All facts as text.
pub fn facts_text(facts: &Facts) -> String {
    let page = printable(facts).page();
    page.groups().map(group).collect::<Vec<_>>().join("\n")
}

fn group(entries: &[Entry]) -> String {
    let title = entries.first().map_or("", |entry| title(entry.group()));
    let known: String = entries.iter().map(known).collect();
    format!("{title}\n{known}{}{}", hidden(entries), unknown(entries))
}

/// The reason why parameters have "..." for a value.
fn hidden(entries: &[Entry]) -> String {
    let is_hidden = |word: &Value| word.as_str().is_some_and(|it| it.ends_with("=..."));
    let mut lists =
        entries.iter().filter_map(|entry| entry.value.as_ref().ok()?.as_array());
    if !lists.any(|list| list.iter().any(is_hidden)) {
        return String::new();
    }
    let lead = aligned("  \"...\"", INDENT, Side::Left);
    let why = "values of parameters that noisefloor does not know are neither shown nor \
               recorded: they may be passwords or keys";
    paragraph(&lead, why)
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
        "cgroup" => "Control group of this process",
        "security" => "Privileges of this process",
        "tracing" => "Tracing",
        "boot" => "Boot parameters",
        other => other,
    }
}

/// The lines of a fact; empty if it is unknown.
fn known(entry: &Entry) -> String {
    let Ok(value) = &entry.value else { return String::new() };
    let lead = aligned(&format!("  {}", value::label(entry.name())), INDENT, Side::Left);
    let text = paragraph(&lead, &value::words(entry.key, value));
    with_source(&text, &entry.source)
}

/// Adds the source at the right margin: of the last line if it fits, else of separate lines.
fn with_source(text: &str, source: &str) -> String {
    let text = text.trim_end();
    let used = text.lines().last().map_or(0, columns);
    if source.is_empty() {
        format!("{text}\n")
    } else if used + 2 + columns(source) <= width() {
        format!("{text}{}\n", aligned(source, width() - used, Side::Right))
    } else {
        let lines = wrapped(source, width() - 2);
        let lines = lines.iter().map(|line| aligned(line, width(), Side::Right) + "\n");
        format!("{text}\n{}", lines.collect::<String>())
    }
}

/// The unknown facts, those with the same reason together. Most reasons name the source; JSON
/// always has it.
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
        let lead = if at == 0 { "  unknown" } else { "" };
        let lead = aligned(lead, INDENT, Side::Left);
        paragraph(&lead, &format!("{}: {reason}", labels.join(", ")))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use crate::example::{self, GUEST};

    /// Check the text of facts: sources at the right, and reasons.
    #[test]
    fn page_of_facts() {
        let page = crate::facts_text(&example::facts(GUEST));
        let titles = ["Kernel", "Tick", "Scheduler", "Power", "Boot"];
        let is_listed =
            |group: &&str| titles.iter().any(|title| group.starts_with(title));
        let groups: Vec<&str> = page.split("\n\n").filter(is_listed).collect();
        assert_snapshot!(groups.join("\n\n"), @r#"
        Kernel
          release              6.12.48+deb13-cloud-amd64      /proc/sys/kernel/osrelease
          version              #1 SMP PREEMPT_DYNAMIC Debian 6.12.48-1 (2025-09-20)
          flavour              cloud
          distribution         Debian GNU/Linux 13 (trixie)
          arch                 x86_64
          config               /boot/config-6.12.48+deb13-cloud-amd64

        Tick: the scheduling-clock interrupt
          hz                   250 a second (CONFIG_HZ)
                                       /boot/config-6.12.48+deb13-cloud-amd64: CONFIG_HZ
          mode                 idle: stops on idle CPUs
          nohz_full            none
          divider              none
          high res             yes
          migration            yes                      /proc/sys/kernel/timer_migration

        Scheduler
          policy               eevdf
          rt runtime           950 ms
          rt period            1 s
          autogroup            yes
          rr timeslice         100 ms
          unknown              rt group, fair server runtime, min granularity, wakeup
                               granularity, features: not read by the version that wrote
                               this recording
                               base slice: /sys/kernel/debug/sched/base_slice_ns may be
                               read by root only
                               latency: gone since Linux 6.6, where EEVDF replaced CFS

        Power
          driver               none
          governor             none
          idle driver          haltpoll
          idle governor        haltpoll
          idle states          poll (exit latency 0 ns), haltpoll (exit latency 1 µs,
                               disabled)

        Boot parameters
          parameters           root=UUID=... ro quiet divider=10
          inert                divider=10: belongs to RHEL 5; today idle CPUs do not
                               tick, and the rate is CONFIG_HZ
          "..."                values of parameters that noisefloor does not know are
                               neither shown nor recorded: they may be passwords or keys
        "#);
    }
}
