//! The table of `wakers`: threads by their wake-ups, with run times and preempted threads; below it,
//! sentences about the most frequent ones.

use recording::WakersSpec;
use summary::{PartnerSummary, WakersSummary, WokenSummary};

use crate::number;
use crate::text::layout::fit::fitted;
use crate::text::layout::labels::cut_labels;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table};
use crate::text::ticks::words::cpus;

/// The widest name of a waker or a preempted thread.
const PARTNER: usize = 9;

pub(crate) fn wakers_text(spec: &WakersSpec, summary: &WakersSummary) -> String {
    let mut text = paragraph("", &title(spec, summary)) + "\n";
    if !summary.threads.is_empty() {
        text.push_str(&fitted(6..=15, |name| table(summary, name)));
        text.push('\n');
        text.push_str(&paragraph("", &legend(summary)));
        text.push('\n');
        text.push_str(&findings(summary));
    }
    text
}

fn title(spec: &WakersSpec, summary: &WakersSummary) -> String {
    let of = spec.process.map_or_else(String::new, |pid| {
        format!(" of the threads of process {pid}, or by them,")
    });
    let on = spec.cpus.as_ref().map_or_else(String::new, |set| {
        let set = cpus(set);
        format!(" on {set}")
    });
    let time = number::duration(summary.elapsed_ns);
    match summary.wakeups {
        0 => format!("No wake-ups{of}{on} in {time}."),
        _ => format!(
            "Wake-ups{of}{on} in {time}: the most frequent threads, their run time, and the \
             threads that they preempt."
        ),
    }
}

pub(crate) fn table(summary: &WakersSummary, name: usize) -> String {
    let columns = [
        ("TID", Side::Right),
        ("thread", Side::Left),
        ("wakes/s", Side::Right),
        ("run", Side::Right),
        ("CPU", Side::Right),
        ("woken by", Side::Left),
        ("preempts", Side::Right),
        ("victim", Side::Left),
    ];
    let mut table = Table::new(1, &columns);
    let threads = &summary.threads;
    let names = cut_labels(threads.iter().map(|thread| &thread.name), name);
    let wakers = cut_labels(
        threads.iter().map(|thread| most(&thread.woken_by)),
        name.min(PARTNER),
    );
    let victims =
        cut_labels(threads.iter().map(|thread| most(&thread.victims)), name.min(PARTNER));
    for (((thread, name), waker), victim) in
        threads.iter().zip(names).zip(wakers).zip(victims)
    {
        table.row([
            thread.tid.to_string(),
            name,
            number::known(thread.wakeups_hz, number::bare_rate),
            number::known(thread.run_ns_mean, number::duration),
            number::known(thread.run_ppm, number::share),
            waker,
            number::known(thread.preempted_hz, number::bare_rate),
            victim,
        ]);
    }
    table.text()
}

/// The name of the most frequent one.
fn most(partners: &[PartnerSummary]) -> String {
    number::any(partners.first(), |partner| partner.name.clone())
}

fn legend(summary: &WakersSummary) -> String {
    let is_unknown = summary.threads.iter().any(|thread| thread.run_ns.is_none());
    let unknown = if is_unknown { " \"?\": not all run times are known." } else { "" };
    format!(
        "{} wake-ups of {} thread{} in total, {} per second. \"run\": mean time from a wake-up \
         until the thread sleeps again; \"CPU\": its share of one CPU's time. \"woken by\": the \
         most frequent waker. \"preempts\": wake-ups per second that preempt a runnable thread; \
         \"victim\": the thread preempted most often.{unknown}",
        number::count(summary.wakeups),
        number::count(summary.woken),
        if summary.woken == 1 { "" } else { "s" },
        number::known(summary.wakeups_hz, number::bare_rate),
    )
}

fn findings(summary: &WakersSummary) -> String {
    let Some(first) = summary.threads.first() else { return String::new() };
    let other = summary.most_preempting().filter(|thread| thread.tid != first.tid);
    let other = other.map(|thread| paragraph("", &preempts_most(thread)));
    paragraph("", &wakes_most(first)) + &other.unwrap_or_default()
}

