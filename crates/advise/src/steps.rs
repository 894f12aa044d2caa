//! What can be done on this machine now or at its next boot, in the order of what it gains; and
//! whether one word describes the machine.

use facts::Facts;
use recording::CulpritKind;
use summary::{CheckSummary, Group, LossCategory, Verdict};
use units::{Nanos, Ppm};

use crate::finding::{Action, Finding, When};
use crate::findings::keep_programs_off;

/// What addresses less of the lost time is no step: the difference would not be noticed beside the
/// variation between two runs.
const WORTH: Ppm = Ppm::new(10_000.0);
/// Below this loss, and this probability that a job of 1 ms meets a gap, a machine is quiet: a run of
/// 1 s takes 0.1 ms longer, which is less than most programs vary by themselves, and 99 of 100 jobs
/// meet no gap at all. Both must hold: few long gaps and many short ones are noise alike. A CPU that
/// ticks is never quiet: the tick meets a tenth of such jobs at 100 Hz, and all at 1000 Hz.
const QUIET_LOSS: Ppm = Ppm::new(100.0);
const QUIET_HIT: Ppm = Ppm::new(10_000.0);

/// One word for a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It loses hardly any time.
    Quiet,
    /// Other programs use a tenth of it or more.
    Busy,
}

impl State {
    /// The word, if there is one on which the numbers leave no doubt.
    pub fn of(verdict: &Verdict) -> Option<Self> {
        if verdict.busy == Some(true) {
            return Some(Self::Busy);
        }
        let hit = verdict.consequences.job_hit_ppm;
        let is_quiet = verdict.lost.ppm? < QUIET_LOSS && hit? < QUIET_HIT;
        is_quiet.then_some(Self::Quiet)
    }
}

/// Something to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Trace the causes, which needs privileges.
    Trace,
    /// What avoids a part of the loss.
    Avoid {
        /// How.
        action: Action,
        /// That part, as a share of the lost time; `None` if events could not be traced.
        gain: Option<Ppm>,
    },
}

/// What can be done according to these findings, first what gains most. Of two actions that avoid the same loss, the one that
/// needs no boot.
pub fn steps(facts: &Facts, summary: &CheckSummary, found: &[Finding]) -> Vec<Step> {
    let verdict = &summary.verdict;
    let is_root = facts.security.uid.get() == Some(&0);
    let traces = verdict.split.is_none() && !is_root && verdict.cpus > 0;
    let worst = summary.noise.by_loss().first().map(|worst| worst.cpu);
    let partition = worst.and_then(|cpu| keep_programs_off(facts, cpu)).map(|action| {
        let gain = gain(&action, verdict);
        (action, gain)
    });
    let found = found.iter().filter_map(|one| Some((one.action.clone()?, one.gain)));
    let mut actions: Vec<(Action, Option<Ppm>)> = Vec::new();
    for (action, gain) in partition.into_iter().chain(found) {
        let part = Part::of(&action);
        let is_new = actions.iter().all(|(other, _)| Part::of(other) != part);
        if part.is_some() && is_new && action.when() != When::Never {
            actions.push((action, gain));
        }
    }
    let is_worth_it = |gain: &Option<Ppm>| gain.map_or(!traces, |gain| gain >= WORTH);
    actions.retain(|(_, gain)| is_worth_it(gain));
    let size = |gain: &Option<Ppm>| gain.map_or(0.0, Ppm::get);
    actions.sort_by(|(_, a), (_, b)| size(b).total_cmp(&size(a)));
    let avoid = actions.into_iter().map(|(action, gain)| Step::Avoid { action, gain });
    traces.then_some(Step::Trace).into_iter().chain(avoid).collect()
}

/// The part of the lost time that an action avoids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The time of other programs.
    Programs,
    /// That of timer interrupts.
    Timer,
    /// That of device interrupts.
    Devices,
}

