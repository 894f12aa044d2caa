//! The cost of tracing, compared with that of `bpftrace` for the same tracepoints in the same run:
//! `cargo bench -p blame`. Needs root; without `bpftrace` on PATH its lines are omitted.
//!
//! A process at a real-time priority sends packets to itself (a softirq each), or switches between
//! two threads. It does so alternately without tracing, with each kind of tracing, and with tracefs
//! if that is mounted; the fastest rounds of each are compared, as other work only slows them down.

mod floor;

use std::error::Error;
use std::ffi::CStr;
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use blame::Watcher;
use facts::{Facts, Root};
use recording::Source;
use units::{Cpu, CpuSet};

use floor::Floor;

/// The number of rounds of each.
const ROUNDS: usize = 41;
/// The number of packets, or of yields, in a round.
const TIMES: u32 = 4_000;
/// None of that many packets in two seconds may be lost, so 100,000 per second.
const MANY: u32 = 220_000;
const PAUSE: Duration = Duration::from_micros(9);
const RATE: f64 = 100_000.0;
/// The limit of the cost of an event.
const LIMIT_NS: f64 = 140.0;
/// The largest ratio to the cost of `bpftrace`.
const PART: f64 = 0.25;
/// The time that `bpftrace` takes to attach its programs.
const ATTACHING: Duration = Duration::from_secs(4);

/// Work that causes events, a fixed number each time.
struct Work {
    name: &'static str,
    /// The number of events per time.
    events: f64,
    run: fn(u32) -> std::io::Result<()>,
    /// A typical script for it: the begin by CPU, a histogram by name.
    bpftrace: &'static str,
    /// The tracepoints that it passes.
    points: &'static [&'static CStr],
}

const WORKS: [Work; 2] = [
    Work {
        name: "a softirq",
        events: 1.0,
        run: packets,
        bpftrace: "tracepoint:irq:softirq_entry { @begun[cpu] = nsecs; } \
                   tracepoint:irq:softirq_exit /@begun[cpu]/ \
                   { $took = nsecs - @begun[cpu]; @[args->vec] = stats($took); \
                     @longest[args->vec] = max($took); delete(@begun[cpu]); }",
        points: &[c"softirq_entry", c"softirq_exit"],
    },
    Work {
        name: "a switch",
        events: 2.0,
        run: switches,
        bpftrace: "tracepoint:sched:sched_switch /@begun[cpu]/ \
                   { $took = nsecs - @begun[cpu]; \
                     @[args->prev_comm, args->prev_pid, args->prev_prio] = stats($took); \
                     @longest[args->prev_comm, args->prev_pid, args->prev_prio] = max($took); } \
                   tracepoint:sched:sched_switch { @begun[cpu] = nsecs; }",
        points: &[c"sched_switch"],
    },
];

fn main() -> Result<(), Box<dyn Error>> {
    let facts = Facts::read(&Root::live());
    let cpus = facts.cpus.allowed.value().map_err(ToString::to_string)?;
    let cpu = cpus.iter().last().ok_or("no CPU")?;
    println!("ns for each event, the least of {ROUNDS} rounds on CPU {cpu}");
    for work in WORKS {
        let (mut bare, mut floor, mut watched) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            bare.push(each(&work, cpu, TIMES)?);
            let attached = Floor::at(work.points)?;
            floor.push(each(&work, cpu, TIMES)?);
            drop(attached);
            watched.push(seen(&work, cpu, Source::Bpf, TIMES, &facts)?);
        }
        let bare = least(&bare);
        let ours = (least(&watched) - bare) / work.events;
        let floor = (least(&floor) - bare) / work.events;
        let name = work.name;
        println!("  {name:<12} {ours:>8.0}   {:.2} of at most 1.00", ours / LIMIT_NS);
        println!("    floor      {floor:>8.0}   programs that only read the clock");
        let traced =
            (0..ROUNDS).map(|_| seen(&work, cpu, Source::Tracefs, TIMES, &facts));
        match traced.collect::<Result<Vec<f64>, _>>() {
            Ok(traced) => {
                let traced = (least(&traced) - bare) / work.events;
                println!("    tracefs    {traced:>8.0}   where BPF is locked out");
            }
            Err(why) => println!("    tracefs    skipped: {why}"),
        }
        let Ok(tracer) = Tracer::start(work.bpftrace) else { continue };
        let traced: Result<Vec<f64>, _> =
            (0..ROUNDS).map(|_| each(&work, cpu, TIMES)).collect();
        drop(tracer);
        let theirs = (least(&traced?) - bare) / work.events;
        let (ratio, lowest) = (ours / theirs, floor / theirs);
        println!(
            "    bpftrace   {theirs:>8.0}   {ratio:.2} of at most {PART:.2}; the floor \
             {lowest:.2}"
        );
    }
    let many = Work { name: "many", events: 1.0, run: paced, bpftrace: "", points: &[] };
    let each = seen(&many, cpu, Source::Bpf, MANY, &facts)?;
    let rate = 1e9 / each;
    println!(
        "none lost of {MANY} softirqs at {rate:.0} a second, {:.2} of at least 1.00",
        rate / RATE
    );
    Ok(())
}

