//! The findings of `check` in words: what was found, what can be done and when.

use advise::{Action, CpuLoss, Loss, Rule, TimerShare, When};
use facts::{Facts, Inert};
use recording::{CulpritKind, StealClock};
use serde::Serialize;
use summary::{CheckSummary, CulpritSummary, LineSummary, TickMeaning, TickVerdict};
use units::{Cpu, CpuSet, Nanos, Ppm};

use crate::number::{self, ShareUnit};
use crate::text::facts::value;
use crate::text::noise::culprits::{kind_word, name};
use crate::text::ticks::words::{self as tick_words, cpus};

/// A smaller share of the noise is reported as less than 1 %.
const LITTLE: Ppm = Ppm::new(10_000.0);
const NO_STEAL_CLOCK: &str = "It does not report steal time, so part of the loss may be due to \
    the hypervisor.";

/// A finding with its text; serialized, it is part of the JSON contract.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct FindingText {
    #[serde(flatten)]
    rule: Rule,
    pub(crate) text: String,
    pub(crate) action: Option<ActionText>,
    pub(crate) next: String,
}

#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct ActionText {
    when: When,
    text: String,
}

/// The findings about a machine, with their text.
pub(crate) fn findings(facts: &Facts, summary: &CheckSummary) -> Vec<FindingText> {
    let render = |found: advise::Finding| FindingText {
        text: text(facts, &found.rule),
        action: found.action.as_ref().map(ActionText::new),
        rule: found.rule,
        next: found.next,
    };
    advise::findings(facts, summary).into_iter().map(render).collect()
}

impl ActionText {
    fn new(action: &Action) -> Self {
        let text = match action {
            Action::UseNohzFull(full) => {
                format!("it stops on {} while one task runs there", cpus(full))
            }
            Action::SetNohzFull(others) => {
                format!("nohz_full={others} stops it there while one task runs")
            }
            Action::NoNohzFull => {
                "this kernel is built without CONFIG_NO_HZ_FULL, which \
                                   stops the tick while one task runs"
                    .to_owned()
            }
            Action::OnlyCpu => {
                "there is one CPU only, which must run everything".to_owned()
            }
            Action::RemoveParameter => {
                "remove it, or set what is named in its place".to_owned()
            }
            Action::Partition(cpu) => format!(
                "noisefloor run -c {cpu} --partition --require COMMAND keeps other programs off \
                 CPU {cpu} while COMMAND runs (root)"
            ),
            Action::MoveIrqs(cpu) => format!(
                "noisefloor run -c {cpu} --irqs COMMAND moves it to other CPUs (root)"
            ),
            Action::TryToMoveIrqs(cpu) => format!(
                "noisefloor run -c {cpu} --irqs COMMAND moves it to other CPUs (root), or warns \
                 that the kernel sets its affinity itself"
            ),
            Action::FixedIrq => {
                "the kernel sets the affinity of this IRQ itself (a managed or per-CPU IRQ)"
                    .to_owned()
            }
            Action::Host => {
                "steal time depends on the host, not on settings of the guest".to_owned()
            }
            Action::Isolcpus(others) => {
                format!("isolcpus={others} keeps programs off {}", cpus(others))
            }
        };
        Self { when: action.when(), text }
    }

    pub(crate) fn sentence(&self) -> String {
        let when = match self.when {
            When::Now => "Now",
            When::Boot => "At boot",
            When::Never => "Cannot be set",
        };
        format!("{when}: {}.", self.text)
    }
}

