//! What can be done on this machine now or at its next boot, in the order of what it gains; and
//! whether one word describes the machine.

use facts::Facts;
use summary::{CheckSummary, Verdict};
use units::Ppm;

use crate::advice::{Advice, AdviceItem};
use crate::finding::When;

/// The largest number of changes.
const STEPS: usize = 3;
/// What takes this noise cannot be changed from inside a guest.
const OF_THE_HOST: &str = "steal";
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
    Change(Box<AdviceItem>),
}

/// What `check` lists to do: the first of the advice that acts on the lost time, one change for each of its
/// sources, of those that need no other kernel.
pub fn steps(facts: &Facts, summary: &CheckSummary, advice: &Advice) -> Vec<Step> {
    let verdict = &summary.verdict;
    let is_root = facts.security.uid.get() == Some(&0);
    let traces = verdict.split.is_none() && !is_root && verdict.cpus > 0;
    let mut changes: Vec<&AdviceItem> = Vec::new();
    for item in advice.items.iter().filter(|item| is_step(item)) {
        let is_new = |other: &&AdviceItem| other.rule.acts_on != item.rule.acts_on;
        if changes.len() < STEPS && changes.iter().all(is_new) {
            changes.push(item);
        }
    }
    let changes = changes.into_iter().map(|item| Step::Change(Box::new(item.clone())));
    traces.then_some(Step::Trace).into_iter().chain(changes).collect()
}

/// Whether a change acts on lost time, and can be made on this machine.
fn is_step(item: &AdviceItem) -> bool {
    item.is_worth_it()
        && item.change.when() != When::Build
        && item.rule.acts_on != Some(OF_THE_HOST)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::findings::tests::{golden, on};
    use crate::{Goal, Losses, Machine};

    /// The steps on the machine of the golden recording with these facts.
    fn found(known: &[(&str, serde_json::Value)]) -> Vec<(Option<&'static str>, String)> {
        let (facts, summary) = on(&golden(), known);
        let losses = Losses::of_check(&summary);
        let advice =
            Advice::of(&Machine::new(&facts, Some(losses), None), &Goal::Latency.into());
        let step = |step: Step| match step {
            Step::Trace => (None, "trace".to_owned()),
            Step::Change(item) => (item.rule.acts_on, item.rule.name.to_owned()),
        };
        steps(&facts, &summary, &advice).into_iter().map(step).collect()
    }

    /// Check that without traced events the first step is to trace them, unless root did not; and that
    /// other programs, whose time the scheduler counts, are addressed.
    #[test]
    fn traced_first() {
        let (user, root) = (json!(1_000), json!(0));
        let partitions = ("cgroup.partitions", json!("/sys/fs/cgroup"));
        let programs = (Some("programs"), "partition-without-other-isolation".to_owned());
        let release = ("kernel.release", json!("6.12.0"));
        let of = |uid: &serde_json::Value| {
            found(&[("security.uid", uid.clone()), partitions.clone(), release.clone()])
        };
        assert_eq!(of(&user), [(None, "trace".to_owned()), programs.clone()]);
        assert_eq!(of(&root), [programs]);
    }

    /// Check that a partition, which is possible now, replaces isolated CPUs at boot, and that the latter are
    /// advised only where the kernel has them and another CPU is left.
    #[test]
    fn now_before_boot() {
        let isolcpus = ("cpus.isolcpus", json!(true));
        let none = ("cgroup.partitions", json!(null));
        let names = |known: &[(&str, serde_json::Value)]| {
            let root = [("security.uid", json!(0)), ("kernel.release", json!("6.18.1"))];
            let known: Vec<_> = root.iter().chain(known).cloned().collect();
            found(&known).into_iter().map(|(_, name)| name).collect::<Vec<_>>()
        };
        let some = ("cgroup.partitions", json!("/sys/fs/cgroup"));
        assert_eq!(names(&[some, isolcpus.clone()]), ["partition-for-isolation"]);
        let boot = names(&[none.clone(), isolcpus.clone()]);
        assert_eq!(boot, ["isolcpus-without-partitions"]);
        assert!(names(&[none.clone(), ("cpus.isolcpus", json!(false))]).is_empty());
        assert!(names(&[none, isolcpus, ("cpus.online", json!("0"))]).is_empty());
    }

    /// Check that "quiet" needs both few jobs that are hit and little lost time, and that a busy
    /// machine is never quiet.
    #[test]
    fn states() {
        let with = |lost: f64, hit: f64, busy: bool| {
            let (_, summary) = on(&golden(), &[]);
            let mut verdict = summary.verdict;
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
