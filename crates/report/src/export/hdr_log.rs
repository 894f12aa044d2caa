//! Lengths as a log of HdrHistogram (format 1.3), for its plotters and `HistogramLogProcessor`.
//!
//! Values are nanoseconds with three significant digits, maxima milliseconds. The lengths of several
//! CPUs have tags; those of one have none, so that programs read them without an option.

use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use recording::Recording;
use summary::{LengthInterval, LengthLog};

/// The significant digits of values.
const DIGITS: u8 = 3;
/// Nanoseconds in the unit of maxima.
const DIVISOR: f64 = 1e6;

/// The lengths of a recording as a log.
///
/// # Errors
/// A histogram cannot be written.
pub fn hdr_log(recording: &Recording, log: &LengthLog) -> Result<String, String> {
    let kind = serde_json::to_value(log.kind).ok();
    let kind = kind.as_ref().and_then(|kind| kind.as_str()).unwrap_or_default();
    let only_cpu = log.only_cpu();
    let of_cpu = only_cpu.map_or(String::new(), |cpu| format!(" CPU{cpu}"));
    let began = recording.taken_seconds().and_then(|at| u64::try_from(at).ok());
    let began = began.map_or(SystemTime::UNIX_EPOCH, |at| {
        SystemTime::UNIX_EPOCH + Duration::from_secs(at)
    });
    let mut text = Vec::new();
    let mut serializer = V2DeflateSerializer::new();
    let failed = |why: &dyn std::fmt::Display| why.to_string();
    let mut writer = IntervalLogWriterBuilder::new()
        .add_comment(&format!("[Logged with {}]", recording.tool))
        .add_comment("[Histogram log format version 1.3]")
        .add_comment(&format!("[noisefloor: {kind}{of_cpu}]"))
        .with_start_time(began)
        .with_max_value_divisor(DIVISOR)
        .begin_log_with(&mut text, &mut serializer)
        .map_err(|why| failed(&why))?;
    for interval in &log.intervals {
        let tag = match (&interval.tag, interval.cpu) {
            (Some(tag), _) => Some(tag.clone()),
            (None, Some(cpu)) if only_cpu.is_none() => Some(format!("CPU{cpu}")),
            (None, _) => None,
        };
        let [start, length] = [interval.start_ns, interval.length_ns]
            .map(|it| Duration::from_nanos(it.get()));
        writer
            .write_histogram(
                &histogram(interval)?,
                start,
                length,
                tag.as_deref().and_then(Tag::new),
            )
            .map_err(|why| failed(&why))?;
    }
    String::from_utf8(text).map_err(|why| failed(&why))
}

fn histogram(interval: &LengthInterval) -> Result<Histogram<u64>, String> {
    let mut histogram = Histogram::new(DIGITS).map_err(|why| why.to_string())?;
    for (length, count) in &interval.lengths {
        histogram.record_n(length.get(), *count).map_err(|why| why.to_string())?;
    }
    Ok(histogram)
}

#[cfg(test)]
mod tests {
    use summary::NoLog;

    use super::*;
    use crate::example::{self, GUEST};

    /// Check the comments, and that the lengths of two CPUs have tags.
    #[test]
    fn comments_and_tags() {
        let text = |cpus| {
            let recording = example::noise(GUEST, cpus);
            hdr_log(&recording, &LengthLog::of(&recording).unwrap()).unwrap()
        };
        let two = text(2);
        assert!(two.starts_with("#[Logged with noisefloor"), "{two}");
        assert!(two.contains("#[noisefloor: gap]\n"), "{two}");
        assert!(two.contains("\nTag=CPU0,0.000,1.000,"), "{two}");
        assert!(two.contains("\nTag=CPU1,0.000,1.000,"), "{two}");
        let one = text(1);
        assert!(one.contains("#[noisefloor: gap CPU0]\n") && !one.contains("Tag="));
        let ticks = example::ticks(GUEST, 1, 1);
        assert_eq!(LengthLog::of(&ticks), Err(NoLog::OtherKind));
    }
}
