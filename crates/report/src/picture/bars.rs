//! How long the slices of each step of `slices` were: histograms on one axis, so that steps can
//! be compared; where nobody watched the switches the means alone, as bars.
//!
//! The axis is logarithmic, and all histograms have one scale. What somebody who woke up ended
//! has the colour of those who wake up.

use stats::{PictureStep, PictureSwitches, SliceBin, SlicesPicture};
use units::{Nanos, Ppm};

use crate::number;
use crate::picture::sheet::{LEFT, PLOT, Sheet, line, on_axis, rect};
use crate::text::layout::table::cut;

/// The height of a histogram.
const HEIGHT: f64 = 56.0;
/// The least height of a bar of which there is something.
const LEAST: f64 = 1.5;
/// The height of a mean's bar.
const BAR: f64 = 18.0;
/// How much of the width the longest mean has; the rest is for what it says.
const LONGEST: f64 = 0.64;
/// The longest name of a step that fits.
const NAME: usize = 100;

/// Draws the histograms of all steps, and their axis.
pub(crate) fn histograms(sheet: &mut Sheet, picture: &SlicesPicture) {
    let most = picture.largest_share.map_or(0.0, Ppm::get);
    let watched =
        picture.steps.iter().filter_map(|step| Some((step, step.switches.as_ref()?)));
    sheet.text("part", LEFT, 14.0, "All slices, by how long they were");
    key(sheet);
    sheet.down(28.0);
    let mut bins: &[SliceBin] = &[];
    for (step, seen) in watched {
        let none = if seen.slices == 0 { ": no slice was seen to end" } else { "" };
        sheet.text("small", LEFT, 10.0, &format!("{}{none}", cut(&step.text, NAME)));
        sheet.down(15.0);
        histogram(sheet, step, seen, most);
        bins = &seen.bins;
    }
    axis(sheet, bins);
}

/// What the lines in histograms are.
fn key(sheet: &mut Sheet) {
    let words = [
        ("mean", "mean", 62.0),
        ("p50", "half are not longer (p50)", 190.0),
        ("p99", "99 of 100 are not longer (p99)", 0.0),
    ];
    let mut x = 480.0;
    for (class, words, width) in words {
        sheet.open(x);
        sheet.put(line(class, 0.0, [2.0, 16.0]));
        sheet.close();
        sheet.text("small", x + 7.0, 13.0, words);
        x += width;
    }
}

fn histogram(sheet: &mut Sheet, step: &PictureStep, seen: &PictureSwitches, most: f64) {
    sheet.open(LEFT);
    let width = bin_width(&seen.bins);
    for (at, _) in decades(&seen.bins) {
        sheet.put(line("grid", width * at as f64, [0.0, HEIGHT]));
    }
    for (at, bin) in seen.bins.iter().enumerate().filter(|(_, bin)| bin.slices > 0) {
        let height = |share: Option<Ppm>| match share.map_or(0.0, Ppm::get) {
            share if share > 0.0 && most > 0.0 => (HEIGHT * share / most).max(LEAST),
            _ => 0.0,
        };
        let (all, woken) = (height(bin.share), height(bin.woken));
        let (x, title) = (width * at as f64 + 0.5, title(bin));
        for (class, height) in [("bar", all), ("woken", woken)] {
            if height > 0.0 {
                let place = [x, HEIGHT - height, width - 1.0, height];
                sheet.put(rect(class, place, Some(&title)));
            }
        }
    }
    sheet.put(rect("base", [0.0, HEIGHT - 0.5, PLOT, 1.0], None));
    for (class, figure) in [("p50", seen.p50), ("p99", seen.p99), ("mean", step.mean)] {
        if let Some(x) = figure.and_then(|length| place(&seen.bins, length)) {
            sheet.put(line(class, x, [if class == "mean" { 4.0 } else { 0.0 }, HEIGHT]));
        }
    }
    sheet.close();
    sheet.down(HEIGHT + 6.0);
}

fn title(bin: &SliceBin) -> String {
    let [from, below] = [bin.from, bin.below].map(number::duration);
    let length = match (bin.from, bin.below) {
        (Nanos::ZERO, _) => format!("below {below}"),
        (_, Nanos::MAX) => format!("{from} and more"),
        _ => format!("{from} to {below}"),
    };
    let shares = [bin.share, bin.woken].map(|share| number::any(share, number::share));
    let [share, woken] = shares;
    format!("{length}: {share} of all slices; {woken} were ended by a task that woke up")
}

