//! The tables of `noise`: the noise of each CPU, its sources, the probability that jobs are hit,
//! and `/proc` counters. Of many CPUs, only those with the most noise are listed.

pub(crate) mod around;
pub(crate) mod culprits;
pub(crate) mod edges;
pub(crate) mod periods;
pub(crate) mod proc_counters;
pub(crate) mod steal;
pub(crate) mod worst;

use recording::{NoiseSeries, NoiseSpec};
use summary::{CpuNoiseSummary, NoiseSummary};

use crate::number;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table};
use crate::text::noise::culprits::culprits;
use crate::text::noise::edges::edges;
use crate::text::noise::periods::{eventless, periods};
use crate::text::noise::proc_counters::worst_counters;
use crate::text::noise::steal::steal;
use crate::text::noise::worst::{left_out, worst};
use crate::text::ticks::words::cpus;

/// Of more CPUs than this, only [`WORST`] are listed.
const LISTED: usize = 24;
const WORST: usize = 16;
/// The explanation below the first table.
const LEGEND: &str = "\"noise\": share of the time in gaps; \"median\" to \"longest\": length of the \
    gaps; \"loop\": duration of one loop iteration.";

pub(crate) fn noise_text(
    spec: &NoiseSpec,
    series: &NoiseSeries,
    summary: &NoiseSummary,
) -> String {
    let listed = worst(summary, LISTED, WORST);
    let mut text = intro(spec, series, summary);
    text.push_str(&noise_table(&listed));
    text.push_str(&left_out(summary, &listed));
    text.push('\n');
    text.push_str(&paragraph("", LEGEND));
    text.push_str(&culprits(series.source, summary));
    text.push_str(&steal(summary));
    text.push_str(&periods(summary));
    text.push_str(&edges(summary));
    text.push_str(&eventless(summary));
    text.push_str(
        "\nProbability that a job of this length, started at a random moment, meets a gap\n\n",
    );
    text.push_str(&risk_table(&listed));
    text.push('\n');
    text + &worst_counters(summary)
}

fn intro(spec: &NoiseSpec, series: &NoiseSeries, summary: &NoiseSummary) -> String {
    let elapsed = summary.cpus.iter().map(|cpu| cpu.elapsed_ns).max();
    let policy = spec.fifo.map_or(String::new(), |priority| {
        format!(" at real-time priority {priority} (SCHED_FIFO)")
    });
    let title = format!(
        "OS noise on {} in {}: time that a busy loop{policy} lost to interrupts, threads and \
         the hypervisor. A gap is a period of more than {} in which the loop did not run.",
        cpus(&spec.cpus),
        number::measured(elapsed, spec.duration_ns),
        number::duration(series.threshold_ns),
    );
    paragraph("", &title) + "\n"
}

fn noise_table(listed: &[&CpuNoiseSummary]) -> String {
    let heads =
        ["CPU", "noise", "gaps", "gaps/s", "median", "p99", "p99.9", "longest", "loop"];
    let mut table = Table::new(1, &heads.map(|head| (head, Side::Right)));
    for cpu in listed {
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

fn risk_table(listed: &[&CpuNoiseSummary]) -> String {
    let jobs = listed.first().map_or(&[][..], |cpu| &cpu.risk);
    let mut heads = vec!["CPU".to_owned()];
    heads.extend(jobs.iter().map(|risk| number::duration(risk.job_ns)));
    let columns: Vec<_> = heads.iter().map(|head| (head.as_str(), Side::Right)).collect();
    let mut table = Table::new(1, &columns);
    for cpu in listed {
        let chances =
            cpu.risk.iter().map(|risk| number::known(risk.hit_ppm, number::share));
        table.row(std::iter::once(cpu.cpu.to_string()).chain(chances));
    }
    table.text()
}
