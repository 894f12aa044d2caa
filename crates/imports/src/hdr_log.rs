//! Logs of HdrHistogram (version 1.1 to 1.3), such as those of jHiccup.
//!
//! Values are taken as nanoseconds, as jHiccup records them: the time by which a thread woke up later
//! than it asked for, less the shortest such time, with the wake-ups that it missed meanwhile. A log
//! that noisefloor has written names the kind of its values in a comment, and CPUs in tags.

use std::io::Read;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogHistogram, IntervalLogIterator, LogEntry, LogIteratorError,
};
use jiff::{SignedDuration, Timestamp};
use recording::{Bin, BinnedInterval, ImportedLengths, Kind, LengthKind};
use units::{Cpu, Nanos};

use crate::import::{Failure, Import, corrupt, truncated};

/// The largest histogram, in bytes: one of all lengths with three digits has 0.5 MB.
const HISTOGRAM_MAX: u64 = 2 << 20;
/// The most bins of a log: 24 bytes of memory each. A day of seconds has about 3 million.
const BINS_MAX: usize = 16 << 20;
/// How histograms begin: plain and compressed, both of version 2 (`EncodableHistogram` in Java).
const COOKIES: [u32; 2] = [0x1c84_9313, 0x1c84_9314];
/// The bytes of a plain histogram before its counts.
const HEAD: usize = 40;
/// How many tags are named in a doubt.
const TAGS_SHOWN: usize = 5;
/// Earlier beginnings than this many seconds are relative to the beginning of the log.
const YEAR: u64 = 365 * 24 * 3600;

pub(crate) fn parse(text: &str) -> Result<Import, Failure> {
    let mut log = Log::default();
    for entry in IntervalLogIterator::new(text.as_bytes()) {
        match entry {
            Ok(LogEntry::StartTime(time) | LogEntry::BaseTime(time)) => {
                log.began.get_or_insert(time);
            }
            Ok(LogEntry::Interval(interval)) => log.add(&interval)?,
            Err(LogIteratorError::ParseError { offset }) => {
                return Err(unparsed(text, offset));
            }
        }
    }
    if log.lengths.is_empty() {
        return Err(truncated("has no interval"));
    }
    let comments = || text.lines().filter(|line| line.starts_with('#'));
    let own = comments().find_map(own_kind);
    let writer = comments().find_map(|line| {
        let (_, rest) = line.split_once("[Logged with ")?;
        Some(rest.trim_end_matches(']').replace(" version ", " "))
    });
    let is_jhiccup = writer.as_ref().is_some_and(|name| name.starts_with("jHiccup"));
    let of_other = if is_jhiccup { LengthKind::WakeupLatency } else { LengthKind::Value };
    let (kind, cpu) = own.unwrap_or((of_other, None));
    let tool = writer.unwrap_or_else(|| "HdrHistogram".to_owned());
    Ok(log.import(tool, kind, cpu))
}

/// The kind of values, and their only CPU, in a comment of noisefloor: `[noisefloor: gap CPU1]`.
fn own_kind(comment: &str) -> Option<(LengthKind, Option<Cpu>)> {
    let (_, rest) = comment.split_once("[noisefloor: ")?;
    let mut words = rest.trim_end_matches(']').split(' ');
    let kind = serde_json::from_value(words.next()?.into()).ok()?;
    Some((kind, words.next().and_then(cpu_of)))
}

/// A line that is no interval: the last one may be cut off.
fn unparsed(text: &str, offset: usize) -> Failure {
    let line = text.get(..offset).map_or(0, |before| before.lines().count()) + 1;
    let rest = text.get(offset..).unwrap_or_default();
    match rest.contains('\n') {
        true => corrupt(format!("line {line} is not an interval of a histogram log")),
        false => truncated(format!("ends in the middle of line {line}: truncated")),
    }
}

/// The intervals of a log, by tag.
#[derive(Default)]
struct Log {
    began: Option<Duration>,
    first: Option<Duration>,
    /// The number of bins so far.
    bins: usize,
    lengths: Vec<(Option<String>, Vec<BinnedInterval>)>,
}

