//! Injected noise is found: as often as it was injected, and as long.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use measure::Control;
use recording::Spec;
use recording::{Body, NoiseSeries, NoiseSpec, Trigger};
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};
use units::{Cpu, CpuSet, Nanos, Span};

/// The injector uses 5 ms of every 100.
const BURST: Nanos = Nanos::from_millis(5);
const PERIOD: Nanos = Nanos::from_millis(100);
const RUN: Nanos = Nanos::from_secs(2);
/// That many bursts on time are needed, in that many runs at most.
const ENOUGH: usize = 5;
const RUNS: usize = 5;
/// The spinner has a priority above ordinary tasks, and the injector one above the spinner.
const SPINNER: u8 = 5;
const BURNER: u8 = 10;

/// A burst as recorded by the injector.
#[derive(Debug)]
struct Burst {
    /// On the raw clock.
    begin: Nanos,
    length: Nanos,
    /// How late it began: until then the CPU ran another task, the hypervisor, or ordinary tasks in
    /// their reserved share. The gap may have begun with that.
    late: Nanos,
}

impl Burst {
    const BYTES: usize = 24;

    fn to_bytes(&self) -> Vec<u8> {
        [self.begin, self.length, self.late].map(|time| time.get().to_le_bytes()).concat()
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let time = |at: usize| {
            Nanos::from_nanos(u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()))
        };
        Self { begin: time(0), length: time(8), late: time(16) }
    }

    fn on_time(&self) -> bool {
        self.late.get() * 20 < BURST.get()
    }
}

fn now(clock: ClockId) -> Nanos {
    Duration::try_from(clock_gettime(clock)).unwrap().into()
}

/// Sleeps until a time of the monotonic clock; returns the delay.
fn sleep_until(time: Nanos) -> Nanos {
    let until = Timespec::try_from(Duration::from(time)).unwrap();
    // A signal that woke it early would end it, too.
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &until);
    now(ClockId::Monotonic).saturating_sub(time)
}

/// The second process: keeps the CPU busy, and logs when each burst began and ended.
fn burn(cpu: Cpu, mut log: UnixStream) -> std::io::Result<()> {
    let ready = isolate::pin(cpu).and_then(|()| isolate::outrank(BURNER)).is_ok();
    log.write_all(&[u8::from(ready)])?;
    if !ready {
        return Ok(());
    }
    loop {
        let late = sleep_until(now(ClockId::Monotonic) + PERIOD.saturating_sub(BURST));
        let raw_now = || now(ClockId::MonotonicRaw);
        let begin = raw_now();
        while raw_now() < begin + BURST {}
        let length = raw_now().saturating_sub(begin);
        log.write_all(&Burst { begin, length, late }.to_bytes())?;
    }
}

fn measure_noise(cpu: Cpu) -> NoiseSeries {
    let facts = facts::Facts::read(&facts::Root::live());
    let cpus: CpuSet = [cpu].into_iter().collect();
    let spec = NoiseSpec {
        cpus,
        duration_ns: RUN,
        threshold_ns: None,
        fifo: Some(SPINNER),
        trigger: Trigger::default(),
        phases: None,
        at_scale: None,
    };
    let control = Control::new().unwrap();
    let run =
        measure::run(&Spec::Noise(spec), &facts, &control, &mut measure::ignore).unwrap();
    let Body::Noise { series, .. } = run.body else { unreachable!("asked for noise") };
    series
}

/// Noise beside an injector; none without the privilege for real-time priorities.
fn measure_beside_burner(cpu: Cpu) -> Option<(NoiseSeries, Vec<Burst>)> {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    // SAFETY: the child only computes, sleeps and writes to its socket, then _exits; it takes no
    // lock that another thread of this process could have held.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(ours);
        let _ = burn(cpu, theirs);
        // SAFETY: ends the child without running the parent's destructors.
        unsafe { libc::_exit(0) };
    }
    drop(theirs);
    let mut ready = [0];
    ours.read_exact(&mut ready).unwrap();
    let series = (ready == [1]).then(|| measure_noise(cpu));
    // SAFETY: `child` is our own child, not yet waited for.
    unsafe {
        libc::kill(child, libc::SIGKILL);
        libc::waitpid(child, std::ptr::null_mut(), 0);
    }
    let mut bytes = Vec::new();
    ours.read_to_end(&mut bytes).unwrap();
    let bursts = bytes.chunks_exact(Burst::BYTES).map(Burst::from_bytes).collect();
    series.map(|series| (series, bursts))
}

/// Check that every burst of a second process at a higher priority is one gap, none shorter, and
/// that the gaps of bursts on time have their length within 5 %.
#[test]
fn bursts_are_gaps() {
    let facts = facts::Facts::read(&facts::Root::live());
    let cpu = facts.cpus.allowed.get().unwrap().iter().last().unwrap();
    for _ in 0..RUNS {
        let Some((series, bursts)) = measure_beside_burner(cpu) else {
            println!("skipped: bursts_are_gaps: SCHED_FIFO is not allowed here");
            return;
        };
        if enough(excesses(&series, bursts)) {
            return;
        }
    }
    println!("skipped: bursts_are_gaps: this CPU was busy when bursts were due");
}

/// The excess of each gap over its burst, in thousandths, for bursts on time.
fn excesses(series: &NoiseSeries, bursts: Vec<Burst>) -> Vec<u64> {
    let seen = &series.cpus[0];
    let zero = series.began_raw_ns + seen.began_ns;
    let inside = |burst: &Burst| {
        zero < burst.begin && burst.begin + burst.length < zero + seen.elapsed_ns
    };
    let mut excesses = Vec::new();
    for burst in bursts.into_iter().filter(inside) {
        let middle =
            burst.begin.saturating_sub(zero) + Nanos::from_nanos(burst.length.get() / 2);
        let holds = |gap: &&Span| gap.start < middle && middle < gap.end();
        let found: Vec<&Span> = seen.gaps.iter().filter(holds).collect();
        assert_eq!(found.len(), 1, "one gap for {burst:?}");
        let (gap, made) = (found[0].length, burst.length);
        assert!(gap.get() * 20 >= made.get() * 19, "{gap:?} for {burst:?}");
        if burst.on_time() {
            excesses.push(gap.saturating_sub(made).get() * 1_000 / made.get());
        }
    }
    excesses
}

/// Whether there were enough bursts to check; checks them. Sometimes another task runs right after
/// a burst, hence the median.
fn enough(mut excesses: Vec<u64>) -> bool {
    if excesses.len() < ENOUGH {
        return false;
    }
    excesses.sort_unstable();
    let median = excesses[excesses.len() / 2];
    assert!(median <= 50, "the median gap is too long, in thousandths: {excesses:?}");
    true
}
