//! What a proof has shown of advice, in words: the measured gain in place of the expected one, what is no longer
//! advised, and why the rest was not measured.

use advise::{
    Advice, AdviceItem, Barrier, Effect, MeasuredDifference, ProofOutcome, Proven,
    TICKS_INSTRUCTIONS,
};
use stats::Unit;
use summary::definition;

use crate::document::Document;
use crate::document::list::List;
use crate::document::text::{Text, text};
use crate::number;

/// The gain of an item: the measured one, or else the expected one with what a proof says of it.
pub(super) fn gain(item: &AdviceItem) -> Text {
    let expected = item.rule.gain;
    let Some(proven) = item.proven() else { return expected.into() };
    let found = found(proven);
    match proven.conclusion {
        Effect::Better => text!("Measured: {}.", found),
        Effect::Worse | Effect::NoLargerDifference(_) | Effect::Unclear => {
            text!("{} Measured: {}.", expected, found)
        }
    }
}

/// The same with the word before it, the measurement, or why there was none.
pub(super) fn full_gain(item: &AdviceItem) -> Text {
    let expected = item.rule.gain;
    match &item.proof {
        Some(ProofOutcome::Proven(proven)) => match proven.conclusion {
            Effect::Better => {
                text!("Gain, measured ({}): {}.", method(proven), found(proven))
            }
            Effect::Worse | Effect::NoLargerDifference(_) | Effect::Unclear => text!(
                "Gain: {} Measured ({}): {}.",
                expected,
                method(proven),
                found(proven)
            ),
        },
        Some(ProofOutcome::NotProven(why)) => {
            text!("Gain: {} Not proven: {}.", expected, Text::name(why.to_string()))
        }
        None => text!("Gain: {}", expected),
    }
}

/// How many changes were measured; `None` without a proof.
pub(super) fn counts(advice: &Advice) -> Option<Text> {
    let all = || advice.items.iter().chain(&advice.not_advised);
    let asked = all().filter(|item| item.proof.is_some()).count();
    let proven: Vec<&Proven> = all().filter_map(AdviceItem::proven).collect();
    let of = |is: fn(&Effect) -> bool| {
        proven.iter().filter(|proven| is(&proven.conclusion)).count().to_string()
    };
    (asked > 0).then(|| {
        text!(
            "Measured {} of {} changes: {} better, {} worse, {} without a proven difference.",
            proven.len().to_string(),
            asked.to_string(),
            of(|effect| matches!(effect, Effect::Better)),
            of(|effect| matches!(effect, Effect::Worse)),
            of(|effect| {
                matches!(effect, Effect::NoLargerDifference(_) | Effect::Unclear)
            }),
        )
    })
}

/// How many were not, by the kind of reason.
pub(super) fn barriers(advice: &Advice) -> Option<Text> {
    let pairs = advice.items.iter().filter_map(|item| match &item.proof {
        Some(ProofOutcome::NotProven(why)) => Some((short(why), ())),
        Some(ProofOutcome::Proven(_)) | None => None,
    });
    let counts = crate::grouped::grouped(pairs)
        .into_iter()
        .map(|(why, all)| text!("{} {}", all.len().to_string(), why));
    let counts = Text::join(counts, ", ");
    (!counts.is_empty()).then(|| text!("Not measured: {}.", counts))
}

fn short(why: &Barrier) -> &'static str {
    match why {
        Barrier::Budget => "beyond the budget",
        Barrier::Interrupted => "after an early end",
        Barrier::Refused(_) => "that cannot be changed here",
        Barrier::NoGuest(_) => "that no guest can try",
        Barrier::Build(_) => "that need another kernel",
        Barrier::Action => "that are no settings",
        Barrier::NoMeasurement => "that no measurement shows",
    }
}

/// What is no longer advised, each with what was measured of it.
pub(super) fn not_advised(
    advice: &Advice,
    most: usize,
    change: fn(&AdviceItem) -> Text,
) -> Document {
    let listed = advice.not_advised.iter().take(most).filter_map(|item| {
        let (change, proven) = (change(item), item.proven()?);
        let found = found(proven);
        Some(match proven.conclusion {
            Effect::Worse => {
                text!("{}: makes it worse here: measured {}, not advised", change, found)
            }
            Effect::Better | Effect::NoLargerDifference(_) | Effect::Unclear => {
                text!("{}: {}, not advised", change, found)
            }
        })
    });
    Document::section("Not advised, as measured here", List::bullets(listed))
}

/// The changes that were not measured, by the reason.
pub(super) fn not_proven(advice: &Advice) -> Document {
    let pairs = advice.items.iter().filter_map(|item| match &item.proof {
        Some(ProofOutcome::NotProven(why)) => Some((why.to_string(), item.rule.name)),
        Some(ProofOutcome::Proven(_)) | None => None,
    });
    let lines = crate::grouped::grouped(pairs)
        .into_iter()
        .map(|(why, rules)| text!("{}: {}", Text::name(why), rules.join(", ")));
    Document::section("Not proven here, and why", List::lines(lines))
}

