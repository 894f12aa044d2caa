//! The main metric of a set in words: what its values do from run to run, why they differ, and what a
//! comparison with another set can show.

use advise::Against;
use stats::{Detectable, ModeOrder, POWER, Pattern, Unit};
use summary::{MainMetric, SpreadCause};
use units::{CpuSet, Ppm};

use crate::document::list::Item;
use crate::document::text::{Text, text};
use crate::measurements::noise::culprits::of_kind;
use crate::{metric_names, number};

/// What the values of a metric do, as a doubt.
pub(crate) fn doubt(metric: &str, pattern: &Pattern, unit: Unit) -> Text {
    let name = metric_names::name(metric);
    let value = |value: f64| number::in_unit(value, unit);
    match *pattern {
        Pattern::FirstRuns { runs, first, others, change_ppm } => {
            let (which, hint) = match runs {
                1 => ("the first run".into(), "--warmup 1".to_owned()),
                _ => (text!("the first {} runs", runs), format!("--warmup {runs}")),
            };
            text!(
                "the {} of {} is {}, and that of all others {}{}; hint: {}",
                name,
                which,
                value(first),
                value(others),
                in_parts(change_ppm),
                Text::command(hint)
            )
        }
        Pattern::Jump { run, from, to, change_ppm } => text!(
            "the {} changes from {} to {}{} at run {}, and the median of all runs is neither",
            name,
            value(from),
            value(to),
            in_parts(change_ppm),
            run
        ),
        Pattern::Trend { per_run, interval, per_run_ppm, from, to } => {
            trend(name, (per_run, per_run_ppm), interval, [from, to], unit)
        }
        Pattern::TwoModes { modes, runs, run, changes, order } => {
            let order = match order {
                ModeOrder::Alternating => "which alternate".into(),
                ModeOrder::Stretches => {
                    text!("which change {} times only", changes)
                }
                ModeOrder::Random => "in no order that is seen".into(),
            };
            text!(
                "the {} has two modes, {}: {} ({}) and {} ({}); the first change is at run {}, and the \
                 median of all runs is neither",
                name,
                order,
                value(modes[0]),
                number::counted(runs[0] as u64, "run"),
                value(modes[1]),
                number::counted(runs[1] as u64, "run"),
                run
            )
        }
    }
}

/// A relative change in parentheses.
fn in_parts(change: Option<Ppm>) -> Option<Text> {
    change.map(|change| text!(" ({})", number::change(change)))
}

fn trend(
    name: Text,
    (per_run, per_run_ppm): (f64, Option<Ppm>),
    interval: [f64; 2],
    [from, to]: [f64; 2],
    unit: Unit,
) -> Text {
    let direction = if per_run < 0.0 { "decreases" } else { "increases" };
    let mut sizes = [per_run, interval[0], interval[1]].map(f64::abs);
    sizes[1..].sort_by(f64::total_cmp);
    let [each, low, high] = number::in_one_unit(sizes, unit);
    text!(
        "the {} {} from run to run, by {}{} each (95 %: {} to {}): from {} at the first one to {} \
         at the last",
        name,
        direction,
        each,
        in_parts(per_run_ppm),
        low,
        high,
        number::in_unit(from, unit),
        number::in_unit(to, unit)
    )
}

/// Where the runs of a set are saved, and how they were measured.
pub(crate) struct Saved<'a> {
    /// The command line of the measurement.
    pub(crate) measurement: &'a str,
    /// The file of each run; empty if they are not saved.
    pub(crate) files: &'a [String],
    /// The measured CPUs, and all others that are online; empty if they are unknown.
    pub(crate) cpus: [CpuSet; 2],
}

/// Why the runs of a set differ, and the next command. Nothing if they do not.
pub(crate) fn cause(main: &MainMetric, saved: &Saved<'_>) -> Option<Item> {
    let words = words(main)?;
    let tried = if let SpreadCause::Source { kind, name, .. } = &main.spread {
        next(advise::against(*kind, name), saved)
    } else {
        None
    };
    let largest = saved.files.get(main.largest_run - 1).map(|file| {
        let lead = text!("Run {} has the largest value", main.largest_run);
        (lead, format!("noisefloor report {file}"))
    });
    Some(match tried.or(largest) {
        Some((lead, command)) => Item::new(text!("{} {}:", words, lead)).command(command),
        None => Item::new(words),
    })
}

/// Why the runs differ, as far as known.
pub(crate) fn words(main: &MainMetric) -> Option<Text> {
    let name = metric_names::name(&main.metric);
    Some(match &main.spread {
        SpreadCause::Equal => return None,
        SpreadCause::FewRuns => {
            text!("Why the {} differs from run to run takes 6 runs or more to say.", name)
        }
        SpreadCause::Untraced => text!(
            "Whether noise explains why the {} differs from run to run is not known: single events \
             were not traced.",
            name
        ),
        SpreadCause::NoSource => text!(
            "No source of noise explains why the {} differs from run to run. What remains possible{}: \
             {}.",
            name,
            main.pattern.map(|_| ", besides what the doubts say"),
            remaining(&main.metric)
        ),
        SpreadCause::Source { kind, name: source, explained } => text!(
            "The time lost to {} explains {} of the variation of the {} (rank correlation {}).",
            of_kind(*kind, Text::name(source)),
            number::ratio(explained.share_ppm),
            name,
            Text::number(format!("{:.2}", explained.rank_correlation))
        ),
    })
}

