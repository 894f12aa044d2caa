//! The files that `jitter` writes for other programs: Intel TIF's list of tests, and percentiles
//! for the plotters of HdrHistogram.
//!
//! TIF's file has a line for each test: number and jitter, at least ten columns each
//! (`tif_jitter.c` of github.com/intel/tif). HdrHistogram's has the format of its
//! `outputPercentileDistribution`: 12 columns and three decimals for values.

use std::fmt::Write;

use recording::{JitterSeries, JitterSpec};
use summary::{Percentiles, jitters};

/// A line for each test: its number, counted from 1, and its jitter.
pub fn jitter_list(spec: &JitterSpec, series: &JitterSeries) -> String {
    let lines = (1_u64..).zip(jitters(spec, series));
    lines.map(|(test, jitter)| format!("{test:>10} {jitter:>10}\n")).collect()
}

/// The distribution of the tests' jitters, in HdrHistogram's percentile text.
pub fn jitter_hgrm(spec: &JitterSpec, series: &JitterSeries) -> String {
    hgrm(&Percentiles::of(jitters(spec, series)))
}

fn hgrm(percentiles: &Percentiles) -> String {
    let mut text = format!(
        "{:>12} {:>14} {:>10} {:>14}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    for line in &percentiles.lines {
        let (value, count, quantile) = (line.value, line.count, line.quantile);
        // Writing to a string cannot fail.
        let _ = write!(text, "{value:>8}.000 {quantile:.12} {count:>10}");
        if let Some(one_in) = line.one_in {
            let _ = write!(text, " {one_in:>14.2}");
        }
        text.push('\n');
    }
    let Percentiles { mean, deviation, max, count, places, .. } = percentiles;
    // The values are exact: one bucket with a sub-bucket for each value.
    let _ = write!(
        text,
        "#[Mean    = {mean:>12.3}, StdDeviation   = {deviation:>12.3}]\n\
         #[Max     = {max:>8}.000, Total count    = {count:>12}]\n\
         #[Buckets = {:>12}, SubBuckets     = {places:>12}]\n",
        1
    );
    text
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::Body;

    use super::*;
    use crate::example::{self, GUEST};

    /// Check the list of a few tests.
    #[test]
    fn one_line_per_test() {
        let mut recording = example::jitter(GUEST);
        let Body::Jitter { spec, series } = &mut recording.body else { panic!() };
        series.tests.truncate(3);
        let expected =
            "         1       3852\n         2      18116\n         3      32381\n";
        assert_eq!(jitter_list(spec, series), expected);
    }

    /// Check the percentiles of ten values.
    #[test]
    fn percentiles() {
        let values = vec![520, 530, 540, 550, 560, 570, 580, 590, 600, 2_848];
        assert_snapshot!(hgrm(&Percentiles::of(values)));
    }

    /// Check that the file is valid without values, too.
    #[test]
    fn no_values() {
        assert_snapshot!(hgrm(&Percentiles::of(Vec::new())), @r#"
           Value     Percentile TotalCount 1/(1-Percentile)

    #[Mean    =        0.000, StdDeviation   =        0.000]
    #[Max     =        0.000, Total count    =            0]
    #[Buckets =            1, SubBuckets     =            1]
    "#);
    }
}
