//! A CPU for one thread: picked, kept free, taken, waited for, and given back.

use std::ffi::{c_char, c_int};
use std::sync::Mutex;

use facts::{Facts, Root};
use ffi::code::{NF_LATE, NF_OK, NF_SYSTEM};
use ffi::{AtExit, Failure, caught, guard, lock};
use isolate::{Entry, Fate, KeptBy, Locked, Pick, Returned, Seat, Wait, Wishes};
use units::{Cpu, Nanos};

use crate::handle::Handles;
use crate::layout::{self, Growing, null};

/// Take the CPU of the field cpu, not the best one: the first whose tick can stop, else the
/// first isolated one, else the least interrupted one; CPU 0 only if asked for.
pub const NF_ON_CPU: u32 = 1;
/// Let real-time threads have all of the CPU's time (RT throttling, and since Linux 6.12 the
/// fair server).
pub const NF_UNTHROTTLED: u32 = 2;
/// Move device interrupts off the CPU.
pub const NF_IRQS: u32 = 4;
/// Move unbound workqueues off the CPU.
pub const NF_WORKQUEUES: u32 = 8;
/// Move the kernel's movable threads off the CPU.
pub const NF_KTHREADS: u32 = 16;
/// Put this process into an isolated partition of the CPU (cgroup v2).
pub const NF_PARTITION: u32 = 32;
/// Let no CPU sleep so deep that it takes longer than dma_latency_us to wake.
pub const NF_DMA_LATENCY: u32 = 64;

/// For nf_enter: SCHED_FIFO, before ordinary threads. Threads that are started are ordinary.
pub const NF_FIFO: u32 = 256;
/// For nf_enter: lock the process's memory, all of it there and near the CPU.
pub const NF_MEMORY: u32 = 512;

/// For nf_wait: leave the CPU now and then and come back, so that the kernel tries again.
pub const NF_FORCED: u32 = 4096;
/// For nf_wait: make sure that the ticks do not come any more, which takes five of them.
pub const NF_CONFIRMED: u32 = 8192;

/// A CPU that is kept free.
pub struct Isolation {
    _nothing: (),
}

/// What to do for a CPU. Set size to sizeof(nf_options), and everything else to zero but for
/// what is wanted.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// sizeof(nf_options).
    pub size: usize,
    /// NF_ON_CPU, NF_UNTHROTTLED, ..., NF_DMA_LATENCY, added up.
    pub wishes: u32,
    /// The CPU, with NF_ON_CPU.
    pub cpu: u32,
    /// Microseconds, with NF_DMA_LATENCY.
    pub dma_latency_us: u32,
    /// Zero.
    pub reserved: u32,
}

// SAFETY: numbers without padding, the first of them a usize.
unsafe impl Growing for Options {}

/// What a handle is of.
struct Held {
    facts: Facts,
    pick: Pick,
    done: usize,
    refused: String,
    // What is given back, in this order: the thread first.
    seat: Mutex<Option<Taken>>,
    isolation: Mutex<Option<isolate::Isolation>>,
}

/// What the thread has that entered.
struct Taken {
    seat: Seat,
    _memory: Option<Locked>,
}

static ISOLATIONS: Handles<Isolation, Held> = Handles::new();

static AT_EXIT: AtExit = AtExit::new(release_all);

/// Restores settings at the end of the process. What fails stays in the journal.
extern "C" fn release_all() {
    let _ = caught(|| {
        drop(ISOLATIONS.take_all());
        Ok(())
    });
}

/// Keeps a CPU free as far as this process may. What it may not is no failure: nf_refused()
/// tells. Every setting that is changed is written down on disk first, and put back by
/// nf_release(), when the process ends by exit() or by returning from main(), and after
/// anything else (SIGKILL, abort(), _exit()) by the next program that uses this library, by
/// nf_restore() or by `noisefloor restore`. What a killed program has left is put back first.
///
/// options may be null: the best CPU, and nothing is changed. Returns NF_OK and a handle in
/// isolation, or a code below zero.
///
/// # Safety
/// The options are as long as they say; there is a place for the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_isolate(
    options: *const Options,
    isolation: *mut *mut Isolation,
) -> c_int {
    guard(|| {
        if isolation.is_null() {
            return Err(null("the place for the handle"));
        }
        // SAFETY: the caller's promise.
        let wishes = wishes(unsafe { layout::read(options) }?)?;
        let facts = Facts::read(&Root::live());
        AT_EXIT.register()?;
        let begun = isolate::Isolation::begin(&wishes, &facts)?;
        let held = Held {
            pick: begun.pick().clone(),
            done: begun.done(),
            refused: lines(begun.refused()),
            seat: Mutex::new(None),
            isolation: Mutex::new(Some(begun)),
            facts,
        };
        // SAFETY: it is not null, and the caller's promise.
        unsafe { layout::put(isolation, ISOLATIONS.put(held)) };
        Ok(NF_OK)
    })
}