/// What may explain differences that no source of noise explains.
fn remaining(metric: &str) -> &'static str {
    match metric {
        "run_ns" => {
            "the program itself and its input, caches, the place of its memory, the disk, the \
             frequency of the processor"
        }
        _ => {
            "several sources together, the frequency of the processor, the load of the machine"
        }
    }
}

/// What the next command does about a source, and the command; `None` if none is known.
fn next(against: Against, saved: &Saved<'_>) -> Option<(Text, String)> {
    let [own, others] = &saved.cpus;
    let (name, cpus) = match against {
        Against::Partition => ("partition", own),
        Against::Irqs => ("irqs", others),
        Against::Workqueues => ("workqueues", others),
        Against::Wakers => {
            return Some((
                "See what wakes it".into(),
                "sudo noisefloor wakers".to_owned(),
            ));
        }
        Against::Unknown => return None,
    };
    let command = format!("sudo noisefloor try {name}={cpus} -- {}", saved.measurement);
    (!cpus.is_empty()).then(|| ("Try what avoids it".into(), command))
}

/// What another set can show, in a sentence.
pub(crate) fn detectable(main: &MainMetric) -> Option<Text> {
    let found = main.detectable.filter(|_| main.pattern.is_none())?;
    let name = metric_names::name(&main.metric);
    Some(match found.difference_ppm {
        Some(least) if least.get() > 0.0 => text!(
            "Another set of {} runs would show a difference of {} in {}, {}; {}.",
            main.runs,
            number::ratio(least),
            name,
            power(),
            needed(&found)
        ),
        Some(_) => return None,
        None => text!(
            "Another set of {} runs is too small to show a difference in {}; {}.",
            main.runs,
            name,
            needed(&found)
        ),
    })
}

/// What a comparison without a difference would have shown, in a sentence.
pub(crate) fn would_show(found: &Detectable, metric: &str) -> Option<Text> {
    let name = metric_names::name(metric);
    let least = found.difference_ppm.filter(|least| least.get() > 0.0)?;
    Some(text!(
        "These sets would show a difference of {} in {}, {}; {}.",
        number::ratio(least),
        name,
        power(),
        needed(found)
    ))
}

/// How often a difference is shown.
fn power() -> Text {
    text!("in {} of 10 trials", Text::number(format!("{:.0}", POWER * 10.0)))
}

/// The number of runs for the difference of interest.
fn needed(found: &Detectable) -> Text {
    let interest = number::ratio(found.interest_ppm);
    match found.runs {
        Some(runs) => text!("{} takes {} runs of each", interest, runs),
        None => text!("{} takes more than 100,000 runs of each", interest),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::CulpritKind;
    use stats::Explained;

    use super::*;
    use crate::document::Document;
    use crate::document::list::List;
    use crate::terminal::full_text;

    /// Check the sentences of all patterns.
    #[test]
    fn patterns() {
        let change_ppm = Some(Ppm::new(1e6));
        let modes = |order| Pattern::TwoModes {
            modes: [50e6, 100e6],
            runs: [9, 1],
            run: 2,
            changes: 3,
            order,
        };
        let first =
            |runs| Pattern::FirstRuns { runs, first: 2e8, others: 1e8, change_ppm };
        let patterns = [
            first(1),
            first(2),
            Pattern::Jump { run: 7, from: 1e8, to: 2e8, change_ppm },
            Pattern::Trend {
                per_run: -1e6,
                interval: [-1.2e6, -0.9e6],
                per_run_ppm: Some(Ppm::new(-1e4)),
                from: 1e8,
                to: 9e7,
            },
            modes(ModeOrder::Alternating),
            modes(ModeOrder::Stretches),
            modes(ModeOrder::Random),
        ];
        let reasons = patterns.iter().map(|pattern| doubt("run_ns", pattern, Unit::Ns));
        assert_snapshot!(full_text(&Document::default().reasons(reasons)));
    }

    /// Check why runs differ, with the next command: one that avoids a source, or the report of a run.
    #[test]
    fn causes() {
        let source = |kind, name: &str| SpreadCause::Source {
            kind,
            name: name.to_owned(),
            explained: Explained {
                source: 0,
                rank_correlation: 0.853,
                share_ppm: Ppm::new(714_000.0),
            },
        };
        let spreads = [
            source(CulpritKind::Thread, "kworker/u8"),
            source(CulpritKind::Thread, "kworker/0"),
            source(CulpritKind::Thread, "rustc"),
            source(CulpritKind::Irq, "nvme0q1"),
            source(CulpritKind::Steal, "hypervisor"),
            SpreadCause::NoSource,
            SpreadCause::Untraced,
            SpreadCause::FewRuns,
        ];
        let files: Vec<String> = (1..9).map(|run| format!("set/{run:03}.json")).collect();
        let cpus = ["1", "0,2-3"].map(|cpus| cpus.parse().unwrap());
        let saved = Saved { measurement: "run -c 1 ./bench", files: &files, cpus };
        let items = spreads.into_iter().map(|spread| {
            let main = MainMetric {
                metric: "run_ns".to_owned(),
                runs: 8,
                largest_run: 7,
                pattern: None,
                spread,
                detectable: None,
                unit: Unit::Ns,
            };
            cause(&main, &saved).unwrap()
        });
        assert_snapshot!(full_text(&List::lines(items).into()));
    }
}
