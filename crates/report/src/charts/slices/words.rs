//! The words of the picture of `slices`.

use facts::Facts;
use recording::{Policy, SlicesSpec};
use summary::{PictureStep, SlicesPicture, StepSlices};
use units::Nanos;

use crate::document::text::{Text, text};
use crate::measurements::scheduler;
use crate::measurements::ticks::words::{self as tick_words, cpus};
use crate::number;

/// The workload in a sentence.
pub(super) fn workload(spec: &SlicesSpec) -> Text {
    let count = |count: u32, thing| number::counted(count.into(), thing);
    let works = if spec.burst_ns.is_zero() {
        Text::default()
    } else {
        text!(", then {} of work", number::duration(spec.burst_ns))
    };
    let sleep = number::duration(spec.sleep_ns);
    let sleepers = match spec.sleepers {
        0 => Text::default(),
        many => text!(" and {} (asleep for {}{})", count(many, "sleeper"), sleep, works),
    };
    let policy = match spec.policy {
        Policy::Other => "",
        Policy::Batch => ", SCHED_BATCH",
    };
    let nice =
        if spec.nice == 0 { String::new() } else { format!(", nice {}", spec.nice) };
    let pinned = if spec.pinned { ", each pinned to one" } else { "" };
    text!(
        "{}{} on {}{}{}{}; each variant for {} in {}",
        count(spec.spinners, "spinner"),
        sleepers,
        cpus(&spec.cpus),
        pinned,
        policy,
        nice,
        number::duration(spec.duration_ns),
        count(spec.turns, "round"),
    )
}

/// The kernel and its tick.
pub(super) fn machine(facts: &Facts) -> Text {
    let release = facts.kernel.release.get();
    let release =
        release.map_or_else(|| "?".into(), |release| Text::name(release.to_string()));
    let tick = tick_words::rate(facts);
    let tick = tick.map(|rate| text!(", tick {}", rate));
    let scheduler = scheduler::name(facts).map(|name| text!(", scheduler {}", name));
    text!("Linux {}{}{}", release, tick, scheduler)
}

/// The figures of a variant, with their names; quantiles are unknown if nothing of it was traced.
pub(super) fn figures(results: &StepSlices, step: &PictureStep) -> Text {
    let traced = step.began.map(|_| results.slice_ns);
    let length = |length: Option<Option<Nanos>>| number::known(length.map(number::any));
    let mean = results.switches_hz.map(|_| results.slice_ns.mean);
    let figures = [
        ("mean slice", length(mean)),
        ("p50", length(traced.map(|traced| traced.p50))),
        ("p99", length(traced.map(|traced| traced.p99))),
        ("slices", number::known(results.switches_hz.map(number::rate))),
    ];
    Text::join(figures.map(|(name, figure)| text!("{} {}", name, figure)), ", ")
}

/// What the picture does not show.
pub(super) fn notes(picture: &SlicesPicture, shown: usize) -> Vec<Text> {
    let rows = picture.steps.iter().map(|step| step.rows.len());
    let hidden = rows.max().unwrap_or(0).saturating_sub(shown);
    let hidden = (hidden > 0).then(|| {
        let hidden = number::count(u64::try_from(hidden).unwrap_or(u64::MAX));
        text!(
            "{} more CPUs are not shown; their slices are included in the figures.",
            hidden
        )
    });
    let lost = (picture.lost > 0).then(|| {
        let lost = number::count(picture.lost);
        text!("The last {} stretches were lost: the buffer was full.", lost)
    });
    hidden.into_iter().chain(lost).collect()
}