impl Part {
    /// `None` if the action avoids no loss.
    fn of(action: &Action) -> Option<Self> {
        match action {
            Action::Partition(_) | Action::Isolcpus(_) => Some(Self::Programs),
            Action::UseNohzFull(_) | Action::SetNohzFull(_) => Some(Self::Timer),
            Action::MoveIrqs(_) | Action::TryToMoveIrqs(_) => Some(Self::Devices),
            Action::NoNohzFull
            | Action::OnlyCpu
            | Action::RemoveParameter
            | Action::FixedIrq
            | Action::Host => None,
        }
    }
}

/// The part of the lost time that an action avoids, as a share of it: an upper bound. `None` if it
/// is unknown, or if the action avoids none.
fn gain(action: &Action, verdict: &Verdict) -> Option<Ppm> {
    let split = verdict.split.as_ref();
    let of = |kind: CulpritKind| {
        let groups = split?.groups.iter().filter(|group| group.kind == kind);
        let groups = groups.filter(|group| group.category == LossCategory::Kernel);
        Some(Group::sum(&groups.collect::<Vec<_>>()))
    };
    let time: Nanos = match Part::of(action)? {
        Part::Programs => split.map(|split| split.programs).or(verdict.threads)?.ns,
        Part::Timer => of(CulpritKind::Timer)?,
        Part::Devices => of(CulpritKind::Irq)?,
    };
    Ppm::of(time.min(verdict.lost.ns), verdict.lost.ns)
}

impl Finding {
    /// The same, with what its action gains.
    pub(crate) fn with_gain(self, verdict: &Verdict) -> Self {
        let gain = self.action.as_ref().and_then(|action| gain(action, verdict));
        Self { gain, ..self }
    }
}

#[cfg(test)]
mod tests {
    use recording::{Body, Recording};
    use serde_json::json;
    use summary::{Split, TimePart};
    use units::{Cpu, CpuSet};

    use super::*;
    use crate::findings::findings;
    use crate::findings::tests::golden;

    fn part(verdict: &Verdict, millis: u64) -> TimePart {
        let ns = Nanos::from_millis(millis);
        TimePart { ns, ppm: Ppm::of(ns, verdict.elapsed_ns) }
    }

    fn summary(recording: &Recording) -> CheckSummary {
        let Body::Check { series, .. } = &recording.body else { panic!("another kind") };
        CheckSummary::of(series)
    }

    /// A summary with so many milliseconds lost to programs, timers, and devices, of 100.
    fn traced(programs: u64, timers: u64, devices: u64) -> CheckSummary {
        let mut summary = summary(&golden());
        let verdict = &mut summary.verdict;
        verdict.lost = part(verdict, 100);
        let group = |kind, millis| Group {
            category: LossCategory::Kernel,
            kind,
            name: "name".to_owned(),
            unit: None,
            processes: 0,
            threads: 0,
            gaps: 1,
            part: part(verdict, millis),
            max_ns: Nanos::ZERO,
        };
        let zero = TimePart::default();
        verdict.split = Some(Split {
            programs: part(verdict, programs),
            kernel: part(verdict, timers + devices),
            quota: zero,
            hypervisor: zero,
            firmware: zero,
            unexplained: zero,
            own: zero,
            hypervisor_max: None,
            groups: vec![
                group(CulpritKind::Timer, timers),
                group(CulpritKind::Irq, devices),
            ],
        });
        summary
    }

    /// A machine on which everything is possible, apart from these facts as JSON.
    fn facts(uid: u32, other: &[(&str, &str, serde_json::Value)]) -> Facts {
        let mut facts = serde_json::to_value(&golden().facts).unwrap();
        let known = [
            ("cgroup", "partitions", json!("/sys/fs/cgroup")),
            ("cpus", "isolcpus", json!(true)),
            ("tick", "nohz_full", json!("1")),
            ("irq", "fixed", json!([])),
            ("security", "uid", json!(uid)),
        ];
        for (group, name, value) in known.iter().chain(other) {
            facts[group][name] = value.clone();
            let (unknown, key) = (&mut facts["unknown"], format!("{group}.{name}"));
            match value.is_null() {
                true => unknown[key] = json!({"code": "absent", "text": ""}),
                false => drop(unknown.as_object_mut().unwrap().remove(&key)),
            }
        }
        serde_json::from_value(facts).unwrap()
    }

