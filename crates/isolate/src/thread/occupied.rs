//! Detecting CPUs that are occupied by a real-time task.
//!
//! A probe is started on each CPU: a thread of the same policy and priority that only reports that
//! it runs. Run times in `/proc` are not sufficient: on a `nohz_full` CPU with a stopped tick, they
//! are updated once per second. If a probe does not run, the task that occupies the CPU is looked
//! up in `/proc` (`waiting`).
//!
//! The timeout of an ordinary probe exceeds the period for which ordinary tasks can be starved by
//! default: RT throttling, and the fair server since 6.12, give them 50 ms of each second.
//!
//! Tasks that `hidepid=` hides are not detected: their CPU counts as free.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use rustix::thread::gettid;
use units::{Cpu, CpuSet};

use crate::error::{Error, Kind};
use crate::thread::waiting::{WaitingThread, runnable};
use crate::thread::{AvoidedCpus, affinity_of, outrank, restrict_thread};

/// The time in which a probe runs on a free CPU.
const TIMEOUT_FREE: Duration = Duration::from_millis(20);
/// The time after which a CPU is considered occupied for a real-time thread,
const TIMEOUT_FIFO: Duration = Duration::from_millis(300);
/// and for an ordinary thread.
const TIMEOUT: Duration = Duration::from_millis(1_200);

/// Rejects CPUs on which a thread of this `SCHED_FIFO` priority, or an ordinary one, would not run.
///
/// # Errors
/// `Kind::Taken` for a CPU that is occupied by a real-time task, with the task of the highest
/// priority.
pub fn refuse_occupied(cpus: &CpuSet, fifo: Option<u8>) -> Result<(), Error> {
    // Probes are started, and waited for, on other CPUs.
    let _avoided = AvoidedCpus::new(cpus.clone());
    let (sender, receiver) = channel();
    let mut probes: Vec<Probe> =
        cpus.iter().filter_map(|cpu| Probe::start(cpu, fifo, sender.clone())).collect();
    let began = Instant::now();
    wait(&mut probes, &receiver, began + TIMEOUT_FREE);
    let first = occupants(&probes, fifo);
    probes.retain(|probe| first.iter().any(|(cpu, _)| *cpu == probe.cpu));
    let timeout = if fifo.is_some() { TIMEOUT_FIFO } else { TIMEOUT };
    wait(&mut probes, &receiver, began + timeout);
    let mut still = occupants(&probes, fifo);
    still.retain(|(_, thread)| is_among(thread, &first));
    match still.into_iter().max_by_key(|(_, thread)| thread.rank()) {
        Some((cpu, occupant)) => Err(refusal(cpu, &occupant, fifo)),
        None => Ok(()),
    }
}

/// Waits until all probes have run; `probes` then has those that have not.
fn wait(probes: &mut Vec<Probe>, receiver: &Receiver<Cpu>, until: Instant) {
    while !probes.is_empty() {
        match receiver.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(ran) => probes.retain(|probe| probe.cpu != ran),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// The runnable threads of other processes that keep these probes from running.
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

/// A thread that was moved to a CPU, and reports when it runs there.
struct Probe {
    cpu: Cpu,
    tid: u32,
    /// The CPUs on which it was started.
    others: CpuSet,
    thread: Option<JoinHandle<()>>,
}

impl Probe {
    /// Moves a sleeping thread to the CPU, so that it can be moved away again if it does not run
    /// there. `None` if this fails: the measurement then reports the reason.
    fn start(cpu: Cpu, fifo: Option<u8>, sender: Sender<Cpu>) -> Option<Self> {
        let others = affinity_of(0).ok()?.without(&cpu.into());
        let (ready, is_ready) = channel();
        let (go, is_go) = channel::<()>();
        let life = move || {
            let own = u32::try_from(gettid().as_raw_nonzero().get()).ok();
            let ranked = own.filter(|_| fifo.map_or(Ok(()), outrank).is_ok());
            if ready.send(ranked).is_ok() && is_go.recv().is_ok() {
                let _ = sender.send(cpu);
            }
        };
        let thread = Builder::new().name(format!("probe/{cpu}")).spawn(life).ok()?;
        let tid = is_ready.recv().ok().flatten()?;
        restrict_thread(tid, &cpu.into()).ok()?;
        go.send(()).ok()?;
        Some(Self { cpu, tid, others, thread: Some(thread) })
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        // If there is no other CPU, the thread ends when it runs, which is not waited for.
        let has_left = || restrict_thread(self.tid, &self.others).is_ok();
        if thread.is_finished() || (!self.others.is_empty() && has_left()) {
            let _ = thread.join();
        }
    }
}
