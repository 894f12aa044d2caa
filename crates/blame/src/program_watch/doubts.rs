//! What is uncertain about the sums.

use recording::{Code, Doubt};

use crate::bpf::attached;
use crate::bpf::watch_programs::{Lost, Sums};

/// All doubts.
pub(crate) fn of(sums: &Sums) -> Vec<Doubt> {
    let missing = attached::without_tracepoints(&sums.missing);
    of_lost(&sums.lost).into_iter().chain(unseen(sums)).chain(missing).collect()
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
    let Lost { threads, takers, delays, unsure, unseen: _ } = *lost;
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
        (
            unsure,
            format!(
                "what had the CPU is not certain for {unsure} waits of moved threads"
            ),
        ),
    ];
    let lost = lost.into_iter().filter(|(count, _)| *count > 0);
    lost.map(|(_, text)| Doubt::new(Code::EventsLost, text)).collect()
}