/// The number of the CPU, or a code below zero.
#[unsafe(no_mangle)]
pub extern "C" fn nf_cpu(isolation: *const Isolation) -> c_int {
    guard(|| {
        let cpu = ISOLATIONS.get(isolation)?.pick.cpu.get();
        c_int::try_from(cpu).map_err(Failure::usage)
    })
}

/// How many settings were changed, or were so already; or a code below zero.
#[unsafe(no_mangle)]
pub extern "C" fn nf_done(isolation: *const Isolation) -> c_int {
    guard(|| Ok(c_int::try_from(ISOLATIONS.get(isolation)?.done).unwrap_or(c_int::MAX)))
}

/// Writes to text what could not be done and what would help, a line each; nothing where all
/// was done. At most size bytes are written, the last one a zero. Returns how long the whole
/// text is without it, or a code below zero; text may be null.
///
/// # Safety
/// There is room for the text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_refused(
    isolation: *const Isolation,
    text: *mut c_char,
    size: usize,
) -> c_int {
    guard(|| {
        let held = ISOLATIONS.get(isolation)?;
        // SAFETY: the caller's promise.
        unsafe { layout::text(&held.refused, text, size) }
    })
}

/// Lets the calling thread run on the CPU only, and with wishes (NF_FIFO, NF_MEMORY) more than
/// that. priority is that of SCHED_FIFO, 1 to 99, or 0 for the highest. It is done as a whole or
/// not at all. One thread at a time can have the CPU.
#[unsafe(no_mangle)]
pub extern "C" fn nf_enter(
    isolation: *mut Isolation,
    wishes: u32,
    priority: c_int,
) -> c_int {
    guard(|| {
        let held = ISOLATIONS.get(isolation)?;
        known(wishes, NF_FIFO | NF_MEMORY)?;
        let fifo = priority_of(wishes, priority)?;
        let mut taken = lock(&held.seat);
        if taken.is_some() {
            return Err(Failure::usage("a thread has the CPU: nf_leave() lets it go"));
        }
        let seat = Seat::take(held.pick.cpu, fifo)?;
        let memory = (wishes & NF_MEMORY != 0)
            .then(|| isolate::lock_memory(held.pick.cpu, &held.facts));
        *taken = Some(Taken { seat, _memory: memory.transpose()? });
        Ok(NF_OK)
    })
}

/// Gives the thread that has entered its affinity, policy and priority back, and its memory.
/// Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn nf_leave(isolation: *mut Isolation) -> c_int {
    guard(|| {
        let held = ISOLATIONS.get(isolation)?;
        let taken = lock(&held.seat).take();
        let taken = taken.ok_or_else(|| Failure::usage("no thread has entered"))?;
        taken.seat.leave()?;
        Ok(NF_OK)
    })
}

/// Waits until the tick of the CPU has stopped, which the calling thread has entered, at most
/// limit_ns nanoseconds; with 0 it looks once. how is NF_FORCED, NF_CONFIRMED, both or 0. The
/// thread spins. How long it took is written to waited_ns, unless that is null.
///
/// Returns NF_OK; NF_LATE where the tick goes on, and nf_last_error() says what keeps it, for
/// which the thread spins for 25 ticks more; NF_UNSUPPORTED where the kernel never stops it.
///
/// # Safety
/// Where waited_ns is not null, it may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_wait(
    isolation: *mut Isolation,
    limit_ns: u64,
    how: u32,
    waited_ns: *mut u64,
) -> c_int {
    guard(|| {
        let held = ISOLATIONS.get(isolation)?;
        known(how, NF_FORCED | NF_CONFIRMED)?;
        if !lock(&held.seat).as_ref().is_some_and(|taken| taken.seat.is_own()) {
            return Err(Failure::usage("this thread has not entered"));
        }
        let Pick { cpu, others, .. } = &held.pick;
        isolate::nohz_full(*cpu, &held.facts)?;
        let wait = Wait {
            limit: Nanos::from_nanos(limit_ns),
            forced: how & NF_FORCED != 0,
            confirmed: how & NF_CONFIRMED != 0,
            stop: None,
        };
        let entry = isolate::wait_for_nohz(&wait, others, &held.facts)?;
        // SAFETY: the caller's promise.
        unsafe { layout::put(waited_ns, entry.waited.get()) };
        if entry.entered { Ok(NF_OK) } else { Err(late(*cpu, &entry)) }
    })
}

