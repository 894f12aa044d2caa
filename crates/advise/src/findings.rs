//! The rules: each compares fields of the facts and of the summary.
//!
//! An action is one that the facts show to be possible on this machine, apart from privileges;
//! what the facts do not show is not advised, or the action says under which condition it works.

use facts::{Facts, Why};
use recording::{CulpritKind, StealClock};
use summary::{
    CheckSummary, CpuNoiseSummary, CulpritSummary, LineSummary, Verdict,
    spinning_verdicts, tick_hz, tick_verdicts,
};
use units::{Cpu, CpuSet, Nanos, PerSecond, Ppm};

use crate::finding::{Action, CpuLoss, Finding, FindingRule, Loss, TimerShare, When};

/// Less frequent interrupts are not reported.
const FREQUENT: PerSecond = PerSecond::new(1.0);
/// The hypervisor is reported beside unexplained time that is at least a tenth of the noise, and
/// at least 100 ppm of the CPU's time.
const MATERIAL_NOISE: Ppm = Ppm::new(100_000.0);
const MATERIAL_TIME: u64 = 10_000;
/// The number of reported sources of noise.
const CULPRITS: usize = 3;

/// The findings about a machine, in the order in which they are printed.
pub fn findings(facts: &Facts, summary: &CheckSummary) -> Vec<Finding> {
    let rules: [fn(&Facts, &CheckSummary) -> Option<Finding>; 7] =
        [tick, inert_parameters, loss, interrupts, hypervisor, isolated_cpus, needs_root];
    let found = rules.iter().filter_map(|rule| rule(facts, summary));
    found.map(|finding| finding.with_gain(&summary.verdict)).collect()
}

fn finding(
    rule: FindingRule,
    action: Option<Action>,
    next: impl Into<String>,
) -> Option<Finding> {
    Some(Finding { rule, action, gain: None, next: next.into() })
}

fn tick(facts: &Facts, summary: &CheckSummary) -> Option<Finding> {
    let cpus = summary.noise.cpus.iter();
    let rates = cpus.map(|cpu| (cpu.cpu, cpu.proc.timer_hz));
    let rule = FindingRule::Tick {
        hz: tick_hz(facts),
        idle: tick_verdicts(facts, &summary.rest.cpus),
        busy: spinning_verdicts(facts, rates),
    };
    let action = stop_tick(facts);
    let is_possible = action.as_ref().is_some_and(|action| action.when() == When::Now);
    let next = if is_possible { "sudo noisefloor nohz test" } else { "noisefloor ticks" };
    finding(rule, action, next)
}

fn stop_tick(facts: &Facts) -> Option<Action> {
    let online = facts.cpus.online.get()?;
    match facts.tick.nohz_full.value().map(|full| full.and(online)) {
        Ok(full) if !full.is_empty() => Some(Action::UseNohzFull(full)),
        Ok(_) => Some(all_but_first(online, Action::SetNohzFull)),
        Err(unknown) if unknown.code == Why::NotConfigured => Some(Action::NoNohzFull),
        Err(_) => None,
    }
}

/// An action for all CPUs except for one, which remains a housekeeping CPU.
fn all_but_first(online: &CpuSet, action: fn(CpuSet) -> Action) -> Action {
    let others = online.without(&online.iter().take(1).collect());
    if others.is_empty() { Action::OnlyCpu } else { action(others) }
}

fn inert_parameters(facts: &Facts, _: &CheckSummary) -> Option<Finding> {
    let parameters = facts.boot.inert.get().filter(|inert| !inert.is_empty())?.clone();
    let rule = FindingRule::InertParameters { parameters };
    finding(rule, Some(Action::RemoveParameter), "noisefloor facts")
}

