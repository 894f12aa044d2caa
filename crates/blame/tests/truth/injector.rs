//! Processes and threads that make noise on a CPU, and log it.

use std::io::{Read, Write};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use units::{Cpu, Nanos};

/// Above the spinner's.
const PRIORITY: libc::c_int = 10;
/// The packets of a burst, each of which is a separate softirq.
pub(crate) const PACKETS: u64 = 20;
const PERIOD: Nanos = Nanos::from_millis(10);

/// A burst of noise.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Burst {
    /// On `CLOCK_MONOTONIC`.
    pub(crate) begin: Nanos,
    pub(crate) end: Nanos,
    /// Its total CPU time when it began.
    pub(crate) ran: Nanos,
    /// Its CPU time from then until the end.
    pub(crate) spent: Nanos,
    /// Its computing time without interruptions, as far as it noticed them.
    pub(crate) burnt: Nanos,
}

/// A process or a thread that makes noise until it is stopped.
pub(crate) enum Injector {
    Process {
        child: libc::pid_t,
        log: UnixStream,
    },
    Thread {
        stop: Arc<AtomicBool>,
        thread: JoinHandle<()>,
    },
    /// It is not available, for that reason.
    None(&'static str),
}

impl Injector {
    /// Stops it; returns its log.
    pub(crate) fn stop(self) -> Vec<Burst> {
        match self {
            Self::Process { child, mut log } => {
                // SAFETY: `child` is our own child, not yet waited for.
                unsafe {
                    libc::kill(child, libc::SIGKILL);
                    libc::waitpid(child, std::ptr::null_mut(), 0);
                }
                let mut bytes = Vec::new();
                log.read_to_end(&mut bytes).unwrap();
                bytes.chunks_exact(Burst::BYTES).map(Burst::from_bytes).collect()
            }
            Self::Thread { stop, thread } => {
                stop.store(true, Ordering::Relaxed);
                thread.join().unwrap();
                Vec::new()
            }
            Self::None(_) => Vec::new(),
        }
    }
}

impl Burst {
    const BYTES: usize = 40;

    fn to_bytes(self) -> Vec<u8> {
        let times = [self.begin, self.end, self.ran, self.spent, self.burnt];
        times.map(|time| time.get().to_le_bytes()).concat()
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let time = |at: usize| {
            Nanos::from_nanos(u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()))
        };
        Self {
            begin: time(0),
            end: time(8),
            ran: time(16),
            spent: time(24),
            burnt: time(32),
        }
    }
}

pub(crate) fn now(clock: libc::clockid_t) -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the kernel to write.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Nanos::from_secs(time.tv_sec.try_into().unwrap())
        + Nanos::from_nanos(time.tv_nsec.try_into().unwrap())
}

/// A process of that name on that CPU, above the spinner, that does `noise` until it is killed.
fn process(
    cpu: Cpu,
    name: &std::ffi::CStr,
    noise: fn(UnixStream) -> std::io::Result<()>,
) -> Injector {
    let (mut ours, mut theirs) = UnixStream::pair().unwrap();
    make_room(&theirs);
    // SAFETY: the child computes, sleeps, and uses its own sockets and threads, then
    // _exits; it takes no lock that another thread of this process could have held.
    let child = unsafe { libc::fork() };
    if child == 0 {
        drop(ours);
        // SAFETY: `name` is a string that ends in a zero.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
        let ready = isolate::pin(cpu).is_ok() && outranks();
        let _ = theirs.write_all(&[u8::from(ready)]);
        if ready {
            let _ = noise(theirs);
        }
        // SAFETY: ends the child without running the parent's destructors.
        unsafe { libc::_exit(0) };
    }
    drop(theirs);
    let mut ready = [0];
    ours.read_exact(&mut ready).unwrap();
    let injector = Injector::Process { child, log: ours };
    if ready == [1] {
        return injector;
    }
    injector.stop();
    Injector::None("SCHED_FIFO is not allowed here")
}

/// Gives the log room for minutes: it is read at the end, and on a busy machine it takes seconds to open a source
/// of events. A kernel stores a short message with hundreds of bytes of its own, and 278 of them by default.
fn make_room(log: &UnixStream) {
    let bytes: libc::c_int = 16 << 20;
    // SAFETY: `bytes` outlives the call, which reads that many bytes of it. Without the privilege the
    // buffer stays as it is.
    unsafe {
        libc::setsockopt(
            log.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_SNDBUFFORCE,
            (&raw const bytes).cast(),
            libc::socklen_t::try_from(size_of_val(&bytes)).unwrap(),
        );
    }
}

/// Raises the priority above the spinner, also of threads that it starts.
fn outranks() -> bool {
    let parameters = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: `parameters` outlives the call, which only reads it.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) == 0 }
}

/// Sleeps, makes a burst, and logs it, repeatedly.
fn again(mut log: UnixStream, mut burst: impl FnMut() -> Nanos) -> std::io::Result<()> {
    loop {
        std::thread::sleep(PERIOD.into());
        let ran = now(libc::CLOCK_THREAD_CPUTIME_ID);
        let begin = now(libc::CLOCK_MONOTONIC);
        let burnt = burst();
        let end = now(libc::CLOCK_MONOTONIC);
        let spent = now(libc::CLOCK_THREAD_CPUTIME_ID).saturating_sub(ran);
        log.write_all(&Burst { begin, end, ran, spent, burnt }.to_bytes())?;
    }
}

/// Spins for that long; returns the part without interruptions.
fn spin(length: Nanos) -> Nanos {
    let begin = now(libc::CLOCK_MONOTONIC);
    let (mut last, mut burnt) = (begin, Nanos::ZERO);
    while last < begin + length {
        let time = now(libc::CLOCK_MONOTONIC);
        let pass = time.saturating_sub(last);
        if pass < Nanos::from_micros(2) {
            burnt = burnt + pass;
        }
        last = time;
    }
    burnt
}

