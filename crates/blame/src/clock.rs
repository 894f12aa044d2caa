//! Conversion of the events' clock, `CLOCK_MONOTONIC`, to that of the gaps, the CPU's time stamp
//! counter: both were read together before and after the run; times in between are interpolated.
//!
//! Cannot see when the kernel adjusted its clock in between; that it did causes a doubt.

use recording::{Code, Doubt};
use rustix::time::{ClockId, clock_gettime};
use units::{Nanos, Span};

/// With a larger difference between the two, in parts per million, events may be attributed to
/// adjacent gaps.
const DRIFT_PPM: u64 = 200;

/// `CLOCK_MONOTONIC`, which the programs read, too.
pub(crate) fn now() -> Nanos {
    read(ClockId::Monotonic)
}

/// A clock of the kernel.
pub(crate) fn read(clock: ClockId) -> Nanos {
    let time = clock_gettime(clock);
    let part = |part: i64| u64::try_from(part).unwrap_or(0);
    Nanos::from_secs(part(time.tv_sec)) + Nanos::from_nanos(part(time.tv_nsec))
}

/// Two moments of both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    begin: (i128, i128),
    end: (i128, i128),
}

impl Clock {
    pub(crate) fn of(pairs: [(Nanos, Nanos); 2]) -> Self {
        let [begin, end] =
            pairs.map(|(ours, theirs)| (ours.get().into(), theirs.get().into()));
        Self { begin, end }
    }

    /// A time of the events' clock, relative to the recording's beginning, in nanoseconds.
    fn since_beginning(self, time: Nanos) -> i128 {
        let (ours, theirs) = (self.end.0 - self.begin.0, self.end.1 - self.begin.1);
        let passed = i128::from(time.get()) - self.begin.1;
        if theirs <= 0 {
            return self.begin.0 + passed;
        }
        self.begin.0 + passed * ours / theirs
    }

    /// The period between two times of the events' clock, relative to the loop's first reading;
    /// `None` if it ended before that. An earlier beginning is cut off.
    pub(crate) fn span(self, (start, end): (u64, u64), first: Nanos) -> Option<Span> {
        let since_first = |time| {
            let since = self.since_beginning(Nanos::from_nanos(time));
            let since = (since - i128::from(first.get())).max(0);
            u64::try_from(since).unwrap_or(u64::MAX)
        };
        let (start, end) = (since_first(start), since_first(end));
        let length = end.checked_sub(start).filter(|length| *length > 0)?;
        Some(Span { start: Nanos::from_nanos(start), length: Nanos::from_nanos(length) })
    }

    pub(crate) fn doubts(self) -> Option<Doubt> {
        let (ours, theirs) = (self.end.0 - self.begin.0, self.end.1 - self.begin.1);
        let apart = (ours - theirs).unsigned_abs();
        if apart * 1_000_000 <= theirs.unsigned_abs() * u128::from(DRIFT_PPM) {
            return None;
        }
        let text = "the kernel adjusted its clock during the run: events may be \
                    attributed to their neighbours' gaps";
        Some(Doubt::new(Code::ClockDrift, text))
    }
}
