//! The timers that are the scheduler's ticks: the addresses of their functions.
//!
//! Source: `/proc/kallsyms`, which hides addresses from unprivileged readers
//! (`kernel.kptr_restrict`); and, from the facts, whether timers have a high resolution: if not,
//! the tick is no such timer.

use std::ops::ControlFlow;
use std::sync::OnceLock;

use facts::{Facts, TimerList};

use crate::names::symbols::{Symbol, each_symbol};

/// The function of an additional tick at the end of a slice, with the scheduler feature HRTICK
/// (`kernel/sched/core.c`).
const HRTICK: &[u8] = b"hrtick";

/// The functions' addresses, of ticks and of additional ticks; 0 for none. `None` if the tick's is
/// hidden, or the tick is no such timer.
pub(crate) fn tick_timers(facts: &Facts) -> Option<[u64; 2]> {
    // The addresses do not change, and generating all symbols takes the kernel 50 ms.
    static TICK_TIMERS: OnceLock<[u64; 2]> = OnceLock::new();
    if facts.tick.high_res.get() == Some(&false) {
        return None;
    }
    if TICK_TIMERS.get().is_none() {
        let mut timers = Timers::default();
        each_symbol(|symbol| timers.take(symbol))?;
        let _ = TICK_TIMERS.set(timers.found()?);
    }
    TICK_TIMERS.get().copied()
}

/// The addresses of those functions among the symbols so far.
#[derive(Default)]
struct Timers {
    ticks: [u64; TimerList::TICKS.len()],
    between: u64,
}

impl Timers {
    /// Handles a symbol. Which of the tick's functions exist is known only after the last one.
    fn take(&mut self, symbol: &Symbol<'_>) -> ControlFlow<()> {
        let name = bare(symbol.name);
        let mut ticks = TimerList::TICKS.iter();
        if let Some(place) = ticks.position(|tick| tick.as_bytes() == name) {
            self.ticks[place] = symbol.address;
        } else if name == HRTICK {
            self.between = symbol.address;
        }
        ControlFlow::Continue(())
    }

    fn found(&self) -> Option<[u64; 2]> {
        let tick = self.ticks.into_iter().find(|address| *address != 0)?;
        Some([tick, self.between])
    }
}

/// Removes suffixes of the compiler (`.llvm.1234`, `.isra.0`).
fn bare(name: &[u8]) -> &[u8] {
    name.split(|byte| *byte == b'.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::symbols::visit_lines;

    fn found(text: &str) -> Option<[u64; 2]> {
        let mut timers = Timers::default();
        visit_lines(text.as_bytes(), |symbol| timers.take(symbol))?;
        timers.found()
    }

    /// Check that the functions are found by their complete names, and are unknown if the kernel
    /// hides their addresses.
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
