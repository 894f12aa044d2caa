//! The table of `latency`: timer wake-up latency by CPU, and below it what a sample includes. Of
//! many CPUs, only those with the highest latencies are listed.

pub(crate) mod idle_states;

use std::cmp::Reverse;

use facts::Facts;
use recording::LatencySpec;
use summary::{CpuLatencySummary, LatencySummary, tick_hz};
use units::Nanos;

use crate::number;
use crate::text::latency::idle_states::idle_states;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table};
use crate::text::ticks::words::cpus;

/// Of more CPUs than this, only [`WORST`] are listed.
const LISTED: usize = 24;
const WORST: usize = 16;

pub(crate) fn latency_text(
    facts: &Facts,
    spec: &LatencySpec,
    summary: &LatencySummary,
) -> String {
    let listed = worst(summary);
    let mut text = paragraph("", &title(spec, summary)) + "\n";
    text.push_str(&table(&listed));
    text.push_str(&left_out(summary, listed.len()));
    text.push('\n');
    text.push_str(&paragraph("", &legend(summary)));
    let idle = Some(idle_states(facts, summary));
    for sentence in [slack(spec, summary), idle, low_resolution(facts), steal(summary)] {
        let sentence =
            sentence.map(|sentence| "\n".to_owned() + &paragraph("", &sentence));
        text.push_str(&sentence.unwrap_or_default());
    }
    text
}

fn title(spec: &LatencySpec, summary: &LatencySummary) -> String {
    let elapsed = summary.cpus.iter().map(|cpu| cpu.elapsed_ns).max();
    let class = spec.fifo.map_or_else(
        || "an ordinary task".to_owned(),
        |priority| format!("a real-time task (SCHED_FIFO, priority {priority})"),
    );
    format!(
        "Timer wake-up latency of {class} on {}: {} every {} for {}.",
        cpus(&spec.cpus),
        spec.timer.name(),
        number::duration(spec.interval_ns),
        number::measured(elapsed, spec.duration_ns),
    )
}

/// All CPUs, or of too many those with the highest maximum.
fn worst(summary: &LatencySummary) -> Vec<&CpuLatencySummary> {
    let mut cpus: Vec<&CpuLatencySummary> = summary.cpus.iter().collect();
    if cpus.len() > LISTED {
        cpus.sort_by_key(|cpu| (Reverse(cpu.late_ns.max), cpu.cpu));
        cpus.truncate(WORST);
    }
    cpus
}

/// A sentence about the CPUs that are not listed; empty if all are.
fn left_out(summary: &LatencySummary, listed: usize) -> String {
    let mut highest: Vec<Option<Nanos>> =
        summary.cpus.iter().map(|cpu| cpu.late_ns.max).collect();
    highest.sort_by_key(|late| Reverse(*late));
    let Some(next) = highest.get(listed) else { return String::new() };
    let (count, max) = (highest.len() - listed, number::any(*next, number::duration));
    let text = format!(
        "These CPUs have the highest latencies; on {count} more CPUs the maximum is {max} or \
         less (see --json)."
    );
    paragraph("  ", &text)
}

fn table(listed: &[&CpuLatencySummary]) -> String {
    let heads =
        ["CPU", "samples", "missed", "min", "median", "mean", "p99", "p99.9", "max"];
    let mut table = Table::new(1, &heads.map(|head| (head, Side::Right)));
    for cpu in listed {
        let late = cpu.late_ns;
        let late = [late.min, late.p50, late.mean, late.p99, late.p99_9, late.max];
        let counts = [number::count(cpu.samples), number::short_count(cpu.missed)];
        let late = late.map(|late| number::any(late, number::duration));
        table.row(std::iter::once(cpu.cpu.to_string()).chain(counts).chain(late));
    }
    table.text()
}

fn legend(summary: &LatencySummary) -> String {
    let clock = summary.cpus.iter().map(|cpu| cpu.clock_ns).max();
    format!(
        "Each timer expiry is a sample: the time from the expiry until the thread has read the \
         clock ({} of it). \"missed\": expiries while the thread was late for an earlier one; \
         they are samples, too, and end with the same reading.",
        number::any(clock, number::duration)
    )
}

