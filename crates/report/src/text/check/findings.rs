//! The findings of `check`: a few lines in plain words, each with its number, what can be done
//! about it and when, and the next command to type.
//!
//! Rules pick fields of the summary and compare them; where `/proc` can only suggest a
//! cause, the text says "probably". What took each gap, `/proc` cannot tell.

use facts::{Facts, Why};
use recording::CulpritKind;
use serde::Serialize;
use stats::{
    CheckSummary, CpuNoiseSummary, CulpritSummary, LineSummary, TickMeaning, TickVerdict,
    spinning_verdicts, tick_verdicts,
};
use units::{Cpu, CpuSet, Nanos, Ppm};

use crate::number;
use crate::text::facts::value;
use crate::text::noise::culprits;
use crate::text::noise::worst::by_loss;
use crate::text::ticks::words::{self as tick_words, cpus};

/// Interrupt lines that come less often are not worth a finding.
const FREQUENT: f64 = 1.0;
/// What is unexplained is worth a word about the hypervisor where it is a tenth of the noise, and
/// 100 millionths of the CPU's time.
const MATERIAL_NOISE_PPM: f64 = 100_000.0;
const MATERIAL_TIME: u64 = 10_000;

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule that found it, for programs.
    pub code: &'static str,
    /// What was found, in words, with its number.
    pub text: String,
    /// What can be done about it; null where that is not known.
    pub action: Option<Action>,
    /// The command to type next.
    pub next: String,
}

impl Finding {
    fn new(code: &'static str, text: String, next: impl Into<String>) -> Self {
        Self { code, text, action: None, next: next.into() }
    }

    fn with(self, when: When, text: impl Into<String>) -> Self {
        Self { action: Some(Action { when, text: text.into() }), ..self }
    }
}

/// What can be done about a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Action {
    /// When it can be done.
    pub when: When,
    /// What, or why it cannot.
    pub text: String,
}

/// When something can be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// While the machine runs.
    Now,
    /// On the kernel's command line.
    Boot,
    /// Not on this machine.
    Never,
}

impl When {
    /// The word for people.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Now => "Now",
            Self::Boot => "At boot",
            Self::Never => "Cannot be set",
        }
    }
}

/// What the rules look at.
struct Look<'a> {
    facts: &'a Facts,
    summary: &'a CheckSummary,
    worst: Option<&'a CpuNoiseSummary>,
}

