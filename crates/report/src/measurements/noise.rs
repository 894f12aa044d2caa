//! The tables of `noise`: the noise of each CPU, its sources, the probability that jobs are hit,
//! and `/proc` counters. Of many CPUs, only those with the most noise are listed.

pub(crate) mod at_scale;
pub(crate) mod culprits;
pub(crate) mod edges;
pub(crate) mod firmware;
pub(crate) mod periods;
pub(crate) mod proc_counters;
pub(crate) mod steal;
pub(crate) mod timers;

use recording::{NoiseSeries, NoiseSpec};
use summary::{CpuNoiseSummary, NoiseSummary};
use units::Ppm;

use crate::document::Document;
use crate::document::table::{Cell, Column, Table};
use crate::document::text::{Text, text};
use crate::measurements::noise::at_scale::at_scale;
use crate::measurements::noise::culprits::{culprits, together};
use crate::measurements::noise::edges::edges;
use crate::measurements::noise::firmware::firmware;
use crate::measurements::noise::periods::{eventless, periods};
use crate::measurements::noise::proc_counters::counters;
use crate::measurements::noise::steal::steal;
use crate::measurements::ticks::words::cpus;
use crate::measurements::worst::Worst;
use crate::number;

/// Of more CPUs than this, only [`WORST`] are listed.
const LISTED: usize = 24;
const WORST: usize = 16;
/// The same on one screen.
const SCREEN: usize = 8;
/// CPUs whose counters fit side by side.
const COLUMNS: usize = 4;
/// The explanation below the first table.
const LEGEND: &str =
    "\"noise\": share of the time in gaps; \"median\" to \"longest\": their lengths.";
/// What title and legend do not say.
const LOST: &str = "The time was lost to interrupts, threads and the hypervisor: in a gap the loop did \
    not run. \"loop\": duration of one loop iteration.";

pub(crate) fn noise(
    spec: &NoiseSpec,
    series: &NoiseSeries,
    summary: &NoiseSummary,
) -> Document {
    let (listed, few) = (worst(summary, LISTED, WORST), worst(summary, SCREEN, SCREEN));
    let details = Document::default()
        .lines(steal(summary))
        .lines(firmware(summary))
        .lines(periods(summary))
        .add(edges(summary))
        .add(eventless(summary));
    let ranks = at_scale(&summary.at_scale);
    let first = Text::join([title(spec, series, summary), ranks], " ");
    let document = Document::from(first)
        .add_or(noise_table(&listed), noise_table(&few))
        .add_full(LOST)
        .add(culprits(series.source, summary))
        .add_full(details);
    let risk = risk(&listed.listed);
    let document = match is_small(summary) {
        true => document.add(risk),
        false => document.add_full(risk),
    };
    document.add_full(worst_counters(summary))
}

/// The counters of the CPUs that lost most.
fn worst_counters(summary: &NoiseSummary) -> Document {
    let cpus = worst(summary, COLUMNS, COLUMNS);
    let which = if cpus.others.is_empty() { "" } else { ", on the CPUs that lost most" };
    let shown: Vec<_> = cpus.listed.iter().map(|cpu| (cpu.cpu, &cpu.proc)).collect();
    // The steal clock is more precise, and reported above.
    counters(&shown, which, summary.steal.is_none())
}

/// The CPUs that lost most.
pub(crate) fn worst(
    summary: &NoiseSummary,
    all: usize,
    most: usize,
) -> Worst<'_, CpuNoiseSummary> {
    Worst::of(&summary.cpus, all, most, |cpu| cpu.noise_ppm.map(Ppm::get))
}

/// A sentence about the others.
pub(crate) fn left_out(cpus: &Worst<'_, CpuNoiseSummary>) -> Text {
    cpus.rest("lost", "most", |cpu| number::known(cpu.noise_ppm))
}

/// Whether the table of risks fits on one screen, too: beside no sources, or beside few.
fn is_small(summary: &NoiseSummary) -> bool {
    let sources = together(summary).rows.len();
    2 * summary.cpus.len() + sources <= if sources == 0 { 9 } else { 5 }
}

