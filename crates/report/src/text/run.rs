//! What a program suffered: how it ended, what it used, what interrupted its CPU, and where
//! events were seen, its longest interruptions and who took them.

use recording::{Doubt, Ended, Picked, RunSeries, RunSpec, Source};
use stats::{Interruption, InterruptionsSummary, MeanwhileSummary, Part, RunSummary};
use units::CpuSet;

use crate::number;
use crate::text::layout::doubts::doubts;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table, cut};
use crate::text::noise::culprits::{self, kind_word, source_words};

/// Lines of interrupts; rarer ones are left to JSON.
const LINES: usize = 8;
/// The widest name of a line.
const NAME: usize = 44;
/// The most of a command that is told.
const COMMAND: usize = 200;
/// Of each interruption so many culprits are told.
const PARTS: usize = 3;
/// Culprits that are listed.
const LISTED: usize = 12;

/// All of `run`.
pub(crate) fn run_text(spec: &RunSpec, series: &RunSeries, reasons: &[Doubt]) -> String {
    let summary = RunSummary::of(spec, series);
    let mut text = paragraph("", &title(spec, series)) + "\n";
    text.push_str(&usage(&summary));
    text.push_str(&interrupts(&summary));
    if let (Some(source), Some(found)) = (series.source, &summary.interruptions) {
        text.push_str(&interruptions(source, found, spec.cpus.len() == 1));
    }
    text.push_str(&doubts(reasons));
    text
}

fn title(spec: &RunSpec, series: &RunSeries) -> String {
    let class = spec.fifo.map_or_else(
        || "an ordinary task".to_owned(),
        |priority| format!("a real-time task of priority {priority} (SCHED_FIFO)"),
    );
    let end = match series.ended {
        Ended::Exited(code) => format!("ended with exit code {code}"),
        Ended::Killed(signal) => format!("was ended by signal {signal}"),
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
        Picked::NohzFull => " (the first whose tick can stop, nohz_full)",
        Picked::Isolated => " (the first that is set apart, isolcpus)",
        Picked::LeastInterrupted => " (interrupted least since boot)",
        _ => "",
    }
}

fn usage(summary: &RunSummary) -> String {
    let usage = &summary.usage;
    let mut table = Table::new(1, &[("", Side::Left), ("", Side::Right)]);
    let steal = summary.meanwhile.steal_ns;
    let rows = [
        ("time in its own code (user)", number::duration(usage.user_ns)),
        ("time in the kernel for it (system)", number::duration(usage.system_ns)),
        ("times it waited (voluntary switches)", number::count(usage.voluntary)),
        (
            "times the CPU was taken from it (involuntary)",
            number::count(usage.involuntary),
        ),
        ("page faults, without a disk", number::count(usage.minor_faults)),
        ("page faults, read from a disk", number::count(usage.major_faults)),
        ("time the hypervisor took (steal)", number::known(steal, number::duration)),
    ];
    for (name, value) in rows {
        table.row([name.to_owned(), value]);
    }
    table.text().trim_start_matches('\n').to_owned()
}

/// What interrupted the CPU, whether the program ran just then or not.
fn interrupts(summary: &RunSummary) -> String {
    let title = format!("\nInterrupts of {} meanwhile", named(&summary.cpus));
    let MeanwhileSummary { interrupts: Some(lines), .. } = &summary.meanwhile else {
        return format!("{title}: not known\n");
    };
    let columns = [("", Side::Left), ("times", Side::Right), ("a second", Side::Right)];
    let mut table = Table::new(1, &columns);
    for line in lines.iter().take(LINES) {
        table.row([
            cut(&format!("{:>4} {}", line.line, line.name), NAME),
            number::count(line.count),
            number::any(line.rate_hz, number::bare_rate),
        ]);
    }
    let more = lines.len().saturating_sub(LINES);
    let more = match more {
        0 => String::new(),
        more => paragraph("  ", &format!("{more} rarer lines are in --json.")),
    };
    title + "\n\n" + &table.text() + &more
}

/// With several CPUs, each line of the longest has its own.
fn interruptions(source: Source, found: &InterruptionsSummary, is_one: bool) -> String {
    let words = format!(
        "Interruptions, as {} saw them: {}, {} in all, {} of the time in which it could run. \
         These are interrupts while it ran, and others' turns that began while it could have \
         run on.",
        source_words(source),
        number::count(found.gaps),
        number::duration(found.noise_ns),
        number::known(found.noise_ppm, number::share),
    );
    let text = "\n".to_owned() + &paragraph("", &words);
    if found.gaps == 0 {
        return text;
    }
    let lengths = [found.gap_ns.p50, found.gap_ns.p99, found.gap_ns.max]
        .map(|length| number::any(length, number::duration));
    let [typical, p99, longest] = lengths;
    let lengths =
        format!("Typical {typical}, p99 {p99}, longest {longest}. The longest:");
    text + &paragraph("", &lengths)
        + "\n"
        + &longest_table(found, is_one)
        + "\n"
        + &takers(found)
}

