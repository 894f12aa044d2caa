//! The report of `run`: how the program ended, its resource usage, the interrupts of its CPUs
//! and, if events were traced, its interruptions and their sources.

use recording::{Ended, Picked, RunSeries, RunSpec, Source};
use summary::{Interruption, InterruptionsSummary, Part, RunSummary};
use units::CpuSet;

use crate::number;
use crate::text::layout::labels::cut_labels;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table, cut};
use crate::text::noise::culprits::{self, kind_word, source_words};
use crate::text::noise::proc_counters::interrupt_table;

/// A longer command is cut to this length.
const COMMAND: usize = 200;
/// The number of sources listed for each interruption, and their width.
const PARTS: usize = 3;
const PARTS_WIDTH: usize = 56;
/// The number of listed sources.
const LISTED: usize = 12;

pub(crate) fn run_text(
    spec: &RunSpec,
    series: &RunSeries,
    summary: &RunSummary,
) -> String {
    let mut text = paragraph("", &title(spec, series)) + "\n";
    text.push_str(&usage(summary));
    text.push_str(&interrupts(summary));
    if let (Some(source), Some(interruptions)) = (series.source, &summary.interruptions) {
        let is_one_cpu = spec.cpus.len() == 1;
        text.push_str(&interruptions_text(source, interruptions, is_one_cpu));
    }
    text
}

fn title(spec: &RunSpec, series: &RunSeries) -> String {
    let class = spec.fifo.map_or_else(
        || "an ordinary task".to_owned(),
        |priority| format!("a real-time task (SCHED_FIFO, priority {priority})"),
    );
    let end = match series.ended {
        Ended::Exited(code) => format!("ended with exit code {code}"),
        Ended::Killed(signal) => format!("was killed by signal {signal}"),
    };
    format!(
        "{} {end} after {}, on {}{}, as {class}.",
        cut(&spec.command.to_string(), COMMAND),
        number::duration(series.elapsed_ns),
        named(&spec.cpus),
        why(spec.picked),
    )
}

/// `CPU 1`, `CPUs 2-5`.
fn named(cpus: &CpuSet) -> String {
    let plural = if cpus.len() == 1 { "" } else { "s" };
    format!("CPU{plural} {cpus}")
}

fn why(picked: Picked) -> &'static str {
    match picked {
        Picked::NohzFull => " (the first nohz_full CPU)",
        Picked::Isolated => " (the first isolated CPU)",
        Picked::LeastInterrupted => " (the one with the fewest interrupts since boot)",
        Picked::Asked | Picked::Other => "",
    }
}

fn usage(summary: &RunSummary) -> String {
    let usage = &summary.usage;
    let mut table = Table::new(1, &[("", Side::Left), ("", Side::Right)]);
    let steal = summary.proc.steal_ns;
    let known = [
        ("run time", Some(summary.elapsed_ns)),
        ("interruptions and steal time", summary.lost_ns),
        ("net run time", summary.net_ns),
    ];
    if summary.net_ns.is_some() {
        for (name, value) in known {
            table.row([name.to_owned(), number::known(value, number::duration)]);
        }
    }
    let rows = [
        ("user time", number::duration(usage.user_ns)),
        ("system time", number::duration(usage.system_ns)),
        ("voluntary context switches", number::count(usage.voluntary)),
        ("involuntary context switches", number::count(usage.involuntary)),
        ("minor page faults", number::count(usage.minor_faults)),
        ("major page faults (read from disk)", number::count(usage.major_faults)),
        ("steal time of the CPUs", number::known(steal, number::duration)),
    ];
    for (name, value) in rows {
        table.row([name.to_owned(), value]);
    }
    table.text().trim_start_matches('\n').to_owned()
}

/// The interrupts of the CPUs, whether or not the program was running.
fn interrupts(summary: &RunSummary) -> String {
    let title = format!("\nInterrupts of {} during the run", named(&summary.cpus));
    match &summary.proc.interrupts {
        Some(lines) => format!("{title}\n\n{}", interrupt_table(lines)),
        None => format!("{title}: unknown\n"),
    }
}

fn interruptions_text(
    source: Source,
    found: &InterruptionsSummary,
    is_one_cpu: bool,
) -> String {
    let title = format!(
        "Interruptions, traced with {}: {}, {} in total, {} of the time in which the program was \
         runnable. They are interrupts while it ran, and preemptions by other threads.",
        source_words(source),
        number::count(found.gaps),
        number::duration(found.noise_ns),
        number::known(found.noise_ppm, number::share),
    );
    let text = "\n".to_owned() + &paragraph("", &title);
    if found.gaps == 0 {
        return text;
    }
    let lengths = [found.gap_ns.p50, found.gap_ns.p99, found.gap_ns.max]
        .map(|length| number::any(length, number::duration));
    let [median, p99, longest] = lengths;
    let lengths = format!("Median {median}, p99 {p99}, longest {longest}. The longest:");
    let (longest, sources) = (longest_table(found, is_one_cpu), sources(found));
    format!("{text}{}\n{longest}\n{sources}", paragraph("", &lengths))
}

