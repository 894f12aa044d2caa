//! Timer interrupts per CPU, from `/proc/interrupts` read at even intervals.
//!
//! Reading the counters costs about a millisecond and happens once an interval, so this
//! tool itself adds a few interrupts a second on the CPU it runs on.
//!
//! Cannot see: what a CPU did between two readings, or a CPU that came and went there.

use facts::{CpuTime, Interrupts};
use recording::{Code, CpuTicks, Doubt, TickSample, TicksSeries, TicksSpec};
use units::{Cpu, CpuSet, Nanos, Span};

use crate::doubts;
use crate::latency::alarms::now;
use crate::meanwhile::{Counters, both};
use crate::observer::{Event, Watch};
use crate::{Error, mark, sensible};

/// Counts ticks, interval by interval.
pub(crate) fn run(
    spec: &TicksSpec,
    watch: &mut Watch<'_>,
    doubts: &mut Vec<Doubt>,
) -> Result<TicksSeries, Error> {
    refuse(spec)?;
    let first = Counters::now();
    if let Err(unknown) = &first.interrupts {
        return Err(Error::system("failed to count interrupts", unknown.clone()));
    }
    doubts.extend(first.doubts());
    let begin = first.at;
    let mut waits = Vec::new();
    let (mut samples, mut before) = (Vec::new(), first);
    for number in 1..=spec.count.unwrap_or(u64::MAX) {
        let until = begin + spec.interval_ns.saturating_mul(number);
        let start = now();
        mark::begin();
        watch.sleep("counting ticks", before.at, until);
        mark::end();
        waits.push(Span { start, length: now().saturating_sub(start) });
        let stopped = watch.control.stop.given();
        if stopped && !samples.is_empty() {
            break;
        }
        let after = Counters::now();
        let sample = sample(&before, &after, begin, &spec.cpus);
        watch.observer.event(Event::Ticks(&sample));
        samples.push(sample);
        before = after;
        if stopped {
            break;
        }
    }
    doubts.extend(holes(&samples));
    Ok(TicksSeries { samples, waits, ..TicksSeries::default() })
}

/// Refuses an interval that cannot be meant.
pub(crate) fn refuse(spec: &TicksSpec) -> Result<(), Error> {
    sensible("the interval", spec.interval_ns)
}

fn sample(before: &Counters, now: &Counters, begin: Nanos, cpus: &CpuSet) -> TickSample {
    TickSample {
        start_ns: before.at.saturating_sub(begin),
        span_ns: now.at.saturating_sub(before.at),
        cpus: cpus.iter().map(|cpu| cpu_ticks(before, now, cpu)).collect(),
    }
}

fn cpu_ticks(before: &Counters, now: &Counters, cpu: Cpu) -> CpuTicks {
    let lines = both(&before.interrupts, &now.interrupts);
    // A CPU that was not there before has no growth, whatever its counter shows now.
    let lines = lines.filter(|(earlier, later)| {
        earlier.cpus().contains(cpu) && later.cpus().contains(cpu)
    });
    let time = both(&before.times, &now.times)
        .and_then(|(earlier, later)| later.since(earlier, cpu));
    CpuTicks {
        cpu,
        timer: lines.and_then(|(earlier, later)| grown(later, earlier, cpu, true)),
        interrupts: lines.and_then(|(earlier, later)| grown(later, earlier, cpu, false)),
        busy_ns: time.map(|time| time.busy),
        accounted_ns: time.map(|CpuTime { busy, idle, .. }| busy + idle),
    }
}

/// How much the timer's lines, or all lines, grew; `None` where one of them was set
/// back, or there is none.
fn grown(now: &Interrupts, before: &Interrupts, cpu: Cpu, timer: bool) -> Option<u64> {
    let lines = now.since(before, cpu).filter(|(line, _)| line.timer || !timer);
    let growths: Vec<u64> = lines.map(|(_, grown)| grown).collect::<Option<_>>()?;
    (!growths.is_empty()).then(|| growths.into_iter().fold(0, u64::saturating_add))
}

