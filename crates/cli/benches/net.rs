//! The net run time of a program while its CPU is disturbed, relative to its run time on the quiet
//! machine: `cargo bench -p cli --bench net`, as root, with two CPUs.
//!
//! The disturbances are a FIFO thread that takes 5 % of the CPU in bursts of 5 ms at random moments, a
//! thread that a timer wakes 1000 times per second, and UDP packets, whose softirqs are sent to that CPU
//! (RPS, `Documentation/networking/scaling.rst`).
//!
//! CPUs change their frequency by a few percent, also in virtual machines, and no net time is without
//! that. Each run time is therefore divided by the time that the program would have taken without a
//! pause: it divides its work into parts of some 20 us, fewer than one in ten of which are interrupted,
//! and the time is that of its median part, for all parts. The result is a ratio: 1 for a net time
//! without any lost time. The quiet machine is measured twice; these two differ by what the machine
//! itself changes.

use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::io::Write as _;
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

const TOOL: &str = env!("CARGO_BIN_EXE_noisefloor");
/// The CPU of the program; its disturber sends packets from CPU 0.
const CPU: usize = 1;
/// The disturbances take turns, so that a machine that changes its speed changes it for all of them.
const ROUNDS: usize = 6;
/// The runs of each round.
const RUNS: usize = 8;
/// The parts of the program, and their iterations: some 60 ms.
const PARTS: u32 = 4_000;
const WORK: u64 = 10_000;
/// The file that sends softirqs of the loopback interface to the CPU, and its mask.
const RPS: &str = "/sys/class/net/lo/queues/rx-0/rps_cpus=2";
const DISTURBANCES: [&str; 3] = ["bursts", "timers", "packets"];

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, "--work", file] => work(file)?,
        [_, "--disturb", ref kinds @ ..] => disturb(kinds),
        _ => return measure(),
    }
    Ok(())
}

fn measure() -> Result<(), Box<dyn Error>> {
    if thread::available_parallelism()?.get() < 2 || !rustix::process::geteuid().is_root()
    {
        println!("skipped: net: it takes root, and two CPUs");
        return Ok(());
    }
    let [bursts, timers, packets] = DISTURBANCES.map(|kind| vec![kind]);
    let all = [vec![], bursts, timers, packets, DISTURBANCES.into(), vec![]];
    let mut times: Vec<Times> = all.iter().map(|_| Times::default()).collect();
    for round in 0..ROUNDS {
        for place in 0..all.len() {
            let place = if round % 2 == 0 { place } else { all.len() - 1 - place };
            times[place].add(&all[place])?;
        }
    }
    println!(
        "run times of a program by its time without pauses, {} runs each; parts of the limit",
        ROUNDS * RUNS
    );
    let quiet = Spread::of(&times[0].net);
    for (at, (kinds, times)) in all.iter().zip(&times).enumerate() {
        let name = match kinds[..] {
            [] if at == 0 => "quiet".to_owned(),
            [] => "quiet, again".to_owned(),
            _ => kinds.join(", "),
        };
        let (gross, net) = (Spread::of(&times.gross), Spread::of(&times.net));
        println!("  {name}: gross {:.4}, net {:.4}", gross.median, net.median);
        if at > 0 {
            line("median off, %", (net.median / quiet.median - 1.0).abs() * 100.0, 1.0);
        }
        if kinds.contains(&"bursts") {
            line("spread, net by gross", net.quartiles / gross.quartiles, 0.25);
            line("quiet net by gross", quiet.quartiles / gross.quartiles, 0.25);
        }
    }
    Ok(())
}

fn line(name: &str, value: f64, limit: f64) {
    println!("    {name:<22} {value:>6.3} of {limit:>5.2}   {:.2}", value / limit);
}

/// The median of some run times, and the difference of their quartiles.
struct Spread {
    median: f64,
    quartiles: f64,
}

impl Spread {
    fn of(times: &[f64]) -> Self {
        let mut times = times.to_vec();
        times.sort_by(f64::total_cmp);
        let quarter = times.len() / 4;
        let quartiles = times[3 * quarter] - times[quarter];
        Self { median: times[2 * quarter], quartiles }
    }
}

/// The run times of a program, each by its time without pauses.
#[derive(Default)]
struct Times {
    gross: Vec<f64>,
    net: Vec<f64>,
}