fn text(facts: &Facts, rule: &Rule) -> String {
    match rule {
        Rule::Tick { hz: _, idle, busy } => {
            let idle = rates("While idle", facts, idle);
            let busy = match busy.as_slice() {
                [] => String::new(),
                busy => rates("While a busy loop runs", facts, busy),
            };
            tick(facts) + &idle + &busy
        }
        Rule::InertParameters { parameters } => inert_parameters(parameters),
        Rule::Loss(None) => "OS noise was not measured.".to_owned(),
        Rule::Loss(Some(of)) => loss(of),
        Rule::Interrupts { cpu, interrupt } => interrupts(*cpu, interrupt),
        Rule::Hypervisor { name, steal_clock, cpu, steal_ns, steal_min_ns } => {
            let name = value::hypervisor(name);
            let bounds = steal_min_ns.zip(*steal_ns);
            let steal = steal_clock.then(|| steal(cpu.zip(bounds)));
            let steal = steal.unwrap_or_else(|| NO_STEAL_CLOCK.to_owned());
            format!("This is a guest of {name}. {steal}")
        }
        Rule::IsolatedCpus { cpus, worst, worst_other } => {
            isolated_cpus(cpus, *worst, *worst_other)
        }
        Rule::NoIsolatedCpus { online: _ } => {
            "No CPU is isolated (isolcpus=, nohz_full=): all programs, interrupts and \
             kernel threads may run on every CPU."
                .to_owned()
        }
        Rule::NeedsRoot { facts: 1 } => {
            "1 fact about the kernel can be read by root only.".to_owned()
        }
        Rule::NeedsRoot { facts } => {
            format!("{facts} facts about the kernel can be read by root only.")
        }
    }
}

fn inert_parameters(parameters: &[Inert]) -> String {
    let lead = match parameters.len() {
        1 => "1 boot parameter has no effect.".to_owned(),
        count => format!("{count} boot parameters have no effect. The first is"),
    };
    let first = parameters.first().map(|first| {
        format!(" {}: {}.", first.parameter, first.text.trim_end_matches('.'))
    });
    lead + &first.unwrap_or_default()
}

fn interrupts(cpu: Cpu, interrupt: &LineSummary) -> String {
    let number = match interrupt.is_device() {
        true => format!(" (IRQ {})", interrupt.line),
        false => String::new(),
    };
    let (name, rate) = (&interrupt.name, interrupt.rate_hz);
    let rate = number::known(rate, number::bare_rate);
    format!(
        "The most frequent interrupt other than the timer's was {name}{number}: {rate} times \
         a second on CPU {cpu}."
    )
}

/// The bounds of the largest steal time; `None` if it was not read.
fn steal(most: Option<(Cpu, (Nanos, Nanos))>) -> String {
    match most {
        None => "Steal time could not be read.".to_owned(),
        Some((_, (_, Nanos::ZERO))) => "There was no steal time.".to_owned(),
        Some((_, (Nanos::ZERO, StealClock::STEP))) => {
            "No steal time was counted (/proc/stat, in steps of 10 ms).".to_owned()
        }
        Some((cpu, (least, most))) => {
            let steal = number::bounds(least, most);
            format!("The hypervisor took {steal} from CPU {cpu} (steal time).")
        }
    }
}

fn isolated_cpus(
    isolated: &CpuSet,
    worst: Option<CpuLoss>,
    other: Option<CpuLoss>,
) -> String {
    let are = if isolated.len() == 1 { "is" } else { "are" };
    let text = format!("{} {are} isolated or nohz_full", cpus(isolated));
    let unit = ShareUnit::of([worst, other].map(|of| of.and_then(|of| of.noise_ppm)));
    let lost =
        |of: CpuLoss| format!("CPU {} lost most: {}", of.cpu, unit.known(of.noise_ppm));
    match (worst.map(lost), other.map(lost)) {
        (None, _) => format!("{text}; none of them was measured."),
        (Some(worst), None) => format!("{text}. Of these, {worst}."),
        (Some(worst), Some(other)) => {
            format!("{text}. Of these, {worst}; of the others, {other}.")
        }
    }
}

/// The configured rate of the tick, and when it stops.
fn tick(facts: &Facts) -> String {
    let release = facts.kernel.release.get();
    let kernel =
        release.map_or("this kernel".to_owned(), |release| format!("Linux {release}"));
    let Some(rate) = tick_words::rate(facts) else {
        return format!("The tick rate (CONFIG_HZ) of {kernel} is unknown.");
    };
    let stops = facts.tick.mode.get().map_or_else(
        || "When it stops is unknown".to_owned(),
        |mode| format!("It {}", tick_words::stops(facts, *mode)),
    );
    format!("The tick of {kernel} interrupts a busy CPU {rate}. {stops}.")
}

