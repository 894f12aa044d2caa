//! The report of `compare`: the sets, what differs between them besides their numbers, and each set
//! compared with the first.

pub(crate) mod boots;
pub(crate) mod cells;
pub(crate) mod differing;
pub(crate) mod repeated;
pub(crate) mod sets;
mod table;
pub(crate) mod tried;
mod verdict;

use summary::{Comparison, RunSet};

use crate::compared::ComparedSets;
use crate::number;
use crate::text::comparison::differing::differing;
use crate::text::comparison::sets::{doubts, sets};
use crate::text::comparison::table::{culprits, metrics};
use crate::text::layout::doubts::section;
use crate::text::layout::paragraph::paragraph;

/// The comparison for the terminal.
pub fn compared_sets_text(compared: &ComparedSets<'_>) -> String {
    without_doubts(compared) + &section(doubts(compared.sets))
}

/// The comparison without the doubts about its sets.
pub(crate) fn without_doubts(compared: &ComparedSets<'_>) -> String {
    let mut text = sets(compared);
    text.push_str(&differing(compared.sets));
    for (other, comparison) in compared.comparisons.iter().enumerate() {
        text.push_str(&comparison_text(compared, other + 1, comparison));
    }
    text.push('\n');
    text + &legend(compared)
}

/// The letter of a set: A is the base. Sets after Z have numbers.
pub(crate) fn letter(set: usize) -> String {
    let letter = u8::try_from(set).ok().filter(|set| *set < 26);
    letter.map_or_else(
        || format!("({})", set + 1),
        |set| char::from(b'A' + set).to_string(),
    )
}

fn comparison_text(
    compared: &ComparedSets<'_>,
    other: usize,
    comparison: &Comparison,
) -> String {
    let name = letter(other);
    let mut text = format!("\n{name} compared with A\n\n");
    text.push_str(&metrics(&name, &comparison.metrics));
    for (set, cpus) in [letter(0), name.clone()].iter().zip(&comparison.only_in) {
        if !cpus.is_empty()
            && comparison.metrics.iter().any(|one| one.quantity.cpu().is_some())
        {
            let cpus: units::CpuSet = cpus.iter().copied().collect();
            let text_of = format!("Not compared: CPUs {cpus}, which only {set} has.");
            text.push_str(&paragraph("", &text_of));
        }
    }
    match comparison.culprits.is_empty() {
        false => text.push_str(&culprits(&name, comparison)),
        true if [0, other].iter().any(|set| compared.sets[*set].is_traced()) => {
            let why =
                "Causes are not compared: single events were traced in one of both only.";
            text.push_str(&paragraph("", why));
        }
        true => {}
    }
    text
}

fn legend(compared: &ComparedSets<'_>) -> String {
    let all: usize = compared
        .comparisons
        .iter()
        .map(|one| one.metrics.len() + one.culprits.len())
        .sum();
    let block = compared.comparisons.iter().flat_map(|one| &one.metrics);
    let block = block.filter_map(|one| one.block).next();
    let of = if block.is_some() { "blocks" } else { "runs" };
    let mut text = paragraph(
        "",
        &format!(
            "Values are medians of the {of}, or means of values that are mostly 0. A difference is \
             the median of the differences of all pairs (Hodges-Lehmann), or that of the means, \
             in percent of A, with the interval that contains the true \
             one with a probability of 95 % (bootstrap). \"lower\" and \"higher\" follow from \
             Mann-Whitney tests; of all differences that are reported among these {all} \
             comparisons, at most 5 % are false on average (Benjamini-Hochberg). \"not enough \
             data\": there may be a difference of {} or more (--smallest).",
            number::share(compared.smallest)
        ),
    );
    if let Some(block) = block {
        let length = sets::block_length(block);
        let single = format!(
            "Each set is a single run, divided into blocks of {length}. What differs from run to \
             run is not seen in a single one; hint: compare folders with several recordings."
        );
        text.push_str(&paragraph("", &single));
    }
    text
}

