//! How often each thread wakes up, how long it then runs, and which threads it preempts: counted in
//! the kernel (`sched_waking`, `sched_switch`), machine-wide.
//!
//! Cannot see why a thread waited, nor how long it waited for the CPU after its wake-up; a thread
//! that yields (`sched_yield`) counts as preempted.

use std::collections::BTreeMap;

use facts::{Facts, Root};
use recording::{
    Body, Code, Doubt, Partner, Recording, WakersSeries, WakersSpec, WokenThread,
};
use units::Nanos;

use crate::bpf::refusal::{self, Needs};
use crate::bpf::threads::ThreadKey;
use crate::bpf::wake_programs::{
    Capacity, Counts, Filter, Lost, Pair, Row, WakePrograms,
};
use crate::clock::now;
use crate::error::{Error, Kind};
use crate::names::full_name;
use crate::program_watch::target::refuse_no_process;
use crate::records::text_of;

/// `enum no_thread` in `bpf/wakers.bpf.c`: wakers that are not threads.
const NO_THREAD: [&str; 3] = ["idle", "interrupt", "softirq"];
/// The programs' requirements.
const NEEDS: Needs = Needs { version: (5, 18), why: refusal::STATE };
/// The name of a thread that the table could not hold.
const UNNAMED: &str = "?";
/// The tracepoints of the interrupts that wake most threads.
const NEEDED: [&str; 4] =
    ["local_timer_entry", "hrtimer_expire_entry", "irq_handler_entry", "softirq_entry"];

/// Counts wake-ups, from `start` until `end`.
pub struct WakerWatch {
    spec: WakersSpec,
    facts: Facts,
    programs: WakePrograms,
    began_ns: Nanos,
}

impl WakerWatch {
    /// Starts to count.
    ///
    /// # Errors
    /// `Kind::Spec` for a process that does not exist; `Kind::Privilege` or `Kind::Missing`, with a
    /// remedy; `Kind::System` for another error of the kernel.
    pub fn start(spec: &WakersSpec, facts: &Facts) -> Result<Self, Error> {
        spec.process.map_or(Ok(()), |pid| refuse_no_process(&Root::live(), pid))?;
        Self::start_with(spec, facts, Capacity::default())
    }

    fn start_with(
        spec: &WakersSpec,
        facts: &Facts,
        capacity: Capacity,
    ) -> Result<Self, Error> {
        let online = facts.cpus.online.value();
        let online = online.map_err(|why| Error::new(Kind::System, why.to_string()))?;
        let filter = Filter { cpus: spec.cpus.clone(), process: spec.process };
        let (spec, facts) = (spec.clone(), facts.clone());
        let begin = || WakePrograms::begin(&filter, capacity, online);
        let programs = refusal::explained(&facts, NEEDS, begin)?;
        Ok(Self { spec, facts, programs, began_ns: now() })
    }

    /// Ends counting, and returns the counts; with a doubt, if it was ended early.
    ///
    /// # Errors
    /// `Kind::System`: the counts cannot be read.
    pub fn end(self, is_ended_early: bool) -> Result<Recording, Error> {
        let Self { spec, facts, programs, began_ns } = self;
        let elapsed_ns = now().saturating_sub(began_ns);
        let counts = programs.end()?;
        let lost = counts.lost.wakeups;
        let threads = threads(&counts, &Root::live());
        let series = WakersSeries { began_ns, elapsed_ns, lost, threads };
        let ended = is_ended_early.then(|| Doubt::ended_early(""));
        let doubts = doubts(&counts).into_iter().chain(ended).collect();
        Ok(Recording::now(facts, Body::Wakers { spec, series }, doubts))
    }
}

/// The woken threads, by number.
fn threads(counts: &Counts, root: &Root) -> Vec<WokenThread> {
    let names: BTreeMap<ThreadKey, String> =
        counts.rows.iter().map(|(who, row)| (*who, name(root, *who, row))).collect();
    let mut wakers = gathered(&counts.wakers, |pair| (pair.other, pair.actor), &names);
    let mut victims = gathered(&counts.victims, |pair| (pair.actor, pair.other), &names);
    let woken = counts.rows.iter().filter(|(_, row)| row.wakeups > 0);
    let thread = |(who, row): (&ThreadKey, &Row)| WokenThread {
        tid: who.tid,
        pid: row.process,
        name: names.get(who).cloned().unwrap_or_default(),
        prio: row.prio,
        wakeups: row.wakeups,
        run_ns: row.run.map(Nanos::from_nanos),
        preempted: row.preempted,
        woken_by: wakers.remove(who).unwrap_or_default(),
        victims: victims.remove(who).unwrap_or_default(),
    };
    woken.map(thread).collect()
}

fn name(root: &Root, who: ThreadKey, row: &Row) -> String {
    let name = text_of(row.comm);
    full_name(root, who.tid, &name).unwrap_or(name)
}

