//! The cost of counting wake-ups, and that none is lost: `cargo bench -p blame --bench wakers`.
//! Needs root.
//!
//! On each of two CPUs two threads wake each other through a futex, as fast as they can,
//! alternately with and without counting. The fastest rounds of each are compared, as other work
//! only slows them down. The expected number of wake-ups is that of `futex(2)`, and the counts must
//! always be equal to it, thread by thread.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use blame::WakerWatch;
use facts::{Facts, Root};
use recording::{Body, WakersSpec};
use units::{Cpu, Nanos};

/// The number of rounds of each.
const ROUNDS: usize = 7;
/// The number of wake-ups by each thread in a round.
const TIMES: u64 = 50_000;
/// The required rate of wake-ups per second, on two CPUs.
const RATE: f64 = 200_000.0;
/// The largest part of a thread's time that counting may take at that rate.
const PART: f64 = 0.1;

/// One of two threads that wake each other.
#[derive(Default)]
struct Player {
    /// Whether it has the turn, which it waits for.
    turn: AtomicU32,
    tid: AtomicU32,
    /// How often it was woken, according to its wakers.
    woken: AtomicU64,
}

impl Player {
    /// Waits for its turn, and takes it.
    fn wait(&self) {
        while self.turn.swap(0, Ordering::SeqCst) == 0 {
            futex(&self.turn, libc::FUTEX_WAIT, 0);
        }
    }

    /// Gives it the turn, and wakes it if it waits.
    fn wake(&self) {
        self.turn.store(1, Ordering::SeqCst);
        self.woken.fetch_add(futex(&self.turn, libc::FUTEX_WAKE, 1), Ordering::SeqCst);
    }

    fn play(&self, other: &Self) {
        for _ in 0..TIMES {
            self.wait();
            other.wake();
        }
    }
}

/// The number of woken threads.
fn futex(word: &AtomicU32, call: libc::c_int, value: u32) -> u64 {
    let call = call | libc::FUTEX_PRIVATE_FLAG;
    let none = std::ptr::null::<libc::timespec>();
    // SAFETY: the word outlives the call; there is no timeout.
    let woken =
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), call, value, none) };
    u64::try_from(woken).unwrap_or(0)
}

/// Two players on a CPU; they wait for the first turn.
struct Game {
    players: [Arc<Player>; 2],
    threads: Vec<JoinHandle<()>>,
}

impl Game {
    fn start(cpu: Cpu) -> Self {
        let players: [Arc<Player>; 2] = Default::default();
        let thread = |at: usize| {
            let [own, other] = [at, 1 - at].map(|at| Arc::clone(&players[at]));
            thread::spawn(move || {
                if isolate::pin(cpu).is_err() {
                    return;
                }
                // SAFETY: takes no arguments.
                let tid = unsafe { libc::gettid() };
                own.tid.store(tid.try_into().unwrap_or(0), Ordering::SeqCst);
                own.play(&other);
            })
        };
        let threads = vec![thread(0), thread(1)];
        Self { players, threads }
    }

    /// Whether both sleep, so that only a turn wakes them.
    fn is_ready(&self) -> bool {
        self.players.iter().all(|player| {
            let tid = player.tid.load(Ordering::SeqCst);
            let stat = std::fs::read_to_string(format!("/proc/self/task/{tid}/stat"));
            tid > 0 && stat.is_ok_and(|stat| stat.contains(") S "))
        })
    }
}

/// Plays on all CPUs at once; returns the duration.
fn play(games: &mut [Game]) -> Duration {
    let begun = Instant::now();
    for game in games.iter() {
        game.players[0].wake();
    }
    for thread in games.iter_mut().flat_map(|game| game.threads.drain(..)) {
        let _ = thread.join();
    }
    begun.elapsed()
}

fn ready(cpus: &[Cpu]) -> Vec<Game> {
    let games: Vec<Game> = cpus.iter().map(|cpu| Game::start(*cpu)).collect();
    while !games.iter().all(Game::is_ready) {
        thread::sleep(Duration::from_millis(1));
    }
    games
}

/// Plays while wake-ups are counted, and compares the counts; returns the duration.
fn counted(cpus: &[Cpu], facts: &Facts) -> Result<Duration, Box<dyn Error>> {
    let duration_ns = Nanos::from_secs(1);
    let spec = WakersSpec { cpus: None, duration_ns, top: 20, process: None };
    let mut games = ready(cpus);
    let watch = WakerWatch::start(&spec, facts)?;
    let took = play(&mut games);
    let recording = watch.end(false)?;
    if let Some(doubt) = recording.doubts.first() {
        return Err(doubt.to_string().into());
    }
    let Body::Wakers { series, .. } = recording.body else {
        return Err("no wakers".into());
    };
    for player in games.iter().flat_map(|game| &game.players) {
        let tid = player.tid.load(Ordering::SeqCst);
        let found = series.threads.iter().find(|thread| thread.tid == tid);
        let found = found.map_or(0, |thread| thread.wakeups);
        let woken = player.woken.load(Ordering::SeqCst);
        if found != woken {
            return Err(format!("{found} wake-ups of {woken} were counted").into());
        }
    }
    Ok(took)
}

fn main() -> Result<(), Box<dyn Error>> {
    let facts = Facts::read(&Root::live());
    let allowed = facts.cpus.allowed.value().map_err(ToString::to_string)?;
    let cpus: Vec<Cpu> = allowed.iter().take(2).collect();
    let (mut bare, mut watched) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bare.push(play(&mut ready(&cpus)).as_secs_f64());
        watched.push(counted(&cpus, &facts)?.as_secs_f64());
    }
    let least = |all: &[f64]| all.iter().copied().fold(f64::INFINITY, f64::min);
    let each = f64::from(u32::try_from(2 * TIMES)?);
    let (bare, watched) = (least(&bare) / each, least(&watched) / each);
    let on = f64::from(u32::try_from(cpus.len())?);
    println!("wake-ups on {} CPUs, the fastest of {ROUNDS} rounds", cpus.len());
    println!("  uncounted  {:>9.0} a second", on / bare);
    let rate = on / watched;
    println!("  counted    {rate:>9.0} a second   {:.2} of at most 1.00", RATE / rate);
    let cost = watched - bare;
    let part = cost * RATE / on;
    println!("  cost       {:>9.0} ns each", cost * 1e9);
    println!("    at {RATE:.0} a second {part:.3} of each CPU's time, at most {PART:.2}");
    println!("  all were counted, thread by thread");
    Ok(())
}
