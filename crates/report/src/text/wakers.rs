//! The table of `wakers`: who wakes up how often, for how long, and whom that preempts; below
//! it in words who does so most.

use recording::{Doubt, WakersSeries, WakersSpec};
use stats::{PartnerSummary, WakersSummary, WokenSummary};

use crate::number;
use crate::text::layout::doubts::doubts;
use crate::text::layout::fit::fitted;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table, cut};
use crate::text::ticks::words::cpus;

/// The widest name of a partner.
const PARTNER: usize = 9;

/// All of `wakers`.
pub(crate) fn wakers_text(
    spec: &WakersSpec,
    series: &WakersSeries,
    reasons: &[Doubt],
) -> String {
    let summary = WakersSummary::of(spec.top, series);
    let mut text = paragraph("", &title(spec, &summary)) + "\n";
    if !summary.threads.is_empty() {
        text.push_str(&fitted(6..=15, |name| table(&summary, name)));
        text.push('\n');
        text.push_str(&paragraph("", &words(&summary)));
        text.push('\n');
        text.push_str(&findings(&summary));
    }
    text.push_str(&doubts(reasons));
    text
}

fn title(spec: &WakersSpec, summary: &WakersSummary) -> String {
    let of = spec.process.map_or_else(String::new, |pid| {
        format!(" of process {pid}'s threads, or by them,")
    });
    let on = spec.cpus.as_ref().map_or_else(String::new, |set| {
        let set = cpus(set);
        format!(" on {set}")
    });
    let time = number::duration(summary.elapsed_ns);
    match summary.wakeups {
        0 => format!("Wake-ups: in {time} there were none{of}{on}."),
        _ => format!(
            "Wake-ups{of}{on} in {time}: who woke up, how long it then ran, and whom that \
             preempted."
        ),
    }
}

pub(crate) fn table(summary: &WakersSummary, name: usize) -> String {
    let columns = [
        ("TID", Side::Right),
        ("thread", Side::Left),
        ("wakes/s", Side::Right),
        ("runs", Side::Right),
        ("CPU", Side::Right),
        ("woken by", Side::Left),
        ("preempts", Side::Right),
        ("whom", Side::Left),
    ];
    let mut table = Table::new(1, &columns);
    for thread in &summary.threads {
        table.row([
            thread.tid.to_string(),
            cut(&thread.name, name),
            number::known(thread.wakeups_hz, number::bare_rate),
            number::known(thread.run_ns_mean, number::duration),
            number::known(thread.run_ppm, number::share),
            most(&thread.woken_by, name.min(PARTNER)),
            number::known(thread.preempted_hz, number::bare_rate),
            most(&thread.victims, name.min(PARTNER)),
        ]);
    }
    table.text()
}

/// The most frequent one.
fn most(partners: &[PartnerSummary], name: usize) -> String {
    number::any(partners.first(), |partner| cut(&partner.name, name))
}

fn words(summary: &WakersSummary) -> String {
    let is_unknown = summary.threads.iter().any(|thread| thread.run_ns.is_none());
    let unknown =
        if is_unknown { " \"?\": the kernel did not tell all of it." } else { "" };
    format!(
        "{} wake-ups of {} in all, {} a second. \"runs\": how long each time, on average, \
         until it slept again; \"CPU\": the part of one CPU's time that this is. \"woken \
         by\": by whom most often. \"preempts\": how often a second it took the CPU, for a \
         wake-up, from somebody who could have run on; \"whom\": whom most often.{unknown}",
        number::count(summary.wakeups),
        count(summary.woken, "thread"),
        number::known(summary.wakeups_hz, number::bare_rate),
    )
}

fn count(count: u64, thing: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", number::count(count))
}

fn findings(summary: &WakersSummary) -> String {
    let Some(first) = summary.threads.first() else { return String::new() };
    let rudest = summary.rudest().filter(|rudest| rudest.tid != first.tid);
    let rudest = rudest.map(|rudest| paragraph("", &preempts_most(rudest)));
    paragraph("", &wakes_most(first)) + &rudest.unwrap_or_default()
}

