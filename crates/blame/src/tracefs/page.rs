//! A page of the kernel's ring buffer, as read from `trace_pipe_raw`: a header, and consecutive
//! events, each with the time since the one before.
//!
//! Source: `events/header_page` and `events/header_event`; `include/linux/ring_buffer.h`, the same
//! since Linux 2.6.30, absolute times since 4.16. A page has a flag for overwritten events before
//! it, and newer kernels also store their number if there is space. It does not contain their
//! times.

use crate::tracefs::format::{Field, Format};

/// Values of the first five bits of an event; smaller ones are its length in words.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// The other bits of the first word are time; if they do not suffice, 32 more follow.
const TIME_BITS: u32 = 27;
/// Absolute times have 59 bits; the upper bits are the page's.
const STAMP_BITS: u32 = 59;
/// The bits of the page's `commit` that contain the length of the data.
const LENGTH: u64 = (1 << TIME_BITS) - 1;
const MISSED: u64 = 1 << 31;
const MISSED_COUNTED: u64 = 1 << 30;

/// The positions of a page's parts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    timestamp: Field,
    commit: Field,
    data: Field,
}

impl Layout {
    /// Parses `events/header_page`; `None` if it has another format.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let format = Format::parse(text);
        let field = |name| format.field(name);
        Some(Self {
            timestamp: field("timestamp")?,
            commit: field("commit")?,
            data: field("data")?,
        })
    }

    /// The length of a page.
    pub(crate) fn page_bytes(self) -> usize {
        self.data.offset.saturating_add(self.data.size)
    }
}

/// The events of one page, in order.
pub(crate) struct Page<'a> {
    /// The number of events that were overwritten before these, if any; at least one.
    pub(crate) missed: Option<u64>,
    /// The time of the previous event, in the trace's own clock.
    now: u64,
    rest: &'a [u8],
}

/// An event in its binary form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Written<'a> {
    pub(crate) time: u64,
    pub(crate) bytes: &'a [u8],
}

impl<'a> Page<'a> {
    /// Parses a page; `None` if these bytes are none.
    pub(crate) fn parse(layout: Layout, bytes: &'a [u8]) -> Option<Self> {
        let now = layout.timestamp.number(bytes)?;
        let commit = layout.commit.number(bytes)?;
        let length = usize::try_from(commit & LENGTH).ok()?;
        let end = layout.data.offset.checked_add(length)?;
        let rest = bytes.get(layout.data.offset..end)?;
        let count = Field { offset: end, size: layout.commit.size };
        let counted =
            (commit & MISSED_COUNTED != 0).then(|| count.number(bytes)).flatten();
        let missed = (commit & MISSED != 0).then(|| counted.unwrap_or(1).max(1));
        Some(Self { missed, now, rest })
    }

    /// The time at which this page begins.
    pub(crate) fn begin(&self) -> u64 {
        self.now
    }

    fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(u32::from_le_bytes(*word))
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    /// A long time: the first word's bits, and those that follow.
    fn long(&mut self, low: u64) -> Option<u64> {
        Some(u64::from(self.word()?) << TIME_BITS | low)
    }

    fn pass(&mut self, time: u64) {
        self.now = self.now.wrapping_add(time);
    }

    /// An absolute time without its uppermost bits, which change once in 18 years.
    fn stamp(&mut self, low: u64) {
        let stamp = low & ((1 << STAMP_BITS) - 1) | self.now >> STAMP_BITS << STAMP_BITS;
        let is_behind = stamp < self.now && self.now - stamp > 1 << (STAMP_BITS - 1);
        self.now = if is_behind { stamp.wrapping_add(1 << STAMP_BITS) } else { stamp };
    }

    /// An event preceded by its length, which includes itself.
    fn sized(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.word()?).ok()?.checked_sub(size_of::<u32>())?;
        self.take(length.checked_next_multiple_of(size_of::<u32>())?)
    }
}

impl<'a> Iterator for Page<'a> {
    type Item = Written<'a>;