/// Gives everything back: to the thread that entered, and to the machine what no other program
/// needs as well. What somebody else has changed meanwhile stays. The handle is none any more,
/// whatever is returned; another nf_release() of it is NF_USAGE.
#[unsafe(no_mangle)]
pub extern "C" fn nf_release(isolation: *mut Isolation) -> c_int {
    guard(|| {
        let held = ISOLATIONS.take(isolation)?;
        // Whatever becomes of the thread, the machine is given back.
        let left = lock(&held.seat).take().map_or(Ok(()), |taken| taken.seat.leave());
        let isolation = lock(&held.isolation).take();
        told(isolation.map_or(Ok(Vec::new()), isolate::Isolation::end)?)?;
        left?;
        Ok(NF_OK)
    })
}

/// Puts back what programs have left changed that were killed. Returns how many settings were
/// put back, or a code below zero.
#[unsafe(no_mangle)]
pub extern "C" fn nf_restore() -> c_int {
    guard(|| told(isolate::restore()?))
}

/// How many settings are as they were; those that are not are a failure.
fn told(returned: Vec<Returned>) -> Result<c_int, Failure> {
    let refused = returned.iter().filter_map(|one| match &one.fate {
        Fate::Refused(why) => {
            Some(format!("{} is not {} again: {why}", one.setting, one.old))
        }
        _ => None,
    });
    let refused: Vec<String> = refused.collect();
    if !refused.is_empty() {
        return Err(Failure::new(NF_SYSTEM, refused.join("\n")));
    }
    let restored = returned.iter().filter(|one| one.fate == Fate::Restored).count();
    Ok(c_int::try_from(restored).unwrap_or(c_int::MAX))
}

fn wishes(options: Option<Options>) -> Result<Wishes, Failure> {
    let Some(options) = options else { return Ok(Wishes::default()) };
    let all = NF_ON_CPU
        | NF_UNTHROTTLED
        | NF_IRQS
        | NF_WORKQUEUES
        | NF_KTHREADS
        | NF_PARTITION
        | NF_DMA_LATENCY;
    known(options.wishes, all)?;
    let is = |wish| options.wishes & wish != 0;
    for (number, wish) in
        [(options.cpu, NF_ON_CPU), (options.dma_latency_us, NF_DMA_LATENCY)]
    {
        if number != 0 && !is(wish) {
            let text = "cpu needs NF_ON_CPU, and dma_latency_us NF_DMA_LATENCY";
            return Err(Failure::usage(text));
        }
    }
    if options.reserved != 0 {
        return Err(Failure::usage("the field reserved is not zero"));
    }
    Ok(Wishes {
        cpus: is(NF_ON_CPU).then(|| Cpu::new(options.cpu).into()),
        unthrottled: is(NF_UNTHROTTLED),
        irqs: is(NF_IRQS),
        workqueues: is(NF_WORKQUEUES),
        kthreads: is(NF_KTHREADS),
        partition: is(NF_PARTITION),
        dma_latency_us: is(NF_DMA_LATENCY).then_some(options.dma_latency_us),
    })
}

fn known(wishes: u32, all: u32) -> Result<(), Failure> {
    if wishes & !all == 0 {
        return Ok(());
    }
    Err(Failure::usage(format!("nothing is called {:#x} here", wishes & !all)))
}

fn priority_of(wishes: u32, priority: c_int) -> Result<Option<u8>, Failure> {
    let refuse = |text: &str| Err(Failure::usage(text));
    match (wishes & NF_FIFO != 0, u8::try_from(priority)) {
        (false, Ok(0)) => Ok(None),
        (false, _) => refuse("a priority needs NF_FIFO"),
        (true, Ok(0)) => Ok(Some(isolate::highest_priority())),
        (true, Ok(priority @ 1..=99)) => Ok(Some(priority)),
        (true, _) => refuse("SCHED_FIFO priorities are 1 to 99, or 0 for the highest"),
    }
}

fn late(cpu: Cpu, entry: &Entry) -> Failure {
    let kept_by = match &entry.kept_by {
        Ok(kept_by) => words(kept_by),
        Err(why) => why.to_string(),
    };
    let ms = entry.waited.get() / 1_000_000;
    let text = format!("the tick of CPU {cpu} did not stop in {ms} ms: {kept_by}");
    Failure::new(NF_LATE, text)
}

fn words(kept_by: &KeptBy) -> String {
    let each =
        kept_by.iter().map(|(what, times)| format!("{what} kept it {times} times"));
    let each: Vec<String> = each.collect();
    if each.is_empty() {
        "the kernel does not say why".to_owned()
    } else {
        each.join(", ")
    }
}

fn lines(refused: &[isolate::Error]) -> String {
    let lines: Vec<String> = refused.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
