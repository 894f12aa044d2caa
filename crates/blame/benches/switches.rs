//! The cost of recording every context switch: `cargo bench -p blame --bench switches`. Needs root.
//!
//! Two threads of a CPU yield to each other a fixed number of times, alternately with and without
//! recording. The fastest rounds of each are compared, as other work only slows them down; and all
//! of their switches must be recorded as yields.

use std::error::Error;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use blame::SwitchWatch;
use facts::{Facts, Root};
use recording::{End, Switches};
use units::{Cpu, CpuSet, Nanos};

/// The number of rounds of each.
const ROUNDS: usize = 9;
/// The number of yields of each thread in a round.
const TIMES: u32 = 50_000;
/// The limit of the additional cost of a switch, in nanoseconds.
const LIMIT: u64 = 500;
/// Above everything that would interfere.
const PRIORITY: u8 = 60;

/// The time until both have made their yields.
fn play(cpu: Cpu) -> Result<Duration, Box<dyn Error>> {
    let barrier = Barrier::new(2);
    let give_way = || -> Result<Duration, isolate::Error> {
        isolate::pin_with_priority(cpu, Some(PRIORITY))?;
        barrier.wait();
        let begun = Instant::now();
        (0..TIMES).for_each(|_| thread::yield_now());
        Ok(begun.elapsed())
    };
    thread::scope(|scope| {
        let threads = [scope.spawn(give_way), scope.spawn(give_way)];
        let mut longest = Duration::ZERO;
        for thread in threads {
            let took = thread.join().map_err(|_| "a thread panicked")?;
            longest = longest.max(took?);
        }
        Ok(longest)
    })
}

/// The same with recording; checks that every switch was recorded.
fn watched(cpu: Cpu, facts: &Facts) -> Result<Duration, Box<dyn Error>> {
    let only: CpuSet = [cpu].into_iter().collect();
    let watch = SwitchWatch::start(&only, TIMES * 3, facts)?;
    let took = play(cpu)?;
    let (switches, _) = watch.end(Nanos::ZERO)?;
    let yields = yields(&switches);
    if yields + 4 < u64::from(TIMES) * 2 || switches.cpus[0].lost > 0 {
        return Err(format!("{yields} yields of {} were recorded", TIMES * 2).into());
    }
    Ok(took)
}

fn yields(switches: &Switches) -> u64 {
    let all = switches.cpus.iter().flat_map(|cpu| &cpu.stretches);
    let count = all.filter(|stretch| stretch.end == End::Yield).count();
    u64::try_from(count).unwrap_or(0)
}

fn main() -> Result<(), Box<dyn Error>> {
    let facts = Facts::read(&Root::live());
    let allowed = facts.cpus.allowed.get().ok_or("no CPU may be used")?;
    let cpu = allowed.iter().last().ok_or("no CPU may be used")?;
    let (mut plain, mut with) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        plain = plain.min(play(cpu)?);
        with = with.min(watched(cpu, &facts)?);
    }
    let each = |took: Duration| took.as_nanos() / u128::from(TIMES * 2);
    let (plain, with) = (each(plain), each(with));
    let more = with.saturating_sub(plain);
    println!(
        "a switch takes {plain} ns, recorded {with} ns: {more} more of at most {LIMIT}"
    );
    if more > u128::from(LIMIT) {
        return Err("recording switches costs too much".into());
    }
    Ok(())
}