/// The longest interruptions; with their CPU, if the program had several.
fn longest_table(found: &InterruptionsSummary, is_one_cpu: bool) -> String {
    let columns = [
        ("start", Side::Right),
        ("duration", Side::Right),
        ("CPU", Side::Right),
        ("sources", Side::Left),
    ];
    let columns = columns.into_iter().filter(|(name, _)| !is_one_cpu || *name != "CPU");
    let mut table = Table::new(1, &columns.collect::<Vec<_>>());
    let sources = cut_labels(found.longest.iter().map(parts), PARTS_WIDTH);
    for (interruption, sources) in found.longest.iter().zip(sources) {
        let start = number::duration(interruption.start_ns);
        let length = number::duration(interruption.ns);
        let cpu =
            (!is_one_cpu).then(|| number::any(interruption.cpu, |cpu| cpu.to_string()));
        table.row([start, length].into_iter().chain(cpu).chain([sources]));
    }
    table.text()
}

fn parts(interruption: &Interruption) -> String {
    let part = |part: &Part| format!("{} {}", kind_word(part.kind), part.name);
    let listed = interruption.culprits.iter().take(PARTS).map(part);
    let listed: Vec<String> = listed.map(|part| part.trim().to_owned()).collect();
    listed.join(", ")
}

fn sources(found: &InterruptionsSummary) -> String {
    let columns = [
        ("source", Side::Left),
        ("", Side::Left),
        ("count", Side::Right),
        ("time", Side::Right),
        ("share", Side::Right),
        ("longest", Side::Right),
    ];
    let mut table = Table::new(1, &columns);
    for row in culprits::rows(&found.culprits, found.own, LISTED) {
        table.row(row);
    }
    table.text()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use crate::example::{self, GUEST, METAL};
    use crate::text::text_of;

    /// Check `run` with traced events.
    #[test]
    fn run_with_interruptions() {
        assert_snapshot!(text_of(&example::run(GUEST)), @r"
    ./compute --size 8 ended with exit code 3 after 10.0 s, on CPU 1 (the one with
    the fewest interrupts since boot), as a real-time task (SCHED_FIFO, priority
    99).

     run time                               10.0 s
     interruptions and steal time          11.2 ms
     net run time                           9.99 s
     user time                              9.99 s
     system time                             12 ms
     voluntary context switches                 12
     involuntary context switches        1,234,567
     minor page faults                      98,765
     major page faults (read from disk)          2
     steal time of the CPUs                   0 ns

    Interrupts of CPU 1 during the run

                                    count  per second
      LOC Local timer interrupts     2505         250
      CAL Function call interrupts     31        3.10

    Interruptions, traced with eBPF at kernel tracepoints: 2499, 11.1 ms in total,
    0.111 % of the time in which the program was runnable. They are interrupts while
    it ran, and preemptions by other threads.
    Median 4.45 µs, p99 5.8 µs, longest 5.8 µs. The longest:

       start  duration  sources
     24.0 ms    5.8 µs  timer tick_nohz_handler, softirq SCHED, unexplained
     52.0 ms    5.8 µs  timer tick_nohz_handler, softirq SCHED, unexplained
     80.0 ms    5.8 µs  timer tick_nohz_handler, softirq SCHED, unexplained
      108 ms    5.8 µs  timer tick_nohz_handler, softirq SCHED, unexplained

     source                      count     time   share  longest
     timer    tick_nohz_handler   2499  7.62 ms  68.5 %   4.4 µs
     softirq  SCHED               2499  1.75 ms  15.7 %   700 ns
              unexplained         2499  1.75 ms  15.7 %   700 ns
    ");
    }

    /// Check `run` of a long command that was killed, without tracing.
    #[test]
    fn run_without_interruptions() {
        assert_snapshot!(text_of(&example::run(METAL)), @r"
    ./a-name-of-a-program-that-is-long ./a-name-of-a-program-that-is-long
    ./a-name-of-a-program-that-is-long ./a-name-of-a-program-that-is-long
    ./a-name-of-a-program-that-is-long ./a-name-of-a-program-th… was killed by
    signal 15 after 10.0 s, on CPU 1 (the first nohz_full CPU), as an ordinary task.

     user time                              9.99 s
     system time                             12 ms
     voluntary context switches                 12
     involuntary context switches        1,234,567
     minor page faults                      98,765
     major page faults (read from disk)          2
     steal time of the CPUs                   0 ns

    Interrupts of CPU 1 during the run

                                    count  per second
      LOC Local timer interrupts     2505         250
      CAL Function call interrupts     31        3.10
    ");
    }
}
