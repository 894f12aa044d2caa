//! The report of `run`: how the program ended, its resource usage, the interrupts of its CPUs
//! and, if events were traced, its interruptions and their sources.

use recording::{
    CulpritKind, Ended, Picked, RunSeries, RunSpec, Source, Stopped, StoppedBy,
};
use summary::{Interruption, InterruptionsSummary, RunSummary};

use crate::document::Document;
use crate::document::table::{Column, Table};
use crate::document::text::{Text, text};
use crate::measurements::latency::class;
use crate::measurements::noise::culprits::{self, kind_word, source_words};
use crate::measurements::noise::proc_counters::interrupt_table;
use crate::measurements::program::beginning;
use crate::measurements::ticks::words::cpus;
use crate::number;

/// The number of sources listed for each interruption.
const PARTS: usize = 3;
/// The number of listed sources.
const LISTED: usize = 6;

pub(crate) fn run(spec: &RunSpec, series: &RunSeries, summary: &RunSummary) -> Document {
    let document = Document::from(title(spec, series))
        .add(usage(summary))
        .add_full(interrupts(summary));
    let (Some(source), Some(found)) = (series.source, &summary.interruptions) else {
        return document;
    };
    let document = document.add(interruptions(source, summary, found));
    if found.gaps == 0 {
        return document;
    }
    let all = culprits::table("count", &found.culprits, Some(found.own), LISTED);
    let longest = longest(found, spec.cpus.len() == 1);
    document
        .add(Document::section("Sources of all interruptions", all))
        .add_full(Document::section("The longest interruptions", longest))
}

fn title(spec: &RunSpec, series: &RunSeries) -> Text {
    let end = match series.ended {
        Ended::Exited(code) => format!("ended with exit code {code}"),
        Ended::Killed(signal) => format!("was killed by signal {signal}"),
    };
    text!(
        "{} {} after {}{}, on {}{}, as {}.",
        Text::name(beginning(&spec.command.to_string())),
        end,
        series.elapsed_ns,
        stopped(&series.stopped),
        cpus(&spec.cpus),
        why(spec.picked),
        class(spec.fifo),
    )
}

/// The time in which it was stopped, if it was.
fn stopped(parts: &[Stopped]) -> Option<Text> {
    let part = |part: &Stopped| {
        let by = match part.by {
            StoppedBy::Signal => "a signal",
            StoppedBy::Debugger => "a debugger",
            StoppedBy::Freezer => "the freezer of its cgroup",
            StoppedBy::Other => "something unknown",
        };
        text!("{} by {}", part.ns, by)
    };
    let all = Text::join(parts.iter().map(part), " and ");
    (!parts.is_empty()).then(|| text!(", stopped for {}", all))
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
    let is_stopped = !summary.stopped_ns.is_zero();
    let stopped = is_stopped.then(|| ("stopped", summary.stopped_ns.into()));
    let net = summary.net_ns.map(|net| ("net run time", net.into()));
    let times = [
        net.is_some().then(|| ("run time", summary.elapsed_ns.into())),
        summary.lost_ns.map(|lost| ("interruptions and steal time", lost.into())),
        stopped,
        net,
    ];
    let all = [
        ("user time", usage.user_ns.into()),
        ("system time", usage.system_ns.into()),
        ("voluntary context switches", usage.voluntary.into()),
        ("involuntary context switches", usage.involuntary.into()),
        ("minor page faults", usage.minor_faults.into()),
        ("major page faults (read from disk)", usage.major_faults.into()),
        ("steal time of the CPUs", number::known(summary.proc.steal_ns)),
    ];
    let rows: Vec<(&str, Text)> = times.into_iter().flatten().chain(all).collect();
    Table::of(&rows)
        .column(Column::words(""), |(name, _)| *name)
        .number("", |(_, value)| value.clone())
        .table
}

/// The interrupts of the CPUs, whether or not the program was running.
fn interrupts(summary: &RunSummary) -> Document {
    let lines = summary.proc.interrupts.as_deref();
    let unknown = lines.is_none().then_some(": unknown");
    Document::default()
        .heading(text!("Interrupts of {} during the run{}", cpus(&summary.cpus), unknown))
        .add(lines.map(interrupt_table))
}

fn interruptions(
    source: Source,
    summary: &RunSummary,
    found: &InterruptionsSummary,
) -> Text {
    let is_elsewhere = !summary.elsewhere.is_empty();
    let lengths = (found.gaps > 0).then(|| {
        let of = found.gap_ns;
        let [median, p99, longest] = [of.p50, of.p99, of.max].map(number::any);
        text!(" Median {}, p99 {}, longest {}.", median, p99, longest)
    });
    text!(
        "Interruptions, traced with {}: {}, {} in total, {} of the time in which the program was \
         runnable{}. They are interrupts while it ran, and preemptions by other threads.{}",
        source_words(source),
        found.gaps,
        found.noise_ns,
        number::known(found.noise_ppm),
        is_elsewhere.then(|| format!(" on {}", cpus(&summary.cpus))),
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
    let parts = interruption.culprits.iter();
    let parts = parts.map(|part| one_source(part.kind, &part.name));
    Text::first(PARTS, parts.collect(), ", ")
}

fn one_source(kind: CulpritKind, name: &str) -> Text {
    let kind = Some(kind_word(kind)).filter(|kind| !kind.is_empty());
    text!("{}{}", kind.map(|kind| format!("{kind} ")), Text::name(name))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::{Body, Stopped, StoppedBy, Words};
    use units::Nanos;

    use crate::example::{self, GUEST, METAL};
    use crate::measurements::text_of;

    /// Check `run` with traced events.
    #[test]
    fn run_with_interruptions() {
        assert_snapshot!(text_of(&example::run(GUEST)));
    }

    /// Check that the time in which a program was stopped is named, with and without traced events.
    #[test]
    fn run_that_was_stopped() {
        let texts = [GUEST, METAL].map(|of| {
            let mut recording = example::run(of);
            let Body::Run { spec, series } = &mut recording.body else { panic!() };
            spec.command = Words::new(["./compute".into()]);
            series.stopped = [(StoppedBy::Signal, 3), (StoppedBy::Freezer, 1)]
                .map(|(by, secs)| Stopped { by, ns: Nanos::from_secs(secs), count: 1 })
                .to_vec();
            let text = text_of(&recording);
            text.lines().take(8).collect::<Vec<_>>().join("\n")
        });
        assert_snapshot!(texts.join("\n[...]\n"));
    }

    /// Check `run` of a long command that was killed, without tracing.
    #[test]
    fn run_without_interruptions() {
        assert_snapshot!(text_of(&example::run(METAL)));
    }
}