/// The pairs of each thread, the most frequent first; `sides` returns the thread and the other one.
fn gathered(
    pairs: &[Pair],
    sides: fn(&Pair) -> (ThreadKey, ThreadKey),
    names: &BTreeMap<ThreadKey, String>,
) -> BTreeMap<ThreadKey, Vec<Partner>> {
    let mut gathered: BTreeMap<ThreadKey, Vec<Partner>> = BTreeMap::new();
    for pair in pairs {
        let (thread, partner) = sides(pair);
        let (tid, name) = match partner.tid {
            0 => (None, no_thread(partner.born)),
            tid => {
                let name = names.get(&partner).map_or(UNNAMED, String::as_str);
                (Some(tid), name.to_owned())
            }
        };
        let partner = Partner { tid, name, count: pair.count };
        gathered.entry(thread).or_default().push(partner);
    }
    for partners in gathered.values_mut() {
        partners.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.tid.cmp(&b.tid)));
    }
    gathered
}

fn no_thread(number: u32) -> String {
    let known = usize::try_from(number).ok().and_then(|number| NO_THREAD.get(number));
    known.map_or_else(String::new, |name| (*name).to_owned())
}

fn doubts(counts: &Counts) -> Vec<Doubt> {
    let Lost { wakeups, wakers, victims } = counts.lost;
    let threads = "too many threads";
    let pairs = "too many pairs of threads";
    let lost = [
        (wakeups, format!("{threads}: the thread of {wakeups} wake-ups is unknown")),
        (wakers, format!("{pairs}: the waker of {wakers} wake-ups is unknown")),
        (victims, format!("{pairs}: the preempted thread is unknown {victims} times")),
    ];
    let lost = lost.into_iter().filter(|(count, _)| *count > 0);
    let lost = lost.map(|(_, text)| Doubt::new(Code::EventsLost, text));
    let missing = counts.missing.iter().filter(|name| NEEDED.contains(name));
    let missing = missing.map(|name| {
        let text = format!(
            "this kernel has no tracepoint {name}: its wake-ups are attributed to the \
             interrupted thread"
        );
        Doubt::new(Code::Untraced, text)
    });
    lost.chain(missing).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const THREADS: u64 = 16;
    const SLEEPS: u64 = 20;

    /// Threads that sleep that often each.
    fn sleep() {
        let sleeps = || (0..SLEEPS).for_each(|_| std::thread::sleep(MILLISECOND));
        std::thread::scope(|scope| {
            (0..THREADS).for_each(|_| {
                scope.spawn(sleeps);
            });
        });
    }
    const MILLISECOND: Duration = Duration::from_millis(1);

    fn counted_with(capacity: Capacity) -> Option<(WakersSeries, Vec<Doubt>)> {
        let facts = Facts::read(&Root::live());
        let duration_ns = Nanos::from_secs(1);
        let spec = WakersSpec { cpus: None, duration_ns, top: 20, process: None };
        let counted = WakerWatch::start_with(&spec, &facts, capacity).and_then(|watch| {
            sleep();
            watch.end(false)
        });
        match counted {
            Ok(Recording { body: Body::Wakers { series, .. }, doubts, .. }) => {
                Some((series, doubts))
            }
            Ok(_) => unreachable!("wake-ups were counted"),
            Err(why) => {
                println!("skipped: {why}");
                None
            }
        }
    }

    /// Check that what exceeds the tables is counted and reported, and that nothing else is lost.
    #[test]
    fn full_maps() {
        let capacity = Capacity { threads: Some(4), pairs: None };
        let Some((series, doubts)) = counted_with(capacity) else { return };
        assert!(series.threads.len() <= 4 && series.lost > 0, "{series:?}");
        let sum: u64 = series.threads.iter().map(|thread| thread.wakeups).sum();
        assert!(sum + series.lost >= THREADS * SLEEPS, "{sum} and {}", series.lost);
        assert_eq!(doubts[0].code, Code::EventsLost);
        assert!(
            doubts[0].text.contains(&format!("of {} wake-ups", series.lost)),
            "{}",
            doubts[0]
        );
    }

    /// Check that without space for pairs the threads' own counts are complete, with a doubt.
    #[test]
    fn full_pairs() {
        let capacity = Capacity { threads: None, pairs: Some(1) };
        let Some((series, doubts)) = counted_with(capacity) else { return };
        let sum: u64 = series.threads.iter().map(|thread| thread.wakeups).sum();
        assert!(sum >= THREADS * SLEEPS && series.lost == 0, "{sum}");
        assert!(doubts.iter().all(|doubt| doubt.code == Code::EventsLost), "{doubts:?}");
        assert!(doubts[0].text.contains("the waker of"), "{}", doubts[0]);
    }
}
