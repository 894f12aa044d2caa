//! Where tasks that woke up were placed in virtual time, by variant: the reason why they preempted or did
//! not, and what the preempted tasks lost of their slices.

use summary::{PlacementsSummary, SliceLoss, StepSlices, TaskLoss};
use units::Nanos;

use crate::document::Document;
use crate::document::table::{Column, Table, cells};
use crate::document::text::{Text, text};
use crate::measurements::slices::widths::{PROCESS, VARIANT};
use crate::number::{self, duration, signed_duration};

/// The most rows of the preempted tasks of a variant, and of those that preempted them.
const ROWS: usize = 16;
const LEGEND: &str = "\"ahead\": how far the task was placed before the running one in virtual time, \
    median and range; \"lost\": mean rest of a preempted slice.";

/// A variant: its name, and its wake-ups.
type Variant<'a> = (Text, &'a PlacementsSummary);

/// Nothing if placements were not stored. `lost` is the number of wake-ups that were not stored.
pub(super) fn placements(
    variants: &[(Text, &StepSlices)],
    lost: Option<u64>,
) -> Document {
    let all: Vec<Variant<'_>> = variants
        .iter()
        .filter_map(|(name, of)| Some((name.clone(), of.placements.as_deref()?)))
        .collect();
    if all.is_empty() {
        return Document::default();
    }
    let sentences = all.iter().map(|(name, of)| match all.len() {
        1 => text!("With {} settings, {}", name.clone(), sentence(of)),
        _ => text!("{}: {}", name.clone(), sentence(of)),
    });
    let lost = lost.filter(|lost| *lost > 0).map(|lost| {
        text!("The last {} wake-ups are not included: the buffer was full.", lost)
    });
    let part = Document::from(table(&all).legend(LEGEND)).lines(sentences).add(lost);
    Document::section("Where tasks that woke up were placed", part)
        .add_full(Document::section("Who lost how much of its slices", victims(&all)))
        .add_full(Document::section("To which tasks that woke up", by(&all)))
        .add_full(Document::section("The largest losses", largest(&all)))
}

