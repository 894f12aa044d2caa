//! Events per second of simulated schedulers, on one core: 16 spinners and two sleepers, as CPU time.
//!
//! LinSched, the kernel's own `sched.c` of 2.6.32-rc3 in user space, with its wake-ups enabled again, took
//! 18.5 to 19.3 million events a second with eight spinners and one sleeper (AMD EPYC, 2.6 GHz): with more
//! than 20 million, a model of the rules is faster than the kernel's code. An event is an expired
//! timer or a system call; a tick, a wake-up and a sleep are one each.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use sim::scheduler::{Engine, Ignore, Machine, NAMES, Policy, Rules, TaskSpec, Work};
use units::{Hz, Nanos};

/// Simulated time.
const LENGTH: Nanos = Nanos::from_secs(600);
/// The limit in events per second.
const LIMIT: f64 = 20e6;

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanos)
}

fn load() -> Vec<TaskSpec> {
    let task = |work| TaskSpec {
        work,
        policy: Policy::Other(0),
        cpus: units::CpuSet::from(units::Cpu::new(0)),
        slice_ns: None,
        group: None,
    };
    let sleep = Work::Sleep { sleep_ns: Nanos::from_millis(1), burst_ns: Nanos::ZERO };
    let mut tasks = vec![task(Work::Spin); 16];
    tasks.extend([task(sleep), task(sleep)]);
    tasks
}

fn main() -> Result<(), sim::scheduler::Error> {
    println!(
        "16 spinners, 2 sleepers, {} s of virtual time",
        LENGTH.get() / 1_000_000_000
    );
    for name in NAMES {
        let machine = Machine::new(1, Hz::new(250));
        let rules = Rules::named(name)?;
        let mut engine = Engine::new(&rules, &machine, load(), 1, Ignore)?;
        let begin = cpu_time();
        engine.run_until(LENGTH);
        let rate = engine.events() as f64 / (cpu_time() - begin).as_secs_f64();
        let verdict = if rate >= LIMIT { "" } else { "  below the limit" };
        println!("{name:>7}: {:5.1} million events a second{verdict}", rate / 1e6);
    }
    Ok(())
}
