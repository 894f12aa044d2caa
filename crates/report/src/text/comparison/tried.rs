//! The report of `try`: the comparison, which settings are better, and what makes them last.

use advise::Lasting;
use stats::BetterSet;
use units::printable;

use crate::text::comparison::sets::doubts;
use crate::text::comparison::without_doubts;
use crate::text::layout::doubts::section;
use crate::text::layout::paragraph::paragraph;
use crate::tried::{TriedSettings, lasting};

/// Tried settings for the terminal.
pub fn tried_text(tried: &TriedSettings<'_>) -> String {
    let mut text = without_doubts(&tried.compared);
    let order = format!(
        "The runs took turns in balanced random order (--seed {}); the settings were restored after \
         each.",
        tried.seed
    );
    text.push_str(&paragraph("", &order));
    text.push('\n');
    text.push_str(&paragraph("", &printable(&verdict(tried))));
    let ways: Vec<Lasting> = lasting(tried.better_settings).collect();
    if !ways.is_empty() {
        text.push_str("\nTo make it last\n");
        let lines = ways.iter().map(|way| paragraph("  ", &printable(&line(way))));
        text.extend(lines);
    }
    let own = tried.doubts.iter().map(|doubt| printable(&doubt.text).into_owned());
    text + &section(own.chain(doubts(tried.compared.sets)))
}

/// Which settings are better, and what was done with them.
fn verdict(tried: &TriedSettings<'_>) -> String {
    let [base, other] = [0, 1].map(|set| tried.compared.names[set].as_str());
    let better = match tried.better {
        BetterSet::Unknown => {
            return "Neither is better, as far as known: no metric differs.".to_owned();
        }
        BetterSet::Mixed => {
            return "Neither is better: some metrics are better, others are worse."
                .to_owned();
        }
        BetterSet::Base => format!("A ({base}) is better"),
        BetterSet::Other => format!("B ({other}) is better"),
    };
    match tried.is_in_place {
        true => format!("{better}. It stays in place until the next boot."),
        false => format!("{better}: each metric that differs is."),
    }
}

fn line(way: &Lasting) -> String {
    match way {
        Lasting::Sysctl(line) => format!("/etc/sysctl.d/90-noisefloor.conf: {line}"),
        Lasting::Tmpfile(line) => format!("/etc/tmpfiles.d/noisefloor.conf: {line}"),
        Lasting::KernelParameter(parameter) => {
            format!("kernel command line: {parameter}")
        }
        Lasting::TunedCpu(line) => format!("tuned profile, section [cpu]: {line}"),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::StepSetting;
    use summary::compare;
    use units::Ppm;

    use super::*;
    use crate::compared::ComparedSets;
    use crate::example::sets::run_set;
    use crate::example::{self, GUEST};

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
            tried_text(&TriedSettings {
                measurement: "noise -c 0",
                compared,
                better,
                better_settings: if is_in_place { &settings } else { &[] },
                is_in_place,
                seed: 7,
                doubts: &[],
            })
        };
        let end =
            |text: &str| text[text.find("The runs took turns").unwrap()..].to_owned();
        assert_snapshot!(end(&report([&base, &other])), @r#"
        The runs took turns in balanced random order (--seed 7); the settings were
        restored after each.

        B (vm.stat_interval=120) is better. It stays in place until the next boot.

        To make it last
          /etc/sysctl.d/90-noisefloor.conf: vm.stat_interval = 120

        Doubts (reasons not to trust a number)
          - A, B: CPU 1 began 30 ms after the others, so not all of them spun at the
            same time
        "#);
        assert!(report([&base, &base]).contains("Neither is better, as far as known"));
        assert!(report([&other, &base]).contains("A (current) is better"));
    }
}
