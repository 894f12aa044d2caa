//! Noise that is injected is found: as often as it was made, and as long.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use measure::{Silent, Spec};
use recording::{Body, NoiseSeries, NoiseSpec};
use units::{Cpu, CpuSet, Nanos, Span};

/// What the burner does: 5 ms of every 100.
const BURST: Nanos = Nanos::from_millis(5);
const PERIOD: Nanos = Nanos::from_millis(100);
const RUN: Nanos = Nanos::from_secs(2);
/// The spinner outranks ordinary tasks, whatever else this machine is doing, and the
/// burner outranks the spinner.
const SPINNER: u8 = 5;
const BURNER: u8 = 10;

fn raw_now() -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the kernel to write.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &raw mut time) };
    Nanos::from_secs(time.tv_sec.try_into().unwrap())
        + Nanos::from_nanos(time.tv_nsec.try_into().unwrap())
}

/// The second process: burns, and writes down when each burst really began and ended.
fn burn(cpu: Cpu, mut log: UnixStream) -> std::io::Result<()> {
    let ready = isolate::pin(cpu).and_then(|()| isolate::outrank(BURNER)).is_ok();
    log.write_all(&[u8::from(ready)])?;
    if !ready {
        return Ok(());
    }
    loop {
        std::thread::sleep(PERIOD.saturating_sub(BURST).into());
        let begin = raw_now();
        while raw_now() < begin + BURST {}
        let end = raw_now();
        log.write_all(&begin.get().to_le_bytes())?;
        log.write_all(&end.get().to_le_bytes())?;
    }
}

fn measure_noise(cpu: Cpu) -> NoiseSeries {
    let facts = facts::Facts::read(&facts::Root::live());
    let cpus: CpuSet = [cpu].into_iter().collect();
    let spec =
        NoiseSpec { cpus, duration_ns: RUN, threshold_ns: None, fifo: Some(SPINNER) };
    let mut silent = Silent::new().unwrap();
    match measure::run(&Spec::Noise(spec), &facts, &mut silent).unwrap().body {
        Body::Noise { series, .. } => series,
        _ => unreachable!("asked for noise"),
    }
}

/// Reads what the burner wrote until it was killed.
fn bursts(mut log: UnixStream) -> Vec<(Nanos, Nanos)> {
    let mut bytes = Vec::new();
    log.read_to_end(&mut bytes).unwrap();
    let number =
        |bytes: &[u8]| Nanos::from_nanos(u64::from_le_bytes(bytes.try_into().unwrap()));
    bytes.chunks_exact(16).map(|both| (number(&both[..8]), number(&both[8..]))).collect()
}

/// Check that every burst of a second process at a higher priority shows as one gap whose
/// length is the burst's within 5 %.
#[test]
fn bursts_are_gaps() {
    let facts = facts::Facts::read(&facts::Root::live());
    let cpu = facts.cpus.allowed.get().unwrap().iter().last().unwrap();
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    // SAFETY: the child only computes, sleeps and writes to its socket, then _exits; it
    // takes no lock that another thread of this process could have held.
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
    let Some(series) = series else {
        println!("skipped: bursts_are_gaps: SCHED_FIFO is not allowed here");
        return;
    };
    compare(&series, &bursts(ours));
}

fn compare(series: &NoiseSeries, bursts: &[(Nanos, Nanos)]) {
    let seen = &series.cpus[0];
    if seen.elapsed_ns.saturating_mul(2) < RUN {
        let late = "another real-time task kept the spinner off its CPU";
        println!("skipped: bursts_are_gaps: {late}");
        return;
    }
    let zero = series.began_raw_ns + seen.began_ns;
    let inside = bursts
        .iter()
        .filter(|(begin, end)| *begin > zero && *end < zero + seen.elapsed_ns);
    let bursts: Vec<Span> = inside
        .map(|&(begin, end)| Span {
            start: begin.saturating_sub(zero),
            length: end.saturating_sub(begin),
        })
        .collect();
    let periods = seen.elapsed_ns.get() / PERIOD.get();
    let made = u64::try_from(bursts.len()).unwrap();
    assert!(made * 4 >= periods * 3, "only {made} bursts in {:?}", seen.elapsed_ns);
    let mut excesses = Vec::new();
    for burst in &bursts {
        let middle = burst.start + Nanos::from_nanos(burst.length.get() / 2);
        let holds = |gap: &&Span| gap.start < middle && middle < gap.end();
        let found: Vec<&Span> = seen.gaps.iter().filter(holds).collect();
        assert_eq!(found.len(), 1, "one gap for the burst at {burst:?}");
        let (gap, made) = (found[0].length, burst.length);
        assert!(gap.get() * 20 >= made.get() * 19, "{gap:?} for a burst of {made:?}");
        excesses.push(gap.saturating_sub(made).get() * 1_000 / made.get());
    }
    // The kernel keeps a share for ordinary tasks, and the hypervisor takes what it
    // wants: now and then one of them runs right before or after a burst.
    excesses.sort_unstable();
    let median = excesses[excesses.len() / 2];
    assert!(
        median <= 50,
        "the median gap is {median} thousandths too long: {excesses:?}"
    );
}
