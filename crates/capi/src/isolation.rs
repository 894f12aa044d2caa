//! A CPU for one thread: selected, isolated, entered, and released.

use std::ffi::{c_char, c_int};
use std::sync::Mutex;

use facts::{Facts, Root};
use ffi::code::{NF_LATE, NF_OK, NF_SYSTEM};
use ffi::{AtExit, Failure, caught, guard, lock};
use isolate::{
    IsolationOptions, KeptBy, LockedMemory, NohzOutcome, NohzWait, Pick, PinnedThread,
    RestoreOutcome, RestoredSetting,
};
use units::{Cpu, Nanos, chain};

use crate::handle::Handles;
use crate::layout::{self, Growing, null};

/// Use the CPU in the field cpu. Default: the first CPU whose tick can stop, else the first
/// isolated CPU, else the one with the fewest interrupts since boot; never CPU 0.
pub const NF_ON_CPU: u32 = 1;
/// Disable real-time throttling, and since Linux 6.12 the CPU's fair server.
pub const NF_UNTHROTTLED: u32 = 2;
/// Move device interrupts to other CPUs.
pub const NF_IRQS: u32 = 4;
/// Move unbound workqueues to other CPUs.
pub const NF_WORKQUEUES: u32 = 8;
/// Move kernel threads that are not bound to the CPU to other CPUs.
pub const NF_KTHREADS: u32 = 16;
/// Put this process into an isolated partition of the CPU (cgroup v2).
pub const NF_PARTITION: u32 = 32;
/// Limit the exit latency of idle states to dma_latency_us, on all CPUs (/dev/cpu_dma_latency).
pub const NF_DMA_LATENCY: u32 = 64;

/// For nf_enter(): SCHED_FIFO. New threads and processes get SCHED_OTHER (SCHED_RESET_ON_FORK).
pub const NF_FIFO: u32 = 256;
/// For nf_enter(): lock the process's memory: all pages are resident, and on the CPU's NUMA node
/// where possible.
pub const NF_MEMORY: u32 = 512;

/// For nf_wait(): repeatedly leave the CPU for a moment and return, so that the kernel tries again
/// to stop the tick.
pub const NF_FORCED: u32 = 4096;
/// For nf_wait(): check that the tick has stopped by counting its interrupts for five periods.
pub const NF_CONFIRMED: u32 = 8192;

/// An isolated CPU.
pub struct Isolation {
    _nothing: (),
}

/// Which CPU to isolate, and how. Set size to sizeof(nf_options) and unused fields to zero.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// sizeof(nf_options).
    pub size: usize,
    /// Bitwise OR of NF_ON_CPU, NF_UNTHROTTLED, ..., NF_DMA_LATENCY.
    pub flags: u32,
    /// The CPU; only with NF_ON_CPU.
    pub cpu: u32,
    /// Microseconds; only with NF_DMA_LATENCY.
    pub dma_latency_us: u32,
    /// Must be zero.
    pub reserved: u32,
}

// SAFETY: integers without padding, the first of them a usize.
unsafe impl Growing for Options {}

/// The object of a handle.
struct Held {
    facts: Facts,
    pick: Pick,
    done: usize,
    refused: String,
    // Dropped in this order: the thread is restored first.
    seat: Mutex<Option<Taken>>,
    isolation: Mutex<Option<isolate::Isolation>>,
}

/// The state of the thread that has entered, to be restored.
struct Taken {
    thread: PinnedThread,
    _memory: Option<LockedMemory>,
}

static ISOLATIONS: Handles<Isolation, Held> = Handles::new();

static AT_EXIT: AtExit = AtExit::new(release_all);

/// Restores settings at the end of the process. Failed settings remain in the journal.
extern "C" fn release_all() {
    let _ = caught(|| {
        drop(ISOLATIONS.take_all());
        Ok(())
    });
}

/// Isolates a CPU as far as this process's privileges allow; nf_refused() lists what they do not.
/// Each setting is recorded on disk before it is changed. It is restored by nf_release(), by
/// exit() and by returning from main(); after any other end of the process (SIGKILL, abort(),
/// _exit()) by the next program that uses this library, by nf_restore() or by
/// `noisefloor restore`. Settings left behind by a killed program are restored first.
///
/// With options null, the default CPU is used and no setting is changed. Returns NF_OK and stores
/// a handle in isolation, or returns an error code.
///
/// # Safety
/// The options have the size that they state; the handle can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_isolate(
    options: *const Options,
    isolation: *mut *mut Isolation,
) -> c_int {
    guard(|| {
        if isolation.is_null() {
            return Err(null("isolation"));
        }
        // SAFETY: the caller guarantees it.
        let options = isolation_options(unsafe { layout::read(options) }?)?;
        let facts = Facts::read(&Root::live());
        AT_EXIT.register()?;
        let begun = isolate::Isolation::begin(&options, &facts)?;
        let held = Held {
            pick: begun.pick().clone(),
            done: begun.done(),
            refused: lines(begun.refused()),
            seat: Mutex::new(None),
            isolation: Mutex::new(Some(begun)),
            facts,
        };
        // SAFETY: it is not null, and the caller guarantees the rest.
        unsafe { layout::put(isolation, ISOLATIONS.put(held)) };
        Ok(NF_OK)
    })
}

