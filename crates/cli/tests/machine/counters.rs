//! The kernel's own counters, read all the time while something else is measured.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

/// `CLOCK_MONOTONIC`, the clock of recordings, in nanoseconds.
pub(crate) fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

/// The time of a process's main thread on CPUs, its time waiting for one, and its number of runs.
pub(crate) fn schedstat(pid: u32) -> [u64; 3] {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    let mut numbers = text.split_whitespace().map(|number| number.parse().unwrap());
    [(); 3].map(|()| numbers.next().unwrap())
}

/// One reading.
pub(crate) struct Reading<T> {
    /// The times just before and just after it: on a busy machine, they may be far apart.
    pub(crate) between_ns: [u64; 2],
    pub(crate) value: T,
}

impl<T> Reading<T> {
    fn of(read: impl Fn() -> T) -> Self {
        let (before, value) = (now(), read());
        Self { between_ns: [before, now()], value }
    }
}

/// Counters that are read every few milliseconds, as often as the load permits.
pub(crate) struct Counters<T> {
    has_ended: Arc<AtomicBool>,
    reader: JoinHandle<Vec<Reading<T>>>,
}

impl<T: Send + 'static> Counters<T> {
    pub(crate) fn begin(read: impl Fn() -> T + Send + 'static) -> Self {
        let has_ended = Arc::<AtomicBool>::default();
        let is_over = Arc::clone(&has_ended);
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                all.push(Reading::of(&read));
                sleep(Duration::from_millis(5));
            }
            all.push(Reading::of(&read));
            all
        });
        Self { has_ended, reader }
    }

    pub(crate) fn end(self) -> Vec<Reading<T>> {
        self.has_ended.store(true, Ordering::Relaxed);
        self.reader.join().unwrap()
    }
}
