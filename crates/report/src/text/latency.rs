//! The table of `latency`: how late a timer woke a thread of each CPU, and below it what a
//! sample is and what made some late on purpose.
//!
//! With many CPUs the latest are listed, and one line says what bounds the others.

pub(crate) mod idle_states;

use std::cmp::Reverse;

use facts::Facts;
use recording::{Doubt, LatencySeries, LatencySpec};
use stats::{CpuLatencySummary, LatencySummary, tick_hz};
use units::Nanos;

use crate::number;
use crate::text::latency::idle_states::idle_states;
use crate::text::layout::doubts::doubts;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table};
use crate::text::ticks::words::cpus;

/// More CPUs than this are cut to [`LATEST`].
const LISTED: usize = 24;
const LATEST: usize = 16;

/// All of `latency`.
pub(crate) fn latency_text(
    facts: &Facts,
    spec: &LatencySpec,
    series: &LatencySeries,
    reasons: &[Doubt],
) -> String {
    let summary = LatencySummary::of(spec, series);
    let shown = latest(&summary);
    let mut text = paragraph("", &title(spec, &summary)) + "\n";
    text.push_str(&table(&shown));
    text.push_str(&left_out(&summary, shown.len()));
    text.push('\n');
    text.push_str(&paragraph("", &words(&summary)));
    let idle = Some(idle_states(facts, &summary));
    for sentence in [slack(spec, &summary), idle, coarse(facts), stolen(&summary)] {
        let sentence =
            sentence.map(|sentence| "\n".to_owned() + &paragraph("", &sentence));
        text.push_str(&sentence.unwrap_or_default());
    }
    text.push_str(&doubts(reasons));
    text
}

fn title(spec: &LatencySpec, summary: &LatencySummary) -> String {
    let took = summary.cpus.iter().map(|cpu| cpu.elapsed_ns).max();
    let class = spec.fifo.map_or_else(
        || "an ordinary task".to_owned(),
        |priority| format!("a real-time task of priority {priority} (SCHED_FIFO)"),
    );
    format!(
        "Latency: how late a timer ({}) woke {class}, every {} for {} on {}.",
        spec.timer.name(),
        number::duration(spec.interval_ns),
        number::measured(took, spec.duration_ns),
        cpus(&spec.cpus),
    )
}

/// All CPUs, or of too many those with the latest samples.
fn latest(summary: &LatencySummary) -> Vec<&CpuLatencySummary> {
    let mut cpus: Vec<&CpuLatencySummary> = summary.cpus.iter().collect();
    if cpus.len() > LISTED {
        cpus.sort_by_key(|cpu| (Reverse(cpu.late_ns.max), cpu.cpu));
        cpus.truncate(LATEST);
    }
    cpus
}

/// What is to be known of the CPUs that are not listed; nothing where all are.
fn left_out(summary: &LatencySummary, shown: usize) -> String {
    let mut latest: Vec<Option<Nanos>> =
        summary.cpus.iter().map(|cpu| cpu.late_ns.max).collect();
    latest.sort_by_key(|late| Reverse(*late));
    let Some(next) = latest.get(shown) else { return String::new() };
    let (count, most) = (latest.len() - shown, number::any(*next, number::duration));
    let text = format!(
        "These were latest; on {count} more CPUs no thread was later than {most} (see \
         --json)."
    );
    paragraph("  ", &text)
}

fn table(shown: &[&CpuLatencySummary]) -> String {
    let words = [
        "CPU", "samples", "missed", "least", "typical", "mean", "p99", "p99.9", "latest",
    ];
    let mut table = Table::new(1, &words.map(|word| (word, Side::Right)));
    for cpu in shown {
        let late = cpu.late_ns;
        let late = [late.min, late.p50, late.mean, late.p99, late.p99_9, late.max];
        let counts = [number::count(cpu.samples), number::short_count(cpu.missed)];
        let late = late.map(|late| number::any(late, number::duration));
        table.row(std::iter::once(cpu.cpu.to_string()).chain(counts).chain(late));
    }
    table.text()
}

fn words(summary: &LatencySummary) -> String {
    let clock = summary.cpus.iter().map(|cpu| cpu.clock_ns).max();
    format!(
        "Each expiry of the timer is a sample: how long it took from there until the thread \
         had read the clock ({} of it). \"missed\": expiries that came while it was still \
         late for an earlier one; they are samples too, each as late as it was answered. \
         \"typical\": half of the samples were not later; \"p99\": 99 of 100; \"p99.9\": 999 \
         of 1000.",
        number::any(clock, number::duration)
    )
}

/// Who is late on purpose.
fn slack(spec: &LatencySpec, summary: &LatencySummary) -> Option<String> {
    let slack = summary.cpus.iter().map(|cpu| cpu.slack_ns).max()?;
    let timer = spec.timer.name();
    (!slack.is_zero()).then(|| {
        format!(
            "Up to {} of each sample are on purpose: so much later the kernel may end an \
             ordinary task's {timer} (its timer slack), to be interrupted less often. A \
             timerfd (--timer timerfd) and real-time tasks (--fifo) have no slack.",
            number::duration(slack)
        )
    })
}

/// Timers that can only expire with the tick.
fn coarse(facts: &Facts) -> Option<String> {
    let is_coarse = facts.tick.high_res.get() == Some(&false);
    let hz = tick_hz(facts).filter(|_| is_coarse)?.get();
    Some(format!(
        "This kernel has no high-resolution timers: they expire with the tick only, {hz} \
         times a second."
    ))
}

