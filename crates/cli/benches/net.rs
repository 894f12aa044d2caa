//! The net run time of a program while its CPU is disturbed, relative to its run time on the quiet
//! machine: `cargo bench -p cli --bench net`, as root, with two CPUs.
//!
//! The disturbances are a FIFO thread that takes 5 % of the CPU in bursts of 5 ms at random moments, a
//! thread that a timer wakes 1000 times per second, and UDP packets, whose softirqs are sent to that CPU
//! (RPS, `Documentation/networking/scaling.rst`).

use std::error::Error;
use std::hint::black_box;
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
/// The iterations of the program: some 60 ms.
const WORK: u64 = 40_000_000;
/// The file that sends softirqs of the loopback interface to the CPU, and its mask.
const RPS: &str = "/sys/class/net/lo/queues/rx-0/rps_cpus=2";
const DISTURBANCES: [&str; 3] = ["bursts", "timers", "packets"];

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, "--work"] => work(),
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
    let all = [vec![], bursts, timers, packets, DISTURBANCES.into()];
    let mut times: Vec<Times> = all.iter().map(|_| Times::default()).collect();
    for _ in 0..ROUNDS {
        for (kinds, times) in all.iter().zip(&mut times) {
            times.add(kinds)?;
        }
    }
    println!(
        "net run time of a program, {} runs each; parts of the limit",
        ROUNDS * RUNS
    );
    let quiet = Spread::of(&times[0].net);
    for (kinds, times) in all.iter().zip(&times) {
        let name = if kinds.is_empty() { "quiet".to_owned() } else { kinds.join(", ") };
        let (gross, net) = (Spread::of(&times.gross), Spread::of(&times.net));
        let [gross_ms, net_ms] = [&gross, &net].map(|one| one.median * 1e3);
        println!("  {name}: gross {gross_ms:.2} ms, net {net_ms:.2} ms");
        if !kinds.is_empty() {
            line("median off, %", (net.median / quiet.median - 1.0).abs() * 100.0, 1.0);
        }
        if kinds.contains(&"bursts") {
            line("spread, net by gross", net.quartiles / gross.quartiles, 0.25);
        }
    }
    Ok(())
}

fn line(name: &str, value: f64, limit: f64) {
    println!("    {name:<22} {value:>6.3} of {limit:>5.2}   {:.2}", value / limit);
}

/// The median of some run times in seconds, and the difference of their quartiles.
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

/// The run times of a program in seconds.
#[derive(Default)]
struct Times {
    gross: Vec<f64>,
    net: Vec<f64>,
}

impl Times {
    /// Adds the times of a round in which the program's CPU is disturbed in these ways.
    fn add(&mut self, kinds: &[&str]) -> Result<(), Box<dyn Error>> {
        let own = std::env::current_exe()?;
        let mut command = Command::new(&own);
        let mut disturber =
            command.arg("--disturb").args(kinds).stdin(Stdio::null()).spawn()?;
        thread::sleep(Duration::from_millis(200));
        let mut repeat = Command::new(TOOL);
        repeat.args(["repeat", "--json", "-q", "-n", &RUNS.to_string()]);
        repeat.args(["--step", RPS, "--", "run", "-c", &CPU.to_string()]);
        let output = repeat.arg(own).arg("--work").stderr(Stdio::inherit()).output();
        // One that disturbs nothing has ended.
        let _ = disturber.kill();
        disturber.wait()?;
        let report: Value = serde_json::from_slice(&output?.stdout)?;
        let of = |key: &str| {
            let times = report["results"][1][key].as_array()?;
            times.iter().map(Value::as_f64).collect::<Option<Vec<f64>>>()
        };
        self.gross.extend(of("times").ok_or("no run was recorded")?);
        self.net.extend(of("net_times").ok_or("events were not traced")?);
        Ok(())
    }
}

fn work() {
    let next = |state: u64, _| {
        let state = state.wrapping_mul(6_364_136_223_846_793_005);
        state.wrapping_add(1_442_695_040_888_963_407 + (state >> 33))
    };
    black_box((0..black_box(WORK)).fold(1, next));
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