/// What there is to say about a machine, in the order in which it is read.
pub fn findings(facts: &Facts, summary: &CheckSummary) -> Vec<Finding> {
    let worst = by_loss(&summary.noise).first().copied();
    let look = Look { facts, summary, worst };
    let rules: [fn(&Look<'_>) -> Option<Finding>; 7] =
        [tick, inert_parameters, loss, interrupts, hypervisor, set_apart, root];
    rules.iter().filter_map(|rule| rule(&look)).collect()
}

/// The tick: how often it comes at rest and at work, and whether it can be stopped.
fn tick(look: &Look<'_>) -> Option<Finding> {
    let rest = tick_verdicts(look.facts, &look.summary.rest.cpus);
    let cpus = look.summary.noise.cpus.iter();
    let rates = cpus.map(|cpu| (cpu.cpu, cpu.meanwhile.timer_hz));
    let work = spinning_verdicts(look.facts, rates);
    let mut parts = vec![kernel(look.facts), ticks("At rest", "took", look.facts, &rest)];
    if look.worst.is_some() {
        parts.push(ticks("While a program spins", "takes", look.facts, &work));
    }
    let finding = |next| Finding::new("tick", parts.join(" "), next);
    Some(match stopping(look.facts) {
        None => finding("noisefloor ticks"),
        Some((when, text)) if when == When::Never => {
            finding("noisefloor ticks").with(when, text)
        }
        Some((when, text)) => finding("sudo noisefloor nohz test").with(when, text),
    })
}

/// Whether the tick can be stopped while a program runs; `None` where that is not known.
fn stopping(facts: &Facts) -> Option<(When, String)> {
    let online = facts.cpus.online.get()?;
    match facts.tick.nohz_full.value() {
        Ok(full) if !full.is_empty() => {
            let text = format!("it stops on {} while one task runs there", cpus(full));
            Some((When::Now, text))
        }
        Ok(_) => match online.without(&online.iter().take(1).collect()) {
            others if others.is_empty() => {
                Some((When::Never, "the only CPU keeps the tick".to_owned()))
            }
            others => {
                let text =
                    format!("nohz_full={others} stops it there while one task runs");
                Some((When::Boot, text))
            }
        },
        Err(unknown) if unknown.code == Why::NotConfigured => {
            let text = "this kernel is built without CONFIG_NO_HZ_FULL, which stops the tick \
                        while one task runs";
            Some((When::Never, text.to_owned()))
        }
        Err(_) => None,
    }
}

/// The rate that the kernel was built with, in a sentence.
fn kernel(facts: &Facts) -> String {
    let release =
        facts.kernel.release.get().map_or("(release not known)", String::as_str);
    let Some(rate) = tick_words::rate(facts) else {
        return format!(
            "Linux {release} does not tell its tick rate (CONFIG_HZ), the rate at which it \
             interrupts each CPU."
        );
    };
    let stops = facts.tick.mode.get().map_or_else(
        || "stops at times that are not known".to_owned(),
        |mode| tick_words::stops(facts, *mode),
    );
    format!("Linux {release} interrupts a CPU at work {rate}: the tick. It {stops}.")
}

fn inert_parameters(look: &Look<'_>) -> Option<Finding> {
    let inert = look.facts.boot.inert.get()?;
    let first = inert.first()?;
    let which = match inert.len() {
        1 => "1 boot parameter does nothing here.".to_owned(),
        count => format!("{count} boot parameters do nothing here, the first of them:"),
    };
    let text =
        format!("{which} {}: {}.", first.parameter, first.text.trim_end_matches('.'));
    let finding = Finding::new("inert_parameters", text, "noisefloor facts");
    Some(finding.with(When::Boot, "leave it out, or set what it says instead"))
}

/// Sentences for the two verdicts that say most.
fn ticks(when: &str, verb: &str, facts: &Facts, verdicts: &[TickVerdict]) -> String {
    let known = verdicts.iter().filter(|verdict| verdict.meaning != TickMeaning::Unknown);
    let sentence = |verdict: &TickVerdict| {
        let verb = if verb == "takes" && verdict.cpus.len() > 1 { "take" } else { verb };
        let each = if verdict.cpus.len() > 1 { " each" } else { "" };
        let (who, rates) = (tick_words::who(verdict), tick_words::rates(verdict));
        format!("{who} {verb} {rates}{each}. {}.", tick_words::words(verdict, facts))
    };
    let said: Vec<String> = known.take(2).map(sentence).collect();
    match said.is_empty() {
        true => format!("{when}, timer interrupts could not be counted."),
        false => format!("{when}, {}", said.join(" ")),
    }
}

/// What the worst CPU lost, and to what, as far as that was seen.
fn loss(look: &Look<'_>) -> Option<Finding> {
    let Some(worst) = look.worst else {
        let text = "What the CPUs lose was not measured.".to_owned();
        return Some(Finding::new("loss", text, "noisefloor noise"));
    };
    let (cpu, elapsed) = (worst.cpu, number::duration(worst.elapsed_ns));
    let next = format!("sudo noisefloor noise -c {cpu} -d 60");
    if worst.gaps == 0 {
        let text = format!("Nothing was lost in {elapsed}: the loop ran without a gap.");
        return Some(Finding::new("loss", text, next));
    }
    let most = if look.summary.noise.cpus.len() > 1 { "lost most: " } else { "lost " };
    let text = format!(
        "CPU {cpu} {most}{} of its time, in {} gaps a second. A typical gap is {}, the \
         longest was {}. {}",
        number::known(worst.noise_ppm, number::share),
        number::known(worst.gaps_hz, number::bare_rate),
        number::any(worst.gap_ns.p50, number::duration),
        number::any(worst.gap_ns.max, number::duration),
        culprits::takers(worst)
            .map_or_else(|| counted(worst), |takers| takers + &in_a_guest(look, worst)),
    );
    let finding = Finding::new("loss", text, next);
    Some(match avoidable(&look.summary.verdict, cpu) {
        None => finding,
        Some((when, text)) => finding.with(when, text),
    })
}

/// What keeps the largest part of the loss off a CPU, if that is worth it.
fn avoidable(verdict: &stats::Verdict, cpu: Cpu) -> Option<(When, String)> {
    let programs =
        verdict.split.as_ref().map(|split| split.programs).or(verdict.threads)?;
    let is_most = |part: Nanos| part.saturating_mul(2) >= verdict.lost.ns;
    if is_most(programs.ns) {
        let text = format!(
            "noisefloor run -c {cpu} --partition COMMAND keeps other programs off CPU {cpu} \
             while COMMAND runs (root)"
        );
        return Some((When::Now, text));
    }
    let split = verdict.split.as_ref()?;
    is_most(split.hypervisor.ns).then(|| {
        (
            When::Never,
            "what the hypervisor takes, no setting in the guest gives back".to_owned(),
        )
    })
}

/// What `/proc` counted of who took a CPU's time, where no single event was seen.
fn counted(worst: &CpuNoiseSummary) -> String {
    let (cpu, meanwhile) = (worst.cpu, &worst.meanwhile);
    let waited = meanwhile.waited_ns.unwrap_or(Nanos::ZERO);
    let is_mostly_others =
        !waited.is_zero() && waited.saturating_mul(2) >= worst.noise_ns;
    let others = other_programs(worst);
    match compare_with_timer(worst) {
        _ if is_mostly_others => {
            format!("Most of what CPU {cpu} lost went to other programs: {others}.")
        }
        Some(timer) => format!("{timer} As for other programs, {others}."),
        None => format!("As for other programs on CPU {cpu}, {others}."),
    }
}

/// What a hypervisor may have to do with what is unexplained, as the end of a paragraph. Nothing
/// where that is little, or no hypervisor is known.
fn in_a_guest(look: &Look<'_>, cpu: &CpuNoiseSummary) -> String {
    let hypervisor = look.facts.virt.hypervisor.get().and_then(Option::as_ref);
    let unexplained =
        |culprit: &&CulpritSummary| culprit.kind == CulpritKind::Unexplained;
    let is_material = |culprit: &CulpritSummary| {
        let part = culprit.noise_ppm.is_some_and(|part| part.get() >= MATERIAL_NOISE_PPM);
        part && culprit.ns.saturating_mul(MATERIAL_TIME) >= cpu.elapsed_ns
    };
    match hypervisor {
        Some(name) if cpu.culprits.iter().find(unexplained).is_some_and(is_material) => {
            format!(
                " This is a guest of {}: the hypervisor's own work leaves no event, so part of the \
             unexplained time may be its.",
                value::hypervisor(name)
            )
        }
        _ => String::new(),
    }
}

/// How often and how long other programs ran, as the end of a sentence.
fn other_programs(cpu: &CpuNoiseSummary) -> String {
    let preempted = cpu.meanwhile.preempted;
    let times = match preempted {
        1 => "once".to_owned(),
        _ => format!("{} times", number::count(preempted)),
    };
    let lost = number::duration(cpu.noise_ns);
    match cpu.meanwhile.waited_ns {
        None | Some(Nanos::ZERO) if preempted == 0 => {
            "none ran in the meantime".to_owned()
        }
        Some(waited) => {
            let ran = number::duration(waited);
            format!("they came {times} and ran for {ran}; {lost} were lost in all")
        }
        None => {
            format!("they came {times}; for how long, this kernel does not count")
        }
    }
}

/// How the timer's rate compares with the gaps'.
fn compare_with_timer(cpu: &CpuNoiseSummary) -> Option<String> {
    let (timer, gaps) = (cpu.meanwhile.timer_hz?, cpu.gaps_hz?);
    if cpu.gaps == 0 {
        return None;
    }
    let judged = match timer.get() / gaps.get() {
        ratio if ratio > 1.5 => "more timer interrupts than gaps, so some left no gap",
        ratio if ratio > 0.67 => "most gaps are probably timer interrupts",
        ratio if ratio > 0.33 => "about half of the gaps are probably timer interrupts",
        _ => "most gaps are something else",
    };
    Some(format!(
        "CPU {} had {} gaps and {} timer interrupts a second: {judged}.",
        cpu.cpu,
        number::bare_rate(gaps),
        number::bare_rate(timer)
    ))
}

/// The most frequent interrupt that is not the timer's.
fn interrupts(look: &Look<'_>) -> Option<Finding> {
    let rate = |line: &LineSummary| line.rate_hz.map_or(0.0, |rate| rate.get());
    let lines = look.summary.noise.cpus.iter().flat_map(|cpu| {
        let lines = cpu.meanwhile.interrupts.iter().flatten();
        lines.filter(|line| !line.timer).map(|line| (cpu.cpu, line))
    });
    let (cpu, line) = lines.max_by(|a, b| rate(a.1).total_cmp(&rate(b.1)))?;
    if rate(line) < FREQUENT {
        return None;
    }
    let is_device = line.line.bytes().all(|b| b.is_ascii_digit());
    let number =
        if is_device { format!(" (interrupt {})", line.line) } else { String::new() };
    let text = format!(
        "After the timer, the most frequent interrupt was {}{number}: {} times a second on \
         CPU {cpu}.",
        line.name,
        number::known(line.rate_hz, number::bare_rate)
    );
    let next = if is_device {
        format!("cat /proc/irq/{}/smp_affinity_list", line.line)
    } else {
        format!("grep -w {} /proc/interrupts", line.line)
    };
    let finding = Finding::new("interrupts", text, next);
    Some(match is_device {
        false => finding,
        true => finding.with(
            When::Now,
            format!(
                "noisefloor run -c {cpu} --irqs COMMAND moves it to other CPUs (root)"
            ),
        ),
    })
}

fn hypervisor(look: &Look<'_>) -> Option<Finding> {
    let name = value::hypervisor(look.facts.virt.hypervisor.get()?.as_ref()?);
    let stolen = look.summary.noise.cpus.iter();
    let most = stolen.filter_map(|cpu| Some((cpu.meanwhile.steal_ns?, cpu.cpu))).max();
    if look.facts.virt.steal_clock.get() != Some(&true) {
        let text = format!(
            "This is a guest of {name}, which does not say what time it takes for itself \
             (steal): part of the loss may be the hypervisor's doing."
        );
        return Some(Finding::new("hypervisor", text, "noisefloor facts"));
    }
    let text = match most {
        Some((steal, cpu)) if !steal.is_zero() => format!(
            "This is a guest of {name}: the hypervisor took {} from CPU {cpu} (steal).",
            number::duration(steal)
        ),
        Some(_) => format!("This is a guest of {name}, which took nothing away (steal)."),
        None => format!("This is a guest of {name}; what it took (steal) was not read."),
    };
    let finding = Finding::new("hypervisor", text, "vmstat 1 5");
    let is_stolen = most.is_some_and(|(steal, _)| !steal.is_zero());
    Some(match is_stolen {
        true => finding.with(When::Never, "the host's settings decide, not the guest's"),
        false => finding,
    })
}

/// Whether CPUs that were set apart are quieter for it.
fn set_apart(look: &Look<'_>) -> Option<Finding> {
    let facts = look.facts;
    facts.cpus.isolated.get()?;
    // A kernel that has no such thing lists no CPU in it.
    let lists_none = |why: Why| matches!(why, Why::NotConfigured | Why::TooOld);
    if facts.tick.nohz_full.value().is_err_and(|unknown| !lists_none(unknown.code)) {
        return None;
    }
    let apart = facts.set_apart();
    if apart.is_empty() {
        let text = "No CPU is set apart (isolcpus=, nohz_full=): every program, interrupt \
                    and kernel chore may run on every CPU.";
        let finding =
            Finding::new("none_set_apart", text.to_owned(), "cat /proc/cmdline");
        let online = facts.cpus.online.get()?;
        let others = online.without(&online.iter().take(1).collect());
        return Some(match others.is_empty() {
            true => finding.with(When::Never, "there is one CPU"),
            false => finding.with(
                When::Boot,
                format!("isolcpus={others} keeps programs off these CPUs"),
            ),
        });
    }
    let by_loss = by_loss(&look.summary.noise);
    let worst_in = by_loss.iter().find(|cpu| apart.contains(cpu.cpu));
    let worst_out = by_loss.iter().find(|cpu| !apart.contains(cpu.cpu));
    let Some(inside) = worst_in else {
        let text = format!(
            "{} set apart (isolated or nohz_full) and not measured.",
            are(&apart)
        );
        let next = format!("noisefloor noise -c {apart} -d 60");
        return Some(Finding::new("set_apart", text, next));
    };
    let lost = |ppm: Option<Ppm>| number::known(ppm, number::share);
    let outside = worst_out.map_or(String::new(), |outside| {
        format!(
            "; of the others, CPU {} lost most: {}",
            outside.cpu,
            lost(outside.noise_ppm)
        )
    });
    let text = format!(
        "{} set apart (isolated or nohz_full). Of them CPU {} lost most: {}{outside}.",
        are(&apart),
        inside.cpu,
        lost(inside.noise_ppm)
    );
    let next = format!("noisefloor noise -c {} -d 60", inside.cpu);
    Some(Finding::new("set_apart", text, next))
}

fn are(set: &CpuSet) -> String {
    format!("{} {}", cpus(set), if set.len() == 1 { "is" } else { "are" })
}

fn root(look: &Look<'_>) -> Option<Finding> {
    let page = look.facts.page();
    let needs = |why: Why| why == Why::NeedsRoot;
    let hidden = page.entries().iter().filter_map(|entry| entry.value.as_ref().err());
    let count = hidden.filter(|unknown| needs(unknown.code)).count();
    let text = match count {
        0 => return None,
        1 => "1 fact about the kernel can be read by root only.".to_owned(),
        _ => format!("{count} facts about the kernel can be read by root only."),
    };
    Some(Finding::new("root", text, "sudo noisefloor check"))
}

#[cfg(test)]
mod tests {
    use recording::{Body, CpuNoise, CulpritKind as Kind};

    use super::*;
    use crate::example::{self, GUEST, METAL, MUTE};

    fn found(recording: &recording::Recording) -> Vec<Finding> {
        let Body::Check { series, .. } = &recording.body else { return Vec::new() };
        findings(&recording.facts, &CheckSummary::of(series))
    }

    fn finding(recording: &recording::Recording, code: &str) -> String {
        let found = found(recording);
        found.iter().find(|finding| finding.code == code).unwrap().text.clone()
    }

    /// Check that there are two to seven findings, no two of a kind, each a sentence with a
    /// command that exists, whatever is known.
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

    /// Check that time lost mostly to other programs is said so, and that a kernel that
    /// does not count it is not taken for one where none was lost.
    #[test]
    fn who_took_it() {
        let others = noisy(|cpu| cpu.meanwhile.waited_ns = Some(Nanos::from_millis(19)));
        let text = finding(&others, "loss");
        assert!(
            text.contains("Most of what CPU 1 lost went to other programs"),
            "{text}"
        );
        let uncounted = noisy(|cpu| cpu.meanwhile.waited_ns = None);
        assert!(finding(&uncounted, "loss").contains("does not count"));
        let nobody = noisy(|cpu| {
            (cpu.meanwhile.preempted, cpu.meanwhile.waited_ns) = (0, Some(Nanos::ZERO));
        });
        assert!(finding(&nobody, "loss").contains("none ran in the meantime"));
    }

    /// Check how the timer's rate is held against the gaps'.
    #[test]
    fn timer_against_gaps() {
        let timer = |count| {
            noisy(move |cpu| {
                let lines = cpu.meanwhile.interrupts.iter_mut().flatten();
                lines.filter(|line| line.timer).for_each(|line| line.count = count);
            })
        };
        for (count, words) in [
            (2_500, "most gaps are probably timer interrupts"),
            (1_200, "about half of the gaps"),
            (50, "most gaps are something else"),
            (25_000, "more timer interrupts than gaps"),
        ] {
            let text = finding(&timer(count), "loss");
            assert!(text.contains(words), "{count}: {text}");
        }
    }

    /// Check that a run without a gap is told as such.
    #[test]
    fn silence() {
        let text = finding(&noisy(|cpu| cpu.gaps.clear()), "loss");
        assert_eq!(text, "Nothing was lost in 10 s: the loop ran without a gap.");
    }

    /// Check that the hypervisor is named beside what is unexplained only where there is one, and that
    /// is a tenth of the noise and 100 millionths of the time; and that little is not given a number.
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

    /// Check that a hypervisor that does not tell is not taken for one that took nothing.
    #[test]
    fn steal() {
        let taken = finding(&example::check(GUEST, 2), "hypervisor");
        assert!(taken.contains("took 20 ms from CPU 1"), "{taken}");
        let none = noisy(|cpu| cpu.meanwhile.steal_ns = Some(Nanos::ZERO));
        assert!(finding(&none, "hypervisor").contains("took nothing away"));
        let silent = GUEST.replace("\"steal_clock\": true", "\"steal_clock\": false");
        let text = finding(&example::check(&silent, 2), "hypervisor");
        assert!(text.contains("does not say what time it takes"), "{text}");
    }
}
