//! The findings of `check`: what its report says about a machine, with the numbers, and the advice about
//! each.

use facts::{Facts, Why};
use recording::CulpritKind;
use summary::{
    CheckSummary, CpuNoiseSummary, CulpritSummary, LineSummary, spinning_verdicts,
    tick_hz, tick_verdicts,
};
use units::{CpuSet, Nanos, PerSecond, Ppm};

use crate::advice::{Advice, AdviceItem};
use crate::finding::{CpuLoss, Finding, FindingRule, Loss, TimerShare};
use crate::rule::Change;

/// Less frequent interrupts are not reported.
const FREQUENT: PerSecond = PerSecond::new(1.0);
/// The hypervisor is reported beside unexplained time that is at least a tenth of the noise, and
/// at least 100 ppm of the CPU's time.
const MATERIAL_NOISE: Ppm = Ppm::new(100_000.0);
const MATERIAL_TIME: u64 = 10_000;
/// The number of reported sources of noise.
const CULPRITS: usize = 3;

/// The findings about a machine, in the order in which they are printed.
pub fn findings(facts: &Facts, summary: &CheckSummary, advice: &Advice) -> Vec<Finding> {
    let about =
        |rule: &FindingRule| advice.items.iter().find(|item| is_about(rule, item));
    let found = [
        tick(facts, summary),
        inert_parameters(facts),
        loss(facts, summary),
        interrupts(summary),
        hypervisor(facts, summary),
        isolated_cpus(facts, summary),
        needs_root(facts),
    ];
    let found = found.into_iter().flatten();
    found
        .map(|(rule, next)| Finding { advice: about(&rule).cloned(), rule, next })
        .collect()
}

/// A finding without its advice: the rule, and the next command.
type Found = (FindingRule, String);

fn finding(rule: FindingRule, next: impl Into<String>) -> Option<Found> {
    Some((rule, next.into()))
}

/// Whether an advised change is about a finding: it acts on the same noise.
fn is_about(rule: &FindingRule, item: &AdviceItem) -> bool {
    let acts_on = |source: &str| item.rule.acts_on == Some(source);
    match rule {
        FindingRule::Tick { .. } => acts_on("tick"),
        FindingRule::InertParameters { .. } => {
            matches!(item.change, Change::Unboot { .. })
        }
        FindingRule::Loss(Some(loss)) if loss.mostly_programs => acts_on("programs"),
        FindingRule::Interrupts { .. } => acts_on("irq"),
        FindingRule::Hypervisor { .. } => acts_on("steal"),
        FindingRule::NoIsolatedCpus { .. } => acts_on("programs"),
        FindingRule::Loss(_)
        | FindingRule::IsolatedCpus { .. }
        | FindingRule::NeedsRoot { .. } => false,
    }
}

fn tick(facts: &Facts, summary: &CheckSummary) -> Option<Found> {
    let cpus = summary.noise.cpus.iter();
    let rates = cpus.map(|cpu| (cpu.cpu, cpu.proc.timer_hz));
    let rule = FindingRule::Tick {
        hz: tick_hz(facts),
        idle: tick_verdicts(facts, &summary.rest.cpus),
        busy: spinning_verdicts(facts, rates),
    };
    let stops = facts.tick.nohz_full.get().is_some_and(|full| !full.is_empty());
    finding(rule, if stops { "sudo noisefloor nohz test" } else { "noisefloor ticks" })
}

fn inert_parameters(facts: &Facts) -> Option<Found> {
    let parameters = facts.boot.inert.get().filter(|inert| !inert.is_empty())?.clone();
    let rule = FindingRule::InertParameters { parameters };
    finding(rule, "noisefloor facts")
}

fn loss(facts: &Facts, summary: &CheckSummary) -> Option<Found> {
    let Some(worst) = summary.noise.by_loss().first().copied() else {
        return finding(FindingRule::Loss(None), "noisefloor noise");
    };
    let (cpu, proc) = (worst.cpu, &worst.proc);
    let (unexplained, known): (Vec<&CulpritSummary>, Vec<&CulpritSummary>) = worst
        .culprits
        .iter()
        .filter(|culprit| !culprit.is_own())
        .partition(|culprit| culprit.kind == CulpritKind::Unexplained);
    let unexplained = unexplained.first();
    let is_worth_it = unexplained.is_some_and(|culprit| is_material(culprit, worst));
    let hypervisor = facts.virt.hypervisor.get().filter(|_| is_worth_it);
    let waited = proc.waited_ns.unwrap_or_default();
    let loss = Loss {
        cpus: summary.noise.cpus.len(),
        cpu,
        elapsed_ns: worst.elapsed_ns,
        gaps: worst.gaps,
        gaps_hz: worst.gaps_hz,
        noise_ns: worst.noise_ns,
        noise_ppm: worst.noise_ppm,
        gap_ns_p50: worst.gap_ns.p50,
        gap_ns_max: worst.gap_ns.max,
        unexplained_ppm: Ppm::of(
            unexplained.map_or(Nanos::ZERO, |culprit| culprit.ns),
            worst.noise_ns,
        ),
        hypervisor: hypervisor.cloned().flatten(),
        culprits: known.into_iter().take(CULPRITS).cloned().collect(),
        timer_hz: proc.timer_hz,
        timer_share: timer_share(worst),
        preempted: proc.preempted,
        waited_ns: proc.waited_ns,
        mostly_programs: !waited.is_zero() && waited.saturating_mul(2) >= worst.noise_ns,
    };
    let next = format!("sudo noisefloor noise -c {cpu} -d 60");
    finding(FindingRule::Loss(Some(loss)), next)
}