impl Log {
    fn add(&mut self, interval: &IntervalLogHistogram<'_>) -> Result<(), Failure> {
        let start = interval.start_timestamp();
        let first = *self.first.get_or_insert(start);
        let histogram = histogram(interval.encoded_histogram())?;
        let bins = histogram.iter_recorded().map(|step| {
            let value = step.value_iterated_to();
            let from_ns = Nanos::from_nanos(histogram.lowest_equivalent(value));
            let until_ns =
                Nanos::from_nanos(histogram.highest_equivalent(value).saturating_add(1));
            Bin { from_ns, until_ns, count: step.count_at_value() }
        });
        let bins: Vec<Bin> = bins.take(BINS_MAX).collect();
        self.bins += bins.len();
        if self.bins >= BINS_MAX {
            return Err(corrupt(format!(
                "a log of more than {BINS_MAX} different lengths"
            )));
        }
        let (start_ns, length_ns) =
            (nanos(start.saturating_sub(first)), nanos(interval.duration()));
        let own = BinnedInterval { start_ns, length_ns, bins };
        let tag = interval.tag().map(|tag| tag.as_str().to_owned());
        match self.lengths.iter_mut().find(|(known, _)| *known == tag) {
            Some((_, intervals)) => intervals.push(own),
            None => self.lengths.push((tag, vec![own])),
        }
        Ok(())
    }

    /// `only` is the CPU of intervals without a tag.
    fn import(self, tool: String, kind: LengthKind, only: Option<Cpu>) -> Import {
        let began = self.began.or(self.first.filter(|first| first.as_secs() > YEAR));
        let began = began.and_then(|began| SignedDuration::try_from(began).ok());
        let taken = began.and_then(|began| Timestamp::from_duration(began).ok());
        let mut tags = Vec::new();
        let lengths = self.lengths.into_iter().map(|(tag, intervals)| {
            let cpu = tag.as_deref().map_or(only, cpu_of);
            let tag = tag.filter(|_| cpu.is_none());
            tags.extend(tag.clone());
            ImportedLengths { tag, intervals, ..ImportedLengths::new(kind, cpu) }
        });
        let lengths = lengths.collect();
        let mut import = Import { taken, ..Import::by(tool, lengths) };
        if !tags.is_empty() {
            let more = if tags.len() > TAGS_SHOWN { ", ..." } else { "" };
            tags.truncate(TAGS_SHOWN);
            let tags = tags.join(", ");
            import.doubt(format!("histograms with a tag are not compared: {tags}{more}"));
        }
        import
    }
}

/// The CPU that a tag of noisefloor names: `CPU3`.
fn cpu_of(tag: &str) -> Option<Cpu> {
    tag.strip_prefix("CPU")?.parse().ok().map(Cpu::new)
}

fn nanos(time: Duration) -> Nanos {
    Nanos::from_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// A histogram, decoded. Its size is checked first: the decoder would allocate what its head says.
fn histogram(encoded: &str) -> Result<Histogram<u64>, Failure> {
    let bytes = STANDARD.decode(encoded);
    let bytes = bytes.map_err(|why| corrupt(format!("a histogram: {why}")))?;
    let few = || truncated("a histogram of a few bytes");
    let word = |bytes: &[u8], at: usize| {
        let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
        word.map(u32::from_be_bytes).ok_or_else(few)
    };
    let plain = match word(&bytes, 0)? {
        cookie if cookie == COOKIES[1] => {
            let mut plain = Vec::new();
            let compressed = bytes.get(8..).ok_or_else(few)?;
            let inflated =
                ZlibDecoder::new(compressed).take(HISTOGRAM_MAX).read_to_end(&mut plain);
            inflated.map_err(|why| corrupt(format!("a compressed histogram: {why}")))?;
            plain
        }
        cookie if cookie == COOKIES[0] => bytes,
        cookie => {
            let text = format!("a histogram of an unknown version (cookie {cookie:#x})");
            return Err((Kind::Newer, text));
        }
    };
    let length = word(&plain, 4)?;
    if u64::from(length) > plain.len().saturating_sub(HEAD) as u64 {
        return Err(truncated("a histogram that is cut off"));
    }
    let read = Deserializer::new().deserialize(&mut plain.as_slice());
    read.map_err(|why| corrupt(format!("a histogram: {why}")))
}
