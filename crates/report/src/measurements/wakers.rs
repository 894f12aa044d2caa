//! The report of `wakers`: threads by their wake-ups, with run times and preempted threads, and
//! sentences about the most frequent ones.

use recording::WakersSpec;
use summary::{PartnerSummary, WakersSummary, WokenSummary};
use units::PerSecond;

use crate::document::Document;
use crate::document::table::{Column, Table};
use crate::document::text::{Text, text};
use crate::measurements::ticks::words::cpus;
use crate::number;

/// The width of the name of a waker or a preempted thread.
const PARTNER: std::ops::RangeInclusive<usize> = 6..=9;
const LEGEND: &str = "\"run\": mean time from wake-up to sleep; \"preempts\": wake-ups per second \
    that preempt a thread, mostly the \"victim\".";
/// What the legend does not say.
const MORE: &str = "\"CPU\" is the thread's share of one CPU's time, and \"woken by\" its most frequent \
    waker. Only wake-ups that preempt a runnable thread count.";

pub(crate) fn wakers(spec: &WakersSpec, summary: &WakersSummary) -> Document {
    let document = Document::from(title(spec, summary));
    match summary.threads.is_empty() {
        true => document,
        false => {
            let table = table(summary).legend(legend(summary));
            document.add(table).lines(findings(summary)).add_full(MORE)
        }
    }
}

fn title(spec: &WakersSpec, summary: &WakersSummary) -> Text {
    let of =
        |pid: u32| text!(" of the threads of process {}, or by them,", pid.to_string());
    let of = spec.process.map(of);
    let on = spec.cpus.as_ref().map(|set| text!(" on {}", cpus(set)));
    let time = number::duration(summary.elapsed_ns);
    if summary.wakeups == 0 {
        return text!("No wake-ups{}{} in {}.", of, on, time);
    }
    text!(
        "Wake-ups{}{} in {}: the most frequent threads, their run time, and the threads that they \
         preempt.",
        of,
        on,
        time
    )
}

pub(crate) fn table(summary: &WakersSummary) -> Table {
    let rate = number::known;
    Table::of(&summary.threads)
        .number("TID", |thread| thread.tid.to_string())
        .column(Column::name("thread", 6..=15), |thread| Text::name(&thread.name))
        .number("wakes/s", |thread| rate(thread.wakeups_hz))
        .number("run", |thread| number::known(thread.run_ns_mean))
        .number("CPU", |thread| number::known(thread.run_ppm))
        .column(Column::name("woken by", PARTNER), |thread| most(&thread.woken_by))
        .number("preempts", |thread| rate(thread.preempted_hz))
        .column(Column::name("victim", PARTNER), |thread| most(&thread.victims))
        .table
}

/// The name of the most frequent one.
fn most(partners: &[PartnerSummary]) -> Text {
    number::any(partners.first().map(|partner| Text::name(&partner.name)))
}

fn legend(summary: &WakersSummary) -> Text {
    let unknown = summary.threads.iter().any(|thread| thread.run_ns.is_none());
    let unknown = unknown.then_some(" \"?\": not all run times are known.");
    text!("{}{}", LEGEND, unknown)
}

/// Sentences about all threads, and about the most frequent ones.
fn findings(summary: &WakersSummary) -> impl Iterator<Item = Text> {
    let all = text!(
        "{} wake-ups of {} in total, {} per second.",
        summary.wakeups,
        number::counted(summary.woken, "thread"),
        number::known(summary.wakeups_hz),
    );
    let first = summary.threads.first();
    let is_other = |other: &&WokenSummary| first.is_some_and(|one| one.tid != other.tid);
    let other = summary.most_preempting().filter(is_other);
    [Some(all), first.map(wakes_most), other.map(preempts_most)].into_iter().flatten()
}

fn wakes_most(thread: &WokenSummary) -> Text {
    let runs = thread.run_ns_mean.map(number::duration);
    let victim = thread.victims.first();
    let victim =
        victim.map(|of| text!("{} {}", named(&of.name, of.tid), rate(of.count_hz)));
    text!(
        "{} wakes up {}{} and preempted {}.",
        named(&thread.name, Some(thread.tid)),
        rate(thread.wakeups_hz),
        runs.map(|mean| text!(", runs for {} each time,", mean)),
        victim.unwrap_or_else(|| "no other thread".into())
    )
}

fn preempts_most(thread: &WokenSummary) -> Text {
    let victim = thread.victims.first().map(|victim| named(&victim.name, victim.tid));
    text!(
        "{} preempted other threads most: {}{}.",
        named(&thread.name, Some(thread.tid)),
        rate(thread.preempted_hz),
        victim.map(|victim| text!(", most often {}", victim))
    )
}

fn rate(rate: Option<PerSecond>) -> Text {
    text!("{} times per second", number::known(rate))
}

/// A thread's name with its TID, if that is known.
fn named(name: &str, tid: Option<u32>) -> Text {
    text!("{}{}", Text::name(name), tid.map(|tid| format!(" ({tid})")))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::Body;

    use crate::example::{self, GUEST};
    use crate::measurements::text_of;

    /// Check `wakers` of a whole machine.
    #[test]
    fn wakers_of_a_desktop() {
        assert_snapshot!(text_of(&example::wakers(GUEST, 20)));
    }

    /// Check `wakers` with the widest numbers and names, and without a wake-up.
    #[test]
    fn wakers_wide_and_none() {
        let mut wide = example::wide(example::wakers(GUEST, 1));
        assert_snapshot!(text_of(&wide));
        if let Body::Wakers { series, .. } = &mut wide.body {
            series.threads.clear();
        }
        assert_snapshot!(text_of(&wide), @r#"
    No wake-ups of the threads of process 4194303, or by them, on 300 CPUs
    (0,2,4,6,8,10,12,14,16,18,20,...) in 5 s.
    "#);
    }
}