fn loss(facts: &Facts, summary: &CheckSummary) -> Option<Finding> {
    let Some(worst) = summary.noise.by_loss().first().copied() else {
        return finding(FindingRule::Loss(None), None, "noisefloor noise");
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
    let action =
        (worst.gaps > 0).then(|| avoid_loss(facts, &summary.verdict, cpu)).flatten();
    let next = format!("sudo noisefloor noise -c {cpu} -d 60");
    finding(FindingRule::Loss(Some(loss)), action, next)
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

/// What avoids at least half of the time that all CPUs lost.
fn avoid_loss(facts: &Facts, verdict: &Verdict, cpu: Cpu) -> Option<Action> {
    let split = verdict.split.as_ref();
    let programs = split.map(|split| split.programs).or(verdict.threads)?;
    let is_most = |part: Nanos| part.saturating_mul(2) >= verdict.lost.ns;
    if is_most(programs.ns) {
        return keep_programs_off(facts, cpu);
    }
    is_most(split?.hypervisor.ns).then_some(Action::Host)
}

/// What keeps other programs off a CPU: a partition now, else isolated CPUs at the next boot.
pub(crate) fn keep_programs_off(facts: &Facts, cpu: Cpu) -> Option<Action> {
    let online = facts.cpus.online.get()?;
    match online.len() > 1 && facts.can_partition() {
        true => Some(Action::Partition(cpu)),
        false => isolate_at_boot(facts, online),
    }
}

/// `isolcpus=` for all CPUs except for one; `None` if the kernel may not have it.
fn isolate_at_boot(facts: &Facts, online: &CpuSet) -> Option<Action> {
    let action = all_but_first(online, Action::Isolcpus);
    let is_possible = facts.cpus.isolcpus.get() == Some(&true);
    (is_possible || action == Action::OnlyCpu).then_some(action)
}

fn interrupts(facts: &Facts, summary: &CheckSummary) -> Option<Finding> {
    let rate = |line: &LineSummary| line.rate_hz.map_or(0.0, |rate| rate.get());
    let lines = summary.noise.cpus.iter().flat_map(|cpu| {
        let lines = cpu.proc.interrupts.iter().flatten();
        lines.filter(|line| !line.timer).map(|line| (cpu.cpu, line))
    });
    let (cpu, line) = lines.max_by(|a, b| rate(a.1).total_cmp(&rate(b.1)))?;
    if rate(line) < FREQUENT.get() {
        return None;
    }
    let (action, next) = match line.is_device() {
        true => {
            let next = format!("cat /proc/irq/{}/smp_affinity_list", line.line);
            (move_irq(facts, &line.line, cpu), next)
        }
        false => (None, format!("grep -w {} /proc/interrupts", line.line)),
    };
    finding(FindingRule::Interrupts { cpu, interrupt: line.clone() }, action, next)
}

/// What moves an IRQ off a CPU.
fn move_irq(facts: &Facts, irq: &str, cpu: Cpu) -> Option<Action> {
    if facts.cpus.online.get()?.len() == 1 {
        return Some(Action::OnlyCpu);
    }
    match facts.irq.fixed.value() {
        Ok(fixed) if fixed.iter().any(|fixed| fixed.to_string() == irq) => {
            Some(Action::FixedIrq)
        }
        Ok(_) => Some(Action::MoveIrqs(cpu)),
        Err(unknown) if unknown.code == Why::TooOld => Some(Action::TryToMoveIrqs(cpu)),
        Err(_) => None,
    }
}

fn hypervisor(facts: &Facts, summary: &CheckSummary) -> Option<Finding> {
    let name = facts.virt.hypervisor.get()?.clone()?;
    let cpus = summary.noise.cpus.iter();
    let most = cpus.filter_map(|cpu| Some((cpu.stolen()?, cpu.cpu))).max();
    let steal_clock = facts.virt.steal_clock.get() == Some(&true);
    let (stolen, cpu) = most.filter(|_| steal_clock).unzip();
    // Of /proc/stat, one step may have begun before the measurement.
    let is_stolen = stolen.is_some_and(|stolen| {
        !stolen.at_least.is_zero() || stolen.at_most > StealClock::STEP
    });
    let (steal_ns, steal_min_ns) =
        stolen.map(|stolen| (stolen.at_most, stolen.at_least)).unzip();
    let rule = FindingRule::Hypervisor { name, steal_clock, cpu, steal_ns, steal_min_ns };
    let next = if steal_clock { "vmstat 1 5" } else { "noisefloor facts" };
    finding(rule, is_stolen.then_some(Action::Host), next)
}

fn isolated_cpus(facts: &Facts, summary: &CheckSummary) -> Option<Finding> {
    facts.cpus.isolated.get()?;
    // A kernel without nohz_full has no such CPU; for other reasons they are unknown.
    let has_none = |why: Why| matches!(why, Why::NotConfigured | Why::TooOld);
    if facts.tick.nohz_full.value().is_err_and(|unknown| !has_none(unknown.code)) {
        return None;
    }
    let isolated = facts.set_apart();
    if isolated.is_empty() {
        let online = facts.cpus.online.get()?.clone();
        let action = isolate_at_boot(facts, &online);
        let rule = FindingRule::NoIsolatedCpus { online };
        return finding(rule, action, "cat /proc/cmdline");
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
    finding(FindingRule::IsolatedCpus { cpus: isolated, worst, worst_other }, None, next)
}

fn needs_root(facts: &Facts, _: &CheckSummary) -> Option<Finding> {
    let page = facts.page();
    let unknown = page.entries().iter().filter_map(|entry| entry.value.as_ref().err());
    let hidden = unknown.filter(|unknown| unknown.code == Why::NeedsRoot).count();
    let rule = FindingRule::NeedsRoot { facts: hidden };
    if hidden == 0 { None } else { finding(rule, None, "sudo noisefloor check") }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;

    use recording::{Body, CpuNoise, Recording};
    use serde_json::{Value, json};

    use super::*;

    /// A recorded `check` of a guest with two CPUs, neither of them isolated.
    pub(crate) fn golden() -> Recording {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../recording/tests/golden/check-1.json"
        );
        let text = std::fs::read_to_string(path).unwrap();
        Recording::from_json(&text, Path::new(path)).unwrap()
    }

    fn found(recording: &Recording) -> Vec<Finding> {
        let Body::Check { series, .. } = &recording.body else { return Vec::new() };
        findings(&recording.facts, &CheckSummary::of(series))
    }

    /// The finding with that code, if CPU 0 is changed so.
    fn changed(code: &str, change: impl Fn(&mut CpuNoise)) -> (Value, Finding) {
        let mut recording = golden();
        change(&mut recording.body.noise_mut().unwrap().cpus[0]);
        let with_json =
            |finding: Finding| (serde_json::to_value(&finding.rule).unwrap(), finding);
        let mut all = found(&recording).into_iter().map(with_json);
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
        let found: Vec<String> = found(&golden()).into_iter().map(keys).collect();
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

    /// Check the numbers of a tick's rates, and the action of a kernel without `nohz_full`.
    #[test]
    fn tick_rates() {
        let (json, finding) = changed("tick", |_| ());
        let busy = &json["numbers"]["busy"][0];
        assert_eq!(
            (&busy["meaning"], &busy["cpus"]),
            (&json!("more_than_hz"), &json!("1"))
        );
        assert_eq!(busy["timer_hz"][0], busy["timer_hz"][1]);
        assert_eq!(finding.action, Some(Action::NoNohzFull));
        assert_eq!(finding.next, "noisefloor ticks");
    }

    /// Check that a loss to other programs is one only if it is at least half of the noise.
    #[test]
    fn loss_to_programs() {
        let (json, finding) = changed("loss", |_| ());
        assert_eq!(json["numbers"]["mostly_programs"], true);
        // The recording does not say what is possible on the machine.
        assert_eq!(finding.action, None);
        let less = |cpu: &mut CpuNoise| cpu.proc.waited_ns = Some(Nanos::from_millis(20));
        assert_eq!(changed("loss", less).0["numbers"]["mostly_programs"], false);
        let unknown = |cpu: &mut CpuNoise| cpu.proc.waited_ns = None;
        let (json, _) = changed("loss", unknown);
        assert_eq!(json["numbers"]["waited_ns"], Value::Null);
        assert_eq!(action_on(&[PARTITIONS], "loss", unknown), None);
    }

    /// A fact as JSON: its group, its name, and its value, or why it is unknown.
    type Known = (&'static str, &'static str, Result<&'static str, &'static str>);

    const PARTITIONS: Known = ("cgroup", "partitions", Ok("\"/sys/fs/cgroup\""));
    const ISOLCPUS: Known = ("cpus", "isolcpus", Ok("true"));
    const ONE_CPU: Known = ("cpus", "online", Ok("\"0\""));

    /// The finding with that code on a machine with these facts, if CPU 0 is changed so.
    fn on(known: &[Known], code: &str, change: impl Fn(&mut CpuNoise)) -> Finding {
        let mut recording = golden();
        change(&mut recording.body.noise_mut().unwrap().cpus[0]);
        let mut facts = serde_json::to_value(&recording.facts).unwrap();
        for (group, name, value) in known {
            let key = format!("{group}.{name}");
            let unknown = facts["unknown"].as_object_mut().unwrap();
            unknown.remove(&key);
            if let Err(code) = value {
                unknown.insert(key, json!({"code": code, "text": "unknown"}));
            }
            let value =
                value.map_or(Value::Null, |json| serde_json::from_str(json).unwrap());
            facts[group][name] = value;
        }
        recording.facts = serde_json::from_value(facts).unwrap();
        let is_it = |finding: &Finding| {
            serde_json::to_value(&finding.rule).unwrap()["code"] == code
        };
        found(&recording).into_iter().find(is_it).unwrap()
    }

    fn action_on(
        known: &[Known],
        code: &str,
        change: impl Fn(&mut CpuNoise),
    ) -> Option<Action> {
        on(known, code, change).action
    }

    fn isolcpus(cpus: &str) -> Option<Action> {
        Some(Action::Isolcpus(cpus.parse().unwrap()))
    }

    /// Check that a partition is advised only where it can be created, and isolated CPUs only where
    /// the kernel has them and another CPU is left.
    #[test]
    fn possible_isolation() {
        let release = |release| ("kernel", "release", Ok(release));
        let (old, middle) = (release("\"5.15.0\""), release("\"6.12.0\""));
        let isolated = ("cpus", "isolated", Ok("\"1\""));
        let hybrid = ("cgroup", "partitions", Err("absent"));
        let partition = Some(Action::Partition(Cpu::new(0)));
        for (known, action) in [
            (&[PARTITIONS, ISOLCPUS][..], partition.clone()),
            (&[PARTITIONS, ISOLCPUS, middle], partition),
            (&[PARTITIONS, ISOLCPUS, middle, isolated], isolcpus("1")),
            (&[PARTITIONS, ISOLCPUS, old], isolcpus("1")),
            (&[hybrid, ISOLCPUS], isolcpus("1")),
            (&[hybrid, ("cpus", "isolcpus", Ok("false"))], None),
            (&[hybrid, ("cpus", "isolcpus", Err("absent"))], None),
            (&[PARTITIONS, ISOLCPUS, ONE_CPU], Some(Action::OnlyCpu)),
        ] {
            assert_eq!(action_on(known, "loss", |_| ()), action, "{known:?}");
        }
        let none = |known: &[Known]| action_on(known, "no_isolated_cpus", |_| ());
        assert_eq!(none(&[ISOLCPUS]), isolcpus("1"));
        assert_eq!(none(&[("cpus", "isolcpus", Ok("false"))]), None);
        assert_eq!(none(&[ISOLCPUS, ONE_CPU]), Some(Action::OnlyCpu));
    }

    /// Check that only interrupts that can be moved are to be moved.
    #[test]
    fn possible_moves() {
        let FindingRule::Interrupts { cpu, interrupt } =
            on(&[], "interrupts", |_| ()).rule
        else {
            panic!("another rule")
        };
        assert!(interrupt.is_device(), "{interrupt:?}");
        let own: &'static str = format!("[7, {}]", interrupt.line).leak();
        for (known, action) in [
            (("irq", "fixed", Ok("[7]")), Some(Action::MoveIrqs(cpu))),
            (("irq", "fixed", Ok(own)), Some(Action::FixedIrq)),
            (("irq", "fixed", Err("too_old")), Some(Action::TryToMoveIrqs(cpu))),
            (("irq", "fixed", Err("not_applicable")), None),
            (ONE_CPU, Some(Action::OnlyCpu)),
        ] {
            assert_eq!(action_on(&[known], "interrupts", |_| ()), action, "{known:?}");
        }
    }

    /// Check that the tick is to be stopped only with a kernel that can, and tested only where it
    /// stops.
    #[test]
    fn possible_stops() {
        let cpus = |cpus: &str| cpus.parse().unwrap();
        let (test, ticks) = ("sudo noisefloor nohz test", "noisefloor ticks");
        for (full, action, next) in [
            (Ok("\"1\""), Some(Action::UseNohzFull(cpus("1"))), test),
            (Ok("\"\""), Some(Action::SetNohzFull(cpus("1"))), ticks),
            // CPU 7 is offline.
            (Ok("\"7\""), Some(Action::SetNohzFull(cpus("1"))), ticks),
            (Err("not_configured"), Some(Action::NoNohzFull), ticks),
            (Err("absent"), None, ticks),
        ] {
            let finding = on(&[("tick", "nohz_full", full)], "tick", |_| ());
            assert_eq!((finding.action, &*finding.next), (action, next), "{full:?}");
        }
    }

    /// Check that steal time of zero, and unread steal time, have no action.
    #[test]
    fn steal_time() {
        for (steal, action) in [
            (None, None),
            (Some(Nanos::ZERO), None),
            (Some(Nanos::from_millis(10)), Some(Action::Host)),
        ] {
            let change = |cpu: &mut CpuNoise| cpu.proc.steal_ns = steal;
            let (json, finding) = changed("hypervisor", change);
            assert_eq!(finding.action, action, "{json}");
        }
    }
}