/// Whether time is worth a remark about the hypervisor.
fn is_material(unexplained: &CulpritSummary, cpu: &CpuNoiseSummary) -> bool {
    unexplained.noise_ppm.is_some_and(|part| part >= MATERIAL_NOISE)
        && unexplained.ns.saturating_mul(MATERIAL_TIME) >= cpu.elapsed_ns
}

fn timer_share(cpu: &CpuNoiseSummary) -> Option<TimerShare> {
    let (timer, gaps) = (cpu.proc.timer_hz?, cpu.gaps_hz.filter(|_| cpu.gaps > 0)?);
    Some(match timer.get() / gaps.get() {
        ratio if ratio > 1.5 => TimerShare::MoreThanGaps,
        ratio if ratio > 0.67 => TimerShare::Most,
        ratio if ratio > 0.33 => TimerShare::Half,
        _ => TimerShare::Few,
    })
}

fn interrupts(summary: &CheckSummary) -> Option<Found> {
    let rate = |line: &LineSummary| line.rate_hz.map_or(0.0, |rate| rate.get());
    let lines = summary.noise.cpus.iter().flat_map(|cpu| {
        let lines = cpu.proc.interrupts.iter().flatten();
        lines.filter(|line| !line.timer).map(|line| (cpu.cpu, line))
    });
    let (cpu, line) = lines.max_by(|a, b| rate(a.1).total_cmp(&rate(b.1)))?;
    if rate(line) < FREQUENT.get() {
        return None;
    }
    let next = match line.is_device() {
        true => format!("cat /proc/irq/{}/smp_affinity_list", line.line),
        false => format!("grep -w {} /proc/interrupts", line.line),
    };
    finding(FindingRule::Interrupts { cpu, interrupt: line.clone() }, next)
}

fn hypervisor(facts: &Facts, summary: &CheckSummary) -> Option<Found> {
    let name = facts.virt.hypervisor.get()?.clone()?;
    let cpus = summary.noise.cpus.iter();
    let most = cpus.filter_map(|cpu| Some((cpu.stolen()?, cpu.cpu))).max();
    let steal_clock = facts.virt.steal_clock.get() == Some(&true);
    let (stolen, cpu) = most.filter(|_| steal_clock).unzip();
    let (steal_ns, steal_min_ns) =
        stolen.map(|stolen| (stolen.at_most, stolen.at_least)).unzip();
    let rule = FindingRule::Hypervisor { name, steal_clock, cpu, steal_ns, steal_min_ns };
    let next = if steal_clock { "vmstat 1 5" } else { "noisefloor facts" };
    finding(rule, next)
}

fn isolated_cpus(facts: &Facts, summary: &CheckSummary) -> Option<Found> {
    facts.cpus.isolated.get()?;
    // A kernel without nohz_full has no such CPU; for other reasons they are unknown.
    let has_none = |why: Why| matches!(why, Why::NotConfigured | Why::TooOld);
    if facts.tick.nohz_full.value().is_err_and(|unknown| !has_none(unknown.code)) {
        return None;
    }
    let isolated = facts.set_apart();
    if isolated.is_empty() {
        let online = facts.cpus.online.get()?.clone();
        let rule = FindingRule::NoIsolatedCpus { online };
        return finding(rule, "cat /proc/cmdline");
    }
    let by_loss = summary.noise.by_loss();
    let worst = |is_isolated: bool| {
        let mut cpus = by_loss.iter();
        let cpu = cpus.find(|cpu| isolated.contains(cpu.cpu) == is_isolated)?;
        Some(CpuLoss { cpu: cpu.cpu, noise_ppm: cpu.noise_ppm })
    };
    let (worst, worst_other) = (worst(true), worst(false));
    let online =
        facts.cpus.online.get().map_or_else(CpuSet::default, |on| on.and(&isolated));
    let measurable = worst.map_or(online, |worst| worst.cpu.into());
    let next = match measurable.is_empty() {
        true => "noisefloor facts".to_owned(),
        false => format!("noisefloor noise -c {measurable} -d 60"),
    };
    finding(FindingRule::IsolatedCpus { cpus: isolated, worst, worst_other }, next)
}