    fn gains(facts: &Facts, summary: &CheckSummary) -> Vec<Option<(Part, Option<f64>)>> {
        let gain = |step: Step| match step {
            Step::Trace => None,
            Step::Avoid { action, gain } => {
                Some((Part::of(&action)?, gain.map(|gain| (gain.get() / 1e4).round())))
            }
        };
        let found = findings(facts, summary);
        steps(facts, summary, &found).into_iter().map(gain).collect()
    }

    /// Check that what gains most is first, and what gains less than a hundredth is left out.
    #[test]
    fn most_first() {
        use Part::{Devices, Programs, Timer};
        for (lost, expected) in [
            ((20, 50, 3), vec![(Timer, 50.0), (Programs, 20.0), (Devices, 3.0)]),
            ((60, 0, 30), vec![(Programs, 60.0), (Devices, 30.0)]),
            ((0, 0, 0), vec![]),
        ] {
            let found = gains(&facts(0, &[]), &traced(lost.0, lost.1, lost.2));
            let expected: Vec<_> = expected
                .into_iter()
                .map(|(part, gain)| Some((part, Some(gain))))
                .collect();
            assert_eq!(found, expected);
        }
    }

    /// Check that without traced events the first step is to trace them, unless root did not.
    #[test]
    fn traced_first() {
        let mut untraced = traced(0, 0, 0);
        let verdict = &mut untraced.verdict;
        verdict.split = None;
        verdict.threads = Some(part(verdict, 25));
        let programs = Some((Part::Programs, Some(25.0)));
        assert_eq!(gains(&facts(1_000, &[]), &untraced), [None, programs]);
        let unknown = |part| Some((part, None));
        let as_root = [programs, unknown(Part::Timer), unknown(Part::Devices)];
        assert_eq!(gains(&facts(0, &[]), &untraced), as_root);
    }

    /// Check that a partition, which is possible now, replaces isolated CPUs at boot.
    #[test]
    fn now_before_boot() {
        let cpu = |step: &Step| match step {
            Step::Avoid { action: Action::Partition(cpu), .. } => {
                Some(CpuSet::from(*cpu))
            }
            Step::Avoid { action: Action::Isolcpus(cpus), .. } => Some(cpus.clone()),
            Step::Avoid { .. } | Step::Trace => None,
        };
        let of = |partitions: serde_json::Value| {
            let none = ("tick", "nohz_full", json!(""));
            let facts = facts(0, &[("cgroup", "partitions", partitions), none]);
            let summary = traced(50, 0, 0);
            let found = findings(&facts, &summary);
            steps(&facts, &summary, &found).iter().find_map(cpu)
        };
        let worst = summary(&golden()).noise.by_loss()[0].cpu;
        assert_eq!(of(json!("/sys/fs/cgroup")), Some(worst.into()));
        assert_eq!(of(json!(null)), Some(Cpu::new(1).into()));
    }

    /// Check that "quiet" needs both few jobs that are hit and little lost time, and that a busy
    /// machine is never quiet.
    #[test]
    fn states() {
        let with = |lost: f64, hit: f64, busy: bool| {
            let mut verdict = traced(0, 0, 0).verdict;
            verdict.lost.ppm = Some(Ppm::new(lost));
            verdict.consequences.job_hit_ppm = Some(Ppm::new(hit));
            verdict.busy = Some(busy);
            State::of(&verdict)
        };
        assert_eq!(with(99.0, 9_999.0, false), Some(State::Quiet));
        assert_eq!(with(100.0, 9_999.0, false), None);
        assert_eq!(with(99.0, 1e6, false), None);
        assert_eq!(with(99.0, 9_999.0, true), Some(State::Busy));
    }
}
