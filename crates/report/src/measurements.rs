//! The reports of recordings: a builder for each kind of measurement.

pub(crate) mod benchmarks;
pub(crate) mod calls;
pub(crate) mod check;
pub(crate) mod guests;
pub(crate) mod hardware;
pub(crate) mod imported;
pub(crate) mod jitter;
pub(crate) mod latency;
pub(crate) mod moments;
pub(crate) mod nohz;
pub(crate) mod noise;
pub(crate) mod program;
pub(crate) mod run;
pub(crate) mod scale;
pub(crate) mod scheduler;
pub(crate) mod slices;
pub(crate) mod ticks;
pub(crate) mod top;
pub(crate) mod wakers;
pub(crate) mod watch;
pub(crate) mod worst;

use recording::{Body, Recording};
use summary::Summary;

use crate::document::Document;

/// The report of a recording with this summary.
pub fn recording_document(recording: &Recording, summary: &Summary) -> Document {
    /// The summary as one of that kind; that of another recording is replaced.
    macro_rules! own {
        ($kind:ident) => {{
            let Summary::$kind(own) = summary else {
                debug_assert!(false, "the summary is that of another recording");
                return recording_document(recording, &Summary::of(recording));
            };
            own
        }};
    }
    let facts = &recording.facts;
    let document = match &recording.body {
        Body::Ticks { spec, series } => ticks::ticks(facts, spec, series, own!(Ticks)),
        Body::Check { spec, series } => {
            check::check(recording, spec, series, own!(Check))
        }
        Body::Noise { spec, series } => {
            let timers = noise::timers::timers(own!(Noise), facts);
            noise::noise(spec, series, own!(Noise)).add(timers)
        }
        Body::Calls { series, .. } => calls::calls(series, own!(Calls)),
        Body::Latency { spec, series } => {
            latency::latency(facts, spec, series.source, own!(Latency))
        }
        Body::Run { spec, series } => run::run(spec, series, own!(Run)),
        Body::Wakers { spec, .. } => wakers::wakers(spec, own!(Wakers)),
        Body::Watch { spec, .. } => watch::watch(spec, own!(Watch)),
        Body::Top { .. } => top::top(own!(Top)),
        Body::NohzTest { .. } => nohz::nohz_test(own!(NohzTest)),
        Body::NohzStress { .. } => nohz::nohz_stress(own!(NohzStress)),
        Body::Jitter { spec, series } => {
            jitter::jitter(facts, spec, series, own!(Jitter))
        }
        Body::Slices { spec, series } => {
            slices::slices(facts, spec, series, own!(Slices))
        }
        Body::Guests { spec, .. } => guests::guests(spec, own!(Guests)),
        Body::Program { .. } => program::program(own!(Program)),
        Body::Scale { spec, .. } => scale::scale(spec, own!(Scale)),
        Body::Imported { spec, series } => {
            imported::imported(recording, spec, series, own!(Imported))
        }
        Body::Benchmarks { spec, series } => {
            benchmarks::benchmarks(recording, spec, series, own!(Benchmarks))
        }
    };
    let document = document.add(moments::moments(recording));
    let document = document.add_full(hardware::hardware(recording));
    let doubts = Document::default().doubts(&recording.doubts);
    // The screen of `check` has them in one line.
    let is_check = matches!(recording.body, Body::Check { .. });
    let document =
        if is_check { document.add_full(doubts) } else { document.add(doubts) };
    document.titled(format!("noisefloor {}, {}", recording.body.kind(), recording.taken))
}

/// The report of a recording, for tests.
#[cfg(test)]
pub(crate) fn text_of(recording: &Recording) -> String {
    crate::terminal::full_text(&recording_document(recording, &Summary::of(recording)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{Content, Importance};
    use crate::example::{self, GUEST, METAL, MUTE, latency as latency_example};
    use crate::terminal::full_text;
    use crate::terminal::paragraph::folded_text;
    use crate::terminal::width::{folded, set_width};

    fn all() -> Vec<Recording> {
        let and_wide = |one: Recording| [one.clone(), example::wide(one)];
        let mut all = Vec::new();
        for (groups, counts) in [(GUEST, &[1, 5, 12][..]), (METAL, &[8]), (MUTE, &[1])] {
            for &count in counts {
                all.push(example::ticks(groups, count, 2));
                all.push(example::noise(groups, count));
                all.push(example::check(groups, count));
                all.push(example::blamed(example::noise(groups, count)));
                all.push(example::blamed(example::check(groups, count)));
                all.push(example::blamed(example::wide(example::noise(groups, count))));
                all.push(example::quiet(example::noise(groups, count)));
                all.push(example::quiet(example::check(groups, count)));
                all.push(example::wide(example::noise(groups, count)));
                all.push(example::wide(example::check(groups, count)));
            }
        }
        all.push(example::calls(GUEST));
        all.push(latency_example::latency(GUEST, 30));
        all.extend([GUEST, METAL].map(example::run));
        all.push(example::wide(latency_example::latency(GUEST, 101)));
        all.extend(and_wide(example::wakers(GUEST, 20)));
        all.extend(and_wide(example::guests(GUEST, 2)));
        all.extend([example::watch::watch(GUEST), example::watch::counted(METAL)]);
        all.extend(and_wide(example::jitter(GUEST)));
        all.extend([example::slices(GUEST, true), example::slices(METAL, false)]);
        all.extend(and_wide(example::slices_placed(GUEST)));
        all.push(example::ticks(GUEST, 101, 2));
        all.push(example::wide(example::noise(GUEST, 101)));
        all.push(example::check(GUEST, 101));
        all
    }

    /// Check that legends on the screen have at most two lines.
    #[test]
    fn short_legends() {
        for recording in all() {
            let document = recording_document(&recording, &Summary::of(&recording));
            for content in document.shown(Importance::Screen) {
                let Content::Table(table) = content else { continue };
                let legend = folded_text("", &table.legend);
                assert!(legend.lines().count() <= 2, "{legend}");
            }
        }
    }

    /// Check that no report is wider than the terminal or has trailing spaces, with one CPU or 101,
    /// with wide numbers, and for a machine without known facts; and that a narrow one has the same
    /// words.
    #[test]
    fn fits_the_terminal() {
        let pages = || {
            [GUEST, METAL, MUTE]
                .map(|groups| full_text(&crate::facts_document(&example::facts(groups))))
        };
        for columns in [80, 40] {
            set_width(columns);
            for text in all().iter().map(text_of).chain(pages()) {
                let text = folded(&text);
                for line in text.lines() {
                    assert!(line.chars().count() <= columns, "{line}");
                    assert_eq!(line.trim_end(), line);
                }
            }
        }
    }
}