/// What the hypervisor took, where it says so.
fn stolen(summary: &LatencySummary) -> Option<String> {
    let stolen = summary.cpus.iter().filter_map(|cpu| cpu.meanwhile.steal_ns);
    let most = stolen.max().filter(|stolen| !stolen.is_zero())?;
    let cpus = summary.cpus.iter().filter(|cpu| cpu.meanwhile.steal_ns == Some(most));
    Some(format!(
        "Meanwhile the hypervisor took {} from CPU {} (steal).",
        number::duration(most),
        cpus.map(|cpu| cpu.cpu).next()?
    ))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use crate::example::latency as latency_example;
    use crate::example::{self, GUEST, METAL};
    use crate::text;

    /// Check `latency` of ordinary tasks in a guest.
    #[test]
    fn latency_of_a_guest() {
        assert_snapshot!(text(&latency_example::latency(GUEST, 2)), @r#"
    Latency: how late a timer (clock_nanosleep) woke an ordinary task, every 1 ms
    for 2 s on CPUs 0,1.

     CPU  samples  missed    least  typical     mean      p99    p99.9   latest
       0     1980       0    54 µs  56.8 µs  56.9 µs  60.2 µs  60.3 µs  60.3 µs
       1     2000      19  54.0 µs  56.9 µs   161 µs  60.3 µs    18 ms    20 ms

    Each expiry of the timer is a sample: how long it took from there until the
    thread had read the clock (27 ns of it). "missed": expiries that came while it
    was still late for an earlier one; they are samples too, each as late as it was
    answered. "typical": half of the samples were not later; "p99": 99 of 100;
    "p99.9": 999 of 1000.

    Up to 50 µs of each sample are on purpose: so much later the kernel may end an
    ordinary task's clock_nanosleep (its timer slack), to be interrupted less often.
    A timerfd (--timer timerfd) and real-time tasks (--fifo) have no slack.

    Idle states that could be entered: POLL (0 ns to wake up), haltpoll idle (1 µs
    to wake up). The CPU latency limit (PM QoS) is not known: only root can read
    /dev/cpu_dma_latency. The CPUs were in haltpoll idle for 94.4 % of the time.
    Samples include the time to wake up from them. With --dma-latency 0 only the
    first is allowed, which is cyclictest's default.

    Meanwhile the hypervisor took 20 ms from CPU 1 (steal).
    "#);
    }

    /// Check `latency` of real-time tasks on many CPUs, with wide numbers.
    #[test]
    fn latency_of_many() {
        assert_snapshot!(text(&example::wide(latency_example::latency(METAL, 30))), @r#"
    Latency: how late a timer (clock_nanosleep) woke a real-time task of priority 80
    (SCHED_FIFO), every 1 ms for 206 min on CPUs 0-29.

     CPU     samples  missed    least  typical     mean      p99    p99.9   latest
     700  12,347,658  12.3 M     4 µs  103 min  103 min  204 min  206 min  206 min
     701  12,347,658  12.3 M  4.00 µs  103 min  103 min  204 min  206 min  206 min
     702  12,347,658  12.3 M  4.00 µs  103 min  103 min  204 min  206 min  206 min
     703  12,347,658  12.3 M  4.00 µs  103 min  103 min  204 min  206 min  206 min
     704  12,347,658  12.3 M  4.00 µs  103 min  103 min  204 min  206 min  206 min
     705  12,347,658  12.3 M  4.01 µs  103 min  103 min  204 min  206 min  206 min
     706  12,347,658  12.3 M  4.01 µs  103 min  103 min  204 min  206 min  206 min
     707  12,347,658  12.3 M  4.01 µs  103 min  103 min  204 min  206 min  206 min
     708  12,347,658  12.3 M  4.01 µs  103 min  103 min  204 min  206 min  206 min
     709  12,347,658  12.3 M  4.01 µs  103 min  103 min  204 min  206 min  206 min
     710  12,347,658  12.3 M  4.01 µs  103 min  103 min  204 min  206 min  206 min
     711  12,347,658  12.3 M  4.01 µs  103 min  103 min  204 min  206 min  206 min
     712  12,347,658  12.3 M  4.01 µs  103 min  103 min  204 min  206 min  206 min
     713  12,347,658  12.3 M  4.01 µs  103 min  103 min  204 min  206 min  206 min
     714  12,347,658  12.3 M  4.01 µs  103 min  103 min  204 min  206 min  206 min
     715  12,347,658  12.3 M  4.02 µs  103 min  103 min  204 min  206 min  206 min
      These were latest; on 14 more CPUs no thread was later than 206 min (see
      --json).

    Each expiry of the timer is a sample: how long it took from there until the
    thread had read the clock (27 ns of it). "missed": expiries that came while it
    was still late for an earlier one; they are samples too, each as late as it was
    answered. "typical": half of the samples were not later; "p99": 99 of 100;
    "p99.9": 999 of 1000.

    Idle states that could be entered: POLL (0 ns to wake up); not C1 (2 µs to wake
    up), C6 (133 µs to wake up). The CPU latency limit is 0 ns (PM QoS,
    /dev/cpu_dma_latency). Without this limit CPUs enter deeper idle states, and
    samples include the time to wake up from them.

    Meanwhile the hypervisor took 40 ms from CPU 702 (steal).
    "#);
    }
}
