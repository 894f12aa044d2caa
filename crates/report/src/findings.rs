//! The findings of `check`: five to ten lines in plain words, each with its number and
//! the next command to type.
//!
//! Rules pick fields of the summary and compare them; where `/proc` can only suggest a
//! cause, the text says "probably". What took each gap, `/proc` cannot tell.

use facts::{Facts, Why};
use serde::Serialize;
use stats::{CheckSummary, CpuNoiseSummary, Culprit, CulpritKind, LineSummary};
use units::{CpuSet, Nanos, Ppm};

use crate::culprits;
use crate::number;
use crate::tick_words::{self, Meaning, Verdict, cpus};
use crate::value;
use crate::worst::by_loss;

/// No more findings than can be read in a minute.
const MOST: usize = 10;
/// Interrupt lines that come less often are not worth a finding.
const FREQUENT: f64 = 1.0;
/// The job whose risk is told.
const JOB: Nanos = Nanos::from_millis(1);

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule that found it, for programs.
    pub code: &'static str,
    /// What was found, in words, with its number.
    pub text: String,
    /// The command to type next.
    pub next: String,
}

impl Finding {
    fn new(code: &'static str, text: String, next: impl Into<String>) -> Self {
        Self { code, text, next: next.into() }
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
    let rules: [fn(&Look<'_>) -> Option<Finding>; 11] = [
        kernel,
        inert_parameters,
        ticks_at_rest,
        ticks_at_work,
        loss,
        risk,
        takers,
        interrupts,
        hypervisor,
        set_apart,
        root,
    ];
    let mut found: Vec<Finding> = rules.iter().filter_map(|rule| rule(&look)).collect();
    if found.len() > MOST {
        let is_least = |finding: &Finding| finding.code == "none_set_apart";
        let least = found.iter().position(is_least);
        let interrupts = || found.iter().position(|finding| finding.code == "interrupts");
        if let Some(at) = least.or_else(interrupts) {
            found.remove(at);
        }
    }
    found
}

fn kernel(look: &Look<'_>) -> Option<Finding> {
    let facts = look.facts;
    let release =
        facts.kernel.release.get().map_or("(release not known)", String::as_str);
    let Some(rate) = tick_words::rate(facts) else {
        let text = format!(
            "Linux {release} does not tell its tick rate (CONFIG_HZ), the rate at which it \
             interrupts each CPU."
        );
        return Some(Finding::new("kernel", text, "noisefloor facts"));
    };
    let stops = facts.tick.mode.get().map_or_else(
        || "stops at times that are not known".to_owned(),
        |mode| tick_words::stops(facts, *mode),
    );
    let text =
        format!("Linux {release} interrupts a CPU at work {rate}: the tick. It {stops}.");
    Some(Finding::new("kernel", text, "noisefloor facts"))
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
    Some(Finding::new("inert_parameters", text, "noisefloor facts"))
}

fn ticks_at_rest(look: &Look<'_>) -> Option<Finding> {
    let verdicts = tick_words::verdicts(look.facts, &look.summary.rest.cpus);
    Some(ticks("ticks_at_rest", "At rest", "took", look.facts, &verdicts))
}

fn ticks_at_work(look: &Look<'_>) -> Option<Finding> {
    look.worst?;
    let rates =
        look.summary.noise.cpus.iter().map(|cpu| (cpu.cpu, cpu.meanwhile.timer_hz));
    let verdicts = tick_words::spinning_verdicts(look.facts, rates);
    Some(ticks("ticks_at_work", "While a program spins", "takes", look.facts, &verdicts))
}

/// One sentence for the two verdicts that say most.
fn ticks(
    code: &'static str,
    when: &str,
    verb: &str,
    facts: &Facts,
    verdicts: &[Verdict],
) -> Finding {
    let known: Vec<&Verdict> =
        verdicts.iter().filter(|verdict| verdict.meaning != Meaning::Unknown).collect();
    let sentence = |verdict: &&Verdict| {
        let verb = if verb == "takes" && verdict.cpus.len() > 1 { "take" } else { verb };
        let each = if verdict.cpus.len() > 1 { " each" } else { "" };
        format!(
            "{} {verb} {}{each}. {}.",
            verdict.who(),
            verdict.rate(),
            verdict.words(facts)
        )
    };
    let told: Vec<String> = known.iter().take(2).map(sentence).collect();
    let all: CpuSet =
        known.iter().take(2).flat_map(|verdict| verdict.cpus.iter()).collect();
    if told.is_empty() {
        let text = format!("{when}, timer interrupts could not be counted.");
        return Finding::new(code, text, "cat /proc/interrupts");
    }
    let text = format!("{when}, {}", told.join(" "));
    Finding::new(code, text, ticks_command(&all))
}

/// On those CPUs, or on all where the list would be too long to read.
fn ticks_command(cpus: &CpuSet) -> String {
    let list = cpus.to_string();
    if list.len() > 40 {
        "noisefloor ticks".to_owned()
    } else {
        format!("noisefloor ticks -c {list}")
    }
}

fn loss(look: &Look<'_>) -> Option<Finding> {
    let Some(worst) = look.worst else {
        let text = "What the CPUs lose was not measured.".to_owned();
        return Some(Finding::new("loss", text, "noisefloor noise"));
    };
    let (cpu, elapsed) = (worst.cpu, number::duration(worst.elapsed_ns));
    let next = format!("noisefloor noise -c {cpu} -d 60");
    if worst.gaps == 0 {
        let text = format!("Nothing was lost in {elapsed}: the loop ran without a gap.");
        return Some(Finding::new("loss", text, next));
    }
    let most = if look.summary.noise.cpus.len() > 1 { "lost most: " } else { "lost " };
    let text = format!(
        "CPU {cpu} {most}{} of its time, in {} gaps a second. A typical gap is {}, the \
         longest was {}.",
        number::known(worst.noise_ppm, number::share),
        number::known(worst.gaps_hz, number::bare_rate),
        number::any(worst.gap_ns.p50, number::duration),
        number::any(worst.gap_ns.max, number::duration),
    );
    Some(Finding::new("loss", text, next))
}

fn risk(look: &Look<'_>) -> Option<Finding> {
    let finding = |text: &str| {
        Some(Finding::new("risk", text.to_owned(), "noisefloor noise -d 60"))
    };
    let Some(worst) = look.worst else {
        return finding("How likely a job of 1 ms is hit was not measured either.");
    };
    let hit =
        worst.risk.iter().find(|risk| risk.job_ns == JOB).and_then(|risk| risk.hit_ppm);
    let Some(hit) = hit else {
        return finding("The run was too short to say how likely a job of 1 ms is hit.");
    };
    let text = format!(
        "A job of {} that starts on CPU {} at a random moment is hit by a gap with a \
         chance of {}. The next command shows what is left when other programs have \
         to wait.",
        number::duration(JOB),
        worst.cpu,
        number::share(hit)
    );
    let next = format!("sudo noisefloor noise -c {} -d 60 --fifo 50", worst.cpu);
    Some(Finding::new("risk", text, next))
}

/// Who took the worst CPU's time; where nobody watched, as far as `/proc` can tell.
fn takers(look: &Look<'_>) -> Option<Finding> {
    let worst = look.worst?;
    if let Some(text) = culprits::takers(worst) {
        let next = format!("sudo noisefloor noise -c {} -d 60", worst.cpu);
        return Some(Finding::new("takers", text + &in_a_guest(look, worst), next));
    }
    let (cpu, meanwhile) = (worst.cpu, &worst.meanwhile);
    let waited = meanwhile.waited_ns.unwrap_or(Nanos::ZERO);
    let is_mostly_others =
        !waited.is_zero() && waited.saturating_mul(2) >= worst.noise_ns;
    let others = other_programs(worst);
    let text = match compare_with_timer(worst) {
        _ if is_mostly_others => {
            format!("Most of what CPU {cpu} lost went to other programs: {others}.")
        }
        Some(timer) => format!("{timer} As for other programs, {others}."),
        None => format!("As for other programs on CPU {cpu}, {others}."),
    };
    let next = if meanwhile.preempted > 0 || !waited.is_zero() {
        format!("ps -eLo psr,pcpu,cls,comm --sort=-pcpu | awk '$1 == {cpu}' | head")
    } else {
        format!("noisefloor ticks -c {cpu}")
    };
    Some(Finding::new("takers", text, next))
}

/// What to think of gaps without an event where there is a hypervisor, as the end of a
/// paragraph.
fn in_a_guest(look: &Look<'_>, cpu: &CpuNoiseSummary) -> String {
    let hypervisor = look.facts.virt.hypervisor.get().and_then(Option::as_ref);
    let nobodys = |culprit: &Culprit| culprit.kind == CulpritKind::Unexplained;
    match hypervisor {
        Some(name) if cpu.culprits.iter().any(nobodys) => format!(
            " In a guest of {} that is as a rule the hypervisor at work, which leaves no \
             event.",
            value::hypervisor(name)
        ),
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
    Some(Finding::new("interrupts", text, next))
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
            "This is a guest of {name}: the hypervisor took {} from CPU {cpu} (steal), \
             which no setting in the guest gives back.",
            number::duration(steal)
        ),
        Some(_) => format!("This is a guest of {name}, which took nothing away (steal)."),
        None => format!("This is a guest of {name}; what it took (steal) was not read."),
    };
    Some(Finding::new("hypervisor", text, "vmstat 1 5"))
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
        return Some(Finding::new(
            "none_set_apart",
            text.to_owned(),
            "cat /proc/cmdline",
        ));
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
    use recording::Body;

    use super::*;
    use crate::check_summary;
    use crate::example::{self, GUEST, METAL, MUTE};

    fn found(recording: &recording::Recording) -> Vec<Finding> {
        let Body::Check { series, .. } = &recording.body else { return Vec::new() };
        findings(&recording.facts, &check_summary(series))
    }

    fn finding(recording: &recording::Recording, code: &str) -> String {
        let found = found(recording);
        found.iter().find(|finding| finding.code == code).unwrap().text.clone()
    }

    /// Check that there are five to ten findings, each a sentence with a command that
    /// exists, whatever is known.
    #[test]
    fn five_to_ten() {
        for groups in [GUEST, METAL, MUTE] {
            for count in [0, 1, 8, 40] {
                let plain = example::check(groups, count);
                for recording in
                    [plain.clone(), example::quiet(plain.clone()), example::wide(plain)]
                {
                    let found = found(&recording);
                    assert!((5..=10).contains(&found.len()), "{count}: {found:?}");
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
        let text = finding(&others, "takers");
        assert!(
            text.starts_with("Most of what CPU 1 lost went to other programs"),
            "{text}"
        );
        let uncounted = noisy(|cpu| cpu.meanwhile.waited_ns = None);
        assert!(finding(&uncounted, "takers").contains("does not count"));
        let nobody = noisy(|cpu| {
            (cpu.meanwhile.preempted, cpu.meanwhile.waited_ns) = (0, Some(Nanos::ZERO));
        });
        assert!(finding(&nobody, "takers").contains("none ran in the meantime"));
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
            let text = finding(&timer(count), "takers");
            assert!(text.contains(words), "{count}: {text}");
        }
    }

    /// Check that a run without a gap is told as such.
    #[test]
    fn silence() {
        let text = finding(&noisy(|cpu| cpu.gaps.clear()), "loss");
        assert_eq!(text, "Nothing was lost in 10 s: the loop ran without a gap.");
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
