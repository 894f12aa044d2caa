//! The end of this process by repeated signals, if it does not end by itself.
//!
//! The first signal ends the work of this process: settings are restored, and results are written.
//! Signals often come in groups: timeout(1) signals its child and then the child's process group,
//! which it is part of. So repeated signals have no effect for some seconds, which restoring takes at
//! most; the third one or a later one after that ends the process.

use std::sync::Arc;
use std::thread::Builder;
use std::time::{Duration, Instant};

use isolate::{Retain, Setting};
use measure::{Received, Relay};
use signal_hook::low_level::exit;

use crate::live_terminal;
use crate::outcome::Failure;
use crate::printing::say_without_waiting;

/// The number of signals that end the process,
const SIGNALS: u32 = 3;
/// at this time after the first.
const AFTER: Duration = Duration::from_secs(5);
/// The exit code then: that of shells for SIGINT.
pub(crate) const FORCED_END: i32 = 130;
/// The number of settings that are named.
const NAMED: usize = 5;
/// The stack of the thread, which may be locked into memory.
const STACK: usize = 256 << 10;

/// Waits for signals in a thread, until the process ends.
pub(crate) fn watch(relay: impl Into<Arc<Relay>>) -> Result<(), Failure> {
    let relay = relay.into();
    let thread = Builder::new().name("signals".to_owned()).stack_size(STACK);
    let started = thread.spawn(move || {
        // A library that the process loads could use them. If that fails, it is not loaded.
        let _ = isolate::drop_capabilities(Retain::Nothing);
        wait_for_third(&relay);
        // Without handlers, the next signal would end the process at once.
        std::mem::forget(relay);
    });
    started.map(drop).map_err(Failure::refused)
}

/// Returns if signals cannot be read any more.
fn wait_for_third(relay: &Relay) {
    let mut first = None;
    let mut count = 0;
    while let Ok(received) = relay.next(None) {
        if received.is_none_or(Received::is_of_child) {
            continue;
        }
        count += 1;
        let first = *first.get_or_insert_with(Instant::now);
        if count >= SIGNALS && first.elapsed() >= AFTER {
            let left = isolate::unrestored().unwrap_or_default();
            live_terminal::leave();
            say_without_waiting(text(&left));
            // Without the functions of atexit(3), which may wait, too.
            exit(FORCED_END);
        }
    }
}

/// What is left changed, and how to restore it.
fn text(left: &[(Setting, String)]) -> String {
    let said = "ended by a repeated signal before the end of its work";
    let mut names: Vec<String> = left
        .iter()
        .take(NAMED)
        .map(|(setting, old)| format!("{setting} (was {old})"))
        .collect();
    if left.len() > NAMED {
        names.push(format!("and {} more", left.len() - NAMED));
    }
    match names.is_empty() {
        true => said.to_owned(),
        false => format!(
            "{said}; not restored: {}; hint: noisefloor restore",
            names.join(", ")
        ),
    }
}
