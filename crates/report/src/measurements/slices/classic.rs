//! The lines of `slices --classic`, in the format of the program of the 2009 report.

use std::fmt::Write;

use recording::Doubt;
use summary::{ClassicLine, SlicesSummary};

use crate::document::{Content, Document};
use crate::number;

/// The explanation below the columns.
const COLUMNS: &str = "\"avg slice\": mean of the processes' slices, each in whole milliseconds; \
    \"utime\": mean user time in microseconds, in whole ticks. \"exactly\": mean slice and mean CPU \
    time of a process, and the length of the sample.";

/// The lines that the 2009 report's program would have printed, with the exact numbers beside them.
pub fn slices_classic(summary: &SlicesSummary, reasons: &[Doubt]) -> Document {
    let mut lines = String::new();
    for line in &summary.classic {
        let ClassicLine { avg_slice_ms, utime_us, slice_ns, cpu_ns, wall_ns } = line;
        // Writing to a string cannot fail.
        let _ = writeln!(
            lines,
            "avg slice: {avg_slice_ms:5.2} utime: {utime_us:.6}   exactly {}, {} in {}",
            number::any(*slice_ns),
            number::duration(*cpu_ns),
            number::duration(*wall_ns),
        );
    }
    let mut document = Document::default();
    if !lines.is_empty() {
        document = document.add(Content::Verbatim(lines));
        document = document.add(COLUMNS);
    }
    document = document.doubts(reasons);
    document
}

#[cfg(test)]
mod tests {
    use crate::terminal::full_text;
    use insta::assert_snapshot;
    use recording::Recording;
    use summary::Summary;

    use super::slices_classic;
    use crate::example::{self, GUEST, MUTE};

    /// Check the 2009 report's columns; if the tick rate is unknown, there are none.
    #[test]
    fn classic() {
        let classic = |recording: &Recording| {
            let Summary::Slices(summary) = Summary::of(recording) else { panic!() };
            let document = slices_classic(&summary, &recording.doubts);
            full_text(&document)
        };
        assert_snapshot!(classic(&example::slices(GUEST, true)), @r#"
    avg slice:  0.00 utime: 16000.000000   exactly 1.02 ms, 18.6 ms in 150 ms
    avg slice:  1.00 utime: 20000.000000   exactly 1.02 ms, 18.6 ms in 150 ms
    avg slice:  0.25 utime: 17000.000000   exactly 1.02 ms, 18.6 ms in 150 ms

    "avg slice": mean of the processes' slices, each in whole milliseconds; "utime":
    mean user time in microseconds, in whole ticks. "exactly": mean slice and mean
    CPU time of a process, and the length of the sample.
    "#);
        assert_eq!(classic(&example::slices(MUTE, true)), "");
    }
}
