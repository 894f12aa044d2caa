//! `try`: the comparison, which settings are better, and what makes them last.

use advise::Lasting;
use recording::{Doubt, StepSetting};
use serde::Serialize;
use stats::BetterSet;

use crate::comparisons::ComparedSets;
use crate::comparisons::doubts::doubts;
use crate::comparisons::sets::{SetsJson, without_doubts};
use crate::document::Document;
use crate::document::list::List;
use crate::document::text::{Text, text};
use crate::json::object;

/// Settings that were tried, compared with others.
#[derive(Debug, Clone, Copy)]
pub struct TriedSettings<'a> {
    /// The command line of the measurement.
    pub measurement: &'a str,
    /// The runs with the other settings, or the current ones, as base, and those with the tried ones.
    pub compared: ComparedSets<'a>,
    /// Which ones are better.
    pub better: BetterSet,
    /// The better settings; empty: the current ones, or neither.
    pub better_settings: &'a [StepSetting],
    /// Whether these were left in place.
    pub is_in_place: bool,
    /// The seed of the order of runs.
    pub seed: u32,
    /// Reasons not to trust all of them.
    pub doubts: &'a [Doubt],
}

/// Tried settings.
pub fn tried_document(tried: &TriedSettings<'_>) -> Document {
    let order = text!(
        "The runs took turns in balanced random order ({}); the settings were restored after each.",
        Text::command(format!("--seed {}", tried.seed))
    );
    let way = |way: LastingJson| text!("{}: {}", way.place, Text::command(way.text));
    let lasting = List::bullets(lasting(tried.better_settings).map(way));
    without_doubts(&tried.compared)
        .add_full(order)
        .add(verdict(tried))
        .add(Document::section("To make it last", lasting))
        .reasons(doubts(tried.doubts, tried.compared.sets))
}

/// Which settings are better, and what was done with them.
fn verdict(tried: &TriedSettings<'_>) -> Text {
    let [base, other] = [0, 1].map(|set| Text::name(&tried.compared.names[set]));
    let better = match tried.better {
        BetterSet::Unknown => {
            return "Neither is better, as far as known: no metric differs.".into();
        }
        BetterSet::Mixed => {
            return "Neither is better: some metrics are better, others are worse."
                .into();
        }
        BetterSet::Base => text!("A ({}) is better", base),
        BetterSet::Other => text!("B ({}) is better", other),
    };
    match tried.is_in_place {
        true => text!("{}. It stays in place until the next boot.", better),
        false => text!("{}: each metric that differs is.", better),
    }
}

/// What makes settings last.
fn lasting(settings: &[StepSetting]) -> impl Iterator<Item = LastingJson> {
    let all = settings.iter().flat_map(|one| advise::lasting(&one.name, &one.value));
    all.map(LastingJson::from)
}

#[derive(Serialize)]
struct TriedJson<'a> {
    #[serde(flatten)]
    sets: SetsJson<'a>,
    measurement: &'a str,
    seed: u32,
    better: BetterSet,
    in_place: bool,
    lasting: Vec<LastingJson>,
    doubts: &'a [Doubt],
}

#[derive(Serialize)]
struct LastingJson {
    /// `sysctl`, `tmpfiles`, `kernel_parameter`, `tuned_cpu`.
    how: &'static str,
    text: String,
    /// Where the text belongs.
    #[serde(skip)]
    place: &'static str,
}

impl From<Lasting> for LastingJson {
    fn from(lasting: Lasting) -> Self {
        let (how, place, text) = match lasting {
            Lasting::Sysctl(line) => ("sysctl", "/etc/sysctl.d/90-noisefloor.conf", line),
            Lasting::Tmpfile(line) => {
                ("tmpfiles", "/etc/tmpfiles.d/noisefloor.conf", line)
            }
            Lasting::KernelParameter(parameter) => {
                ("kernel_parameter", "kernel command line", parameter)
            }
            Lasting::TunedCpu(line) => {
                ("tuned_cpu", "tuned profile, section [cpu]", line)
            }
        };
        Self { how, text, place }
    }
}

/// Settings that were tried as one JSON object.
///
/// # Errors
/// None that is known: all fields can be written.
pub fn tried_json(tried: &TriedSettings<'_>) -> serde_json::Result<String> {
    object(
        "try",
        TriedJson {
            sets: SetsJson::of(&tried.compared),
            measurement: tried.measurement,
            seed: tried.seed,
            better: tried.better,
            in_place: tried.is_in_place,
            lasting: lasting(tried.better_settings).collect(),
            doubts: tried.doubts,
        },
    )
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::StepSetting;
    use summary::compare;
    use units::Ppm;

    use super::*;
    use crate::comparisons::ComparedSets;
    use crate::example::sets::run_set;
    use crate::example::{self, GUEST};
    use crate::terminal::full_text;

    /// Check the report of a better setting that stays in place, and of one that changes nothing.
    #[test]
    fn settings() {
        let recording = example::noise(GUEST, 1);
        let base = run_set(&recording, &[98, 99, 100, 101, 102, 103]);
        let other = run_set(&recording, &[78, 79, 80, 81, 82, 83]);
        let names = ["current", "vm.stat_interval=120"].map(str::to_owned);
        let [name, value] = ["vm.stat_interval", "120"].map(str::to_owned);
        let settings = [StepSetting { name, value }];
        let smallest = Ppm::new(1e5);
        let report = |sets: [&summary::RunSet; 2]| {
            let sets = sets.map(Clone::clone);
            let comparisons = compare(&sets[0], &sets[1..], smallest);
            let better = comparisons[0].better();
            let is_in_place = better == BetterSet::Other;
            let compared = ComparedSets {
                names: &names,
                sets: &sets,
                comparisons: &comparisons,
                smallest,
            };
            full_text(&tried_document(&TriedSettings {
                measurement: "noise -c 0",
                compared,
                better,
                better_settings: if is_in_place { &settings } else { &[] },
                is_in_place,
                seed: 7,
                doubts: &[],
            }))
        };
        let end =
            |text: &str| text[text.find("The runs took turns").unwrap()..].to_owned();
        assert_snapshot!(end(&report([&base, &other])), @r#"
        The runs took turns in balanced random order (--seed 7); the settings were
        restored after each.

        B (vm.stat_interval=120) is better. It stays in place until the next boot.

        To make it last
          - /etc/sysctl.d/90-noisefloor.conf: vm.stat_interval = 120

        Doubts (reasons not to trust a number)
          - A, B: CPU 1 began 30 ms after the others, so not all of them spun at the
            same time
        "#);
        assert!(report([&base, &base]).contains("Neither is better, as far as known"));
        assert!(report([&other, &base]).contains("A (current) is better"));
    }
}