fn wakes_most(thread: &WokenSummary) -> String {
    let runs = thread.run_ns_mean.map_or_else(String::new, |mean| {
        format!(", runs for {} each time,", number::duration(mean))
    });
    let preempted = thread.victims.first().map_or_else(
        || "no other thread".to_owned(),
        |victim| format!("{} {}", named(victim), rate(victim.count_hz)),
    );
    let (name, tid, rate) = (&thread.name, thread.tid, rate(thread.wakeups_hz));
    format!("{name} ({tid}) wakes up {rate}{runs} and preempted {preempted}.")
}

fn preempts_most(thread: &WokenSummary) -> String {
    let mostly = thread.victims.first();
    let mostly = mostly
        .map_or_else(String::new, |victim| format!(", most often {}", named(victim)));
    let (name, tid, rate) = (&thread.name, thread.tid, rate(thread.preempted_hz));
    format!("{name} ({tid}) preempted other threads most: {rate}{mostly}.")
}

fn rate(rate: Option<units::PerSecond>) -> String {
    format!("{} times per second", number::known(rate, number::bare_rate))
}

fn named(partner: &PartnerSummary) -> String {
    let tid = partner.tid.map_or_else(String::new, |tid| format!(" ({tid})"));
    format!("{}{tid}", partner.name)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::Body;

    use crate::example::{self, GUEST};
    use crate::text::text_of;

    /// Check `wakers` of a whole machine.
    #[test]
    fn wakers_of_a_desktop() {
        assert_snapshot!(text_of(&example::wakers(GUEST, 20)), @r#"
    Wake-ups in 5 s: the most frequent threads, their run time, and the threads that
    they preempt.

         TID  thread        wakes/s      run      CPU  woken by   preempts  victim
        1234  notifier         1000  12.3 µs   1.23 %  interrupt       998  compile
           9  rude              990   833 µs   82.5 %  systemd        1001  notifier
     4194303  kworker/u51…      2.4     4 µs  9.6 ppm  interrupt         0  -

    9962 wake-ups of 3 threads in total, 1992 per second. "run": mean time from a
    wake-up until the thread sleeps again; "CPU": its share of one CPU's time.
    "woken by": the most frequent waker. "preempts": wake-ups per second that
    preempt a runnable thread; "victim": the thread preempted most often.

    notifier (1234) wakes up 1000 times per second, runs for 12.3 µs each time, and
    preempted compile (4711) 958 times per second.
    rude (9) preempted other threads most: 1001 times per second, most often
    notifier (1234).
    "#);
    }

    /// Check `wakers` with the widest numbers and names, and without a wake-up.
    #[test]
    fn wakers_wide_and_none() {
        let mut wide = example::wide(example::wakers(GUEST, 1));
        assert_snapshot!(text_of(&wide), @r#"
    Wake-ups of the threads of process 4194303, or by them, on 300 CPUs
    (0,2,4,6,8,10,12,14,16,18,20,...) in 5 s: the most frequent threads, their run
    time, and the threads that they preempt.

         TID  thread        wakes/s      run     CPU  woken by   preempts  victim
     4194000  chromium-br…  246,913  4.04 µs  99.7 %  kworker/…   246,913  kworker/…

    3,703,701 wake-ups of 3 threads in total, 740,740 per second. "run": mean time
    from a wake-up until the thread sleeps again; "CPU": its share of one CPU's
    time. "woken by": the most frequent waker. "preempts": wake-ups per second that
    preempt a runnable thread; "victim": the thread preempted most often.

    chromium-browser (4194000) wakes up 246,913 times per second, runs for 4.04 µs
    each time, and preempted kworker/u513:15-events_unbound (4194302) 246,913 times
    per second.
    "#);
        if let Body::Wakers { series, .. } = &mut wide.body {
            series.threads.clear();
        }
        assert_snapshot!(text_of(&wide), @r#"
    No wake-ups of the threads of process 4194303, or by them, on 300 CPUs
    (0,2,4,6,8,10,12,14,16,18,20,...) in 5 s.
    "#);
    }
}