/// The measured rates of timer interrupts: sentences for the two most important verdicts.
fn rates(when: &str, facts: &Facts, verdicts: &[TickVerdict]) -> String {
    let known = verdicts.iter().filter(|verdict| verdict.meaning != TickMeaning::Unknown);
    let sentence = |verdict: &TickVerdict| {
        let (has, each) =
            if verdict.cpus.len() > 1 { ("have", " each") } else { ("has", "") };
        let (cpus, rates) = (cpus(&verdict.cpus), tick_words::rates(verdict));
        format!(" {cpus} {has} {rates}{each}. {}.", tick_words::words(verdict, facts))
    };
    let sentences: String = known.take(2).map(sentence).collect();
    match sentences.is_empty() {
        true => format!(" {when}, timer interrupts could not be counted."),
        false => format!(" {when},{sentences}"),
    }
}

/// The time that the worst CPU lost, and its causes as far as they are known.
fn loss(loss: &Loss) -> String {
    let cpu = loss.cpu;
    if loss.gaps == 0 {
        let elapsed = number::duration(loss.elapsed_ns);
        return format!("No time was lost in {elapsed}: the loop ran without a gap.");
    }
    format!(
        "CPU {cpu} lost {}{} of its time, in {} gaps a second. The median gap was {}, \
         the longest {}. {}",
        if loss.cpus > 1 { "most: " } else { "" },
        number::known(loss.noise_ppm, number::share),
        number::known(loss.gaps_hz, number::bare_rate),
        number::any(loss.gap_ns_p50, number::duration),
        number::any(loss.gap_ns_max, number::duration),
        if loss.culprits.is_empty() { counted(loss) } else { sources(loss) }
    )
}

/// The largest sources of a CPU's noise, and what is unexplained.
fn sources(loss: &Loss) -> String {
    let unit = ShareUnit::of(loss.culprits.iter().map(|culprit| culprit.noise_ppm));
    let sources: Vec<String> =
        loss.culprits.iter().map(|culprit| source(culprit, unit)).collect();
    let unexplained = match loss.unexplained_ppm {
        Some(part) if part == Ppm::new(0.0) => {
            "All of its noise is explained.".to_owned()
        }
        Some(part) if part < LITTLE => {
            "Less than 1 % of its noise is unexplained.".to_owned()
        }
        part => {
            let part = number::known(part, number::share);
            format!("{part} of its noise is unexplained.")
        }
    };
    let guest = loss.hypervisor.as_ref().map_or_else(String::new, |name| {
        format!(
            " This is a guest of {}: the hypervisor's own work leaves no event, so it may \
             be part of the unexplained time.",
            value::hypervisor(name)
        )
    });
    format!("Main sources: {}. {unexplained}{guest}", sources.join("; "))
}

fn source(culprit: &CulpritSummary, unit: ShareUnit) -> String {
    let name = match culprit.kind == CulpritKind::Steal {
        true => "the hypervisor (steal)".to_owned(),
        false => format!("{} {}", kind_word(culprit.kind), name(culprit)),
    };
    let part = unit.known(culprit.noise_ppm);
    format!("{name}, {} ({part} of its noise)", number::duration(culprit.ns))
}

/// The probable causes according to the totals of `/proc`, if events were not traced.
fn counted(loss: &Loss) -> String {
    let programs = programs(loss);
    if loss.mostly_programs {
        return format!(
            "Most of the lost time went to other programs, which {programs}."
        );
    }
    let timer = loss.timer_share.map_or_else(String::new, |share| {
        let share = match share {
            TimerShare::MoreThanGaps => {
                "more timer interrupts than gaps, so some caused no gap"
            }
            TimerShare::Most => "most gaps are probably timer interrupts",
            TimerShare::Half => "about half of the gaps are probably timer interrupts",
            TimerShare::Few => "most gaps have other causes",
        };
        let timer = number::known(loss.timer_hz, number::bare_rate);
        format!("There were {timer} timer interrupts a second: {share}. ")
    });
    format!("{timer}Other programs {programs}.")
}

/// How often and how long other programs ran, as the predicate of a sentence.
fn programs(loss: &Loss) -> String {
    let times = match loss.preempted {
        1 => "once".to_owned(),
        count => format!("{} times", number::count(count)),
    };
    let lost = number::duration(loss.noise_ns);
    match loss.waited_ns {
        None | Some(Nanos::ZERO) if loss.preempted == 0 => "did not run".to_owned(),
        Some(ran) => {
            let ran = number::duration(ran);
            format!(
                "preempted the loop {times} and ran for {ran}; {lost} were lost in total"
            )
        }
        None => {
            format!("preempted the loop {times}; this kernel does not count for how long")
        }
    }
}