fn longest_table(found: &InterruptionsSummary, is_one: bool) -> String {
    let columns = [
        ("after", Side::Right),
        ("for", Side::Right),
        ("CPU", Side::Right),
        ("taken by", Side::Left),
    ];
    let columns = columns.into_iter().filter(|(name, _)| !is_one || *name != "CPU");
    let mut table = Table::new(1, &columns.collect::<Vec<_>>());
    for interruption in &found.longest {
        let start = number::duration(interruption.start_ns);
        let length = number::duration(interruption.ns);
        let cpu = (!is_one).then(|| number::any(interruption.cpu, |cpu| cpu.to_string()));
        let taken_by = cut(&parts(interruption), NAME + 12);
        table.row([start, length].into_iter().chain(cpu).chain([taken_by]));
    }
    table.text()
}

fn parts(interruption: &Interruption) -> String {
    let part = |part: &Part| format!("{} {}", kind_word(part.kind), part.name);
    let shown = interruption.culprits.iter().take(PARTS).map(part);
    let shown: Vec<String> = shown.map(|part| part.trim().to_owned()).collect();
    shown.join(", ")
}

fn takers(found: &InterruptionsSummary) -> String {
    let columns = [
        ("taken by", Side::Left),
        ("", Side::Left),
        ("times", Side::Right),
        ("time", Side::Right),
        ("part", Side::Right),
        ("longest", Side::Right),
    ];
    let mut table = Table::new(1, &columns);
    let (listed, others) = found.culprits.split_at(found.culprits.len().min(LISTED));
    for culprit in listed {
        table.row(culprits::cells(culprit));
    }
    if !others.is_empty() {
        table.row([String::new(), format!("{} more, in --json", others.len())]);
    }
    table.text()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use crate::example::{self, GUEST, METAL};
    use crate::text;

    /// Check `run` where events were seen.
    #[test]
    fn run_with_interruptions() {
        assert_snapshot!(text(&example::run(GUEST)), @r"
    ./compute --size 8 ended with exit code 3 after 10.0 s, on CPU 1 (interrupted
    least since boot), as a real-time task of priority 99 (SCHED_FIFO).

     time in its own code (user)                       9.99 s
     time in the kernel for it (system)                 12 ms
     times it waited (voluntary switches)                  12
     times the CPU was taken from it (involuntary)  1,234,567
     page faults, without a disk                       98,765
     page faults, read from a disk                          2
     time the hypervisor took (steal)                    0 ns

    Interrupts of CPU 1 meanwhile

                                    times  a second
      LOC Local timer interrupts     2505       250
      CAL Function call interrupts     31      3.10

    Interruptions, as the kernel's tracepoints (eBPF) saw them: 2499, 11.1 ms in
    all, 0.111 % of the time in which it could run. These are interrupts while it
    ran, and others' turns that began while it could have run on.
    Typical 4.45 µs, p99 5.8 µs, longest 5.8 µs. The longest:

       after     for  taken by
     24.0 ms  5.8 µs  timer tick_nohz_handler, softirq SCHED, unexplained
     52.0 ms  5.8 µs  timer tick_nohz_handler, softirq SCHED, unexplained
     80.0 ms  5.8 µs  timer tick_nohz_handler, softirq SCHED, unexplained
      108 ms  5.8 µs  timer tick_nohz_handler, softirq SCHED, unexplained

     taken by                     times     time    part  longest
     timer     tick_nohz_handler   2499  7.62 ms  68.5 %   4.4 µs
     softirq   SCHED               2499  1.75 ms  15.7 %   700 ns
               unexplained         2499  1.75 ms  15.7 %   700 ns
    ");
    }

    /// Check `run` of a long command that was killed, where nobody saw single events.
    #[test]
    fn run_without_interruptions() {
        assert_snapshot!(text(&example::run(METAL)), @r"
    ./a-name-of-a-program-that-is-long ./a-name-of-a-program-that-is-long
    ./a-name-of-a-program-that-is-long ./a-name-of-a-program-that-is-long
    ./a-name-of-a-program-that-is-long ./a-name-of-a-program-th… was ended by signal
    15 after 10.0 s, on CPU 1 (the first whose tick can stop, nohz_full), as an
    ordinary task.

     time in its own code (user)                       9.99 s
     time in the kernel for it (system)                 12 ms
     times it waited (voluntary switches)                  12
     times the CPU was taken from it (involuntary)  1,234,567
     page faults, without a disk                       98,765
     page faults, read from a disk                          2
     time the hypervisor took (steal)                    0 ns

    Interrupts of CPU 1 meanwhile

                                    times  a second
      LOC Local timer interrupts     2505       250
      CAL Function call interrupts     31      3.10
    ");
    }
}