/// Takes 200 us of every 10 ms.
pub(crate) fn thief(cpu: Cpu) -> Injector {
    process(cpu, c"nf-thief", |log| again(log, || spin(Nanos::from_micros(200))))
}

/// Reads a timer of 1 ms. On a real-time kernel that timer expires in a thread below the spinner,
/// so it would never expire.
pub(crate) fn timer(cpu: Cpu) -> Injector {
    let version = std::fs::read_to_string("/proc/version");
    if version.is_ok_and(|version| version.contains("PREEMPT_RT")) {
        return Injector::None("it is a real-time kernel");
    }
    process(cpu, c"nf-timer", |_log| {
        let each = libc::timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        let each = libc::itimerspec { it_interval: each, it_value: each };
        let mut expired = 0_u64;
        // SAFETY: `each` is a valid time to set, and `expired` has the given length.
        unsafe {
            let timer = libc::timerfd_create(libc::CLOCK_MONOTONIC, 0);
            libc::timerfd_settime(timer, 0, &raw const each, std::ptr::null_mut());
            while libc::read(timer, (&raw mut expired).cast(), 8) == 8 {}
        }
        Err(std::io::Error::last_os_error())
    })
}

/// Sleeps for a millisecond, repeatedly.
pub(crate) fn sleeper(cpu: Cpu) -> Injector {
    process(cpu, c"nf-sleeper", |_log| {
        loop {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    })
}

/// Sends packets to itself, [`PACKETS`] at a time.
pub(crate) fn udp(cpu: Cpu) -> Injector {
    process(cpu, c"nf-udp", |log| {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.connect(socket.local_addr()?)?;
        let mut packet = [0; 64];
        again(log, || {
            for _ in 0..PACKETS {
                let sent = socket.send(&packet);
                let _ = sent.and_then(|_| socket.recv(&mut packet));
            }
            Nanos::ZERO
        })
    })
}

/// Raises a CPU's ksoftirqd above the spinner until this is dropped. Once that thread waits for the
/// CPU, kernels before 6.5 defer every softirq (`ksoftirqd_running` in kernel/softirq.c), and a
/// real-time spinner would never let it run: no packet would arrive.
pub(crate) struct Deferred {
    thread: libc::pid_t,
    before: (libc::c_int, libc::sched_param),
}

impl Deferred {
    /// `None` if that thread is not visible.
    pub(crate) fn outranks_on(cpu: Cpu) -> Option<Self> {
        let name = format!("ksoftirqd/{cpu}\n");
        let is_it = |pid: &libc::pid_t| {
            std::fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|comm| comm == name)
        };
        let entries = std::fs::read_dir("/proc").ok()?.flatten();
        let mut pids =
            entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let thread = pids.find(is_it)?;
        let mut before = libc::sched_param { sched_priority: 0 };
        let above = libc::sched_param { sched_priority: PRIORITY };
        // SAFETY: both outlive the calls, which read the one and write the other.
        let policy = unsafe {
            libc::sched_getparam(thread, &raw mut before);
            let policy = libc::sched_getscheduler(thread);
            libc::sched_setscheduler(thread, libc::SCHED_FIFO, &raw const above);
            policy
        };
        Some(Self { thread, before: (policy, before) })
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        let (policy, before) = &self.before;
        // SAFETY: `before` outlives the call, which only reads it.
        unsafe { libc::sched_setscheduler(self.thread, *policy, &raw const *before) };
    }
}

/// Three threads that yield to one another.
pub(crate) fn yields(cpu: Cpu) -> Injector {
    process(cpu, c"nf-yield", |log| {
        let yields = || (0..50).for_each(|_| std::thread::yield_now());
        again(log, || {
            std::thread::scope(|scope| {
                let others = [(); 2].map(|()| scope.spawn(yields));
                yields();
                others.into_iter().for_each(|other| other.join().unwrap());
            });
            Nanos::ZERO
        })
    })
}

/// A thread of this process on another CPU, which causes barriers on the spinner's CPU.
pub(crate) fn membarriers(cpu: Cpu) -> Injector {
    if !is_registered() {
        return Injector::None("membarrier(2) is not allowed here");
    }
    elsewhere(cpu, || {
        membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
        std::thread::sleep(std::time::Duration::from_micros(500));
    })
}

/// A thread of this process on another CPU, which causes backtraces of the spinner's CPU: the
/// kernel requests them with an NMI, and prints them to its log.
pub(crate) fn nmis(cpu: Cpu) -> Injector {
    elsewhere(cpu, || {
        std::fs::write("/proc/sysrq-trigger", "l").unwrap();
        std::thread::sleep(PERIOD.into());
    })
}

/// A thread of this process on another CPU than this one, which repeats `act`.
fn elsewhere(cpu: Cpu, act: impl Fn() + Send + 'static) -> Injector {
    let facts = facts::Facts::read(&facts::Root::live());
    let others = facts.cpus.allowed.get().unwrap().without(&[cpu].into_iter().collect());
    let Some(other) = others.first() else { return Injector::None("there is one CPU") };
    let stop = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&stop);
    let thread = std::thread::spawn(move || {
        isolate::pin(other).unwrap();
        while !told.load(Ordering::Relaxed) {
            act();
        }
    });
    Injector::Thread { stop, thread }
}

fn is_registered() -> bool {
    membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0
}

fn membarrier(command: libc::c_int) -> libc::c_long {
    // SAFETY: the call takes numbers only.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) }
}
