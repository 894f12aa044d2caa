//! The report of `repeat`: the spread of each metric in each set of runs.

use summary::{RunSet, RunSpread};
use units::printable;

use crate::number;
use crate::repeated::RepeatedRuns;
use crate::text::comparison::sets::{doubts, taken};
use crate::text::comparison::{letter, runs};
use crate::text::layout::doubts::section;
use crate::text::layout::fit::{fits, fitted};
use crate::text::layout::labels::cut_labels;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table};
use crate::text::noise::culprits::kind_word;

/// The number of listed metrics and sources of noise of a set.
const METRICS: usize = 24;
const CULPRITS: usize = 8;
/// The width of a source's name.
const NAME: std::ops::RangeInclusive<usize> = 8..=28;

/// The sets for the terminal.
pub fn repeated_text(repeated: &RepeatedRuns<'_>) -> String {
    let sets = repeated.sets.iter().enumerate();
    let mut text: Vec<String> =
        sets.map(|(at, set)| set_text(repeated, at, set)).collect();
    text.push(legend(repeated));
    let own = repeated.doubts.iter().map(|doubt| printable(&doubt.text).into_owned());
    text.join("\n") + &section(own.chain(doubts(repeated.sets)))
}

fn set_text(repeated: &RepeatedRuns<'_>, at: usize, set: &RunSet) -> String {
    let variant = match repeated.variants {
        [_] => String::new(),
        variants => format!("{}  {}: ", letter(at), variants[at]),
    };
    let title =
        format!("{variant}{} of {}{}", runs(set), repeated.measurement, taken(set));
    let mut text = paragraph("", &printable(&title));
    if let (Some(folder), Some(known)) =
        (repeated.folders.get(at), repeated.known.get(at))
    {
        let more = match known {
            0 => String::new(),
            known => format!(" beside {} from before", number::count((*known).into())),
        };
        text.push_str(&paragraph("", &printable(&format!("Saved in {folder}{more}"))));
    }
    text.push('\n');
    let spreads = set.spreads();
    let listed = &spreads[..spreads.len().min(METRICS)];
    let [wide, narrow] = [2, 1].map(|space| table(listed, space));
    text.push_str(if fits(&wide) { &wide } else { &narrow });
    if listed.len() < spreads.len() {
        let more = spreads.len() - listed.len();
        text.push_str(&paragraph("", &format!("{more} more metrics: see --json")));
    }
    text + &culprits(&set.culprit_spreads())
}

/// The share of their time that runs lost to each source of noise; empty if none was traced.
fn culprits(spreads: &[RunSpread]) -> String {
    if spreads.is_empty() {
        return String::new();
    }
    let listed = &spreads[..spreads.len().min(CULPRITS)];
    let table = fitted(NAME, |width| culprits_table(listed, width));
    let mut text = format!("\nTime lost to each source of noise\n\n{table}");
    if listed.len() < spreads.len() {
        let more = spreads.len() - listed.len();
        text.push_str(&paragraph(" ", &format!("{more} more: see --json")));
    }
    text
}

fn culprits_table(spreads: &[RunSpread], width: usize) -> String {
    let heads = [
        ("source", Side::Left),
        ("", Side::Left),
        ("mean", Side::Right),
        ("median", Side::Right),
        ("min", Side::Right),
        ("max", Side::Right),
    ];
    let mut table = Table::new(1, &heads);
    let culprits = spreads.iter().filter_map(|one| Some((one, one.quantity.culprit()?)));
    let culprits: Vec<_> = culprits.collect();
    let names = cut_labels(culprits.iter().map(|(_, (_, name))| printable(name)), width);
    for ((one, (kind, _)), name) in culprits.iter().zip(names) {
        let shares = [one.mean, one.median, one.min, one.max];
        let shares = shares.map(|share| number::in_unit(share, one.unit));
        let name = [kind_word(*kind).to_owned(), name];
        table.row(name.into_iter().chain(shares));
    }
    table.text()
}

fn table(spreads: &[RunSpread], space: usize) -> String {
    let has_cpus = spreads.iter().any(|one| one.quantity.cpu().is_some());
    let mut heads = vec![("metric", Side::Left)];
    heads.extend(has_cpus.then_some(("CPU", Side::Right)));
    let numbers = ["median", "from", "to", "min", "max", "spread"];
    heads.extend(numbers.map(|head| (head, Side::Right)));
    let mut table = Table::new(1, &heads).spaced(space);
    for one in spreads {
        let value = |value: f64| number::in_unit(value, one.unit);
        let bounds = [0, 1].map(|bound| {
            number::any(one.median_interval, |interval| value(interval[bound]))
        });
        let mut row =
            vec![printable(one.quantity.metric().unwrap_or_default()).into_owned()];
        row.extend(
            has_cpus.then(|| number::any(one.quantity.cpu(), |cpu| cpu.to_string())),
        );
        row.push(value(one.median));
        row.extend(bounds);
        row.extend([one.min, one.max].map(value));
        row.push(number::any(one.spread_ppm, |part| format!("±{}", number::ratio(part))));
        table.row(row);
    }
    table.text()
}