fn title(spec: &NoiseSpec, series: &NoiseSeries, summary: &NoiseSummary) -> Text {
    let elapsed = summary.cpus.iter().map(|cpu| cpu.elapsed_ns).max();
    let policy = spec.fifo.map_or(String::new(), |priority| {
        format!(" at real-time priority {priority} (SCHED_FIFO)")
    });
    text!(
        "OS noise on {} in {}: time that a busy loop{} lost in gaps above {}.",
        cpus(&spec.cpus),
        number::measured(elapsed, spec.duration_ns),
        policy,
        series.threshold_ns,
    )
}

fn noise_table(cpus: &Worst<'_, CpuNoiseSummary>) -> Table {
    let count = |count| Cell::or(count, number::short_count(count));
    Table::of(&cpus.listed)
        .number("CPU", |cpu| cpu.cpu.to_string())
        .number("noise", |cpu| number::known(cpu.noise_ppm))
        .number("gaps", |cpu| count(cpu.gaps))
        .number("gaps/s", |cpu| number::known(cpu.gaps_hz))
        .numbers(["median", "p99", "p99.9", "longest"], |cpu| {
            let gap = cpu.gap_ns;
            [gap.p50, gap.p99, gap.p99_9, gap.max].map(number::any)
        })
        .number("loop", |cpu| cpu.loop_ns_p50)
        .table
        .rest(left_out(cpus))
        .legend(LEGEND)
}

/// The table of the probabilities that jobs are hit.
fn risk(listed: &[&CpuNoiseSummary]) -> Document {
    let jobs = listed.first().map_or(&[][..], |cpu| &cpu.risk);
    let jobs = jobs.iter().map(|risk| Column::number(risk.job_ns));
    let mut table = Table::new(std::iter::once(Column::number("CPU")).chain(jobs));
    for cpu in listed {
        let chances = cpu.risk.iter().map(|risk| number::known(risk.hit_ppm));
        table.row(std::iter::once(cpu.cpu.to_string().into()).chain(chances));
    }
    let title =
        "Probability that a job of this length, started at a random moment, meets a gap";
    Document::section(title, table)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::Recording;
    use summary::Summary;

    use crate::example::{self, GUEST, METAL, MUTE};
    use crate::measurements::{recording_document, text_of};
    use crate::terminal::screen_text;

    /// Check `noise` on two CPUs.
    #[test]
    fn noise_on_two_cpus() {
        assert_snapshot!(text_of(&example::noise(GUEST, 2)));
    }

    /// Check the attribution of noise on two CPUs: of both together, and of each.
    #[test]
    fn noise_that_is_blamed() {
        let text = text_of(&example::blamed(example::noise(GUEST, 2)));
        let begin = text.find("Sources of noise").unwrap();
        let end = text.find("Probability that").unwrap();
        assert_snapshot!(&text[begin..end]);
    }

    /// Check that `noise` on many CPUs lists those with the most noise.
    #[test]
    fn noise_on_many_cpus() {
        assert_snapshot!(text_of(&example::noise(GUEST, 30)));
    }

    fn screen(recording: &Recording) -> String {
        let document = recording_document(recording, &Summary::of(recording));
        screen_text(&document)
    }

    /// Check the report of one screen, traced and not.
    #[test]
    fn one_screen() {
        assert_snapshot!(screen(&example::blamed(example::noise(GUEST, 2))));
        assert_snapshot!(screen(&example::noise(GUEST, 2)));
    }

    /// Check that the report of a few CPUs has at most 24 lines of 80 columns.
    #[test]
    fn fits_one_screen() {
        let same = |recording: Recording| recording;
        for (groups, count) in [(GUEST, 1), (GUEST, 2), (METAL, 4), (MUTE, 1)] {
            for blamed in [same, example::blamed] {
                for change in [same, example::quiet, example::wide] {
                    let text = screen(&blamed(change(example::noise(groups, count))));
                    assert!(text.lines().count() <= 24, "{text}");
                    let longest = text.lines().map(|line| line.chars().count()).max();
                    assert!(longest <= Some(80), "{text}");
                }
            }
        }
    }
}