/// A doubt for the intervals in which a CPU's ticks are not known.
fn holes(samples: &[TickSample]) -> Option<Doubt> {
    let cpus = samples.iter().flat_map(|sample| &sample.cpus);
    let without: CpuSet =
        cpus.filter(|ticks| ticks.timer.is_none()).map(|ticks| ticks.cpu).collect();
    let text = format!(
        "{}: in some intervals the timer interrupts are not known: the CPU came \
         or went, its counter was set back, or its timer's line is not one known here",
        doubts::named(&without)
    );
    (!without.is_empty()).then(|| Doubt::new(Code::CounterReset, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use facts::{CpuTimes, Softirqs};

    fn counters(at: u64, interrupts: &str, stat: &str) -> Counters {
        Counters {
            at: Nanos::from_secs(at),
            interrupts: Interrupts::parse(interrupts, Interrupts::FILE),
            softirqs: Softirqs::parse("CPU0\n", Softirqs::FILE),
            times: CpuTimes::parse(stat, CpuTimes::FILE),
        }
    }

    /// Check the counts of an interval: a CPU that stays, one that goes, one whose
    /// counter is set back, one that was never there.
    #[test]
    fn counts_of_an_interval() {
        let before = counters(
            5,
            "CPU0 CPU1 CPU2\nLOC: 100 100 500 Local\nRES: 1 1 1 x\n",
            "cpu0 0 0 0 100\ncpu1 0 0 0 100\ncpu2 0 0 0 100\n",
        );
        let now = counters(
            6,
            "CPU0 CPU2\nLOC: 350 20 Local\nRES: 4 1 x\n",
            "cpu0 25 0 0 175\ncpu2 0 0 0 200\n",
        );
        let cpus = "0-3".parse().unwrap();
        let sample = sample(&before, &now, Nanos::from_secs(5), &cpus);
        assert_eq!(sample.span_ns, Nanos::from_secs(1));
        let first = &sample.cpus[0];
        assert_eq!((first.timer, first.interrupts), (Some(250), Some(253)));
        assert_eq!(first.busy_ns, Some(Nanos::from_millis(250)));
        assert_eq!(first.accounted_ns, Some(Nanos::from_millis(1000)));
        let timers: Vec<_> = sample.cpus.iter().map(|ticks| ticks.timer).collect();
        assert_eq!(timers, [Some(250), None, None, None]);
        let doubt = holes(&[sample]).unwrap();
        assert!(doubt.text.starts_with("CPUs 1-3:"), "{doubt}");
    }

    /// Check that a CPU that appears has no growth: its counter began before it came.
    #[test]
    fn cpus_that_appear() {
        let before = counters(1, "CPU0\nLOC: 5 Local\n", "cpu0 0 0 0 1\n");
        let now = counters(2, "CPU0 CPU1\nLOC: 6 900 Local\n", "cpu0 0 0 0 2\n");
        assert_eq!(cpu_ticks(&before, &now, Cpu::new(1)).timer, None);
    }

    /// Check a real run: as many intervals as asked, each as long as asked or longer.
    #[test]
    fn real_intervals() {
        let facts = facts::Facts::read(&facts::Root::live());
        let spec = TicksSpec {
            cpus: facts.cpus.allowed.get().unwrap().clone(),
            interval_ns: Nanos::from_millis(30),
            count: Some(3),
        };
        let control = crate::Control::new().unwrap();
        let mut watch = Watch { control: &control, observer: &mut crate::Silent };
        let series = run(&spec, &mut watch, &mut Vec::new()).unwrap();
        assert_eq!(series.samples.len(), 3);
        let whole: Nanos = series.samples.iter().map(|sample| sample.span_ns).sum();
        assert!(whole >= Nanos::from_millis(90));
    }
}
