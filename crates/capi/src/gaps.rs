//! What a thread lost: gaps in its running, seen from inside it.

use std::ffi::{c_char, c_int};
use std::sync::OnceLock;

use facts::{Facts, Root};
use measure::caller_gaps;
use stats::CpuNoiseSummary;
use units::{Nanos, Span};

use crate::code::{Failure, NF_NOTHING, NF_OK};
use crate::guard::guard;
use crate::handle::Shelf;
use crate::layout::{self, Growing, null};

/// Gaps that were seen.
pub struct Gaps {
    _nothing: (),
}

/// What was seen, as a whole. Set size to sizeof(nf_summary) before it is asked for.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Summary {
    /// sizeof(nf_summary).
    pub size: usize,
    /// How long the loop ran, in nanoseconds, like all that ends in _ns.
    pub elapsed_ns: u64,
    /// What one pass of the loop takes: a gap's ends are known as well as that.
    pub loop_ns: u64,
    /// The shortest gap that was kept.
    pub threshold_ns: u64,
    /// How many gaps there were.
    pub gaps: u64,
    /// How many of them are kept, with their length; all, unless there was no more room.
    pub kept: u64,
    /// All gaps together.
    pub noise_ns: u64,
    /// The longest gap; 0 where there was none.
    pub max_ns: u64,
    /// How often another thread took the CPU.
    pub preempted: u64,
}

// SAFETY: numbers without padding, the first of them a usize.
unsafe impl Growing for Summary {}

/// What a handle is of.
struct Seen {
    summary: Summary,
    gaps: Vec<Span>,
    /// The gaps' lengths, in rising order.
    sorted: Vec<Nanos>,
    doubts: String,
}

static GAPS: Shelf<Gaps, Seen> = Shelf::new();

/// What the kernel says of itself does not change while a process runs, as far as it matters
/// to those who ask here; reading it takes some milliseconds.
pub(crate) fn facts() -> &'static Facts {
    static FACTS: OnceLock<Facts> = OnceLock::new();
    FACTS.get_or_init(|| Facts::read(&Root::live()))
}

/// Spins on the calling thread for duration_ns nanoseconds (1 ms to 30 days), and keeps each gap
/// in its running that is longer than threshold_ns; with 0, a threshold is found by running the
/// loop. The thread neither sleeps nor yields before it is done, and calls the kernel only
/// before and after the loop. Any thread can be measured, whether it has entered or not.
///
/// Returns NF_OK and a handle in gaps, to be given to nf_gaps_free(), or a code below zero.
///
/// # Safety
/// There is a place for the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_measure(
    duration_ns: u64,
    threshold_ns: u64,
    gaps: *mut *mut Gaps,
) -> c_int {
    guard(|| {
        if gaps.is_null() {
            return Err(null("the place for the handle"));
        }
        let threshold = (threshold_ns != 0).then(|| Nanos::from_nanos(threshold_ns));
        let found = caller_gaps(Nanos::from_nanos(duration_ns), threshold, facts())?;
        // SAFETY: it is not null, and the caller's promise.
        unsafe { layout::put(gaps, GAPS.put(Seen::of(found))) };
        Ok(NF_OK)
    })
}

/// Writes what was seen as a whole to summary, whose field size must be set.
///
/// # Safety
/// The summary is as long as it says, and may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_summarise(gaps: *const Gaps, summary: *mut Summary) -> c_int {
    guard(|| {
        let seen = GAPS.get(gaps)?;
        // SAFETY: the caller's promise.
        unsafe { layout::write(summary, &seen.summary) }?;
        Ok(NF_OK)
    })
}

/// Writes the length to length_ns that at least so many millionths of all kept gaps do not
/// exceed: 500000 is the median, 999900 the 99.99th percentile, 1000000 the longest. It is
/// always the length of a gap that was seen. NF_NOTHING where none is kept.
///
/// # Safety
/// length_ns may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_quantile(
    gaps: *const Gaps,
    millionths: u32,
    length_ns: *mut u64,
) -> c_int {
    guard(|| {
        let seen = GAPS.get(gaps)?;
        if length_ns.is_null() {
            return Err(null("the place for the length"));
        }
        if millionths > 1_000_000 {
            return Err(Failure::usage("a quantile is 0 to 1000000 millionths"));
        }
        let none = || Failure::new(NF_NOTHING, "no gap was kept");
        let length = stats::quantile(&seen.sorted, millionths).ok_or_else(none)?;
        // SAFETY: it is not null, and the caller's promise.
        unsafe { layout::put(length_ns, length.get()) };
        Ok(NF_OK)
    })
}

/// Writes when a kept gap began, counted from the loop's beginning, and how long it was. Gaps
/// are counted from 0, in the order in which they came. Either place may be null. NF_NOTHING
/// where there are not so many.
///
/// # Safety
/// Places that are not null may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_gap(
    gaps: *const Gaps,
    index: u64,
    start_ns: *mut u64,
    length_ns: *mut u64,
) -> c_int {
    guard(|| {
        let seen = GAPS.get(gaps)?;
        let gap = usize::try_from(index).ok().and_then(|index| seen.gaps.get(index));
        let none = || Failure::new(NF_NOTHING, format!("no gap {index} was kept"));
        let gap = gap.ok_or_else(none)?;
        // SAFETY: the caller's promise.
        unsafe {
            layout::put(start_ns, gap.start.get());
            layout::put(length_ns, gap.length.get());
        }
        Ok(NF_OK)
    })
}

/// Writes reasons to text not to trust what was seen, a line each; nothing where there is none.
/// As in nf_refused(), size bounds it, and the length of the whole is returned.
///
/// # Safety
/// There is room for the text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_doubts(
    gaps: *const Gaps,
    text: *mut c_char,
    size: usize,
) -> c_int {
    guard(|| {
        let seen = GAPS.get(gaps)?;
        // SAFETY: the caller's promise.
        unsafe { layout::text(&seen.doubts, text, size) }
    })
}

/// Forgets what was seen. The handle is none any more; null is none, and fine.
#[unsafe(no_mangle)]
pub extern "C" fn nf_gaps_free(gaps: *mut Gaps) -> c_int {
    guard(|| {
        if !gaps.is_null() {
            GAPS.take(gaps)?;
        }
        Ok(NF_OK)
    })
}

impl Seen {
    fn of(found: measure::CallerGaps) -> Self {
        let noise = &found.noise;
        let whole = CpuNoiseSummary::of(found.threshold, noise);
        let summary = summary(&whole, found.threshold, &found.noise);
        let mut sorted: Vec<Nanos> = noise.gaps.iter().map(|gap| gap.length).collect();
        sorted.sort_unstable();
        let doubts: Vec<&str> =
            found.doubts.iter().map(|doubt| doubt.text.as_str()).collect();
        Self { summary, sorted, doubts: doubts.join("\n"), gaps: found.noise.gaps }
    }
}

fn summary(
    whole: &CpuNoiseSummary,
    threshold: Nanos,
    noise: &recording::CpuNoise,
) -> Summary {
    Summary {
        size: size_of::<Summary>(),
        elapsed_ns: whole.elapsed_ns.get(),
        loop_ns: whole.loop_ns_p50.get(),
        threshold_ns: threshold.get(),
        gaps: whole.gaps,
        kept: noise.gaps.len() as u64,
        noise_ns: whole.noise_ns.get(),
        max_ns: whole.gap_ns.max.map_or(0, Nanos::get),
        preempted: noise.meanwhile.preempted,
    }
}
