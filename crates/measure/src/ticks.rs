//! Timer interrupts per CPU, from `/proc/interrupts` read at even intervals.
//!
//! Reading the counters costs about a millisecond once per interval, so noisefloor itself adds a
//! few interrupts per second on the CPU it runs on.
//!
//! Cannot see: what a CPU did between two readings, or that it went online and offline there.

use facts::{CpuTime, Interrupts};
use recording::{Code, CpuTicks, Doubt, TickSample, TicksSeries, TicksSpec};
use units::{Cpu, CpuSet, Nanos, Span};

use crate::control::observer::{Notice, Watch};
use crate::doubts;
use crate::energy::EnergyMeter;
use crate::latency::timers::now;
use crate::proc_counters::{ProcCounters, both};
use crate::time::mark;
use crate::{Error, check_length};

/// Counts ticks, interval by interval.
pub(crate) fn run(
    spec: &TicksSpec,
    watch: &mut Watch<'_>,
    doubts: &mut Vec<Doubt>,
) -> Result<TicksSeries, Error> {
    refuse(spec)?;
    let first = ProcCounters::now();
    if let Err(unknown) = &first.interrupts {
        return Err(Error::system("failed to count interrupts", unknown.clone()));
    }
    doubts.extend(first.doubts());
    let begin = first.at;
    let mut energy = EnergyMeter::start();
    let mut waits = Vec::new();
    let (mut samples, mut before) = (Vec::new(), first);
    for number in 1..=spec.count.unwrap_or(u64::MAX) {
        let until = begin + spec.interval_ns.saturating_mul(number);
        let start = now();
        mark::begin();
        watch.sleep("counting ticks", before.at, until);
        mark::end();
        waits.push(Span { start, length: now().saturating_sub(start) });
        let stopped = watch.control.stop.is_requested();
        if stopped && !samples.is_empty() {
            break;
        }
        let after = ProcCounters::now();
        energy.look();
        let sample = sample(&before, &after, begin, &spec.cpus);
        (watch.listener)(Notice::Ticks(&sample));
        samples.push(sample);
        before = after;
        if stopped {
            break;
        }
    }
    doubts.extend(holes(&samples));
    let energy = Some(energy.end());
    Ok(TicksSeries { samples, waits, energy, ..TicksSeries::default() })
}

/// Refuses an invalid interval.
pub(crate) fn refuse(spec: &TicksSpec) -> Result<(), Error> {
    check_length("the interval", spec.interval_ns)
}

fn sample(
    before: &ProcCounters,
    now: &ProcCounters,
    begin: Nanos,
    cpus: &CpuSet,
) -> TickSample {
    TickSample {
        start_ns: before.at.saturating_sub(begin),
        span_ns: now.at.saturating_sub(before.at),
        cpus: cpus.iter().map(|cpu| cpu_ticks(before, now, cpu)).collect(),
    }
}

fn cpu_ticks(before: &ProcCounters, now: &ProcCounters, cpu: Cpu) -> CpuTicks {
    let lines = both(&before.interrupts, &now.interrupts);
    // A CPU that went online in the interval has no difference, whatever its counter shows now.
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

/// The increase of the timer's lines, or of all lines; `None` if one of them was set back, or there
/// is none.
fn grown(now: &Interrupts, before: &Interrupts, cpu: Cpu, timer: bool) -> Option<u64> {
    let lines = now.since(before, cpu).filter(|(line, _)| line.timer || !timer);
    let growths: Vec<u64> = lines.map(|(_, grown)| grown).collect::<Option<_>>()?;
    (!growths.is_empty()).then(|| growths.into_iter().fold(0, u64::saturating_add))
}

/// A doubt for the intervals in which a CPU's ticks are unknown.
fn holes(samples: &[TickSample]) -> Option<Doubt> {
    let cpus = samples.iter().flat_map(|sample| &sample.cpus);
    let without: CpuSet =
        cpus.filter(|ticks| ticks.timer.is_none()).map(|ticks| ticks.cpu).collect();
    let text = format!(
        "{}: in some intervals the timer interrupts are unknown: the CPU went online or \
         offline, its counter was set back, or its timer's line is not recognised",
        doubts::label(&without)
    );
    (!without.is_empty()).then(|| Doubt::new(Code::CounterReset, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use facts::{CpuTimes, Softirqs};

    fn counters(at: u64, interrupts: &str, stat: &str) -> ProcCounters {
        ProcCounters {
            at: Nanos::from_secs(at),
            interrupts: Interrupts::parse(interrupts, Interrupts::FILE),
            softirqs: Softirqs::parse("CPU0\n", Softirqs::FILE),
            times: CpuTimes::parse(stat, CpuTimes::FILE),
        }
    }

    /// Check the counts of an interval: a CPU that stays online, one that goes offline, one whose
    /// counter is set back, one that was never online.
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

    /// Check that a CPU that goes online has no count: its counter is older than the interval.
    #[test]
    fn cpus_that_appear() {
        let before = counters(1, "CPU0\nLOC: 5 Local\n", "cpu0 0 0 0 1\n");
        let now = counters(2, "CPU0 CPU1\nLOC: 6 900 Local\n", "cpu0 0 0 0 2\n");
        assert_eq!(cpu_ticks(&before, &now, Cpu::new(1)).timer, None);
    }

    /// Check a real run: as many intervals as requested, each at least as long as requested.
    #[test]
    fn real_intervals() {
        let facts = facts::Facts::read(&facts::Root::live());
        let spec = TicksSpec {
            cpus: facts.cpus.allowed.get().unwrap().clone(),
            interval_ns: Nanos::from_millis(30),
            count: Some(3),
        };
        let control = crate::Control::new().unwrap();
        let mut watch = Watch { control: &control, listener: &mut crate::ignore };
        let series = run(&spec, &mut watch, &mut Vec::new()).unwrap();
        assert_eq!(series.samples.len(), 3);
        let whole: Nanos = series.samples.iter().map(|sample| sample.span_ns).sum();
        assert!(whole >= Nanos::from_millis(90));
    }
}
