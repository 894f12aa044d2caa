//! The findings of `check` in words: what was found, what can be done and when.

use advise::{AdviceItem, CpuLoss, Finding, FindingRule, When};
use facts::{Facts, Inert};
use recording::StealClock;
use serde::{Serialize, Serializer};
use summary::{LineSummary, TickMeaning, TickVerdict};
use units::{Cpu, CpuSet, Nanos};

use crate::advice::change;
use crate::document::text::{Text, text};
use crate::kernel_facts::value::hypervisor;
use crate::measurements::check::loss::loss;
use crate::measurements::ticks::words::{self as tick_words, cpus};
use crate::number::{self, ShareUnit};

const NO_STEAL_CLOCK: &str = "It does not report steal time, so part of the loss may be due to \
    the hypervisor.";

/// A finding with its text; serialized, it is part of the JSON contract.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct FindingText {
    #[serde(flatten)]
    rule: FindingRule,
    #[serde(serialize_with = "as_string")]
    pub(crate) text: Text,
    pub(crate) action: Option<ActionText>,
    pub(crate) next: String,
}

#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct ActionText {
    when: When,
    #[serde(serialize_with = "as_string")]
    pub(crate) text: Text,
}

fn as_string<S: Serializer>(text: &Text, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(text)
}

/// The findings about a machine with these facts, with their text.
pub(crate) fn findings(facts: &Facts, found: Vec<Finding>) -> Vec<FindingText> {
    let action = |item: AdviceItem| ActionText {
        when: item.change.when(),
        text: text!("{}.", change(&item)),
    };
    let render = |found: Finding| FindingText {
        text: sentences(facts, &found.rule),
        action: found.advice.map(action),
        rule: found.rule,
        next: found.next,
    };
    found.into_iter().map(render).collect()
}

fn sentences(facts: &Facts, rule: &FindingRule) -> Text {
    match rule {
        FindingRule::Tick { hz: _, idle, busy } => {
            let idle = rates("While idle", facts, idle);
            let busy = match busy.as_slice() {
                [] => Text::default(),
                busy => rates("While a busy loop runs", facts, busy),
            };
            text!("Tick: {}.{}{}", tick_words::reference(facts), idle, busy)
        }
        FindingRule::InertParameters { parameters } => inert_parameters(parameters),
        FindingRule::Loss(None) => "OS noise was not measured.".into(),
        FindingRule::Loss(Some(of)) => loss(of),
        FindingRule::Interrupts { cpu, interrupt } => interrupts(*cpu, interrupt),
        FindingRule::Hypervisor { name, steal_clock, cpu, steal_ns, steal_min_ns } => {
            let bounds = steal_min_ns.zip(*steal_ns);
            let steal = steal_clock.then(|| steal(cpu.zip(bounds)));
            let steal = steal.unwrap_or_else(|| NO_STEAL_CLOCK.into());
            text!("This is a guest of {}. {}", hypervisor(name), steal)
        }
        FindingRule::IsolatedCpus { cpus, worst, worst_other } => {
            isolated_cpus(cpus, *worst, *worst_other)
        }
        FindingRule::NoIsolatedCpus { online: _ } => {
            "No CPU is isolated (isolcpus=, nohz_full=): all programs, interrupts and \
             kernel threads may run on every CPU."
                .into()
        }
        FindingRule::NeedsRoot { facts } => {
            let facts = number::counted(*facts as u64, "fact");
            text!("{} about the kernel can be read by root only.", facts)
        }
    }
}

fn inert_parameters(parameters: &[Inert]) -> Text {
    let lead = match parameters.len() {
        1 => "1 boot parameter has no effect.".to_owned(),
        count => format!("{count} boot parameters have no effect. The first is"),
    };
    let first = parameters.first().map(|first| {
        let parameter = Text::command(first.parameter.as_str());
        text!(" {}: {}.", parameter, first.text.trim_end_matches('.'))
    });
    text!("{}{}", lead, first)
}

fn interrupts(cpu: Cpu, interrupt: &LineSummary) -> Text {
    let number = match interrupt.is_device() {
        true => format!(" (IRQ {})", interrupt.line),
        false => String::new(),
    };
    text!(
        "The most frequent interrupt other than the timer's was {}{}: {} times a second on CPU {}.",
        Text::name(interrupt.name.as_str()),
        number,
        number::known(interrupt.rate_hz),
        cpu,
    )
}

/// The bounds of the largest steal time; `None` if it was not read.
fn steal(most: Option<(Cpu, (Nanos, Nanos))>) -> Text {
    match most {
        None => "Steal time could not be read.".into(),
        Some((_, (_, Nanos::ZERO))) => "There was no steal time.".into(),
        Some((_, (Nanos::ZERO, StealClock::STEP))) => {
            "No steal time was counted (/proc/stat, in steps of 10 ms).".into()
        }
        Some((cpu, (least, most))) => text!(
            "The hypervisor took {} from CPU {} (steal time).",
            number::bounds(least, most),
            cpu
        ),
    }
}

