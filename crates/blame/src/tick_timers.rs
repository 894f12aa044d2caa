//! Which timers are the scheduler's ticks: where the functions are that they call.
//!
//! Truth: `/proc/kallsyms`, which tells where only to those who may know
//! (`kernel.kptr_restrict`), and whether timers have a high resolution from the facts: without
//! it the tick is none of them.

use std::sync::OnceLock;

use facts::{Facts, Root};

const SYMBOLS: &str = "/proc/kallsyms";
/// What the tick calls: before Linux 6.8, in it, and since (`kernel/time/tick-sched.c`). The first
/// one that there is: before 6.9 the last one is not a timer's.
const TICK: [&str; 3] =
    ["tick_sched_timer", "tick_nohz_highres_handler", "tick_nohz_handler"];
/// A tick in between, for the end of a slice, where the scheduler has the feature HRTICK
/// (`kernel/sched/core.c`).
const HRTICK: &str = "hrtick";

/// The functions' addresses, of ticks and of those in between; 0 for none. `None` if the tick's
/// is not told, or the tick is no such timer.
pub(crate) fn tick_timers(facts: &Facts) -> Option<[u64; 2]> {
    // The kernel's own functions stay where they are; to tell all symbols takes it 50 ms.
    static TICK_TIMERS: OnceLock<[u64; 2]> = OnceLock::new();
    if facts.tick.high_res.get() == Some(&false) {
        return None;
    }
    if TICK_TIMERS.get().is_none() {
        let _ = TICK_TIMERS.set(found(&Root::live().text(SYMBOLS).ok()?)?);
    }
    TICK_TIMERS.get().copied()
}

/// In lines of `address type name`.
fn found(symbols: &str) -> Option<[u64; 2]> {
    let (mut ticks, mut between) = ([0; TICK.len()], 0);
    for line in symbols.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(address), Some(name)) = (words.next(), words.nth(1)) else { continue };
        let address = || u64::from_str_radix(address, 16).unwrap_or(0);
        let name = bare(name);
        if let Some(place) = TICK.iter().position(|tick| *tick == name) {
            ticks[place] = address();
        } else if name == HRTICK {
            between = address();
        }
    }
    let tick = ticks.into_iter().find(|address| *address != 0)?;
    Some([tick, between])
}

/// Without what the compiler appends (`.llvm.1234`, `.isra.0`).
fn bare(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the functions are found by their whole names, and are unknown where the kernel
    /// hides where they are.
    #[test]
    fn addresses() {
        let text = "ffffffff813a4d80 t hrtick\n\
            ffffffff814352d0 t __pfx_tick_nohz_handler\n\
            ffffffff814352e0 t tick_nohz_handler\n\
            ffffffff81436210 T tick_sched_timer_dying\n";
        assert_eq!(found(text), Some([0xffff_ffff_8143_52e0, 0xffff_ffff_813a_4d80]));
        let old = "ffffffff81000010 t tick_sched_timer.llvm.77\n\
            ffffffff81000020 t tick_nohz_handler\n";
        assert_eq!(found(old), Some([0xffff_ffff_8100_0010, 0]));
        let hidden = text.replace("ffffffff814352e0", "0000000000000000");
        assert_eq!(found(&hidden), None);
        assert_eq!(found(""), None);
    }
}