fn table(all: &[Variant<'_>]) -> Table {
    let mut table = Table::of(all)
        .column(Column::name("", VARIANT), |(name, _)| name.clone())
        .number("wake-ups", |(_, of)| of.wakeups)
        .number("preempt", |(_, of)| number::any(of.preempting_ppm))
        .number("ahead", |(_, of)| number::any(of.ahead_ns.p50.map(signed_duration)))
        .number("range", |(_, of)| number::any(range(of)));
    if all.iter().any(|(_, of)| of.granularity_ns.is_some()) {
        table = table.number("needed", |(_, of)| number::known(of.granularity_ns));
    }
    table.number("lost", |(_, of)| number::any(of.lost_ns_mean)).table
}

/// The smallest and the largest distance; a common unit is written once.
fn range(of: &PlacementsSummary) -> Option<Text> {
    let [least, most] = [of.ahead_ns.min?, of.ahead_ns.max?].map(signed_duration);
    let number = |text: &Text| {
        let text = text.to_string();
        text.split_once(' ').map(|(number, unit)| (number.to_owned(), unit.to_owned()))
    };
    Some(match (number(&least), number(&most)) {
        _ if least == most => most,
        (Some((least, of_least)), Some((_, unit)))
            if of_least == unit || least == "0" =>
        {
            Text::number(format!("{least} to {most}"))
        }
        _ => text!("{} to {}", least, most),
    })
}

/// How far ahead tasks were placed, whether that is enough to preempt, and how many did.
fn sentence(of: &PlacementsSummary) -> Text {
    let (Some(least), Some(middle), Some(most)) =
        (of.ahead_ns.min, of.ahead_ns.p50, of.ahead_ns.max)
    else {
        return "no task woke up while another one ran.".into();
    };
    let needed = of.granularity_ns.map_or(0, |needed| i128::from(needed.get()));
    let is_far = i128::from(least) > needed;
    let (words, ahead) = match most {
        _ if is_far => ("each wake-up is placed at least {} {} the running task", least),
        ..0 => ("each wake-up is placed at least {} {} the running task", most),
        _ if most > 0 && i128::from(most) <= needed => {
            ("no wake-up is placed more than {} {} the running task", most)
        }
        _ => ("half of the wake-ups are placed {} or more {} the running task", middle),
    };
    let is_rare = of.preempting_ppm.is_some_and(|part| part.get() < 5e5);
    let is_enough = i128::from(middle) > needed;
    let enough = of.granularity_ns.map(|needed| match (is_enough, is_rare) {
        (true, true) => text!(", and {} would be enough", needed),
        (true, false) => text!(", and {} are enough", needed),
        (false, _) => text!(", and {} are needed", needed),
    });
    let side: Text = if ahead < 0 { "behind" } else { "before" }.into();
    let size = duration(Nanos::from_nanos(ahead.unsigned_abs()));
    text!("{}{}: {} preempted it.", Text::of(words, [size, side]), enough, part(of))
}

/// How many of the wake-ups preempted.
fn part(of: &PlacementsSummary) -> Text {
    match of.preempting_ppm {
        _ if of.preemptions == 0 => "none".into(),
        _ if of.preemptions == of.wakeups => "all of them".into(),
        share => text!("{} of all wake-ups", number::known(share)),
    }
}

/// Who was preempted, by variant.
fn victims(all: &[Variant<'_>]) -> Table {
    losses(all, "preempted", |of| &of.victims)
}

/// The tasks that preempted them, by variant.
fn by(all: &[Variant<'_>]) -> Table {
    losses(all, "preempted others", |of| &of.by)
}

fn losses(
    all: &[Variant<'_>],
    count: &str,
    of: fn(&PlacementsSummary) -> &Vec<TaskLoss>,
) -> Table {
    let mut table = Table::new([
        Column::group("", VARIANT),
        Column::name("process", PROCESS),
        Column::number(count),
        Column::number("lost"),
        Column::number("mean"),
    ]);
    for (name, variant) in all {
        for loss in of(variant).iter().take(ROWS) {
            table.row(cells![
                name.clone(),
                task(loss.name.as_deref()),
                loss.preemptions,
                loss.lost_ns,
                number::any(loss.lost_ns_mean),
            ]);
        }
    }
    let more = all.iter().map(|(_, variant)| of(variant).len().saturating_sub(ROWS));
    table.rest(number::more(more.sum(), "more with smaller losses"))
}

/// The largest losses of all variants.
fn largest(all: &[Variant<'_>]) -> Table {
    let mut table = Table::new([
        Column::group("", VARIANT),
        Column::number("at"),
        Column::number("CPU"),
        Column::name("process", PROCESS),
        Column::number("lost"),
        Column::name("to", PROCESS),
        Column::number("ahead"),
    ]);
    for (name, variant) in all {
        for SliceLoss { at_ns, cpu, name: victim, by, ahead_ns, lost_ns } in
            &variant.largest
        {
            table.row(cells![
                name.clone(),
                *at_ns,
                *cpu,
                task(victim.as_deref()),
                *lost_ns,
                task(by.as_deref()),
                signed_duration(*ahead_ns),
            ]);
        }
    }
    table
}

/// The name of a task; others than the measured ones have none.
fn task(name: Option<&str>) -> Text {
    name.map_or_else(|| "another task".into(), Text::name)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use stats::Distribution;

    use super::*;
    use crate::example::{self, GUEST};
    use crate::measurements::text_of;

    /// Check the whole report of a simulation with placements: far ahead with unmodified settings, not far
    /// enough with the variant.
    #[test]
    fn placed() {
        assert_snapshot!(text_of(&example::slices_placed(GUEST)));
    }

    /// Check that a range has its unit once if both ends have the same.
    #[test]
    fn ranges() {
        let of = |min, max| {
            let ahead_ns =
                Distribution { min: Some(min), max: Some(max), ..Default::default() };
            range(&PlacementsSummary { ahead_ns, ..summary() }).unwrap().to_string()
        };
        assert_eq!(of(-200_000, 800_000), "-200 to 800 µs");
        assert_eq!(of(0, 1_047_223), "0 to 1.05 ms");
        assert_eq!(of(5, 3_000_000), "5 ns to 3 ms");
        assert_eq!(of(3_000_000, 3_000_000), "3 ms");
    }

    /// Eight wake-ups.
    fn summary() -> PlacementsSummary {
        PlacementsSummary {
            wakeups: 8,
            preemptions: 0,
            preempting_ppm: None,
            ahead_ns: Distribution::default(),
            ahead_of_average_ns: Distribution::default(),
            granularity_ns: None,
            lost_ns: Nanos::ZERO,
            lost_ns_mean: None,
            victims: Vec::new(),
            by: Vec::new(),
            largest: Vec::new(),
        }
    }

    /// Check the sentence for all relations of distance, granularity, and preemptions.
    #[test]
    fn sentences() {
        let of = |ahead: [i64; 3], granularity_ms: Option<u64>, preemptions| {
            let [min, p50, max] = ahead.map(|ms| Some(ms * 1_000_000));
            let share = preemptions as f64 / 8.0 * 1e6;
            sentence(&PlacementsSummary {
                preemptions,
                preempting_ppm: Some(units::Ppm::new(share)),
                ahead_ns: Distribution { min, p50, max, ..Distribution::default() },
                granularity_ns: granularity_ms.map(Nanos::from_millis),
                ..summary()
            })
            .to_string()
        };
        let each = "each wake-up is placed at least";
        let far = |end: &str| format!("{each} 40 ms before the running task{end}");
        let found = of([40, 45, 50], Some(10), 8);
        assert_eq!(found, far(", and 10 ms are enough: all of them preempted it."));
        let found = of([40, 45, 50], Some(10), 0);
        assert_eq!(found, far(", and 10 ms would be enough: none preempted it."));
        assert_eq!(
            of([40, 45, 50], None, 4),
            far(": 50 % of all wake-ups preempted it.")
        );
        assert_eq!(
            of([-3, 1, 10], Some(10), 0),
            "no wake-up is placed more than 10 ms before the running task, and 10 ms are \
             needed: none preempted it."
        );
        assert_eq!(
            of([-9, -2, 12], Some(10), 1),
            "half of the wake-ups are placed 2 ms or more behind the running task, and 10 ms \
             are needed: 12.5 % of all wake-ups preempted it."
        );
        assert_eq!(
            of([-9, -4, -2], None, 0),
            format!("{each} 2 ms behind the running task: none preempted it.")
        );
    }
}
