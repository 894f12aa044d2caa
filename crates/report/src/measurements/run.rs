//! The report of `run`: how the program ended, its resource usage, the interrupts of its CPUs
//! and, if events were traced, its interruptions and their sources.

use recording::{CulpritKind, Ended, Picked, RunSeries, RunSpec, Source};
use summary::{Interruption, InterruptionsSummary, RunSummary};
use units::CpuSet;

use crate::document::Document;
use crate::document::table::{Cell, Column, Table};
use crate::document::text::{Text, text};
use crate::measurements::latency::class;
use crate::measurements::noise::culprits::{self, kind_word, source_words};
use crate::measurements::noise::proc_counters::interrupt_table;
use crate::number;

/// A longer command is cut to this length.
const COMMAND: usize = 200;
/// The number of sources listed for each interruption.
const PARTS: usize = 3;
/// The number of listed sources.
const LISTED: usize = 6;

pub(crate) fn run(spec: &RunSpec, series: &RunSeries, summary: &RunSummary) -> Document {
    let mut document = Document::default();
    document.paragraph(title(spec, series));
    document.add(usage(summary));
    document.append(interrupts(summary).only_full());
    if let (Some(source), Some(found)) = (series.source, &summary.interruptions) {
        document.paragraph(interruptions(source, found));
        if found.gaps > 0 {
            let longest = longest(found, spec.cpus.len() == 1);
            let longest = Document::section("The longest interruptions", longest);
            let all = culprits::table("count", &found.culprits, Some(found.own), LISTED);
            let all = Document::section("Sources of all interruptions", all);
            document.append(all);
            document.append(longest.only_full());
        }
    }
    document
}

fn title(spec: &RunSpec, series: &RunSeries) -> Text {
    let end = match series.ended {
        Ended::Exited(code) => format!("ended with exit code {code}"),
        Ended::Killed(signal) => format!("was killed by signal {signal}"),
    };
    let whole = spec.command.to_string();
    let cut = whole.char_indices().nth(COMMAND);
    text!(
        "{}{} {} after {}, on {}{}, as {}.",
        Text::name(cut.map_or(&*whole, |(end, _)| &whole[..end])),
        cut.map(|_| "…"),
        end,
        series.elapsed_ns,
        named(&spec.cpus),
        why(spec.picked),
        class(spec.fifo),
    )
}

/// `CPU 1`, `CPUs 2-5`.
fn named(cpus: &CpuSet) -> Text {
    text!("CPU{} {}", if cpus.len() == 1 { "" } else { "s" }, cpus)
}

fn why(picked: Picked) -> &'static str {
    match picked {
        Picked::NohzFull => " (the first nohz_full CPU)",
        Picked::Isolated => " (the first isolated CPU)",
        Picked::LeastInterrupted => " (the one with the fewest interrupts since boot)",
        Picked::Asked | Picked::Other => "",
    }
}

fn usage(summary: &RunSummary) -> Table {
    let usage = &summary.usage;
    let time = |time| Cell::from(number::known(time));
    let count = |count| Cell::from(count);
    let mut table = Table::new([Column::words(""), Column::number("")]);
    let mut add = |name: &str, value| table.row([name.into(), value]);
    if summary.net_ns.is_some() {
        add("run time", time(Some(summary.elapsed_ns)));
        add("interruptions and steal time", time(summary.lost_ns));
        add("net run time", time(summary.net_ns));
    }
    add("user time", time(Some(usage.user_ns)));
    add("system time", time(Some(usage.system_ns)));
    add("voluntary context switches", count(usage.voluntary));
    add("involuntary context switches", count(usage.involuntary));
    add("minor page faults", count(usage.minor_faults));
    add("major page faults (read from disk)", count(usage.major_faults));
    add("steal time of the CPUs", time(summary.proc.steal_ns));
    table
}

/// The interrupts of the CPUs, whether or not the program was running.
fn interrupts(summary: &RunSummary) -> Document {
    let lines = summary.proc.interrupts.as_deref();
    let unknown = lines.is_none().then_some(": unknown");
    let mut document = Document::default();
    document.heading(text!(
        "Interrupts of {} during the run{}",
        named(&summary.cpus),
        unknown
    ));
    if let Some(lines) = lines {
        document.add(interrupt_table(lines));
    }
    document
}

fn interruptions(source: Source, found: &InterruptionsSummary) -> Text {
    let length = |length| number::any(length);
    let lengths = (found.gaps > 0).then(|| {
        text!(
            " Median {}, p99 {}, longest {}.",
            length(found.gap_ns.p50),
            length(found.gap_ns.p99),
            length(found.gap_ns.max)
        )
    });
    text!(
        "Interruptions, traced with {}: {}, {} in total, {} of the time in which the program was \
         runnable. They are interrupts while it ran, and preemptions by other threads.{}",
        source_words(source),
        found.gaps,
        found.noise_ns,
        number::known(found.noise_ppm),
        lengths,
    )
}

/// The longest interruptions; with their CPU, if the program had several.
fn longest(found: &InterruptionsSummary, is_one_cpu: bool) -> Table {
    let mut table = Table::of(&found.longest)
        .number("start", |one| one.start_ns)
        .number("duration", |one| one.ns);
    if !is_one_cpu {
        table = table.number("CPU", |one| number::any(one.cpu.map(Text::from)));
    }
    table.column(Column::prose("sources"), parts).table
}

fn parts(interruption: &Interruption) -> Text {
    let parts = interruption.culprits.iter().take(PARTS);
    Text::join(parts.map(|part| one_source(part.kind, &part.name)), ", ")
}

fn one_source(kind: CulpritKind, name: &str) -> Text {
    let kind = Some(kind_word(kind)).filter(|kind| !kind.is_empty());
    text!("{}{}", kind.map(|kind| format!("{kind} ")), Text::name(name))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use crate::example::{self, GUEST, METAL};
    use crate::measurements::text_of;

    /// Check `run` with traced events.
    #[test]
    fn run_with_interruptions() {
        assert_snapshot!(text_of(&example::run(GUEST)));
    }

    /// Check `run` of a long command that was killed, without tracing.
    #[test]
    fn run_without_interruptions() {
        assert_snapshot!(text_of(&example::run(METAL)));
    }
}
