//! Time that a thread loses: gaps in its running, measured by the thread itself.

use std::ffi::{c_char, c_int};

use ffi::code::{self, NF_NOTHING, NF_OK, NF_SYSTEM, NF_USAGE};
use ffi::{Failure, guard};
use measure::caller_gaps;
use summary::CpuNoiseSummary;
use units::{Nanos, Span};

use crate::handle::Handles;
use crate::layout::{self, Growing, null};

/// Measured gaps.
pub struct Gaps {
    _nothing: (),
}

/// Summary of a measurement. Set size to sizeof(nf_summary) before calling nf_summarise().
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Summary {
    /// sizeof(nf_summary).
    pub size: usize,
    /// Run time of the loop. All fields that end in _ns are in nanoseconds.
    pub elapsed_ns: u64,
    /// Time of one iteration of the loop: the resolution of a gap's start and end.
    pub loop_ns: u64,
    /// Threshold: only longer gaps are counted.
    pub threshold_ns: u64,
    /// Number of gaps.
    pub gaps: u64,
    /// Number of gaps of which start and length are stored: all, unless memory was used up.
    pub stored: u64,
    /// Sum of all gaps.
    pub noise_ns: u64,
    /// Longest gap; 0 if there was none.
    pub max_ns: u64,
    /// Number of involuntary context switches of the thread.
    pub preempted: u64,
}

// SAFETY: integers without padding, the first of them a usize.
unsafe impl Growing for Summary {}

/// The object of a handle.
struct Measured {
    summary: Summary,
    gaps: Vec<Span>,
    /// The gaps' lengths, sorted.
    sorted: Vec<Nanos>,
    doubts: String,
}

static GAPS: Handles<Gaps, Measured> = Handles::new();

/// Spins on the calling thread for duration_ns nanoseconds (1 ms to 30 days), and stores each gap
/// in its running that is longer than threshold_ns; with 0, the threshold is calibrated. The thread
/// neither sleeps nor yields, and makes system calls only before and after the loop. Any thread can
/// be measured, whether it has entered an isolated CPU or not.
///
/// Returns NF_OK and stores a handle in gaps, which nf_gaps_free() releases; or returns an error
/// code.
///
/// # Safety
/// The handle can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_measure(
    duration_ns: u64,
    threshold_ns: u64,
    gaps: *mut *mut Gaps,
) -> c_int {
    guard(|| {
        if gaps.is_null() {
            return Err(null("gaps"));
        }
        let threshold = (threshold_ns != 0).then(|| Nanos::from_nanos(threshold_ns));
        let duration = Nanos::from_nanos(duration_ns);
        let found = caller_gaps(duration, threshold, ffi::facts()).map_err(failure)?;
        // SAFETY: it is not null, and the caller guarantees the rest.
        unsafe { layout::put(gaps, GAPS.put(Measured::new(found))) };
        Ok(NF_OK)
    })
}

/// Stores the summary of a measurement in summary, whose field size must be set.
///
/// # Safety
/// The summary has the size that it states, and can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_summarise(gaps: *const Gaps, summary: *mut Summary) -> c_int {
    guard(|| {
        let measured = GAPS.get(gaps)?;
        // SAFETY: the caller guarantees it.
        unsafe { layout::write(summary, &measured.summary) }?;
        Ok(NF_OK)
    })
}

/// Stores a quantile of the lengths of all stored gaps in length_ns. millionths is 0 to 1000000:
/// 500000 is the median, 999900 the 99.99th percentile, 1000000 the maximum. The result is the
/// length of a measured gap, not interpolated. Returns NF_NOTHING if no gap is stored.
///
/// # Safety
/// length_ns can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_quantile(
    gaps: *const Gaps,
    millionths: u32,
    length_ns: *mut u64,
) -> c_int {
    guard(|| {
        let measured = GAPS.get(gaps)?;
        if length_ns.is_null() {
            return Err(null("length_ns"));
        }
        if millionths > 1_000_000 {
            return Err(Failure::usage("millionths must be 0 to 1000000"));
        }
        let none = || Failure::new(NF_NOTHING, "no gap is stored");
        let length = stats::quantile(&measured.sorted, millionths).ok_or_else(none)?;
        // SAFETY: it is not null, and the caller guarantees the rest.
        unsafe { layout::put(length_ns, length.get()) };
        Ok(NF_OK)
    })
}

/// Stores start and length of a stored gap; the start is relative to the start of the loop. index
/// counts from 0, in order of time. start_ns and length_ns may be null. Returns NF_NOTHING if no
/// gap has that index.
///
/// # Safety
/// Pointers that are not null can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_gap(
    gaps: *const Gaps,
    index: u64,
    start_ns: *mut u64,
    length_ns: *mut u64,
) -> c_int {
    guard(|| {
        let measured = GAPS.get(gaps)?;
        let gap = usize::try_from(index).ok().and_then(|index| measured.gaps.get(index));
        let none = || Failure::new(NF_NOTHING, format!("no gap {index} is stored"));
        let gap = gap.ok_or_else(none)?;
        // SAFETY: the caller guarantees it.
        unsafe {
            layout::put(start_ns, gap.start.get());
            layout::put(length_ns, gap.length.get());
        }
        Ok(NF_OK)
    })
}

/// Writes to text the reasons to doubt the measurement, one per line; the text is empty if there
/// are none. size and the returned value are those of nf_refused().
///
/// # Safety
/// The text has that size.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nf_doubts(
    gaps: *const Gaps,
    text: *mut c_char,
    size: usize,
) -> c_int {
    guard(|| {
        let measured = GAPS.get(gaps)?;
        // SAFETY: the caller guarantees it.
        unsafe { layout::text(&measured.doubts, text, size) }
    })
}

/// Releases a measurement; its handle is invalid afterwards. Does nothing if gaps is null.
#[unsafe(no_mangle)]
pub extern "C" fn nf_gaps_free(gaps: *mut Gaps) -> c_int {
    guard(|| {
        if !gaps.is_null() {
            GAPS.take(gaps)?;
        }
        Ok(NF_OK)
    })
}

impl Measured {
    fn new(found: measure::CallerGaps) -> Self {
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
        stored: noise.gaps.len() as u64,
        noise_ns: whole.noise_ns.get(),
        max_ns: whole.gap_ns.max.map_or(0, Nanos::get),
        preempted: noise.proc.preempted,
    }
}

fn failure(error: measure::Error) -> Failure {
    let code = match error.kind() {
        measure::Kind::Spec => NF_USAGE,
        measure::Kind::Isolate(kind) => code::of(kind),
        measure::Kind::NoProgram
        | measure::Kind::NotExecutable
        | measure::Kind::System => NF_SYSTEM,
    };
    Failure::new(code, error)
}