/// The number of runs in words.
pub(crate) fn runs(set: &RunSet) -> String {
    match set.runs() {
        1 => "1 run".to_owned(),
        runs => {
            format!("{} runs", number::count(u64::try_from(runs).unwrap_or(u64::MAX)))
        }
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::Body;
    use summary::compare;
    use units::Ppm;

    use super::*;
    use crate::example::sets::run_set;
    use crate::example::{self, GUEST, METAL};

    fn report(sets: &[(&str, RunSet)]) -> String {
        let names: Vec<String> =
            sets.iter().map(|(name, _)| (*name).to_owned()).collect();
        let sets: Vec<RunSet> = sets.iter().map(|(_, set)| set.clone()).collect();
        let smallest = Ppm::new(1e5);
        let comparisons = compare(&sets[0], &sets[1..], smallest);
        let compared = ComparedSets {
            names: &names,
            sets: &sets,
            comparisons: &comparisons,
            smallest,
        };
        compared_sets_text(&compared)
    }

    fn assert_fits(text: &str) {
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
            assert_eq!(line.trim_end(), line);
        }
    }

    /// Check the report of two sets on different machines.
    #[test]
    fn folders() {
        let base =
            run_set(&example::blamed(example::noise(GUEST, 1)), &[98, 99, 100, 101, 102]);
        let mut other = example::blamed(example::noise(METAL, 1));
        let Body::Noise { spec, .. } = &mut other.body else { panic!() };
        spec.fifo = Some(50);
        let other = run_set(&other, &[128, 129, 130, 131, 132]);
        let text = report(&[("before", base), ("after", other)]);
        assert_fits(&text);
        assert_snapshot!(text, @r#"
         A  before: 5 runs of noise, 2026-11-20T06:30:12Z
         B  after: 5 runs of noise, 2026-11-20T06:30:12Z

        Facts that differ
          kernel release          A  6.12.48+deb13-cloud-amd64
                                  B  6.12.48-rt
          kernel flavour          A  cloud
                                  B  rt
          tick hz                 A  250 a second (CONFIG_HZ)
                                  B  1000 a second (CONFIG_HZ)
          tick mode               A  idle: stops on idle CPUs
                                  B  full: stops on idle CPUs, and on nohz_full CPUs
                                     with one task
          tick nohz_full          A  none
                                  B  2-7
          cpus online             A  0,1
                                  B  0-7
          cpus isolated           A  none
                                  B  2-7
          preempt model           A  voluntary: at explicit preemption points
                                  B  rt: at once, even in most critical sections
          preempt chosen          A  default: set by the kernel configuration
                                  B  static: fixed at build time
          preempt dynamic         A  yes
                                  B  no
          irq fixed               A  none
                                  B  36
          virt hypervisor         A  KVM
                                  B  none (bare metal)
          boot parameters         A  root=UUID=... ro quiet divider=10
                                  B  nohz_full=2-7 isolcpus=2-7
          boot inert              A  divider=10: belongs to RHEL 5; today idle CPUs do
                                     not tick, and the rate is CONFIG_HZ
                                  B  none

        Parameters of the measurement that differ
          fifo                    A  none
                                  B  50

        B compared with A

         metric      CPU        A        B  difference
         noise_ppm     0  0.111 %  0.145 %  higher: +30.0 % (+28.0 % to +32.0 %)
         gap_ns_p50    0  4.45 µs  5.79 µs  higher: +30.0 % (+28.0 % to +32.0 %)
         gap_ns_p99    0   5.8 µs  7.54 µs  higher: +30.0 % (+28.0 % to +32.0 %)
         gap_ns_max    0   5.8 µs  7.54 µs  higher: +30.0 % (+28.0 % to +32.0 %)
         gaps_hz       0    250/s    250/s  equal

        Time lost to each source of noise

         source                             A         B  difference
         timer    tick_nohz_handler  0.0762 %  0.0991 %  higher: +30.0 %
         softirq  SCHED              0.0175 %  0.0227 %  higher: +30.0 %
                  unexplained        0.0175 %  0.0227 %  higher: +30.0 %

        Values are medians of the runs, or means of values that are mostly 0. A
        difference is the median of the differences of all pairs (Hodges-Lehmann), or
        that of the means, in percent of A, with the interval that contains the true one
        with a probability of 95 % (bootstrap). "lower" and "higher" follow from
        Mann-Whitney tests; of all differences that are reported among these 8
        comparisons, at most 5 % are false on average (Benjamini-Hochberg). "not enough
        data": there may be a difference of 10 % or more (--smallest).

        Doubts (reasons not to trust a number)
          - A, B: CPU 1 began 30 ms after the others, so not all of them spun at the
            same time
        "#);
    }

    /// Check the report of two single recordings: no difference, of blocks.
    #[test]
    fn single_recordings() {
        let one = RunSet::single(&example::noise(GUEST, 2));
        let text = report(&[("a.json", one.clone()), ("b.json", one)]);
        assert_fits(&text);
        assert_snapshot!(text, @r#"
         A  a.json: 1 run of noise, 2026-11-20T06:30:12Z
         B  b.json: 1 run of noise, 2026-11-20T06:30:12Z

        No fact differs: the same kernel, machine and settings, as far as known

        B compared with A

         metric      CPU        A        B  difference
         noise_ppm     0  0.111 %  0.111 %  no difference larger than 0.218 %
         gap_ns_p50    0  4.45 µs  4.45 µs  equal
         gap_ns_p99    0   5.8 µs   5.8 µs  equal
         gap_ns_max    0   5.8 µs   5.8 µs  equal
         gaps_hz       0    250/s    250/s  no difference
         noise_ppm     1  0.113 %  0.113 %  no difference larger than 1.47 %
         gap_ns_p50    1  4.51 µs  4.51 µs  equal
         gap_ns_p99    1  5.86 µs  5.86 µs  equal
         gap_ns_max    1  5.86 µs  5.86 µs  no difference
         gaps_hz       1    250/s    250/s  no difference

        Values are medians of the blocks, or means of values that are mostly 0. A
        difference is the median of the differences of all pairs (Hodges-Lehmann), or
        that of the means, in percent of A, with the interval that contains the true one
        with a probability of 95 % (bootstrap). "lower" and "higher" follow from
        Mann-Whitney tests; of all differences that are reported among these 10
        comparisons, at most 5 % are false on average (Benjamini-Hochberg). "not enough
        data": there may be a difference of 10 % or more (--smallest).
        Each set is a single run, divided into blocks of 537 ms. What differs from run
        to run is not seen in a single one; hint: compare folders with several
        recordings.

        Doubts (reasons not to trust a number)
          - A, B: CPU 1 began 30 ms after the others, so not all of them spun at the
            same time
        "#);
    }

    /// Check that three sets with 101 CPUs and wide names and numbers fit the terminal, and that only the
    /// metrics with a difference are listed.
    #[test]
    fn wide() {
        let recording = example::blamed(example::wide(example::noise(GUEST, 101)));
        let name = "a/folder/with/a/long/name/".repeat(5);
        let base = run_set(&recording, &[98, 99, 100, 101, 102]);
        let other = run_set(&recording, &[498, 499, 500, 501, 502]);
        let few = run_set(&example::wide(example::noise(GUEST, 101)), &[100, 101]);
        let text = report(&[(&name, base), ("b", other), ("c", few)]);
        assert_fits(&text);
        assert!(text.contains("Other metrics (see --json): "), "{text}");
    }
}
