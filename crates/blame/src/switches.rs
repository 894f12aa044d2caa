//! Every context switch on some CPUs, with its reason: recorded in the kernel (`sched_switch`), and
//! read once, at the end.
//!
//! The reason is derived from the events before a switch, in their order (`bpf/slices.bpf.c`);
//! since Linux 6.17 the kernel also traces requests for a switch. Cannot see who requested a change
//! of priority or a migration, nor the time that a hypervisor takes.

use std::collections::BTreeMap;

use facts::{Facts, Root};
use recording::{
    Code, CpuSwitches, Doubt, LooseEnd, Source, Stretch, SwitchedTask, Switches,
};
use units::{CpuSet, Nanos};

use crate::bpf::refusal::{self, Needs};
use crate::bpf::switch_programs::{AllRecords, CpuRecords, SwitchConfig, SwitchPrograms};
use crate::bpf::threads::ThreadKey;
use crate::error::Error;
use crate::names::full_name;
use crate::records::text_of;
use crate::tick_timers::tick_timers;

/// The name of the idle task.
const IDLE: &str = "idle";
/// The programs' requirements.
const NEEDS: Needs = Needs { version: (5, 18), why: refusal::STATE };
/// The name of a task that the table of names could not hold.
const UNNAMED: &str = "?";

/// Records every context switch on some CPUs, from `start` until `end`.
pub struct SwitchWatch {
    programs: SwitchPrograms,
    has_ticks: bool,
}

impl SwitchWatch {
    /// Starts to record every switch on these CPUs, at most `capacity` for each; a switch takes 16
    /// bytes of kernel memory, used or not.
    ///
    /// # Errors
    /// `Kind::Spec` if `capacity` is 0 or too large; `Kind::Privilege` or `Kind::Missing`, with a
    /// remedy; `Kind::System` for another error of the kernel.
    pub fn start(cpus: &CpuSet, capacity: u32, facts: &Facts) -> Result<Self, Error> {
        let ticks = tick_timers(facts);
        let config = SwitchConfig { cpus: cpus.clone(), capacity, ticks };
        let programs =
            refusal::explained(facts, NEEDS, || SwitchPrograms::load(&config))?;
        Ok(Self { programs, has_ticks: ticks.is_some() })
    }

    /// The stretches since `began` (`CLOCK_MONOTONIC`), relative to that. Of one that began earlier
    /// only the end is returned, as its part after `began` is not its length. One that has not
    /// ended is omitted.
    ///
    /// # Errors
    /// `Kind::System`: the records cannot be read.
    pub fn end(self, began: Nanos) -> Result<(Switches, Vec<Doubt>), Error> {
        let ticks = match (self.has_ticks, self.programs.is_without_ticks()) {
            (true, _) => None,
            (false, true) => Some(NO_TICKS),
            (false, false) => Some(GUESSED_TICKS),
        };
        let recorded = self.programs.end()?;
        let mut doubts: Vec<Doubt> =
            ticks.map(|why| Doubt::new(Code::Untraced, why)).into_iter().collect();
        doubts.extend(record_doubts(&recorded));
        Ok((switches(&recorded, began, &Root::live()), doubts))
    }
}

const NO_TICKS: &str = "the address of the kernel's tick is unknown \
                        (kernel.kptr_restrict, or no high-resolution timers): the end of \
                        a stretch by a tick is reported as \"other\"";
const GUESSED_TICKS: &str = "the address of the kernel's tick is unknown \
    (kernel.kptr_restrict, or no high-resolution timers): each interrupt of the local \
    timer without a wake-up is taken for a tick";

/// Tasks have indices in the order of their first stretch.
#[derive(Default)]
struct Tasks {
    places: BTreeMap<ThreadKey, u32>,
    list: Vec<ThreadKey>,
}

impl Tasks {
    fn place(&mut self, who: ThreadKey) -> u32 {
        *self.places.entry(who).or_insert_with(|| {
            self.list.push(who);
            u32::try_from(self.list.len() - 1).unwrap_or(u32::MAX)
        })
    }
}

fn switches(recorded: &AllRecords, began: Nanos, root: &Root) -> Switches {
    let mut tasks = Tasks::default();
    let cpu = |recorded: &CpuRecords| {
        let (stretches, loose_ends) = stretches(recorded, began, &mut tasks);
        CpuSwitches { cpu: recorded.cpu, stretches, loose_ends, lost: recorded.lost }
    };
    let cpus = recorded.cpus.iter().map(cpu).collect();
    let task =
        |who: &ThreadKey| SwitchedTask { tid: who.tid, name: name(recorded, *who, root) };
    Switches { source: Source::Bpf, tasks: tasks.list.iter().map(task).collect(), cpus }
}