fn isolated_cpus(
    isolated: &CpuSet,
    worst: Option<CpuLoss>,
    other: Option<CpuLoss>,
) -> Text {
    let are = if isolated.len() == 1 { "is" } else { "are" };
    let unit = ShareUnit::of([worst, other].map(|of| of.and_then(|of| of.noise_ppm)));
    let lost =
        |of: CpuLoss| text!("CPU {} lost most: {}", of.cpu, unit.known(of.noise_ppm));
    let lost = match (worst.map(lost), other.map(lost)) {
        (None, _) => "; none of them was measured.".into(),
        (Some(worst), None) => text!(". Of these, {}.", worst),
        (Some(worst), Some(other)) => {
            text!(". Of these, {}; of the others, {}.", worst, other)
        }
    };
    text!("{} {} isolated or nohz_full{}", cpus(isolated), are, lost)
}

/// The measured rates of timer interrupts: sentences for the two most important verdicts.
fn rates(when: &str, facts: &Facts, verdicts: &[TickVerdict]) -> Text {
    let known = verdicts.iter().filter(|verdict| verdict.meaning != TickMeaning::Unknown);
    let sentence = |verdict: &TickVerdict| {
        let (has, each) =
            if verdict.cpus.len() > 1 { ("have", " each") } else { ("has", "") };
        text!(
            "{} {} {}{}. {}.",
            cpus(&verdict.cpus),
            has,
            tick_words::rates(verdict),
            each,
            tick_words::words(verdict, facts)
        )
    };
    let sentences = Text::join(known.take(2).map(sentence), " ");
    match sentences.is_empty() {
        true => text!(" {}, timer interrupts could not be counted.", when),
        false => text!(" {}, {}", when, sentences),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use recording::Body;
    use summary::CheckSummary;

    use super::*;
    use crate::example::{self, GUEST, METAL, MUTE};
    use crate::measurements::check::actions::advice;

    fn found(recording: &recording::Recording) -> Vec<FindingText> {
        let Body::Check { series, .. } = &recording.body else { return Vec::new() };
        let summary = CheckSummary::of(None, series);
        let advice = advice(&recording.facts, &summary);
        let found = advise::findings(&recording.facts, &summary, &advice);
        findings(&recording.facts, found)
    }

    pub(crate) fn finding(recording: &recording::Recording, code: &str) -> String {
        let has_code = |finding: &FindingText| {
            serde_json::to_value(finding).unwrap()["code"] == code
        };
        found(recording).into_iter().find(has_code).unwrap().text.to_string()
    }

    /// Check that there are two to seven findings, each a sentence with a command that exists,
    /// whatever is known.
    #[test]
    fn two_to_seven() {
        for groups in [GUEST, METAL, MUTE] {
            for count in [0, 1, 8, 40] {
                let plain = example::check(groups, count);
                for recording in
                    [plain.clone(), example::quiet(plain.clone()), example::wide(plain)]
                {
                    let found = found(&recording);
                    assert!((2..=7).contains(&found.len()), "{count}: {found:?}");
                    for finding in found {
                        assert!(finding.text.to_string().ends_with('.'), "{finding:?}");
                        let tools = [
                            "noisefloor ",
                            "sudo noisefloor ",
                            "cat /proc/",
                            "grep ",
                            "ps ",
                            "vmstat",
                        ];
                        let is_tool = |tool: &&str| finding.next.starts_with(*tool);
                        assert!(tools.iter().any(is_tool), "{finding:?}");
                    }
                }
            }
        }
    }

    pub(crate) fn noisy(
        change: impl Fn(&mut recording::CpuNoise),
    ) -> recording::Recording {
        let mut recording = example::check(GUEST, 2);
        if let Body::Check { series, .. } = &mut recording.body {
            series.noise.cpus.iter_mut().for_each(change);
        }
        recording
    }

    /// Check that a hypervisor without a steal clock differs from one without steal time.
    #[test]
    fn steal() {
        let taken = finding(&example::check(GUEST, 2), "hypervisor");
        assert!(taken.contains("took 10 ms to 30 ms from CPU 1"), "{taken}");
        let none = noisy(|cpu| cpu.proc.steal_ns = Some(Nanos::ZERO));
        assert!(finding(&none, "hypervisor").contains("No steal time was counted"));
        // The traced clock is the only source, here and in the table above.
        let traced = |at_least, at_most| {
            let mut recording = example::blamed(none.clone());
            let noise = recording.body.noise_mut().unwrap();
            noise.cpus[1].blamed.as_mut().unwrap().steal = Some(recording::Steal {
                clock: StealClock::Paravirt,
                at_least_ns: Nanos::from_micros(at_least),
                at_most_ns: Nanos::from_micros(at_most),
                unexplained_max_ns: Nanos::ZERO,
            });
            noise.cpus[0].blamed.as_mut().unwrap().steal = Some(recording::Steal {
                clock: StealClock::Paravirt,
                at_least_ns: Nanos::ZERO,
                at_most_ns: Nanos::ZERO,
                unexplained_max_ns: Nanos::ZERO,
            });
            (finding(&recording, "hypervisor"), crate::measurements::text_of(&recording))
        };
        let (found, text) = traced(4_700, 4_730);
        let words = "took 4.7 ms to 4.73 ms from CPU 1";
        assert!(found.contains(words), "{found}");
        assert!(text.contains("4.7 ms to 4.73 ms of steal time"), "{text}");
        let (found, text) = traced(0, 0);
        assert!(found.contains("There was no steal time"), "{found}");
        assert!(!text.contains(" of steal time"), "{text}");
        let silent = GUEST.replace("\"steal_clock\": true", "\"steal_clock\": false");
        let text = finding(&example::check(&silent, 2), "hypervisor");
        assert!(text.contains("does not report steal time"), "{text}");
    }
}
