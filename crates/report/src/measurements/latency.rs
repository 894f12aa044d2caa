//! The report of `latency`: timer wake-up latency by CPU, and below it what a sample includes. Of
//! many CPUs, only those with the highest latencies are listed.

pub(crate) mod causes;
pub(crate) mod idle_states;

use std::cmp::Reverse;

use facts::Facts;
use recording::{LatencySpec, Source};
use summary::{CpuLatencySummary, LatencySummary, tick_hz};
use units::Nanos;

use crate::document::Document;
use crate::document::table::Table;
use crate::document::text::{Text, text};
use crate::measurements::latency::causes::causes;
use crate::measurements::latency::idle_states::idle_states;
use crate::measurements::ticks::words::cpus;
use crate::measurements::worst::Worst;
use crate::number;

/// What the legend does not say.
const MISSED: &str = "Each timer expiry is a sample. Missed ones are samples, too: they end with the same \
    reading of the clock as the one before.";

/// Of more CPUs than this, only [`WORST`] are listed.
const LISTED: usize = 24;
const WORST: usize = 16;

pub(crate) fn latency(
    facts: &Facts,
    spec: &LatencySpec,
    source: Option<Source>,
    summary: &LatencySummary,
) -> Document {
    Document::default()
        .add(title(spec, summary))
        .add(table(summary))
        .add(causes(source, summary))
        .add_full(MISSED)
        .add_full(slack(spec, summary))
        .add_full(idle_states(facts, summary))
        .add_full(low_resolution(facts))
        .add(steal(summary))
}

fn title(spec: &LatencySpec, summary: &LatencySummary) -> Text {
    let elapsed = summary.cpus.iter().map(|cpu| cpu.elapsed_ns).max();
    text!(
        "Timer wake-up latency of {} on {}: {} every {} for {}.",
        class(spec.fifo),
        cpus(&spec.cpus),
        spec.timer.name(),
        spec.interval_ns,
        number::measured(elapsed, spec.duration_ns),
    )
}

/// The scheduling class.
pub(crate) fn class(fifo: Option<u8>) -> String {
    fifo.map_or_else(
        || "an ordinary task".to_owned(),
        |priority| format!("a real-time task (SCHED_FIFO, priority {priority})"),
    )
}

fn table(summary: &LatencySummary) -> Table {
    let late = |cpu: &CpuLatencySummary| Some(cpu.late_ns.max?.as_secs_f64());
    let cpus = Worst::of(&summary.cpus, LISTED, WORST, late);
    Table::of(&cpus.listed)
        .number("CPU", |cpu| cpu.cpu.to_string())
        .number("samples", |cpu| cpu.samples)
        .number("missed", |cpu| number::short_count(cpu.missed))
        .numbers(["min", "median", "mean", "p99", "p99.9", "max"], |cpu| {
            let late = cpu.late_ns;
            [late.min, late.p50, late.mean, late.p99, late.p99_9, late.max]
                .map(number::any)
        })
        .table
        .rest(
            cpus.rest("have", "the highest latencies", |cpu| {
                number::any(cpu.late_ns.max)
            }),
        )
        .legend(legend(summary))
}

fn legend(summary: &LatencySummary) -> Text {
    let clock = summary.cpus.iter().map(|cpu| cpu.clock_ns).max();
    text!(
        "A sample: from a timer's expiry until the thread has read the clock ({} of it). \
         \"missed\": expiries while the thread was late for an earlier one.",
        number::any(clock)
    )
}

fn slack(spec: &LatencySpec, summary: &LatencySummary) -> Text {
    let slack = summary.cpus.iter().map(|cpu| cpu.slack_ns).max().unwrap_or(Nanos::ZERO);
    if slack.is_zero() {
        return Text::default();
    }
    text!(
        "Up to {} of each sample is timer slack: to save interrupts, the kernel may delay the \
         {} of an ordinary task by this much. A timerfd ({}) and real-time tasks ({}) have no \
         slack.",
        slack,
        spec.timer.name(),
        Text::command("--timer timerfd"),
        Text::command("--fifo"),
    )
}

fn low_resolution(facts: &Facts) -> Text {
    match (facts.tick.high_res.get(), tick_hz(facts)) {
        (Some(false), Some(hz)) => text!(
            "This kernel has no high-resolution timers: timers expire at ticks only, {} times per \
             second.",
            hz.get().to_string()
        ),
        _ => Text::default(),
    }
}

/// The steal time of the CPU that has the most, if any.
fn steal(summary: &LatencySummary) -> Text {
    let all = summary.cpus.iter().filter_map(|cpu| Some((cpu.proc.steal_ns?, cpu.cpu)));
    match all.max_by_key(|(steal, cpu)| (*steal, Reverse(*cpu))) {
        Some((most, cpu)) if !most.is_zero() => {
            text!("Steal time of CPU {} during the measurement: {}.", cpu, most)
        }
        _ => Text::default(),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use crate::example::latency as latency_example;
    use crate::example::{self, GUEST, METAL};
    use crate::measurements::{recording_document, text_of};
    use crate::terminal::screen_text;
    use summary::Summary;

    /// Check `latency` of ordinary tasks in a guest.
    #[test]
    fn latency_of_a_guest() {
        assert_snapshot!(text_of(&latency_example::latency(GUEST, 2)));
    }

    /// Check the causes of late wake-ups on one screen, and all of them.
    #[test]
    fn causes_of_late_wakeups() {
        let recording = latency_example::with_causes(latency_example::latency(METAL, 2));
        let document = recording_document(&recording, &Summary::of(&recording));
        assert_snapshot!(screen_text(&document));
        assert_snapshot!(text_of(&recording));
    }

    /// Check `latency` of real-time tasks on many CPUs, with wide numbers.
    #[test]
    fn latency_of_many() {
        assert_snapshot!(text_of(&example::wide(latency_example::latency(METAL, 30))));
    }
}