/// Each begins at the end of the one before, unless the switch between them was missed.
fn stretches(
    recorded: &CpuRecords,
    began: Nanos,
    tasks: &mut Tasks,
) -> (Vec<Stretch>, Vec<LooseEnd>) {
    let (mut whole, mut loose) = (Vec::new(), Vec::new());
    let mut before = None;
    for departure in recorded.departures.iter().filter(|left| left.at >= began) {
        let at_ns = departure.at.saturating_sub(began);
        let (task, end) = (tasks.place(departure.who), departure.end);
        match before.filter(|_| departure.is_whole) {
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

fn name(recorded: &AllRecords, who: ThreadKey, root: &Root) -> String {
    if who.tid == 0 {
        return IDLE.to_owned();
    }
    let Some(comm) = recorded.names.get(&who) else { return UNNAMED.to_owned() };
    let name = text_of(*comm);
    full_name(root, who.tid, &name).unwrap_or(name)
}

fn record_doubts(recorded: &AllRecords) -> impl Iterator<Item = Doubt> {
    let lost: u64 = recorded.cpus.iter().map(|cpu| cpu.lost).sum();
    let departures =
        || recorded.cpus.iter().flat_map(|cpu| cpu.departures.iter().skip(1));
    let missed = departures().filter(|departure| !departure.is_whole).count();
    let is_unnamed = |who: &ThreadKey| who.tid != 0 && !recorded.names.contains_key(who);
    let unnamed = departures().filter(|departure| is_unnamed(&departure.who)).count();
    let doubts = [
        (lost > 0).then(|| {
            format!("the buffer for switches was full: {lost} are counted, but not recorded")
        }),
        (missed > 0).then(|| {
            format!(
                "{missed} switches were not traced: the stretch that each of them ended is \
                 omitted, and of the one that it began only the end is known"
            )
        }),
        (unnamed > 0).then(|| {
            format!(
                "too many tasks: {unnamed} of the stretches have no name"
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
    use crate::bpf::switch_programs::Departure;

    fn departure(at: u64, tid: u32, end: End) -> Departure {
        let who = ThreadKey { tid, born: 0 };
        Departure { at: Nanos::from_nanos(at), who, end, is_whole: true }
    }

    fn recorded(departures: Vec<Departure>, lost: u64) -> AllRecords {
        let comm = |name: &[u8]| std::array::from_fn(|at| *name.get(at).unwrap_or(&0));
        let who = ThreadKey { tid: 7, born: 0 };
        AllRecords {
            cpus: vec![CpuRecords { cpu: Cpu::new(1), departures, lost }],
            names: BTreeMap::from([(who, comm(b"spin/0"))]),
        }
    }

    /// Check that stretches follow each other from the first with a known beginning in the
    /// recording, that of others only the end is returned, and that missed switches cause none.
    #[test]
    fn from_records() {
        let first = Departure { is_whole: false, ..departure(90, 9, End::Sleep) };
        let missed = Departure { is_whole: false, ..departure(400, 7, End::Tick) };
        let records = vec![
            first,
            departure(95, 7, End::Tick),
            departure(110, 0, End::Wakeup),
            departure(130, 7, End::Sleep),
            missed,
            departure(450, 8, End::Yield),
        ];
        let recorded = recorded(records, 3);
        let switches = switches(&recorded, Nanos::from_nanos(92), &Root::live());
        let found = switches.cpus[0].stretches.iter().map(|one| {
            let name = &switches.tasks[one.task as usize].name;
            (one.start_ns.get(), one.ns.get(), name.as_str(), one.end)
        });
        let expected = [
            (3, 15, "idle", End::Wakeup),
            (18, 20, "spin/0", End::Sleep),
            (308, 50, "?", End::Yield),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        let loose = switches.cpus[0].loose_ends.iter();
        let loose = loose.map(|one| (one.at_ns.get(), one.task, one.end));
        let spinner = switches.cpus[0].stretches[1].task;
        let expected = [(3, spinner, End::Tick), (308, spinner, End::Tick)];
        assert_eq!(loose.collect::<Vec<_>>(), expected);
        assert_eq!(switches.cpus[0].lost, 3);
        let doubts: Vec<Doubt> = record_doubts(&recorded).collect();
        let texts = ["3 are counted", "1 switches were not traced", "1 of the stretches"];
        assert_eq!(doubts.len(), texts.len(), "{doubts:?}");
        assert!(doubts.iter().zip(texts).all(|(doubt, text)| doubt.text.contains(text)));
    }
}