/// Returns the number of the CPU, or an error code.
#[unsafe(no_mangle)]
pub extern "C" fn nf_cpu(isolation: *const Isolation) -> c_int {
    guard(|| {
        let cpu = ISOLATIONS.get(isolation)?.pick.cpu.get();
        c_int::try_from(cpu).map_err(Failure::usage)
    })
}

/// Returns how many of the requested settings are in effect, whether they had to be changed or
/// not; or an error code.
#[unsafe(no_mangle)]
pub extern "C" fn nf_done(isolation: *const Isolation) -> c_int {
    guard(|| Ok(c_int::try_from(ISOLATIONS.get(isolation)?.done).unwrap_or(c_int::MAX)))
}

/// Writes to text which settings could not be changed, why, and what would help, one per line; the
/// text is empty if there are none. Like snprintf(), it writes at most size bytes including the
/// terminating null byte, and returns the length of the whole text without it; text may be null.
/// Returns an error code on failure.
///
/// # Safety
/// The text has that size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_refused(
    isolation: *const Isolation,
    text: *mut c_char,
    size: usize,
) -> c_int {
    guard(|| {
        let held = ISOLATIONS.get(isolation)?;
        // SAFETY: the caller guarantees it.
        unsafe { layout::text(&held.refused, text, size) }
    })
}

/// Pins the calling thread to the CPU. flags is NF_FIFO, NF_MEMORY, both or 0; priority is that of
/// SCHED_FIFO, 1 to 99, or 0 for the highest. If a part fails, nothing is changed. One thread at a
/// time can have entered.
#[unsafe(no_mangle)]
pub extern "C" fn nf_enter(
    isolation: *mut Isolation,
    flags: u32,
    priority: c_int,
) -> c_int {
    guard(|| {
        let held = ISOLATIONS.get(isolation)?;
        known(flags, NF_FIFO | NF_MEMORY)?;
        let fifo = priority_of(flags, priority)?;
        let mut taken = lock(&held.seat);
        if taken.is_some() {
            return Err(Failure::usage(
                "a thread has entered already; hint: call nf_leave()",
            ));
        }
        let thread = PinnedThread::new(held.pick.cpu, fifo)?;
        let memory = (flags & NF_MEMORY != 0)
            .then(|| isolate::lock_memory(held.pick.cpu, &held.facts));
        *taken = Some(Taken { thread, _memory: memory.transpose()? });
        Ok(NF_OK)
    })
}

/// Restores affinity, policy and priority of the thread that has entered, and unlocks the memory.
/// Any thread may call it.
#[unsafe(no_mangle)]
pub extern "C" fn nf_leave(isolation: *mut Isolation) -> c_int {
    guard(|| {
        let held = ISOLATIONS.get(isolation)?;
        let taken = lock(&held.seat).take();
        let taken = taken.ok_or_else(|| Failure::usage("no thread has entered"))?;
        taken.thread.restore()?;
        Ok(NF_OK)
    })
}

/// Waits until the tick has stopped on the CPU, for at most limit_ns nanoseconds; with 0 it checks
/// once. The calling thread must have entered; it spins. flags is NF_FORCED, NF_CONFIRMED, both or
/// 0. The time until the tick stopped is stored in waited_ns, which may be null.
///
/// Returns NF_OK; NF_LATE if the tick did not stop, after another 25 periods of the tick in which
/// the cause is determined for nf_last_error(); NF_UNSUPPORTED if the kernel never stops it.
///
/// # Safety
/// waited_ns is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_wait(
    isolation: *mut Isolation,
    limit_ns: u64,
    flags: u32,
    waited_ns: *mut u64,
) -> c_int {
    guard(|| {
        let held = ISOLATIONS.get(isolation)?;
        known(flags, NF_FORCED | NF_CONFIRMED)?;
        if !lock(&held.seat).as_ref().is_some_and(|taken| taken.thread.is_own()) {
            return Err(Failure::usage("this thread has not entered"));
        }
        let Pick { cpu, others, .. } = &held.pick;
        isolate::nohz_full(*cpu, &held.facts)?;
        let wait = NohzWait {
            limit: Nanos::from_nanos(limit_ns),
            forced: flags & NF_FORCED != 0,
            confirmed: flags & NF_CONFIRMED != 0,
            stop: None,
        };
        let entry = isolate::wait_for_nohz(&wait, others, &held.facts)?;
        // SAFETY: the caller guarantees it.
        unsafe { layout::put(waited_ns, entry.waited.get()) };
        if entry.entered { Ok(NF_OK) } else { Err(late(*cpu, &entry)) }
    })
}