fn slack(spec: &LatencySpec, summary: &LatencySummary) -> Option<String> {
    let slack = summary.cpus.iter().map(|cpu| cpu.slack_ns).max()?;
    let timer = spec.timer.name();
    (!slack.is_zero()).then(|| {
        format!(
            "Up to {} of each sample is timer slack: to save interrupts, the kernel may delay the \
             {timer} of an ordinary task by this much. A timerfd (--timer timerfd) and real-time \
             tasks (--fifo) have no slack.",
            number::duration(slack)
        )
    })
}

fn low_resolution(facts: &Facts) -> Option<String> {
    let is_low = facts.tick.high_res.get() == Some(&false);
    let hz = tick_hz(facts).filter(|_| is_low)?.get();
    Some(format!(
        "This kernel has no high-resolution timers: timers expire at ticks only, {hz} times per \
         second."
    ))
}

/// The steal time of the CPU that has the most, if any.
fn steal(summary: &LatencySummary) -> Option<String> {
    let all = summary.cpus.iter().filter_map(|cpu| Some((cpu.proc.steal_ns?, cpu.cpu)));
    let (most, cpu) = all.max_by_key(|(steal, cpu)| (*steal, Reverse(*cpu)))?;
    let time = number::duration(most);
    (!most.is_zero())
        .then(|| format!("Steal time of CPU {cpu} during the measurement: {time}."))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use crate::example::latency as latency_example;
    use crate::example::{self, GUEST, METAL};
    use crate::text::text_of;

    /// Check `latency` of ordinary tasks in a guest.
    #[test]
    fn latency_of_a_guest() {
        assert_snapshot!(text_of(&latency_example::latency(GUEST, 2)), @r#"
    Timer wake-up latency of an ordinary task on CPUs 0,1: clock_nanosleep every
    1 ms for 2 s.

     CPU  samples  missed      min   median     mean      p99    p99.9      max
       0     1980       0    54 µs  56.8 µs  56.9 µs  60.2 µs  60.3 µs  60.3 µs
       1     2000      19  54.0 µs  56.9 µs   161 µs  60.3 µs    18 ms    20 ms

    Each timer expiry is a sample: the time from the expiry until the thread has
    read the clock (27 ns of it). "missed": expiries while the thread was late for
    an earlier one; they are samples, too, and end with the same reading.

    Up to 50 µs of each sample is timer slack: to save interrupts, the kernel may
    delay the clock_nanosleep of an ordinary task by this much. A timerfd (--timer
    timerfd) and real-time tasks (--fifo) have no slack.

    Allowed idle states: POLL (exit latency 0 ns), haltpoll idle (exit latency
    1 µs). The CPU latency limit (PM QoS) is unknown: only root can read
    /dev/cpu_dma_latency. The CPUs were in haltpoll idle for 94.4 % of the time.
    Samples include the exit latency. With --dma-latency 0 only the first state is
    allowed, as by default with cyclictest.

    Steal time of CPU 1 during the measurement: 20 ms.
    "#);
    }

    /// Check `latency` of real-time tasks on many CPUs, with wide numbers.
    #[test]
    fn latency_of_many() {
        assert_snapshot!(text_of(&example::wide(latency_example::latency(METAL, 30))), @r#"
    Timer wake-up latency of a real-time task (SCHED_FIFO, priority 80) on CPUs
    0-29: clock_nanosleep every 1 ms for 206 min.

     CPU     samples  missed      min   median     mean      p99    p99.9      max
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
      These CPUs have the highest latencies; on 14 more CPUs the maximum is 206 min
      or less (see --json).

    Each timer expiry is a sample: the time from the expiry until the thread has
    read the clock (27 ns of it). "missed": expiries while the thread was late for
    an earlier one; they are samples, too, and end with the same reading.

    Allowed idle states: POLL (exit latency 0 ns); not allowed: C1 (exit latency
    2 µs), C6 (exit latency 133 µs). The CPU latency limit is 0 ns (PM QoS,
    /dev/cpu_dma_latency). Without this limit CPUs enter deeper idle states, and
    samples include their exit latency.

    Steal time of CPU 702 during the measurement: 40 ms.
    "#);
    }
}
