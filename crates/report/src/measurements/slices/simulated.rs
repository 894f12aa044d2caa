//! What a simulation was given, in a sentence.

use facts::Facts;
use recording::{Simulated, SimulatedSteal, StepSetting};
use units::Nanos;

use crate::document::text::{Text, text};

/// What was simulated beside the load, so that the same numbers can be computed again.
pub(crate) fn sentence(facts: &Facts, inputs: &Simulated) -> Text {
    let (jitter, slack) = (inputs.tick_jitter_ns, inputs.timer_slack_ns);
    let parts = [
        changed(&inputs.settings),
        facts.tick.hz.get().map(|hz| text!("{} Hz", number(hz.get()))),
        inputs.spinners_cgroup.map(|weight| cgroup("spinners", weight)),
        inputs.sleepers_cgroup.map(|weight| cgroup("sleepers", weight)),
        (!jitter.is_zero()).then(|| late("ticks", jitter)),
        (!slack.is_zero()).then(|| late("timers", slack)),
        inputs.steal.as_ref().map(stolen),
        (!inputs.kernel_work).then(|| "no time for the kernel's own work".into()),
        inputs.reads_itself.then(|| "spinners read their own times".into()),
        Some(text!("seed {}", number(inputs.seed))),
    ];
    text!(
        "Simulated with the rules of {}: {}.",
        Text::name(&inputs.rules),
        Text::join(parts.into_iter().flatten(), "; "),
    )
}

fn number(number: impl ToString) -> Text {
    Text::number(number.to_string())
}

fn changed(settings: &[StepSetting]) -> Option<Text> {
    let one = |one: &StepSetting| Text::command(format!("{}={}", one.name, one.value));
    (!settings.is_empty()).then(|| Text::join(settings.iter().map(one), ", "))
}

fn cgroup(who: &'static str, weight: u32) -> Text {
    text!("{} in a cgroup of weight {}", who, number(weight))
}

fn late(what: &'static str, by: Nanos) -> Text {
    text!("{} up to {} late", what, by)
}

fn stolen(steal: &SimulatedSteal) -> Text {
    text!("{} of each {} stolen", steal.ns, steal.every_ns)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::json;

    use super::*;
    use crate::document::Document;
    use crate::terminal::full_text;

    /// Check the sentence about all inputs, and the shortest one.
    #[test]
    fn inputs() {
        let facts = Facts::of_known(vec![("tick.hz", json!(250))]);
        let few = Simulated {
            rules: "6.12".to_owned(),
            settings: Vec::new(),
            spinners_cgroup: None,
            sleepers_cgroup: None,
            tick_jitter_ns: Nanos::ZERO,
            timer_slack_ns: Nanos::ZERO,
            steal: None,
            kernel_work: true,
            reads_itself: false,
            seed: 1,
        };
        let said =
            |inputs: &Simulated| full_text(&Document::from(sentence(&facts, inputs)));
        assert_snapshot!(said(&few), @"Simulated with the rules of 6.12: 250 Hz; seed 1.");
        let setting = |name: &str, value: &str| StepSetting {
            name: name.to_owned(),
            value: value.to_owned(),
        };
        let all = Simulated {
            settings: vec![setting("HRTICK", "off"), setting("base_slice_ns", "3000000")],
            spinners_cgroup: Some(100),
            sleepers_cgroup: Some(300),
            tick_jitter_ns: Nanos::from_micros(20),
            timer_slack_ns: Nanos::from_micros(50),
            steal: Some(SimulatedSteal {
                ns: Nanos::from_micros(100),
                every_ns: Nanos::from_millis(10),
            }),
            kernel_work: false,
            reads_itself: true,
            ..few
        };
        assert_snapshot!(said(&all), @r"
        Simulated with the rules of 6.12: HRTICK=off, base_slice_ns=3000000; 250 Hz;
        spinners in a cgroup of weight 100; sleepers in a cgroup of weight 300; ticks up
        to 20 µs late; timers up to 50 µs late; 100 µs of each 10 ms stolen; no time for
        the kernel's own work; spinners read their own times; seed 1.
        ");
    }
}