/// Restores the thread that has entered, and all settings that no other program uses. Settings that
/// something else has changed meanwhile stay as they are. The handle is invalid afterwards, whatever
/// is returned: another nf_release() returns NF_USAGE.
#[unsafe(no_mangle)]
pub extern "C" fn nf_release(isolation: *mut Isolation) -> c_int {
    guard(|| {
        let held = ISOLATIONS.take(isolation)?;
        // The settings are restored even if the thread cannot be.
        let left = lock(&held.seat).take().map_or(Ok(()), |taken| taken.thread.restore());
        let isolation = lock(&held.isolation).take();
        count_restored(isolation.map_or(Ok(Vec::new()), isolate::Isolation::end)?)?;
        left?;
        Ok(NF_OK)
    })
}

/// Restores settings left behind by killed programs. Returns how many were restored, or an error
/// code.
#[unsafe(no_mangle)]
pub extern "C" fn nf_restore() -> c_int {
    guard(|| count_restored(isolate::restore()?))
}

/// The number of restored settings; one that could not be restored is a failure.
fn count_restored(returned: Vec<RestoredSetting>) -> Result<c_int, Failure> {
    let refused = returned.iter().filter_map(|one| {
        let RestoreOutcome::Refused(why) = &one.outcome else { return None };
        Some(format!("failed to restore {} to {}: {why}", one.setting, one.old))
    });
    let refused: Vec<String> = refused.collect();
    if !refused.is_empty() {
        return Err(Failure::new(NF_SYSTEM, refused.join("\n")));
    }
    let restored =
        returned.iter().filter(|one| one.outcome == RestoreOutcome::Restored).count();
    Ok(c_int::try_from(restored).unwrap_or(c_int::MAX))
}

fn isolation_options(options: Option<Options>) -> Result<IsolationOptions, Failure> {
    let Some(options) = options else { return Ok(IsolationOptions::default()) };
    let all = NF_ON_CPU
        | NF_UNTHROTTLED
        | NF_IRQS
        | NF_WORKQUEUES
        | NF_KTHREADS
        | NF_PARTITION
        | NF_DMA_LATENCY;
    known(options.flags, all)?;
    let is = |flag| options.flags & flag != 0;
    for (number, flag) in
        [(options.cpu, NF_ON_CPU), (options.dma_latency_us, NF_DMA_LATENCY)]
    {
        if number != 0 && !is(flag) {
            let text = "cpu needs NF_ON_CPU, and dma_latency_us NF_DMA_LATENCY";
            return Err(Failure::usage(text));
        }
    }
    if options.reserved != 0 {
        return Err(Failure::usage("the field reserved must be zero"));
    }
    Ok(IsolationOptions {
        cpus: is(NF_ON_CPU).then(|| Cpu::new(options.cpu).into()),
        unthrottled: is(NF_UNTHROTTLED),
        irqs: is(NF_IRQS),
        workqueues: is(NF_WORKQUEUES),
        kthreads: is(NF_KTHREADS),
        partition: is(NF_PARTITION),
        dma_latency_us: is(NF_DMA_LATENCY).then_some(options.dma_latency_us),
    })
}

fn known(flags: u32, all: u32) -> Result<(), Failure> {
    if flags & !all == 0 {
        return Ok(());
    }
    Err(Failure::usage(format!("unknown flags: {:#x}", flags & !all)))
}

fn priority_of(flags: u32, priority: c_int) -> Result<Option<u8>, Failure> {
    let refuse = |text: &str| Err(Failure::usage(text));
    match (flags & NF_FIFO != 0, u8::try_from(priority)) {
        (false, Ok(0)) => Ok(None),
        (false, _) => refuse("a priority needs NF_FIFO"),
        (true, Ok(0)) => Ok(Some(isolate::highest_priority())),
        (true, Ok(priority @ 1..=99)) => Ok(Some(priority)),
        (true, _) => refuse("SCHED_FIFO priorities are 1 to 99, or 0 for the highest"),
    }
}

fn late(cpu: Cpu, entry: &NohzOutcome) -> Failure {
    let kept_by = match &entry.kept_by {
        Ok(kept_by) => causes(kept_by),
        Err(why) => chain(why),
    };
    let ms = entry.waited.get() / 1_000_000;
    let text = format!("the tick of CPU {cpu} did not stop in {ms} ms: {kept_by}");
    Failure::new(NF_LATE, text)
}

fn causes(kept_by: &KeptBy) -> String {
    let each =
        kept_by.iter().map(|(what, times)| format!("{what} prevented it {times} times"));
    let each: Vec<String> = each.collect();
    if each.is_empty() { "cause unknown".to_owned() } else { each.join(", ") }
}

fn lines(refused: &[isolate::Error]) -> String {
    let lines: Vec<String> = refused.iter().map(|why| chain(why)).collect();
    lines.join("\n")
}