/// The metric, and its difference with the interval.
fn found(proven: &Proven) -> Text {
    let measured = &proven.measured;
    let about = definition(&measured.metric);
    let name = match about {
        Some(about) => about.name,
        None if measured.metric == TICKS_INSTRUCTIONS => {
            "kernel instructions of timer interrupts"
        }
        None => &measured.metric,
    };
    let unit = about.map_or(Unit::Count, |about| about.unit);
    if let Effect::NoLargerDifference(largest) = proven.conclusion {
        return match largest {
            Some(largest) if largest.get() > 0.0 => {
                text!("no difference of {} larger than {}", name, number::ratio(largest))
            }
            Some(_) | None => text!("no difference of {}", name),
        };
    }
    let [difference, interval] = sizes(measured, unit);
    let is_unclear = matches!(proven.conclusion, Effect::Unclear);
    let chance = is_unclear.then_some(", which may be chance, too");
    if proven.kernel.is_none() {
        return text!("{} {} ({}){}", name, difference, interval, chance);
    }
    let [from, to] = measured.values.map(|value| number::in_unit(value, unit));
    text!("{} {} ({} instead of {}, exact, in guests)", name, difference, to, from)
}

/// The difference and its interval, in percent if possible.
fn sizes(measured: &MeasuredDifference, unit: Unit) -> [Text; 2] {
    let signed = |value: f64| number::signed(value, number::in_unit(value.abs(), unit));
    let parts = measured.difference_ppm.zip(measured.interval_ppm);
    let (difference, [low, high]) = match parts {
        Some((difference, bounds)) => {
            (number::change(difference), bounds.map(number::change))
        }
        None => (signed(measured.difference), measured.interval.map(signed)),
    };
    [difference, text!("{} to {}", low, high)]
}

/// How it was measured.
fn method(proven: &Proven) -> Text {
    let [without, with] = proven.measured.runs.map(|runs| runs.to_string());
    let command = Text::command(proven.measurement.as_str());
    match &proven.kernel {
        Some(kernel) => {
            text!(
                "{} in guests of kernel {}, without other work",
                command,
                Text::name(kernel.as_str())
            )
        }
        None => text!("{}, {} runs without and {} with it", command, without, with),
    }
}

#[cfg(test)]
mod tests {
    use advise::{Change, Importance, Kind, Method};
    use insta::assert_snapshot;
    use units::Ppm;

    use super::*;
    use crate::advice::tests::report_of;
    use crate::terminal::{full_text, screen_text};

    fn proven(kernel: Option<&str>, difference: f64, conclusion: Effect) -> ProofOutcome {
        let interval = [difference - 20.0, difference + 20.0];
        let ppm = |value: f64| Ppm::new(value * 1e3);
        ProofOutcome::Proven(Proven {
            rule: "rule",
            method: Method::Noise,
            measurement: "noise -c 1 -d 2".to_owned(),
            kernel: kernel.map(str::to_owned),
            measured: MeasuredDifference {
                metric: "noise_ppm".to_owned(),
                runs: [8, 8],
                values: [1_000.0, 1_000.0 + difference],
                difference,
                interval,
                difference_ppm: Some(ppm(difference)),
                interval_ppm: Some(interval.map(ppm)),
            },
            conclusion,
        })
    }

    /// Eight changes that act on the timer.
    fn items(like: &AdviceItem) -> Vec<AdviceItem> {
        let item = |place: usize| {
            let mut item = like.clone();
            let rule = &mut item.rule;
            (rule.kind, rule.importance) = (Kind::Advice, Importance::Useful);
            (rule.acts_on, rule.gain) = (Some("timer"), "Fewer timers.");
            item.change =
                Change::Set { name: format!("vm.setting_{place}"), to: "1".to_owned() };
            item.from = Some("0".to_owned());
            item
        };
        (0..8).map(item).collect()
    }

    /// The report about a machine of which one change of each kind was proven.
    fn report(render: fn(&Document) -> String) -> String {
        report_of(render, |mut advice| {
            advice.items = items(&advice.items[0]);
            let wide = Effect::NoLargerDifference(Some(Ppm::new(3e5)));
            let outcomes = vec![
                ProofOutcome::NotProven(Barrier::Budget),
                proven(None, -231.0, Effect::Better),
                proven(None, 31.0, Effect::Worse),
                proven(Some("debian:6.12"), -400.0, Effect::Better),
                proven(None, -1.0, wide),
                proven(None, -30.0, Effect::Unclear),
                proven(None, -1.0, Effect::NoLargerDifference(Some(Ppm::new(2e4)))),
                ProofOutcome::NotProven(Barrier::NoGuest("no kernel".to_owned())),
            ];
            advice.with_proofs(outcomes, Ppm::new(1e5))
        })
    }

    /// Check that one screen has at most 24 lines of 80 columns, with what is not advised.
    #[test]
    fn fits_one_screen() {
        let text = report(screen_text);
        assert!(text.lines().count() <= 24, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_snapshot!(text);
    }

    /// Check each kind of result in the whole report.
    #[test]
    fn whole_report() {
        let text = report(full_text);
        let begin = text.find("  1. ").unwrap();
        let end = text.find("Not judged").unwrap_or(text.len());
        assert_snapshot!(&text[begin..end]);
    }
}
