//! Histograms of the time slices of each variant of `slices`; if switches were not traced, bars
//! of the means only.
//!
//! All histograms have one scale and one logarithmic axis. Slices that were ended by a wake-up
//! have the colour of the marks of wake-ups.

use summary::{PictureStep, PictureSwitches, SliceBin, SlicesPicture};
use units::{Nanos, Ppm};

use crate::number;
use crate::picture::canvas::{Canvas, LEFT, PLOT, line, on_axis, rect};
use crate::text::layout::labels::cut_labels;

/// The height of a histogram.
const HEIGHT: f64 = 56.0;
/// The minimum height of a bar that is not empty.
const MIN_HEIGHT: f64 = 1.5;
/// The height of a mean's bar.
const BAR: f64 = 18.0;
/// The share of the width for the longest mean; the rest is for its text.
const MEAN_SHARE: f64 = 0.64;
/// The maximum length of the name of a variant.
const NAME: usize = 100;

/// Draws the histograms of all variants, and their axis.
pub(crate) fn histograms(canvas: &mut Canvas, picture: &SlicesPicture) {
    let most = picture.largest_share.map_or(0.0, Ppm::get);
    let traced = || {
        let steps = picture.steps.iter();
        steps.filter_map(|step| Some((step, step.switches.as_ref()?)))
    };
    let names = cut_labels(traced().map(|(step, _)| &step.text), NAME);
    canvas.text("part", LEFT, 14.0, "Lengths of all slices");
    key(canvas);
    canvas.move_down(28.0);
    let mut bins: &[SliceBin] = &[];
    for ((step, switches), name) in traced().zip(names) {
        let none = if switches.slices == 0 { ": no slice ended" } else { "" };
        canvas.text("small", LEFT, 10.0, &format!("{name}{none}"));
        canvas.move_down(15.0);
        histogram(canvas, step, switches, most);
        bins = &switches.bins;
    }
    axis(canvas, bins);
}

/// The key of the lines in histograms.
fn key(canvas: &mut Canvas) {
    let words = [
        ("mean", "mean", 62.0),
        ("p50", "median (p50)", 110.0),
        ("p99", "99th percentile (p99)", 0.0),
    ];
    let mut x = 480.0;
    for (class, words, width) in words {
        canvas.open_group(x);
        canvas.draw(line(class, 0.0, [2.0, 16.0]));
        canvas.close_group();
        canvas.text("small", x + 7.0, 13.0, words);
        x += width;
    }
}

fn histogram(
    canvas: &mut Canvas,
    step: &PictureStep,
    switches: &PictureSwitches,
    most: f64,
) {
    canvas.open_group(LEFT);
    let width = bin_width(&switches.bins);
    for (at, _) in decades(&switches.bins) {
        canvas.draw(line("grid", width * at as f64, [0.0, HEIGHT]));
    }
    for (at, bin) in switches.bins.iter().enumerate().filter(|(_, bin)| bin.slices > 0) {
        let height = |share: Option<Ppm>| match share.map_or(0.0, Ppm::get) {
            share if share > 0.0 && most > 0.0 => (HEIGHT * share / most).max(MIN_HEIGHT),
            _ => 0.0,
        };
        let (all, woken) = (height(bin.share), height(bin.woken));
        let (x, title) = (width * at as f64 + 0.5, title(bin));
        for (class, height) in [("bar", all), ("woken", woken)] {
            if height > 0.0 {
                let place = [x, HEIGHT - height, width - 1.0, height];
                canvas.draw(rect(class, place, Some(&title)));
            }
        }
    }
    canvas.draw(rect("base", [0.0, HEIGHT - 0.5, PLOT, 1.0], None));
    for (class, figure) in
        [("p50", switches.p50), ("p99", switches.p99), ("mean", step.mean)]
    {
        if let Some(x) = figure.and_then(|length| place(&switches.bins, length)) {
            canvas.draw(line(
                class,
                x,
                [if class == "mean" { 4.0 } else { 0.0 }, HEIGHT],
            ));
        }
    }
    canvas.close_group();
    canvas.move_down(HEIGHT + 6.0);
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
    format!("{length}: {share} of all slices; {woken} were ended by a wake-up")
}

fn bin_width(bins: &[SliceBin]) -> f64 {
    PLOT / (bins.len().max(1)) as f64
}

/// The bins that begin at a power of ten, and their beginnings.
fn decades(bins: &[SliceBin]) -> impl Iterator<Item = (usize, Nanos)> {
    let is_decade = |from: Nanos| (1..19).any(|tens| from.get() == 10_u64.pow(tens));
    let edges = bins.iter().map(|bin| bin.from).enumerate();
    edges.filter(move |(_, from)| is_decade(*from))
}

fn axis(canvas: &mut Canvas, bins: &[SliceBin]) {
    let width = bin_width(bins);
    for (at, from) in decades(bins) {
        let x = LEFT + width * at as f64;
        canvas.text("axis", x, 7.0, &number::duration(from));
    }
    canvas.move_down(14.0);
}

/// The position of a length on the logarithmic axis, interpolated in its bin.
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

/// Draws the mean of each variant as a bar.
pub(crate) fn means(canvas: &mut Canvas, picture: &SlicesPicture) {
    let longest = picture.longest_mean.unwrap_or(Nanos::ZERO);
    let names = cut_labels(picture.steps.iter().map(|step| &step.text), NAME);
    for (step, name) in picture.steps.iter().zip(names) {
        canvas.text("step", LEFT, 12.0, &name);
        canvas.move_down(18.0);
        let width = step.mean.map_or(0.0, |mean| on_axis(mean, longest) * MEAN_SHARE);
        canvas.open_group(LEFT);
        if step.mean.is_some() {
            canvas.draw(rect("bar", [0.0, 0.0, width.max(MIN_HEIGHT), BAR], None));
        }
        canvas.close_group();
        let words = match (step.mean, step.slices_hz) {
            (Some(mean), rate) => format!(
                "{} on average, {} slices per second",
                number::duration(mean),
                number::known(rate, number::bare_rate)
            ),
            (None, Some(_)) => "no slice ended".to_owned(),
            (None, None) => "not measured".to_owned(),
        };
        canvas.text("figures", LEFT + width + 8.0, BAR - 5.0, &words);
        canvas.move_down(BAR + 14.0);
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

    /// Check that positions are interpolated by the logarithm, and that they are in the middle
    /// of a bin without an end.
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

    /// Check the tool-tips of bars.
    #[test]
    fn titles() {
        let found = bins().map(|bin| title(&bin));
        let rest = "33.3 % of all slices; 0 % were ended by a wake-up";
        let lengths = ["below 10 µs", "10 µs to 1 ms", "1 ms and more"];
        assert_eq!(found, lengths.map(|length| format!("{length}: {rest}")));
    }
}