/// Runs the work while its events are traced; returns ns per event.
fn seen(
    work: &Work,
    cpu: Cpu,
    source: Source,
    times: u32,
    facts: &Facts,
) -> Result<f64, Box<dyn Error>> {
    let only: CpuSet = [cpu].into_iter().collect();
    let watcher = Watcher::open(&only, Some(source), facts)?;
    let watching = watcher.begin();
    let taken = each(work, cpu, times);
    match watching.end().lost() {
        0 => taken,
        lost => Err(format!("{lost} events were lost").into()),
    }
}

fn least(all: &[f64]) -> f64 {
    all.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Runs the work in a process of its own; returns ns per event.
fn each(work: &Work, cpu: Cpu, times: u32) -> Result<f64, Box<dyn Error>> {
    let (mut ours, mut theirs) = UnixStream::pair()?;
    // SAFETY: this process has no other thread that could hold a lock of the child's but the
    // one that reads events, which holds none while it sleeps or copies.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let ready = isolate::pin(cpu).is_ok() && outranks();
        let begun = Instant::now();
        let ran = ready && (work.run)(times).is_ok();
        let taken = if ran { begun.elapsed().as_nanos() } else { 0 };
        let _ = theirs.write_all(&u64::try_from(taken).unwrap_or(0).to_le_bytes());
        // SAFETY: ends the child without running the parent's destructors.
        unsafe { libc::_exit(0) };
    }
    drop(theirs);
    let mut taken = [0; 8];
    ours.read_exact(&mut taken)?;
    // SAFETY: `child` is our own child, not yet waited for.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    match u64::from_le_bytes(taken) {
        0 => Err("the work did not run: it needs root".into()),
        taken => Ok(Duration::from_nanos(taken).as_secs_f64() * 1e9 / f64::from(times)),
    }
}

/// Raises the priority above ordinary tasks, also of threads.
fn outranks() -> bool {
    let parameters = libc::sched_param { sched_priority: 50 };
    // SAFETY: `parameters` outlives the call, which only reads it.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) == 0 }
}

fn packets(times: u32) -> std::io::Result<()> {
    send(times, Duration::ZERO)
}

/// Sends packets to itself, one at a time.
fn send(times: u32, pause: Duration) -> std::io::Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(socket.local_addr()?)?;
    let mut packet = [0; 16];
    let begun = Instant::now();
    for sent in 0..times {
        while begun.elapsed() < pause * sent {}
        socket.send(&packet)?;
        socket.recv(&mut packet)?;
    }
    Ok(())
}

fn paced(times: u32) -> std::io::Result<()> {
    send(times, PAUSE)
}

/// Each time this thread yields, and the other yields to it.
fn switches(times: u32) -> std::io::Result<()> {
    let yields = || (0..times).for_each(|_| std::thread::yield_now());
    std::thread::scope(|scope| {
        scope.spawn(yields);
        yields();
    });
    Ok(())
}

/// A `bpftrace` that runs until it is dropped.
struct Tracer(Child);

impl Tracer {
    fn start(program: &str) -> std::io::Result<Self> {
        // It looks for tracepoints below debugfs, which is mounted for it alone.
        let script = "mount -t debugfs none /sys/kernel/debug; exec bpftrace -e \"$0\"";
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", script, program]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        std::thread::sleep(ATTACHING);
        match child.try_wait()? {
            None => Ok(Self(child)),
            Some(_) => Err(std::io::ErrorKind::NotFound.into()),
        }
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