fn needs_root(facts: &Facts) -> Option<Found> {
    let page = facts.page();
    let unknown = page.entries().iter().filter_map(|entry| entry.value.as_ref().err());
    let hidden = unknown.filter(|unknown| unknown.code == Why::NeedsRoot).count();
    let rule = FindingRule::NeedsRoot { facts: hidden };
    if hidden == 0 { None } else { finding(rule, "sudo noisefloor check") }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use recording::{Body, CpuNoise, Recording};
    use serde_json::{Value, json};

    use super::*;
    use crate::{Goal, Losses, Machine};

    /// A recorded `check` of a guest with two CPUs, neither of them isolated.
    pub(crate) fn golden() -> Recording {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../recording/tests/golden/check-1.json"
        );
        let text = std::fs::read_to_string(path).unwrap();
        Recording::from_json(&text, Path::new(path)).unwrap()
    }

    /// The facts of a recording with other values (null: absent) by their keys, and its summary.
    pub(crate) fn on(
        recording: &Recording,
        known: &[(&str, Value)],
    ) -> (Facts, CheckSummary) {
        let mut facts = serde_json::to_value(&recording.facts).unwrap();
        for (key, value) in known {
            let (group, name) = key.split_once('.').unwrap();
            let unknown = facts["unknown"].as_object_mut().unwrap();
            unknown.remove(*key);
            if value.is_null() {
                unknown.insert((*key).to_owned(), json!({"code": "absent", "text": ""}));
            }
            facts[group][name] = value.clone();
        }
        let Body::Check { series, .. } = &recording.body else { panic!("another kind") };
        (serde_json::from_value(facts).unwrap(), CheckSummary::of(None, series))
    }

    fn found(recording: &Recording, known: &[(&str, Value)]) -> Vec<Finding> {
        let (facts, summary) = on(recording, known);
        let losses = Losses::of_check(&summary);
        let advice =
            Advice::of(&Machine::new(&facts, Some(losses), None), &Goal::Latency.into());
        findings(&facts, &summary, &advice)
    }

    /// The finding with that code, if CPU 0 is changed so.
    fn changed(code: &str, change: impl Fn(&mut CpuNoise)) -> (Value, Finding) {
        let mut recording = golden();
        change(&mut recording.body.noise_mut().unwrap().cpus[0]);
        let with_json =
            |finding: Finding| (serde_json::to_value(&finding.rule).unwrap(), finding);
        let mut all = found(&recording, &[]).into_iter().map(with_json);
        all.find(|(json, _)| json["code"] == code).unwrap()
    }

    /// Check the codes and the keys of their numbers: this is the JSON contract.
    #[test]
    fn contract() {
        let keys = |finding: Finding| {
            let rule = serde_json::to_value(finding.rule).unwrap();
            let numbers = rule["numbers"].as_object().unwrap();
            let keys: Vec<&str> = numbers.keys().map(String::as_str).collect();
            format!("{}: {}", rule["code"].as_str().unwrap(), keys.join(" "))
        };
        let found: Vec<String> = found(&golden(), &[]).into_iter().map(keys).collect();
        let expected = [
            "tick: busy hz idle",
            "loss: cpu cpus culprits elapsed_ns gap_ns_max gap_ns_p50 gaps gaps_hz hypervisor \
             mostly_programs noise_ns noise_ppm preempted timer_hz timer_share unexplained_ppm \
             waited_ns",
            "interrupts: cpu interrupt",
            "hypervisor: cpu name steal_clock steal_min_ns steal_ns",
            "no_isolated_cpus: online",
        ];
        assert_eq!(found, expected);
    }

    /// Check the numbers of a tick's rates, and that the next command is a test only where the tick stops.
    #[test]
    fn tick_rates() {
        let (json, finding) = changed("tick", |_| ());
        let busy = &json["numbers"]["busy"][0];
        assert_eq!(
            (&busy["meaning"], &busy["cpus"]),
            (&json!("more_than_hz"), &json!("1"))
        );
        assert_eq!(busy["timer_hz"][0], busy["timer_hz"][1]);
        assert_eq!(finding.next, "noisefloor ticks");
        let full = found(&golden(), &[("tick.nohz_full", json!("1"))]);
        assert_eq!(full[0].next, "sudo noisefloor nohz test");
    }

    /// Check that a loss to other programs is one only if it is at least half of the noise, and what is
    /// advised about it.
    #[test]
    fn loss_to_programs() {
        let (json, finding) = changed("loss", |_| ());
        assert_eq!(json["numbers"]["mostly_programs"], true);
        // The recording does not say what is possible on the machine.
        assert_eq!(finding.advice, None);
        let less = |cpu: &mut CpuNoise| cpu.proc.waited_ns = Some(Nanos::from_millis(20));
        assert_eq!(changed("loss", less).0["numbers"]["mostly_programs"], false);
        let unknown = |cpu: &mut CpuNoise| cpu.proc.waited_ns = None;
        let (json, _) = changed("loss", unknown);
        assert_eq!(json["numbers"]["waited_ns"], Value::Null);
        let possible = [
            ("cgroup.partitions", json!("/sys/fs/cgroup")),
            ("kernel.release", json!("6.18.1")),
        ];
        let advised = found(&golden(), &possible)[1].advice.clone().unwrap();
        assert_eq!(advised.rule.name, "partition-for-isolation");
    }
}