fn legend(repeated: &RepeatedRuns<'_>) -> String {
    let mut text = paragraph(
        "",
        "The true median is between from and to with a probability of at least 95 % (order \
         statistics, from 6 runs on). The spread is half of the difference of the quartiles, in \
         percent of the median.",
    );
    if repeated.sets.len() > 1 {
        let order = format!(
            "The variants took turns in balanced random order (--seed {}).",
            repeated.seed
        );
        text.push_str(&paragraph("", &order));
    }
    let folders: Vec<String> =
        repeated.folders.iter().map(|folder| printable(folder).into_owned()).collect();
    match folders.as_slice() {
        [] => {}
        [one] => text.push_str(&paragraph(
            "",
            &format!("To compare with another set: noisefloor compare {one} DIR"),
        )),
        several => {
            let command = format!("To compare: noisefloor compare {}", several.join(" "));
            text.push_str(&paragraph("", &command));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::{Code, Doubt};

    use super::*;
    use crate::example::sets::run_set;
    use crate::example::{self, GUEST};

    const PERCENTS: [u64; 8] = [97, 98, 99, 100, 100, 101, 102, 140];

    fn assert_fits(text: &str) {
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
            assert_eq!(line.trim_end(), line);
        }
    }

    /// Check the report of one set of traced runs that is saved.
    #[test]
    fn one_set() {
        let recording = example::blamed(example::noise(GUEST, 1));
        let text = repeated_text(&RepeatedRuns {
            measurement: "noise -c 0",
            variants: &["current".to_owned()],
            sets: &[run_set(&recording, &PERCENTS)],
            folders: &["before".to_owned()],
            known: &[2],
            seed: 7,
            doubts: &[],
        });
        assert_fits(&text);
        assert_snapshot!(text, @r#"
        8 runs of noise -c 0, 2026-11-20T06:30:12Z
        Saved in before beside 2 from before

         metric      CPU   median     from       to      min      max   spread
         noise_ppm     0  0.111 %  0.108 %  0.156 %  0.108 %  0.156 %  ±1.25 %
         gap_ns_p50    0  4.45 µs  4.32 µs  6.23 µs  4.32 µs  6.23 µs  ±1.25 %
         gap_ns_p99    0   5.8 µs  5.63 µs  8.12 µs  5.63 µs  8.12 µs  ±1.25 %
         gap_ns_max    0   5.8 µs  5.63 µs  8.12 µs  5.63 µs  8.12 µs  ±1.25 %
         gaps_hz       0    250/s    250/s    250/s    250/s    250/s     ±0 %

        Time lost to each source of noise

         source                          mean    median       min       max
         timer    tick_nohz_handler  0.0797 %  0.0762 %  0.0739 %   0.107 %
         softirq  SCHED              0.0183 %  0.0175 %  0.0170 %  0.0245 %
                  unexplained        0.0183 %  0.0175 %  0.0170 %  0.0245 %

        The true median is between from and to with a probability of at least 95 %
        (order statistics, from 6 runs on). The spread is half of the difference of the
        quartiles, in percent of the median.
        To compare with another set: noisefloor compare before DIR

        Doubts (reasons not to trust a number)
          - CPU 1 began 30 ms after the others, so not all of them spun at the same time
        "#);
    }

    /// Check the report of two variants whose runs ended early.
    #[test]
    fn variants() {
        let recording = example::noise(GUEST, 1);
        let doubt = Doubt::new(Code::Interrupted, "ended early, after 5 runs");
        let text = repeated_text(&RepeatedRuns {
            measurement: "noise -c 0",
            variants: &["current".to_owned(), "preempt=full".to_owned()],
            sets: &[
                run_set(&recording, &[99, 100, 101]),
                run_set(&recording, &[120, 121]),
            ],
            folders: &[],
            known: &[],
            seed: 7,
            doubts: &[doubt],
        });
        assert_fits(&text);
        assert_snapshot!(text, @r#"
        A current: 3 runs of noise -c 0, 2026-11-20T06:30:12Z

         metric      CPU   median  from  to      min      max    spread
         noise_ppm     0  0.111 %     -   -  0.110 %  0.112 %  ±0.500 %
         gap_ns_p50    0  4.45 µs     -   -  4.41 µs  4.49 µs    ±0.5 %
         gap_ns_p99    0   5.8 µs     -   -  5.74 µs  5.86 µs    ±0.5 %
         gap_ns_max    0   5.8 µs     -   -  5.74 µs  5.86 µs    ±0.5 %
         gaps_hz       0    250/s     -   -    250/s    250/s      ±0 %

        B preempt=full: 2 runs of noise -c 0, 2026-11-20T06:30:12Z

         metric      CPU   median  from  to      min      max    spread
         noise_ppm     0  0.134 %     -   -  0.133 %  0.135 %  ±0.206 %
         gap_ns_p50    0  5.36 µs     -   -  5.34 µs  5.38 µs  ±0.205 %
         gap_ns_p99    0  6.99 µs     -   -  6.96 µs  7.02 µs  ±0.207 %
         gap_ns_max    0  6.99 µs     -   -  6.96 µs  7.02 µs  ±0.207 %
         gaps_hz       0    250/s     -   -    250/s    250/s      ±0 %

        The true median is between from and to with a probability of at least 95 %
        (order statistics, from 6 runs on). The spread is half of the difference of the
        quartiles, in percent of the median.
        The variants took turns in balanced random order (--seed 7).

        Doubts (reasons not to trust a number)
          - ended early, after 5 runs
          - A, B: CPU 1 began 30 ms after the others, so not all of them spun at the
            same time
        "#);
    }
}
