//! Every switch between tasks on some CPUs, and why each task had to go: kept by the kernel
//! itself (`sched_switch`), told once, at the end.
//!
//! Why is decided by what came before, in its order (`bpf/slices.bpf.c`); since Linux 6.17 the
//! kernel also tells when it is asked for a switch. Cannot see by whom a renice or a move was
//! asked for, nor what a hypervisor takes.

use std::collections::BTreeMap;

use facts::{Facts, Root};
use recording::{
    Code, CpuSwitches, Doubt, LooseEnd, Source, Stretch, SwitchedTask, Switches,
};
use units::{CpuSet, Nanos};

use crate::bpf::refusal::{self, Needs};
use crate::bpf::switch_programs::{AllKept, Kept, SwitchPrograms, Wanted};
use crate::bpf::wake_programs::Who;
use crate::error::Error;
use crate::names::full_name;
use crate::seen::text_of;
use crate::tick_timers::tick_timers;

/// What runs when nothing does.
const IDLE: &str = "idle";
/// What the programs need.
const NEEDS: Needs = Needs { version: (5, 18), why: refusal::STATE };
/// A task whose name found no room.
const UNNAMED: &str = "?";

/// Keeps every switch between tasks on some CPUs, from `start` until `end`.
pub struct SwitchWatch {
    programs: SwitchPrograms,
    has_ticks: bool,
}

impl SwitchWatch {
    /// Begins to keep every switch on these CPUs, of each at most `room`; a switch takes 16
    /// bytes of the kernel's memory, used or not.
    ///
    /// # Errors
    /// `Kind::Spec` for no room, or more than there can be; `Kind::Privilege` or
    /// `Kind::Missing`, in words that name what would help; `Kind::System` where the kernel does
    /// not play along.
    pub fn start(cpus: &CpuSet, room: u32, facts: &Facts) -> Result<Self, Error> {
        let ticks = tick_timers(facts);
        let wanted = Wanted { cpus: cpus.clone(), room, ticks };
        let programs =
            refusal::explained(facts, NEEDS, || SwitchPrograms::load(&wanted))?;
        Ok(Self { programs, has_ticks: ticks.is_some() })
    }

    /// What ran since `began` (`CLOCK_MONOTONIC`), which the stretches are counted from. Of one
    /// that began earlier only the end is told: how much of it lies after is not how long it
    /// was. One that goes on has not ended, and is none.
    ///
    /// # Errors
    /// `Kind::System`: what was kept cannot be read.
    pub fn end(self, began: Nanos) -> Result<(Switches, Vec<Doubt>), Error> {
        let ticks = match (self.has_ticks, self.programs.is_without_ticks()) {
            (true, _) => None,
            (false, true) => Some(NO_TICKS),
            (false, false) => Some(GUESSED_TICKS),
        };
        let kept = self.programs.end()?;
        let mut doubts: Vec<Doubt> =
            ticks.map(|why| Doubt::new(Code::Unwatched, why)).into_iter().collect();
        doubts.extend(not_kept(&kept));
        Ok((switches(&kept, began, &Root::live()), doubts))
    }
}

const NO_TICKS: &str = "the kernel does not tell where its tick is (kernel.kptr_restrict, or no \
    high-resolution timers): that a tick ended a stretch is told as \"other\"";
const GUESSED_TICKS: &str = "the kernel does not tell where its tick is (kernel.kptr_restrict, \
    or no high-resolution timers): each interrupt of the local timer that wakes nobody is \
    taken for one";

/// The tasks get places in the order of their first stretch.
#[derive(Default)]
struct Tasks {
    places: BTreeMap<Who, u32>,
    list: Vec<Who>,
}

impl Tasks {
    fn place(&mut self, who: Who) -> u32 {
        *self.places.entry(who).or_insert_with(|| {
            self.list.push(who);
            u32::try_from(self.list.len() - 1).unwrap_or(u32::MAX)
        })
    }
}

fn switches(kept: &AllKept, began: Nanos, root: &Root) -> Switches {
    let mut tasks = Tasks::default();
    let cpu = |kept: &Kept| {
        let (stretches, loose_ends) = stretches(kept, began, &mut tasks);
        CpuSwitches { cpu: kept.cpu, stretches, loose_ends, lost: kept.lost }
    };
    let cpus = kept.cpus.iter().map(cpu).collect();
    let task = |who: &Who| SwitchedTask { tid: who.tid, name: name(kept, *who, root) };
    Switches { source: Source::Bpf, tasks: tasks.list.iter().map(task).collect(), cpus }
}

