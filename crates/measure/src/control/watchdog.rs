//! Ends a measurement that a real-time task starves: after the stop request or the measurement's
//! duration, threads that do not run are moved to another CPU, where they notice the end.
//!
//! A separate thread waits for that; it sleeps for the duration of a measurement that ends by
//! itself. It handles signals, as the measuring threads may not run.

use std::io::{ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use isolate::{MovedThread, Retain, StarvedThreads};
use recording::{Code, Doubt};
use units::{CpuSet, Nanos};

use crate::Error;
use crate::control::stop::Stop;
use crate::time::counter;

/// Interval of checks of the threads.
const LOOK: Duration = Duration::from_millis(100);

/// Observes the threads that are pinned to one CPU, until it is dropped.
#[derive(Debug)]
pub(crate) struct Watchdog {
    thread: Option<JoinHandle<Vec<MovedThread>>>,
    /// Closed when the measurement is over.
    over: Option<UnixStream>,
}

impl Watchdog {
    /// For threads that end within that length, if it is known, and may then run on any of these
    /// CPUs.
    pub(crate) fn start(
        cpus: CpuSet,
        length: Option<Nanos>,
        stop: Stop,
    ) -> Result<Self, Error> {
        let failed =
            |error: std::io::Error| Error::system("failed to start a thread", error);
        let (over, is_over) = UnixStream::pair().map_err(failed)?;
        is_over.set_read_timeout(Some(LOOK)).map_err(failed)?;
        let now = counter::kernel(libc::CLOCK_MONOTONIC_RAW);
        let until = length.map_or(Nanos::MAX, |length| now.saturating_add(length));
        let life = move || {
            // It moves only threads of this process, and needs no capability for that. If it keeps
            // them, nothing worse happens.
            let _ = isolate::drop_capabilities(Retain::Nothing);
            // A task that starves them must not starve this thread too. Until the end it sleeps,
            // and uses no CPU time.
            let _ = isolate::restrict_thread(0, &cpus);
            stop.sleep_until_or(until, &is_over);
            move_starved(cpus, &is_over)
        };
        let thread = Builder::new().name("watchdog".to_owned()).spawn(life);
        Ok(Self { thread: Some(thread.map_err(failed)?), over: Some(over) })
    }

    /// Ends it; returns a doubt for each thread that was moved.
    pub(crate) fn end(mut self) -> Vec<Doubt> {
        self.join().iter().map(doubt).collect()
    }

    fn join(&mut self) -> Vec<MovedThread> {
        drop(self.over.take());
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.join();
    }
}

/// Moves starved threads until the measurement is over.
fn move_starved(cpus: CpuSet, mut is_over: &UnixStream) -> Vec<MovedThread> {
    let mut threads = StarvedThreads::new(cpus);
    let mut moved = Vec::new();
    loop {
        match is_over.read(&mut [0]) {
            Err(why) if why.kind() == ErrorKind::WouldBlock => {
                moved.extend(threads.move_starved());
            }
            Err(why) if why.kind() == ErrorKind::Interrupted => {}
            _ => return moved,
        }
    }
}

fn doubt(moved: &MovedThread) -> Doubt {
    let MovedThread { cpu, occupant } = moved;
    let who = occupant.as_ref().map_or_else(String::new, |one| format!(" {one}"));
    let text = format!(
        "CPU {cpu}: at its end a thread of this measurement was starved by a real-time \
         task{who}, and was moved to another CPU to finish"
    );
    Doubt::new(Code::Starved, text)
}
