//! A thread that delays others: it takes 2 ms of each 50 ms of a CPU, above all other priorities.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, sleep};
use std::time::{Duration, Instant};

use units::Cpu;

use crate::counters::now;

/// Its name.
pub(crate) const NAME: &str = "nf-pathd";
const BUSY: Duration = Duration::from_millis(2);
const IDLE: Duration = Duration::from_millis(48);

/// The thread, which ends when this is dropped.
pub(crate) struct Outranking {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// When it was busy, on the clock of recordings.
    busy: Arc<Mutex<Vec<[u64; 2]>>>,
}

impl Outranking {
    /// Starts it on that CPU; `None`, with a line of output, if its priority is not permitted.
    pub(crate) fn start(test: &str, cpu: &str) -> Option<Self> {
        Self::start_as(NAME, test, cpu)
    }

    /// The same with another name.
    pub(crate) fn start_as(name: &str, test: &str, cpu: &str) -> Option<Self> {
        let (stop, cpu) =
            (Arc::new(AtomicBool::new(false)), Cpu::new(cpu.parse().unwrap()));
        let (is_permitted, started) = channel();
        let stopped = Arc::clone(&stop);
        let busy = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&busy);
        let work = move || {
            let pinned = isolate::pin_with_priority(cpu, Some(99));
            is_permitted.send(pinned.is_ok()).unwrap();
            while pinned.is_ok() && !stopped.load(Ordering::Relaxed) {
                let (begin, from) = (Instant::now(), now());
                while begin.elapsed() < BUSY {
                    std::hint::spin_loop();
                }
                noted.lock().unwrap().push([from, now()]);
                sleep(IDLE);
            }
        };
        let named = std::thread::Builder::new().name(name.to_owned());
        let thread = Some(named.spawn(work).unwrap());
        let outranking = Self { stop, thread, busy };
        if started.recv().unwrap() {
            return Some(outranking);
        }
        println!("skipped: {test}: SCHED_FIFO is not permitted here");
        None
    }

    /// How long it was busy in that time, in nanoseconds of `CLOCK_MONOTONIC`.
    pub(crate) fn busy_ns(&self, from: u64, until: u64) -> u64 {
        let busy = self.busy.lock().unwrap();
        let part = |[begin, end]: &[u64; 2]| {
            (*end).min(until).saturating_sub((*begin).max(from))
        };
        busy.iter().map(part).sum()
    }
}

impl Drop for Outranking {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