impl Times {
    /// Adds the times of a round in which the program's CPU is disturbed in these ways.
    fn add(&mut self, kinds: &[&str]) -> Result<(), Box<dyn Error>> {
        let own = std::env::current_exe()?;
        let parts = tempfile::NamedTempFile::new()?;
        let mut command = Command::new(&own);
        let mut disturber =
            command.arg("--disturb").args(kinds).stdin(Stdio::null()).spawn()?;
        thread::sleep(Duration::from_millis(200));
        let mut repeat = Command::new(TOOL);
        repeat.args(["repeat", "--json", "-q", "-n", &RUNS.to_string()]);
        repeat.args(["--step", RPS, "--", "run", "-c", &CPU.to_string()]);
        let output = repeat.arg(own).arg("--work").arg(parts.path());
        let output = output.stderr(Stdio::inherit()).output();
        // One that disturbs nothing has ended.
        let _ = disturber.kill();
        disturber.wait()?;
        let report: Value = serde_json::from_slice(&output?.stdout)?;
        // Only half of the runs have the step.
        let unpaused = fs::read_to_string(parts.path())?;
        let unpaused = unpaused.lines().filter_map(|line| line.strip_prefix("2 "));
        let unpaused = unpaused.map(str::parse).collect::<Result<Vec<f64>, _>>()?;
        let of = |key: &str| {
            let times = report["results"][1][key].as_array()?;
            let times = times.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>()?;
            let each = times.iter().zip(&unpaused).map(|(time, whole)| time / whole);
            (times.len() == unpaused.len()).then(|| each.collect::<Vec<_>>())
        };
        self.gross.extend(of("times").ok_or("no run was recorded")?);
        self.net.extend(of("net_times").ok_or("events were not traced")?);
        Ok(())
    }
}

/// Works, and adds a line to the file: the mask of the step, and the time without pauses in seconds.
fn work(file: &str) -> Result<(), Box<dyn Error>> {
    let next = |state: u64, _| {
        let state = state.wrapping_mul(6_364_136_223_846_793_005);
        state.wrapping_add(1_442_695_040_888_963_407 + (state >> 33))
    };
    let part = |_| {
        let begin = Instant::now();
        black_box((0..black_box(WORK)).fold(1, next));
        begin.elapsed()
    };
    let mut parts: Vec<Duration> = (0..PARTS).map(part).collect();
    parts.sort();
    let unpaused = parts[parts.len() / 2].as_secs_f64() * f64::from(PARTS);
    let (rps, _) = RPS.split_once('=').unwrap_or_default();
    let mask = fs::read_to_string(rps)?;
    let mut file = fs::OpenOptions::new().append(true).open(file)?;
    writeln!(file, "{} {unpaused}", mask.trim().trim_start_matches(['0', ',']))?;
    Ok(())
}

fn disturb(kinds: &[&str]) {
    let threads: Vec<_> = kinds
        .iter()
        .map(|kind| match *kind {
            "bursts" => thread::spawn(bursts),
            "timers" => thread::spawn(timers),
            _ => thread::spawn(packets),
        })
        .collect();
    for thread in threads {
        let _ = thread.join();
    }
}

/// Takes the CPU for 5 ms, on average every 100 ms.
fn bursts() {
    settle(CPU, 50);
    let mut state: u64 = 7;
    loop {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        thread::sleep(Duration::from_micros((state >> 33) % 190_000));
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_millis(5) {
            std::hint::spin_loop();
        }
    }
}

/// Wakes up 1000 times per second.
fn timers() {
    settle(CPU, 20);
    loop {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Sends and receives some 5000 packets per second, on another CPU.
fn packets() {
    settle(0, 0);
    let bind =
        || UdpSocket::bind("127.0.0.1:0").and_then(|it| Ok((it.local_addr()?, it)));
    let (Ok((to, receiver)), Ok((_, sender))) = (bind(), bind()) else { return };
    let _ = receiver.set_nonblocking(true);
    let mut buffer = [0; 512];
    loop {
        let _ = sender.send_to(&buffer, to);
        while receiver.recv(&mut buffer).is_ok() {}
        thread::sleep(Duration::from_micros(150));
    }
}

/// Lets the thread run on that CPU, with that `SCHED_FIFO` priority, or as an ordinary thread.
fn settle(cpu: usize, priority: i32) {
    // SAFETY: all-zero is a valid set and valid parameters; the pointers outlive the calls, which
    // concern the calling thread only. If they fail, the disturbance is less.
    unsafe {
        let mut cpus: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut cpus);
        libc::sched_setaffinity(0, size_of_val(&cpus), &raw const cpus);
        if priority > 0 {
            let mut parameters: libc::sched_param = std::mem::zeroed();
            parameters.sched_priority = priority;
            libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters);
        }
    }
}
