//! The tables of `noise`: what each CPU lost, how likely jobs are hit, and what `/proc`
//! counted in the meantime.
//!
//! With many CPUs the worst are listed, and one line says what bounds the others.

pub(crate) mod around;
pub(crate) mod culprits;
pub(crate) mod edges;
pub(crate) mod periods;
pub(crate) mod proc_counters;
pub(crate) mod steal;
pub(crate) mod worst;

use recording::{Doubt, NoiseSeries, NoiseSpec};
use stats::{CpuNoiseSummary, NoiseSummary};

use crate::number;
use crate::text::layout::doubts::doubts;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table};
use crate::text::noise::culprits::culprits;
use crate::text::noise::edges::edges;
use crate::text::noise::periods::eventless;
use crate::text::noise::proc_counters::meanwhile_of_worst;
use crate::text::noise::worst::{left_out, worst};
use crate::text::ticks::words::cpus;

/// More CPUs than this are cut to [`WORST`].
const LISTED: usize = 24;
const WORST: usize = 16;

/// All of `noise`.
pub(crate) fn noise_text(
    spec: &NoiseSpec,
    series: &NoiseSeries,
    reasons: &[Doubt],
) -> String {
    let summary = NoiseSummary::of(series);
    let shown = worst(&summary, LISTED, WORST);
    let mut text = intro(spec, series, &summary);
    text.push_str(&loss_table(&shown));
    text.push_str(&left_out(&summary, &shown));
    text.push('\n');
    text.push_str(&paragraph(
        "",
        "\"typical\": half of the gaps are not longer; \"p99\": 99 of 100; \"p99.9\": 999 \
         of 1000. \"pass\": one turn of the loop itself.",
    ));
    text.push_str(&culprits(series, &summary));
    text.push_str(&edges(&summary));
    text.push_str(&eventless(&summary));
    text.push_str(
        "\nHow likely is a job of this length, started at random, to be hit?\n\n",
    );
    text.push_str(&risk_table(&shown));
    text.push('\n');
    text.push_str(&meanwhile_of_worst(&summary));
    text.push_str(&doubts(reasons));
    text
}

fn intro(spec: &NoiseSpec, series: &NoiseSeries, summary: &NoiseSummary) -> String {
    let took = summary.cpus.iter().map(|cpu| cpu.elapsed_ns).max();
    let class = spec.fifo.map_or(String::new(), |priority| {
        format!(", at real-time priority {priority} (SCHED_FIFO)")
    });
    let title = format!(
        "Noise: what a loop that only reads the clock lost on {} in {}{class}. A gap is a \
         stretch of more than {} in which it did not run.",
        cpus(&spec.cpus),
        number::measured(took, spec.duration_ns),
        number::duration(series.threshold_ns),
    );
    paragraph("", &title) + "\n"
}

fn loss_table(shown: &[&CpuNoiseSummary]) -> String {
    let words =
        ["CPU", "lost", "gaps", "gaps/s", "typical", "p99", "p99.9", "longest", "pass"];
    let mut table = Table::new(1, &words.map(|word| (word, Side::Right)));
    for cpu in shown {
        let length = |length| number::any(length, number::duration);
        table.row([
            cpu.cpu.to_string(),
            number::known(cpu.noise_ppm, number::share),
            number::count(cpu.gaps),
            number::known(cpu.gaps_hz, number::bare_rate),
            length(cpu.gap_ns.p50),
            length(cpu.gap_ns.p99),
            length(cpu.gap_ns.p99_9),
            length(cpu.gap_ns.max),
            number::duration(cpu.loop_ns_p50),
        ]);
    }
    table.text()
}

fn risk_table(shown: &[&CpuNoiseSummary]) -> String {
    let jobs = shown.first().map_or(&[][..], |cpu| &cpu.risk);
    let mut words = vec!["CPU".to_owned()];
    words.extend(jobs.iter().map(|risk| number::duration(risk.job_ns)));
    let columns: Vec<_> = words.iter().map(|word| (word.as_str(), Side::Right)).collect();
    let mut table = Table::new(1, &columns);
    for cpu in shown {
        let chances =
            cpu.risk.iter().map(|risk| number::known(risk.hit_ppm, number::share));
        table.row(std::iter::once(cpu.cpu.to_string()).chain(chances));
    }
    table.text()
}