fn bin_width(bins: &[SliceBin]) -> f64 {
    PLOT / (bins.len().max(1)) as f64
}

/// The bins that begin with a one and zeros, and where they begin.
fn decades(bins: &[SliceBin]) -> impl Iterator<Item = (usize, Nanos)> {
    let is_decade = |from: Nanos| (1..19).any(|tens| from.get() == 10_u64.pow(tens));
    let edges = bins.iter().map(|bin| bin.from).enumerate();
    edges.filter(move |(_, from)| is_decade(*from))
}

fn axis(sheet: &mut Sheet, bins: &[SliceBin]) {
    let width = bin_width(bins);
    for (at, from) in decades(bins) {
        let x = LEFT + width * at as f64;
        sheet.text("axis", x, 7.0, &number::duration(from));
    }
    sheet.down(14.0);
}

/// Where a length is on the logarithmic axis: in its bin, as far as it is from the bin's edges.
fn place(bins: &[SliceBin], length: Nanos) -> Option<f64> {
    let at =
        bins.iter().position(|bin| length < bin.below).or(bins.len().checked_sub(1))?;
    let bin = bins.get(at)?;
    let logarithm = |time: Nanos| time.as_secs_f64().ln();
    let is_open = bin.from.is_zero() || bin.below == Nanos::MAX;
    let part = if is_open {
        0.5
    } else {
        let whole = logarithm(bin.below) - logarithm(bin.from);
        (logarithm(length) - logarithm(bin.from)) / whole
    };
    Some(bin_width(bins) * (at as f64 + part))
}

/// Draws the mean of each step as a bar.
pub(crate) fn means(sheet: &mut Sheet, picture: &SlicesPicture) {
    let longest = picture.longest_mean.unwrap_or(Nanos::ZERO);
    for step in &picture.steps {
        sheet.text("step", LEFT, 12.0, &cut(&step.text, NAME));
        sheet.down(18.0);
        let width = step.mean.map_or(0.0, |mean| on_axis(mean, longest) * LONGEST);
        sheet.open(LEFT);
        if step.mean.is_some() {
            sheet.put(rect("bar", [0.0, 0.0, width.max(LEAST), BAR], None));
        }
        sheet.close();
        let words = match (step.mean, step.slices_hz) {
            (Some(mean), rate) => format!(
                "{} on average, {} slices a second",
                number::duration(mean),
                number::known(rate, number::bare_rate)
            ),
            (None, Some(_)) => "no slice ended".to_owned(),
            (None, None) => "not measured".to_owned(),
        };
        sheet.text("figures", LEFT + width + 8.0, BAR - 5.0, &words);
        sheet.down(BAR + 14.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bins() -> [SliceBin; 3] {
        let bin = |from, below| SliceBin {
            from: Nanos::from_micros(from),
            below,
            slices: 1,
            share: Some(Ppm::new(333_333.0)),
            woken: Some(Ppm::new(0.0)),
        };
        let edges = [10, 1_000].map(Nanos::from_micros);
        [bin(0, edges[0]), bin(10, edges[1]), bin(1_000, Nanos::MAX)]
    }

    /// Check where lengths are on the axis: by their logarithm, and in the middle of a bin that
    /// has no end.
    #[test]
    fn places() {
        let at = |micros| place(&bins(), Nanos::from_micros(micros)).unwrap() / PLOT;
        for (micros, expected) in
            [(0, 0.5), (10, 1.0), (100, 1.5), (1_000, 2.5), (1 << 40, 2.5)]
        {
            assert!((at(micros) - expected / 3.0).abs() < 1e-9, "{micros}");
        }
        assert_eq!(place(&[], Nanos::ZERO), None);
    }

    /// Check what a bar tells.
    #[test]
    fn titles() {
        let told = bins().map(|bin| title(&bin));
        let rest = "33.3 % of all slices; 0 % were ended by a task that woke up";
        let lengths = ["below 10 µs", "10 µs to 1 ms", "1 ms and more"];
        assert_eq!(told, lengths.map(|length| format!("{length}: {rest}")));
    }
}
