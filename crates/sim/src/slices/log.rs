//! What is stored of a simulation: who ran when, and where tasks that woke up were placed.

use recording::{
    CpuSwitches, Placement, Placements, SlicesSpec, Source, Stretch, SwitchedTask,
    Switches,
};
use units::{Cpu, Nanos};

use crate::scheduler::{Observer, Ran, Woken};
use crate::slices::{FIRST_PID, Simulation, number, tasks};

/// The most stretches and wake-ups that are stored, of all CPUs.
const STORED_MAX: usize = 2_000_000;
/// The IDs of the first kernel thread, and of the sampler.
const FIRST_THREAD: u32 = 10;
const SAMPLER: u32 = FIRST_PID - 1;

/// Stores what happens, in the time of the recording.
#[derive(Debug, Clone)]
pub(super) struct Log {
    traces: bool,
    places: bool,
    /// The time of the recording when this round's measurement begins.
    pub(super) offset: Nanos,
    /// When it begins in the time of the simulation; `None`: not yet.
    began: Option<Nanos>,
    /// The number of rounds so far.
    pub(super) rounds: u64,
    /// The names of kernel threads.
    threads: Vec<&'static str>,
    /// Their lags at the end of the last round: they outlive it.
    pub(super) lags: Vec<i64>,
    cpus: Vec<CpuSwitches>,
    placements: Placements,
}

impl Log {
    pub(super) fn new(simulation: &Simulation) -> Self {
        let cpu = |cpu| CpuSwitches {
            cpu: Cpu::new(cpu),
            stretches: Vec::new(),
            loose_ends: Vec::new(),
            lost: 0,
        };
        Self {
            traces: simulation.traces,
            places: simulation.places,
            offset: Nanos::ZERO,
            began: None,
            rounds: 0,
            threads: simulation.machine.threads.iter().map(|one| one.name).collect(),
            lags: Vec::new(),
            cpus: (0..simulation.machine.cpus).map(cpu).collect(),
            placements: Placements { granularity_ns: None, wakeups: Vec::new(), lost: 0 },
        }
    }

    /// The measurement of this round begins.
    pub(super) fn begin(&mut self, now: Nanos, granularity_ns: Option<Nanos>) {
        self.began = Some(now);
        self.placements.granularity_ns = granularity_ns;
    }

    /// It ends, after that time; the kernel threads have these lags.
    pub(super) fn end(&mut self, length: Nanos, lags: Vec<i64>) {
        self.offset = self.offset + length;
        self.began = None;
        self.rounds += 1;
        self.lags = lags;
    }

    /// The time of the recording; `None`: before the measurement.
    fn time(&self, at: Nanos) -> Option<Nanos> {
        let began = self.began.filter(|began| at >= *began)?;
        Some(self.offset + at.saturating_sub(began))
    }

    pub(super) fn into_parts(self, spec: &SlicesSpec) -> (Switches, Placements) {
        let idle = SwitchedTask { tid: 0, name: "swapper".to_owned() };
        let named = tasks(spec).into_iter();
        let named = named.map(|task| SwitchedTask { tid: task.pid, name: task.name });
        let threads = self.threads.iter().zip(FIRST_THREAD..);
        let threads =
            threads.map(|(name, tid)| SwitchedTask { tid, name: (*name).to_owned() });
        let sampler = SwitchedTask { tid: SAMPLER, name: "noisefloor".to_owned() };
        let tasks = std::iter::once(idle).chain(named).chain(threads).chain([sampler]);
        let tasks = tasks.collect();
        let source = Source::Simulation;
        (Switches { source, tasks, cpus: self.cpus }, self.placements)
    }
}

impl Observer for Log {
    fn ran(&mut self, ran: Ran) {
        let Some(start_ns) = self.time(ran.start_ns).filter(|_| self.traces) else {
            return;
        };
        let Some(cpu) = self.cpus.get_mut(ran.cpu) else { return };
        if cpu.stretches.len() >= STORED_MAX {
            cpu.lost += 1;
            return;
        }
        // Place 0 is the idle task.
        let task = ran.task.map_or(0, |task| number(task) + 1);
        cpu.stretches.push(Stretch { start_ns, ns: ran.ns, task, end: ran.end });
    }

    fn woken(&mut self, woken: Woken) {
        let (Some(at_ns), Some(running)) = (self.time(woken.at_ns), woken.running) else {
            return;
        };
        if self.placements.wakeups.len() >= STORED_MAX {
            self.placements.lost += 1;
            return;
        }
        self.placements.wakeups.push(Placement {
            at_ns,
            cpu: Cpu::new(number(woken.cpu)),
            task: number(woken.task),
            running: number(running),
            ahead_ns: woken.ahead_ns,
            ahead_of_average_ns: woken.ahead_of_average_ns,
            lost_ns: woken.lost_ns,
        });
    }

    fn wants_wakeups(&self) -> bool {
        self.places
    }
}