fn wakes_most(thread: &WokenSummary) -> String {
    let runs = thread.run_ns_mean.map_or_else(String::new, |mean| {
        format!(", runs for {} each time,", number::duration(mean))
    });
    let preempted = thread.victims.first().map_or_else(
        || "nobody".to_owned(),
        |victim| format!("{} {}", named(victim), often(victim.count_hz)),
    );
    let often = often(thread.wakeups_hz);
    format!(
        "{} ({}) wakes {often}{runs} and preempted {preempted}.",
        thread.name, thread.tid
    )
}

fn preempts_most(thread: &WokenSummary) -> String {
    let mostly = thread.victims.first();
    let mostly = mostly
        .map_or_else(String::new, |victim| format!(", most often {}", named(victim)));
    let often = often(thread.preempted_hz);
    format!("{} ({}) preempted most: {often}{mostly}.", thread.name, thread.tid)
}

fn often(rate: Option<units::PerSecond>) -> String {
    format!("{} times a second", number::known(rate, number::bare_rate))
}

fn named(partner: &PartnerSummary) -> String {
    let number = partner.tid.map_or_else(String::new, |tid| format!(" ({tid})"));
    format!("{}{number}", partner.name)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::Body;

    use crate::example::{self, GUEST};
    use crate::text;

    /// Check `wakers`, machine-wide.
    #[test]
    fn wakers_of_a_desktop() {
        assert_snapshot!(text(&example::wakers(GUEST, 20)), @r#"
    Wake-ups in 5 s: who woke up, how long it then ran, and whom that preempted.

         TID  thread        wakes/s     runs      CPU  woken by   preempts  whom
        1234  notifier         1000  12.3 µs   1.23 %  interrupt       998  compile
           9  rude              990   833 µs   82.5 %  systemd        1001  notifier
     4194303  kworker/u51…      2.4     4 µs  9.6 ppm  interrupt         0  -

    9962 wake-ups of 3 threads in all, 1992 a second. "runs": how long each time, on
    average, until it slept again; "CPU": the part of one CPU's time that this is.
    "woken by": by whom most often. "preempts": how often a second it took the CPU,
    for a wake-up, from somebody who could have run on; "whom": whom most often.

    notifier (1234) wakes 1000 times a second, runs for 12.3 µs each time, and
    preempted compile (4711) 958 times a second.
    rude (9) preempted most: 1001 times a second, most often notifier (1234).
    "#);
    }

    /// Check `wakers` with as wide numbers and names as there are, and without a wake-up.
    #[test]
    fn wakers_wide_and_none() {
        let mut wide = example::wide(example::wakers(GUEST, 1));
        assert_snapshot!(text(&wide), @r#"
    Wake-ups of process 4194303's threads, or by them, on 300 CPUs
    (0,2,4,6,8,10,12,14,16,18,20,...) in 5 s: who woke up, how long it then ran, and
    whom that preempted.

         TID  thread        wakes/s     runs     CPU  woken by   preempts  whom
     4194000  chromium-br…  246,913  4.04 µs  99.7 %  kworker/…   246,913  kworker/…

    3,703,701 wake-ups of 3 threads in all, 740,740 a second. "runs": how long each
    time, on average, until it slept again; "CPU": the part of one CPU's time that
    this is. "woken by": by whom most often. "preempts": how often a second it took
    the CPU, for a wake-up, from somebody who could have run on; "whom": whom most
    often.

    chromium-browser (4194000) wakes 246,913 times a second, runs for 4.04 µs each
    time, and preempted kworker/u513:15-events_unbound (4194302) 246,913 times a
    second.
    "#);
        if let Body::Wakers { series, .. } = &mut wide.body {
            series.threads.clear();
        }
        assert_snapshot!(text(&wide), @r#"
    Wake-ups: in 5 s there were none of process 4194303's threads, or by them, on
    300 CPUs (0,2,4,6,8,10,12,14,16,18,20,...).
    "#);
    }
}