#[cfg(test)]
mod tests {
    use recording::{Body, CpuNoise, CulpritKind as Kind};

    use super::*;
    use crate::example::{self, GUEST, METAL, MUTE};

    fn found(recording: &recording::Recording) -> Vec<FindingText> {
        let Body::Check { series, .. } = &recording.body else { return Vec::new() };
        findings(&recording.facts, &CheckSummary::of(series))
    }

    fn finding(recording: &recording::Recording, code: &str) -> String {
        let has_code = |finding: &FindingText| {
            serde_json::to_value(finding).unwrap()["code"] == code
        };
        found(recording).into_iter().find(has_code).unwrap().text
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
                        assert!(finding.text.ends_with('.'), "{finding:?}");
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

    fn noisy(change: impl Fn(&mut recording::CpuNoise)) -> recording::Recording {
        let mut recording = example::check(GUEST, 2);
        if let Body::Check { series, .. } = &mut recording.body {
            series.noise.cpus.iter_mut().for_each(change);
        }
        recording
    }

    /// Check that time lost mostly to other programs is reported, and that a kernel that does not
    /// count it differs from one without such a loss.
    #[test]
    fn other_programs() {
        let others = noisy(|cpu| cpu.proc.waited_ns = Some(Nanos::from_millis(19)));
        let text = finding(&others, "loss");
        assert!(text.contains("Most of the lost time went to other programs"), "{text}");
        let uncounted = noisy(|cpu| cpu.proc.waited_ns = None);
        assert!(finding(&uncounted, "loss").contains("does not count"));
        let none = noisy(|cpu| {
            (cpu.proc.preempted, cpu.proc.waited_ns) = (0, Some(Nanos::ZERO));
        });
        assert!(finding(&none, "loss").contains("Other programs did not run"));
    }

    /// Check how the rate of timer interrupts is compared with that of gaps.
    #[test]
    fn timer_against_gaps() {
        let timer = |count| {
            noisy(move |cpu| {
                let lines = cpu.proc.interrupts.iter_mut().flatten();
                lines.filter(|line| line.timer).for_each(|line| line.count = count);
            })
        };
        for (count, words) in [
            (2_500, "most gaps are probably timer interrupts"),
            (1_200, "about half of the gaps"),
            (50, "most gaps have other causes"),
            (25_000, "more timer interrupts than gaps"),
        ] {
            let text = finding(&timer(count), "loss");
            assert!(text.contains(words), "{count}: {text}");
        }
    }

    /// Check that a run without a gap is reported as such.
    #[test]
    fn silence() {
        let text = finding(&noisy(|cpu| cpu.gaps.clear()), "loss");
        assert_eq!(text, "No time was lost in 10 s: the loop ran without a gap.");
    }

    /// Check that the hypervisor is reported beside unexplained time only in a guest, if that is a
    /// tenth of the noise and 100 ppm of the time, and that a small share has no number.
    #[test]
    fn unexplained_in_a_guest() {
        let with = |groups: &str, unexplained: u64, change: fn(&mut CpuNoise)| {
            let mut recording = example::blamed(example::check(groups, 2));
            let noise = recording.body.noise_mut().unwrap();
            for cpu in &mut noise.cpus {
                change(cpu);
                let blamed = cpu.blamed.as_mut().unwrap();
                for share in &mut blamed.shares {
                    let is_it = blamed.culprits[share.culprit].kind == Kind::Unexplained;
                    share.ns = Nanos::from_nanos(if is_it { unexplained } else { 700 });
                }
            }
            finding(&recording, "loss")
        };
        let words = "the hypervisor's own work leaves no event";
        assert!(with(GUEST, 1_400, |_| ()).contains(words));
        assert!(!with(METAL, 1_400, |_| ()).contains(words));
        assert!(!with(GUEST, 100, |_| ()).contains(words));
        let long = |cpu: &mut CpuNoise| cpu.elapsed_ns = Nanos::from_secs(1_000);
        assert!(!with(GUEST, 1_400, long).contains(words));
        let little = with(GUEST, 1, |_| ());
        assert!(
            little.contains("Less than 1 % of its noise is unexplained."),
            "{little}"
        );
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
            (
                finding(&recording, "hypervisor"),
                crate::text(&recording, &summary::Summary::of(&recording)),
            )
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