/// Each begins where the one before ended, unless the switch between was not told.
fn stretches(
    kept: &Kept,
    began: Nanos,
    tasks: &mut Tasks,
) -> (Vec<Stretch>, Vec<LooseEnd>) {
    let (mut whole, mut loose) = (Vec::new(), Vec::new());
    let mut before = None;
    for left in kept.left.iter().filter(|left| left.at >= began) {
        let at_ns = left.at.saturating_sub(began);
        let (task, end) = (tasks.place(left.who), left.end);
        match before.filter(|_| left.is_whole) {
            Some(start_ns) => {
                let ns = at_ns.saturating_sub(start_ns);
                whole.push(Stretch { start_ns, ns, task, end });
            }
            None => loose.push(LooseEnd { at_ns, task, end }),
        }
        before = Some(at_ns);
    }
    (whole, loose)
}

fn name(kept: &AllKept, who: Who, root: &Root) -> String {
    if who.tid == 0 {
        return IDLE.to_owned();
    }
    let Some(comm) = kept.names.get(&who) else { return UNNAMED.to_owned() };
    let name = text_of(*comm);
    full_name(root, who.tid, &name).unwrap_or(name)
}

fn not_kept(kept: &AllKept) -> impl Iterator<Item = Doubt> {
    let lost: u64 = kept.cpus.iter().map(|cpu| cpu.lost).sum();
    let left = || kept.cpus.iter().flat_map(|cpu| cpu.left.iter().skip(1));
    let untold = left().filter(|left| !left.is_whole).count();
    let is_unnamed = |who: &Who| who.tid != 0 && !kept.names.contains_key(who);
    let unnamed = left().filter(|left| is_unnamed(&left.who)).count();
    let doubts = [
        (lost > 0).then(|| {
            format!("the room for switches was full: {lost} are counted, but not kept")
        }),
        (untold > 0).then(|| {
            format!(
                "{untold} switches were not told: what each of them ended is left out, and \
                 of what it began only the end is known"
            )
        }),
        (unnamed > 0).then(|| {
            format!(
                "more tasks than there is room for: whose {unnamed} of the stretches \
                     were is not known by name"
            )
        }),
    ];
    doubts.into_iter().flatten().map(|text| Doubt::new(Code::EventsLost, text))
}

#[cfg(test)]
mod tests {
    use recording::End;
    use units::Cpu;

    use super::*;
    use crate::bpf::switch_programs::Left;

    fn left(at: u64, tid: u32, end: End) -> Left {
        let who = Who { tid, born: 0 };
        Left { at: Nanos::from_nanos(at), who, end, is_whole: true }
    }

    fn kept(left: Vec<Left>, lost: u64) -> AllKept {
        let comm = |name: &[u8]| std::array::from_fn(|at| *name.get(at).unwrap_or(&0));
        let who = Who { tid: 7, born: 0 };
        AllKept {
            cpus: vec![Kept { cpu: Cpu::new(1), left, lost }],
            names: BTreeMap::from([(who, comm(b"spin/0"))]),
        }
    }

    /// Check that stretches follow each other from the first whose beginning is known and lies
    /// in the recording, that of others only the end is told, and that nothing is made of what
    /// was not told.
    #[test]
    fn from_records() {
        let first = Left { is_whole: false, ..left(90, 9, End::Sleep) };
        let untold = Left { is_whole: false, ..left(400, 7, End::Tick) };
        let records = vec![
            first,
            left(95, 7, End::Tick),
            left(110, 0, End::Wakeup),
            left(130, 7, End::Sleep),
            untold,
            left(450, 8, End::Yield),
        ];
        let kept = kept(records, 3);
        let switches = switches(&kept, Nanos::from_nanos(92), &Root::live());
        let told = switches.cpus[0].stretches.iter().map(|one| {
            let name = &switches.tasks[one.task as usize].name;
            (one.start_ns.get(), one.ns.get(), name.as_str(), one.end)
        });
        let expected = [
            (3, 15, "idle", End::Wakeup),
            (18, 20, "spin/0", End::Sleep),
            (308, 50, "?", End::Yield),
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected);
        let loose = switches.cpus[0].loose_ends.iter();
        let loose = loose.map(|one| (one.at_ns.get(), one.task, one.end));
        let spinner = switches.cpus[0].stretches[1].task;
        let expected = [(3, spinner, End::Tick), (308, spinner, End::Tick)];
        assert_eq!(loose.collect::<Vec<_>>(), expected);
        assert_eq!(switches.cpus[0].lost, 3);
        let doubts: Vec<Doubt> = not_kept(&kept).collect();
        let texts = ["3 are counted", "1 switches were not told", "1 of the stretches"];
        assert_eq!(doubts.len(), texts.len(), "{doubts:?}");
        assert!(doubts.iter().zip(texts).all(|(doubt, text)| doubt.text.contains(text)));
    }
}
