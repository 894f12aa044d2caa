//! A measuring thread that runs foreign code, which may not return: its state is visible through a
//! socket that gets a byte when the thread is ready, and is closed when it ends.
//!
//! The waiting thread is woken by that, by the stop request, and by the end of the duration; in
//! between only by progress, if that is requested.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use units::Nanos;

use crate::Error;
use crate::control::observer::{Notice, Watch};
use crate::control::stop::Stop;
use crate::time::counter;

/// Interval of checks of a thread that is to end.
const LOOK: Duration = Duration::from_millis(50);

/// The thread's end of the socket; dropped when the thread ends.
#[derive(Debug)]
pub(crate) struct Worker(UnixStream);

/// The waiting side's end.
#[derive(Debug)]
pub(crate) struct WorkerMonitor {
    socket: UnixStream,
    stop: Stop,
}

impl Worker {
    pub(crate) fn pair(stop: Stop) -> Result<(Self, WorkerMonitor), Error> {
        let failed =
            |error: std::io::Error| Error::system("failed to make a socket", error);
        let (own, socket) = UnixStream::pair().map_err(failed)?;
        socket.set_read_timeout(Some(LOOK)).map_err(failed)?;
        Ok((Self(own), WorkerMonitor { socket, stop }))
    }

    /// Sends what the thread reports when it is ready, and wakes the waiting thread.
    pub(crate) fn report<T>(&self, sender: &Sender<T>, word: T) {
        // If no thread waits any more, this thread is about to be stopped.
        let _ = sender.send(word);
        let _ = (&self.0).write(&[0]);
    }
}

impl WorkerMonitor {
    /// Waits until the thread reports or ends, and calls `look` once in each period. If it does
    /// neither within `patience` after the stop request or after `length`, that is reported.
    pub(crate) fn wait(
        &mut self,
        watch: &mut Watch<'_>,
        length: Option<Nanos>,
        patience: Nanos,
        mut look: impl FnMut(&mut Watch<'_>),
    ) {
        let until = length.map_or(Nanos::MAX, |length| now().saturating_add(length));
        let mut has_reported = false;
        while !has_reported && now() < until && !self.stop.is_requested() {
            let next =
                watch.control.period.map_or(until, |period| until.min(now() + period));
            self.stop.sleep_until_or(next, &self.socket);
            look(watch);
            has_reported = self.has_reported();
        }
        let began = Instant::now();
        while !(has_reported || self.has_reported()) {
            if began.elapsed() >= Duration::from(patience) {
                (watch.listener)(Notice::NeverReturns(patience));
            }
        }
        look(watch);
    }

    /// Whether a byte or the end has arrived, or does so within a moment.
    fn has_reported(&mut self) -> bool {
        let is_later = |why: &std::io::Error| {
            matches!(why.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
        };
        self.socket.read(&mut [0]).err().is_none_or(|why| !is_later(&why))
    }
}

fn now() -> Nanos {
    counter::kernel(libc::CLOCK_MONOTONIC_RAW)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::sync::mpsc::channel;

    use super::*;
    use crate::{Control, ignore};

    /// Check that the wait ends when the thread reports, and again when it ends; and that a thread
    /// that does neither is reported after its duration, and after the stop request.
    #[test]
    fn waits_for_both() {
        let control = Control::new().unwrap();
        let mut watch = Watch { control: &control, listener: &mut ignore };
        let (worker, mut ends) = Worker::pair(control.stop.clone()).unwrap();
        let (report, told) = channel();
        let thread = std::thread::spawn(move || worker.report(&report, 7));
        ends.wait(&mut watch, None, Nanos::MAX, |_| {});
        assert_eq!(told.recv(), Ok(7));
        ends.wait(&mut watch, None, Nanos::MAX, |_| {});
        thread.join().unwrap();

        for is_told in [false, true] {
            let control = Control::new().unwrap();
            let (worker, mut ends) = Worker::pair(control.stop.clone()).unwrap();
            control.stop.flag().store(is_told, Ordering::Relaxed);
            // Ended when it is reported that it does not return.
            let mut worker = Some(worker);
            let mut end = |notice: Notice<'_>| {
                assert!(matches!(notice, Notice::NeverReturns(_)));
                worker = None;
            };
            let mut watch = Watch { control: &control, listener: &mut end };
            let length = (!is_told).then_some(Nanos::from_millis(1));
            ends.wait(&mut watch, length, Nanos::from_millis(1), |_| {});
            assert!(worker.is_none());
        }
    }
}
