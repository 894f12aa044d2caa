//! Whether a thread that is put on a CPU gets to run there, or a real-time task keeps it off.
//!
//! A probe tries it: a thread of the same policy and priority, which has nothing to do. Counted
//! run times do not tell: while the tick of a `nohz_full` CPU is stopped, they are a second old.
//! Where a probe does not run, `/proc` names the task that does (`waiting`).
//!
//! An ordinary probe has longer than the kernel keeps ordinary tasks off by default: RT
//! throttling gives them 50 ms of each second, and so does the fair server since 6.12.
//!
//! Cannot see tasks that `hidepid=` hides: their CPU counts as free.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use rustix::thread::gettid;
use units::{Cpu, CpuSet};

use crate::error::{Error, Kind};
use crate::thread::waiting::{WaitingThread, runnable};
use crate::thread::{Elsewhere, affinity_of, keep_on, outrank};

/// On a free CPU a probe has run by then.
const GLANCE: Duration = Duration::from_millis(20);
/// What does not leave the CPU for so long never does for a real-time thread,
const PATIENCE_FIFO: Duration = Duration::from_millis(300);
/// and for so long, for an ordinary one.
const PATIENCE: Duration = Duration::from_millis(1_200);

/// Refuses CPUs on which a thread of that `SCHED_FIFO` priority, or an ordinary one, would not
/// get to run.
///
/// # Errors
/// `Kind::Taken` for a CPU that a real-time task keeps, with that task: the one of the highest
/// priority, where there are several.
pub fn refuse_occupied(cpus: &CpuSet, fifo: Option<u8>) -> Result<(), Error> {
    // A probe is started, and waits, where it gets to run.
    let _elsewhere = Elsewhere::than(cpus.clone());
    let (tell, told) = channel();
    let mut probes: Vec<Probe> =
        cpus.iter().filter_map(|cpu| Probe::start(cpu, fifo, tell.clone())).collect();
    let began = Instant::now();
    wait(&mut probes, &told, began + GLANCE);
    let first = occupants(&probes, fifo);
    probes.retain(|probe| first.iter().any(|(cpu, _)| *cpu == probe.cpu));
    let patience = if fifo.is_some() { PATIENCE_FIFO } else { PATIENCE };
    wait(&mut probes, &told, began + patience);
    let mut still = occupants(&probes, fifo);
    still.retain(|(_, thread)| is_among(thread, &first));
    match still.into_iter().max_by_key(|(_, thread)| thread.rank()) {
        Some((cpu, occupant)) => Err(refusal(cpu, &occupant, fifo)),
        None => Ok(()),
    }
}

/// Waits until all probes have run; leaves those that have not.
fn wait(probes: &mut Vec<Probe>, told: &Receiver<Cpu>, until: Instant) {
    while !probes.is_empty() {
        match told.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(ran) => probes.retain(|probe| probe.cpu != ran),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// The other processes' runnable threads that keep those probes off their CPUs.
fn occupants(probes: &[Probe], fifo: Option<u8>) -> Vec<(Cpu, WaitingThread)> {
    if probes.is_empty() {
        return Vec::new();
    }
    let own = std::process::id();
    let is_probed = |cpu| probes.iter().any(|probe| probe.cpu == cpu);
    let found = runnable(is_probed);
    found.filter(|(_, one)| one.pid != own && one.outranks(fifo)).collect()
}

fn is_among(thread: &WaitingThread, others: &[(Cpu, WaitingThread)]) -> bool {
    others.iter().any(|(_, other)| other.tid == thread.tid)
}

fn refusal(cpu: Cpu, occupant: &WaitingThread, fifo: Option<u8>) -> Error {
    let what = match fifo {
        Some(priority) => format!("a thread of SCHED_FIFO priority {priority}"),
        None => "an ordinary thread".to_owned(),
    };
    let higher = match occupant.rt_priority {
        priority @ 1..99 => {
            format!(", or measure at a priority above {priority} (--fifo)")
        }
        _ => String::new(),
    };
    let text = format!(
        "failed to run on CPU {cpu}: the real-time task {occupant} does not leave it to {what}; \
         hint: end that task, choose another CPU{higher}"
    );
    Error::new(Kind::Taken, text)
}

/// A thread that was put on a CPU and tells when it has run there.
struct Probe {
    cpu: Cpu,
    tid: u32,
    /// Where it came from.
    others: CpuSet,
    thread: Option<JoinHandle<()>>,
}

impl Probe {
    /// Puts one there while it sleeps, so that it ends elsewhere if it never runs there. `None`
    /// where that cannot be: what is measured then says why.
    fn start(cpu: Cpu, fifo: Option<u8>, tell: Sender<Cpu>) -> Option<Self> {
        let others = affinity_of(0).ok()?.without(&[cpu].into_iter().collect());
        let (ready, is_ready) = channel();
        let (go, is_go) = channel::<()>();
        let life = move || {
            let own = u32::try_from(gettid().as_raw_nonzero().get()).ok();
            let ranked = own.filter(|_| fifo.map_or(Ok(()), outrank).is_ok());
            if ready.send(ranked).is_ok() && is_go.recv().is_ok() {
                let _ = tell.send(cpu);
            }
        };
        let thread = Builder::new().name(format!("probe/{cpu}")).spawn(life).ok()?;
        let tid = is_ready.recv().ok().flatten()?;
        keep_on(tid, &[cpu].into_iter().collect()).ok()?;
        go.send(()).ok()?;
        Some(Self { cpu, tid, others, thread: Some(thread) })
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        // Where there is no other CPU it ends when it gets to run, which is not waited for.
        let has_left = || keep_on(self.tid, &self.others).is_ok();
        if thread.is_finished() || (!self.others.is_empty() && has_left()) {
            let _ = thread.join();
        }
    }
}