    /// The next event. An invalid one ends the page.
    fn next(&mut self) -> Option<Written<'a>> {
        loop {
            let head = self.word()?;
            let (kind, time) = (head & 31, u64::from(head >> 5));
            match kind {
                // The end of the data, or a discarded event.
                PADDING if time == 0 => return None,
                PADDING => {
                    self.sized()?;
                    self.pass(time);
                }
                TIME_EXTEND => {
                    let time = self.long(time)?;
                    self.pass(time);
                }
                TIME_STAMP => {
                    let time = self.long(time)?;
                    self.stamp(time);
                }
                words => {
                    let bytes = match usize::try_from(words).ok()? {
                        0 => self.sized()?,
                        words => self.take(words * size_of::<u32>())?,
                    };
                    self.pass(time);
                    return Some(Written { time: self.now, bytes });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn layout() -> Layout {
        Layout::parse(include_str!("../../tests/trace/header_page")).unwrap()
    }

    /// A page of these words that begins at that time.
    fn page(begin: u64, flags: u64, words: &[u32]) -> Vec<u8> {
        let commit = u64::try_from(words.len() * 4).unwrap() | flags;
        let head = [begin, commit].map(u64::to_le_bytes).concat();
        let words = words.iter().flat_map(|word| word.to_le_bytes());
        head.into_iter().chain(words).chain([7; 8]).collect()
    }

    fn times(bytes: &[u8]) -> Vec<u64> {
        Page::parse(layout(), bytes).unwrap().map(|event| event.time).collect()
    }

    /// Check events of a real page (Linux 6.18) against the kernel's own text of them: their
    /// number, their kinds, and their times to the microsecond.
    #[test]
    fn reads_a_real_page() {
        let recorded = include_bytes!("../../tests/trace/page.bin");
        let pages = recorded.chunks(layout().page_bytes());
        let events = pages.flat_map(|page| Page::parse(layout(), page).unwrap());
        let text = include_str!("../../tests/trace/page.txt");
        let found: Vec<(u64, bool)> = text
            .lines()
            .map(|line| {
                let (time, name) = line.split_once(": ").unwrap();
                let micros = time.replace('.', "").parse().unwrap();
                (micros, name.starts_with("sched_switch:"))
            })
            .collect();
        let read: Vec<(u64, bool)> = events
            .map(|event| {
                // The kernel's text rounds to the nearest.
                let id = u16::from_le_bytes([event.bytes[0], event.bytes[1]]);
                ((event.time + 500) / 1_000, id == 372)
            })
            .collect();
        assert_eq!(read, found);
        assert!(read.len() > 100);
    }

    /// Check short, long and absolute times, and those of discarded events.
    #[test]
    fn adds_times_up() {
        let word = |kind: u32, time: u32| kind | time << 5;
        let bytes = page(
            1_000,
            0,
            &[
                word(1, 5),
                0, // an event of a word, 5 later
                word(TIME_EXTEND, 1),
                2, // 1 + 2 << 27
                word(0, 1),
                8,
                0, // its length follows
                word(PADDING, 3),
                8,
                0,
                word(1, 0),
                0,
                word(TIME_STAMP, 7),
                32,
                word(1, 1),
                0,
            ],
        );
        let long = 1_005 + 1 + (2 << 27);
        assert_eq!(times(&bytes), [1_005, long + 1, long + 4, (32 << 27) + 8]);
    }

    /// Check that the missing bits of an absolute time are added.
    #[test]
    fn completes_absolute_times() {
        let begin = 3 << STAMP_BITS | 40;
        let bytes = page(begin, 0, &[TIME_STAMP | 50 << 5, 0, 1, 0]);
        assert_eq!(times(&bytes), [3 << STAMP_BITS | 50]);
        let begin = (4 << STAMP_BITS) - 1;
        let bytes = page(begin, 0, &[TIME_STAMP | 50 << 5, 0, 1, 0]);
        assert_eq!(times(&bytes), [4 << STAMP_BITS | 50]);
    }

    /// Check that a page reports overwritten events, with their number if it has that.
    #[test]
    fn tells_what_is_missing() {
        let missed = |flags| {
            let bytes = page(0, flags, &[1, 0]);
            Page::parse(layout(), &bytes).unwrap().missed
        };
        assert_eq!(missed(0), None);
        assert_eq!(missed(MISSED), Some(1));
        assert_eq!(missed(MISSED | MISSED_COUNTED), Some(0x0707_0707_0707_0707));
    }

    proptest! {
        /// Check that no bytes cause a panic or an endless loop.
        #[test]
        fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(page) = Page::parse(layout(), &bytes) {
                prop_assert!(page.count() <= bytes.len());
            }
        }

        /// Check the same of pages with a length.
        #[test]
        fn never_panics_in_a_page(
            begin: u64,
            flags in 0u64..4,
            words in prop::collection::vec(any::<u32>(), 0..60),
        ) {
            let bytes = page(begin, flags << 30, &words);
            prop_assert!(Page::parse(layout(), &bytes).unwrap().count() <= words.len());
        }
    }
}
