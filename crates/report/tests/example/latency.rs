//! Recordings of `latency` for the tests of reports.

use recording::{
    Body, CpuLatency, IdleUse, LatencySeries, LatencySpec, Recording, Timer, Wakeup,
};
use units::{Cpu, Nanos};

use crate::example::{GUEST, METAL, proc, recording, set};

/// The states of an idle CPU: in a guest nearly always the deepest, on metal the first only.
fn idle_states(groups: &str, cpu: u32) -> Vec<IdleUse> {
    let state = |name: &str, latency_us, disabled, millis| IdleUse {
        name: name.to_owned(),
        latency_us,
        disabled,
        entered: millis,
        time_ns: Nanos::from_millis(millis),
    };
    match groups {
        GUEST => vec![
            state("POLL", 0, false, 7),
            state("haltpoll idle", 1, false, 1_880 - u64::from(cpu)),
        ],
        METAL => vec![
            state("POLL", 0, false, 1_900),
            state("C1", 2, true, 0),
            state("C6", 133, false, 0),
        ],
        _ => Vec::new(),
    }
}

/// Timers that wake threads of `count` CPUs two thousand times; on the last CPU one wake-up is 20 ms
/// late. Ordinary tasks in a guest, real-time tasks otherwise.
pub(crate) fn latency(groups: &str, count: u32) -> Recording {
    let fifo = (groups != GUEST).then_some(80);
    let slack = if fifo.is_none() { 50_000 } else { 0 };
    let late = |cpu: u32, at: u64| {
        Nanos::from_nanos(slack + 4_000 + at % 900 * 7 + u64::from(cpu))
    };
    let cpu_latency = |cpu: u32| {
        let mut wakeups: Vec<Wakeup> =
            (0..1_980).map(|at| Wakeup { expiries: 1, late_ns: late(cpu, at) }).collect();
        if cpu + 1 == count {
            wakeups.push(Wakeup { expiries: 20, late_ns: Nanos::from_millis(20) });
        }
        CpuLatency {
            cpu: Cpu::new(cpu),
            first_ns: Nanos::from_micros(5_000),
            slack_ns: Nanos::from_nanos(slack),
            clock_ns: Nanos::from_nanos(27),
            wakeups,
            lost: None,
            proc: proc(cpu),
            // Root set it to 0 on metal; in a guest, the ordinary user cannot read it.
            wake_limit_us: (groups == METAL).then_some(0),
            idle_states: idle_states(groups, cpu),
        }
    };
    let spec = LatencySpec {
        cpus: set(count),
        interval_ns: Nanos::from_millis(1),
        duration_ns: Nanos::from_secs(2),
        timer: Timer::ClockNanosleep,
        fifo,
    };
    let began_ns = Nanos::from_secs(77);
    let series = LatencySeries { began_ns, cpus: (0..count).map(cpu_latency).collect() };
    recording(groups, Body::Latency { spec, series }, Vec::new())
}
