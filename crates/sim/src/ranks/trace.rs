//! The noise of one CPU, repeated without end, and the time at which work ends in it.
//!
//! A trace is what a busy loop measured: detours, in which it did not run, in a window of time. A rank
//! replays the window from a moment of its own. Work makes progress outside of detours
//! only, so a detour that begins in the time by which an earlier one made the work longer counts, too
//! (noise is work-conserving); a detour during which a rank waits for others costs it nothing.
//!
//! Cannot see what a window did not contain: events that are rarer than its length.

use units::{Nanos, Span};

/// A time without detours is as good as infinite: no run is longer.
const NEVER: i64 = i64::MAX / 4;

/// The detours of one CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    window: i64,
    /// In the order of time, disjoint; the last one is the first of the next repetition.
    detours: Vec<Detour>,
}

/// A detour; it ends where the time without detours before it and before the next one say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Detour {
    start: i64,
    /// The length of all detours before it.
    before: i64,
}

impl Detour {
    /// The time without detours before it.
    fn free(self) -> i64 {
        self.start - self.before
    }
}

/// Where a rank is in its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// When the current repetition began, in virtual time.
    origin: i64,
    /// The number of the trace.
    pub(super) trace: u32,
    /// The next detour.
    index: u32,
}

impl Trace {
    /// A trace of these detours, whose starts are relative to that of the window. They may overlap, be
    /// in any order, and exceed the window. `None` if no time without detours remains, or if the window
    /// is longer than a year.
    pub fn new(window: Nanos, detours: impl IntoIterator<Item = Span>) -> Option<Self> {
        let year = Nanos::from_secs(366 * 86_400);
        let window =
            i64::try_from(window.min(year.saturating_add(Nanos::from_nanos(1))).get())
                .ok()?;
        let inside =
            |nanos: Nanos| i64::try_from(nanos.get()).unwrap_or(window).min(window);
        let spans =
            detours.into_iter().map(|span| (inside(span.start), inside(span.end())));
        let mut spans: Vec<(i64, i64)> =
            spans.filter(|(start, end)| start < end).collect();
        if !spans.is_sorted() {
            spans.sort_unstable();
        }
        let mut all: Vec<Detour> = Vec::with_capacity(spans.len() + 1);
        let (mut before, mut last_end) = (0, -1);
        for (start, end) in spans {
            if start > last_end {
                all.push(Detour { start, before });
            }
            before += end - start.clamp(last_end.max(0).min(end), end);
            last_end = last_end.max(end);
        }
        let start = all.first().map_or(NEVER, |first| window + first.start);
        all.push(Detour { start, before });
        let is_usable = before < window
            && window <= i64::try_from(year.get()).ok()?
            && all.len() < u32::MAX as usize;
        is_usable.then_some(Self { window, detours: all })
    }

    /// The length of the window.
    pub fn window(&self) -> Nanos {
        Nanos::from_nanos(self.window.unsigned_abs())
    }

    /// The number of detours.
    pub fn count(&self) -> usize {
        self.last()
    }

    /// The length of all detours.
    pub fn noise(&self) -> Nanos {
        Nanos::from_nanos(self.total().unsigned_abs())
    }

    /// The detours, in the order of time.
    pub fn detours(&self) -> impl Iterator<Item = Span> {
        let nanos = |nanos: i64| Nanos::from_nanos(nanos.unsigned_abs());
        self.detours.windows(2).map(move |pair| Span {
            start: nanos(pair[0].start),
            length: nanos(pair[1].before - pair[0].before),
        })
    }

    /// The place of a rank that begins at this moment of the window, and when its next detour begins.
    pub(super) fn begin(&self, trace: u32, phase: Nanos) -> (Place, i64) {
        let phase = i64::try_from(phase.get()).unwrap_or(0) % self.window.max(1);
        let mut place = Place { origin: -phase, trace, index: 0 };
        let index = self.first(0, |index| self.end(index) <= phase);
        place.index = u32::try_from(index).unwrap_or(0);
        (place, place.origin + self.detours[index].start)
    }

    /// When work ends that begins at `from`, and when the next detour after that begins.
    pub(super) fn finish(&self, place: &mut Place, from: i64, work: i64) -> (i64, i64) {
        let mut moment = from - place.origin;
        let mut index = place.index as usize;
        if moment >= self.window {
            let repetitions = moment / self.window;
            place.origin += repetitions * self.window;
            moment -= repetitions * self.window;
            index = 0;
        }
        index = self.first(index, |index| self.end(index) <= moment);
        if index < self.last() && self.detours[index].start < moment {
            moment = self.end(index);
            index += 1;
        }
        let mut free = moment - self.detours[index].before + work;
        let each = self.window - self.total();
        if free > each {
            let repetitions = (free - 1) / each;
            place.origin += repetitions * self.window;
            free -= repetitions * each;
            index = 0;
        }
        index = self.first(index, |index| self.detours[index].free() < free);
        // There are fewer detours than that.
        place.index = u32::try_from(index).unwrap_or(u32::MAX);
        let Detour { start, before } = self.detours[index];
        (place.origin + free + before, place.origin + start)
    }

    /// When the next detour begins.
    pub(super) fn next(&self, place: &Place) -> i64 {
        place.origin + self.detours[place.index as usize].start
    }

    /// When the next detour begins, and its length, if that is before `limit`; the place is then after it.
    pub(super) fn take(&self, place: &mut Place, limit: i64) -> Option<(i64, i64)> {
        if self.next(place) >= limit {
            return None;
        }
        if place.index as usize == self.last() {
            place.origin += self.window;
            place.index = 0;
        }
        let detour = self.detours[place.index as usize];
        let length = self.detours.get(place.index as usize + 1)?.before - detour.before;
        place.index += 1;
        Some((place.origin + detour.start, length))
    }

    fn total(&self) -> i64 {
        self.detours[self.last()].before
    }

    /// The index of the first detour of the next repetition.
    fn last(&self) -> usize {
        self.detours.len() - 1
    }

    /// The end of a detour of this repetition.
    fn end(&self, index: usize) -> i64 {
        let Detour { start, before } = self.detours[index];
        start + self.detours[index + 1].before - before
    }

    /// The first detour from this one on of which that does not hold, which is none before it: near ones
    /// are found first.
    fn first(&self, from: usize, is_before: impl Fn(usize) -> bool) -> usize {
        let last = self.last();
        let (mut low, mut step) = (from, 1);
        if low >= last || !is_before(low) {
            return low.min(last);
        }
        // It is after `low`, and not after `high`.
        let mut high = low + 1;
        while high < last && is_before(high) {
            low = high;
            step *= 2;
            high = (high + step).min(last);
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if is_before(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }
}
