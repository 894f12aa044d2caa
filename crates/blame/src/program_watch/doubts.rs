//! What is uncertain about the sums.

use recording::{Code, Doubt};

use crate::bpf::attached;
use crate::bpf::watch_programs::{Lost, Sums};

/// All doubts.
pub(crate) fn of(sums: &Sums) -> Vec<Doubt> {
    let missing = attached::without_tracepoints(&sums.missing);
    let lost = of_lost(&sums.lost).into_iter();
    lost.chain(unknown(sums)).chain(unseen(sums)).chain(missing).collect()
}

/// A doubt about waits whose parts are not known, if they are more than a tenth of a percent of all waiting
/// time: single ones are unknown time in the report.
fn unknown(sums: &Sums) -> Option<Doubt> {
    let Lost { unsure, unknown, .. } = sums.lost;
    let lengths = sums.lengths.iter().map(|(ns, count)| ns.saturating_mul(*count));
    let whole = lengths.fold(0, u64::saturating_add);
    (unknown > whole / 1000).then(|| {
        let ms = unknown.div_ceil(1_000_000);
        let text = format!(
            "what had the CPU is not known for {unsure} waits of {ms} ms: the sums of a CPU changed \
             while they were read"
        );
        Doubt::new(Code::EventsLost, text)
    })
}

/// A doubt about switches that the kernel did not trace, if they are more than a tenth of a percent of the
/// threads' time.
fn unseen(sums: &Sums) -> Option<Doubt> {
    let times = sums.threads.iter().map(|row| row.run.saturating_add(row.wait));
    let whole = times.fold(0, u64::saturating_add);
    let unseen = sums.lost.unseen;
    (unseen > whole / 1000).then(|| {
        let ms = unseen.div_ceil(1_000_000);
        let text = format!(
            "some context switches were not traced: up to {ms} ms may be attributed to the wrong \
             threads"
        );
        Doubt::new(Code::EventsLost, text)
    })
}

/// What the tables had no room for.
fn of_lost(lost: &Lost) -> Vec<Doubt> {
    let Lost { threads, takers, delays, unsure: _, unknown: _, unseen: _ } = *lost;
    let taken = takers / 1_000_000;
    let lost = [
        (threads, format!("too many threads: {threads} events of some are missing")),
        (
            takers,
            format!(
                "too many other threads: some that had the CPU for {taken} ms are not listed"
            ),
        ),
        (delays, format!("{delays} delays were not reported when they happened")),
    ];
    let lost = lost.into_iter().filter(|(count, _)| *count > 0);
    lost.map(|(_, text)| Doubt::new(Code::EventsLost, text)).collect()
}
