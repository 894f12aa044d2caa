//! A measuring thread that runs what others have written, which may not return: seen from outside
//! by a socket that has a byte when the thread is ready, and is closed when it ends.
//!
//! Who waits is woken by that, by the order to stop, and by the end of the time; nothing wakes it
//! meanwhile but progress that is asked for.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use units::Nanos;

use crate::observer::{Event, Watch};
use crate::stop::Stop;
use crate::{Error, counter};

/// Between two looks at a thread that is to end.
const LOOK: Duration = Duration::from_millis(50);

/// The thread's end; dropped where the thread ends.
#[derive(Debug)]
pub(crate) struct Worker(UnixStream);

/// The end of who waits for it.
#[derive(Debug)]
pub(crate) struct Ends {
    socket: UnixStream,
    stop: Stop,
}

impl Worker {
    /// Both ends.
    pub(crate) fn pair(stop: Stop) -> Result<(Self, Ends), Error> {
        let failed =
            |error: std::io::Error| Error::system("failed to make a socket", error);
        let (own, socket) = UnixStream::pair().map_err(failed)?;
        socket.set_read_timeout(Some(LOOK)).map_err(failed)?;
        Ok((Self(own), Ends { socket, stop }))
    }

    /// Sends what the thread has to tell when it is ready, and wakes who waits for that.
    pub(crate) fn tell<T>(&self, sender: &Sender<T>, word: T) {
        // Where nobody waits any more, the thread is about to learn it.
        let _ = sender.send(word);
        let _ = (&self.0).write(&[0]);
    }
}

impl Ends {
    /// Waits until the thread tells or ends, and lets `look` look at it on the way, once in each
    /// period. Where it does neither for `patience` after the order to stop, or after `length`, that
    /// is reported.
    pub(crate) fn wait(
        &mut self,
        watch: &mut Watch<'_>,
        length: Option<Nanos>,
        patience: Nanos,
        mut look: impl FnMut(&mut Watch<'_>),
    ) {
        let until = length.map_or(Nanos::MAX, |length| now().saturating_add(length));
        let mut has_told = false;
        while !has_told && now() < until && !self.stop.given() {
            let next =
                watch.control.period.map_or(until, |period| until.min(now() + period));
            self.stop.sleep_until_or(next, &self.socket);
            look(watch);
            has_told = self.has_told();
        }
        let began = Instant::now();
        while !(has_told || self.has_told()) {
            if began.elapsed() >= Duration::from(patience) {
                watch.observer.event(Event::NeverReturns(patience));
            }
        }
        look(watch);
    }

    /// Whether there is something, or comes within a moment.
    fn has_told(&mut self) -> bool {
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
    use crate::{Control, Observer, Silent};

    /// Ends the thread when it learns that the thread does not return.
    struct Patient(Option<Worker>);

    impl Observer for Patient {
        fn event(&mut self, event: Event<'_>) {
            assert!(matches!(event, Event::NeverReturns(_)));
            self.0 = None;
        }
    }

    /// Check that one waits until the thread tells, and again until it ends; and that one that
    /// does neither is noticed after the time, and after the order to stop.
    #[test]
    fn waits_for_both() {
        let control = Control::new().unwrap();
        let mut watch = Watch { control: &control, observer: &mut Silent };
        let (worker, mut ends) = Worker::pair(control.stop.clone()).unwrap();
        let (tell, told) = channel();
        let thread = std::thread::spawn(move || worker.tell(&tell, 7));
        ends.wait(&mut watch, None, Nanos::MAX, |_| {});
        assert_eq!(told.recv(), Ok(7));
        ends.wait(&mut watch, None, Nanos::MAX, |_| {});
        thread.join().unwrap();

        for is_told in [false, true] {
            let control = Control::new().unwrap();
            let (worker, mut ends) = Worker::pair(control.stop.clone()).unwrap();
            control.stop.flag().store(is_told, Ordering::Relaxed);
            let mut patient = Patient(Some(worker));
            let mut watch = Watch { control: &control, observer: &mut patient };
            let length = (!is_told).then_some(Nanos::from_millis(1));
            ends.wait(&mut watch, length, Nanos::from_millis(1), |_| {});
            assert!(patient.0.is_none());
        }
    }
}
