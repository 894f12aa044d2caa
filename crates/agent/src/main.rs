//! `/init` of the lab's guests.
//!
//! ```text
//! mounts ──▶ order ──▶ settings ──▶ services ──▶ quiescence ──▶ background
//!        ──▶ task ──▶ services ──▶ channel ──▶ power
//! ```
//!
//! Whether the order succeeds or not, an answer is sent and the guest powers off. Only `channel`,
//! `port` and `power` depend on the machine: an x86-64 PC, or QEMU's `virt` of arm64.

mod error;
mod guest;
mod program;
mod task;
mod traced;

use std::panic;
use std::process::{self, ExitCode};

use agent::{Answer, Order, order};
use units::chain;

use crate::error::Error;

const NOT_INIT: &str = "\
noisefloor-agent: the first program of the lab's guests, and useless on any other system;
`noisefloor lab` puts it there";

fn main() -> ExitCode {
    if process::id() != 1 {
        eprintln!("{NOT_INIT}");
        return ExitCode::from(2);
    }
    panic::set_hook(Box::new(|why| {
        end(&Answer::Failed(format!("the agent panicked: {why}")), u64::MAX);
    }));
    if let Err(why) = guest::channel::send(Answer::GREETING) {
        // Without a channel there is no way to answer; the console has the reason.
        eprintln!("noisefloor-agent: {}", chain(&why));
    }
    let (answer, bytes_max) = answer();
    end(&answer, bytes_max);
    // The kernel did not power off; the end of its first program makes it panic.
    ExitCode::FAILURE
}

/// Executes the order; also returns the limit of the answer's length.
fn answer() -> (Answer, u64) {
    let failed = |why: Error| Answer::Failed(chain(&why));
    let text = match guest::mounts::mount().and_then(|()| read_order()) {
        Ok(text) => text,
        Err(why) => return (failed(why), u64::MAX),
    };
    match Order::parse(&text) {
        Ok(order) => (task::run(&order).unwrap_or_else(failed), order.answer_bytes_max),
        Err(why) => (Answer::Refused(chain(&why)), u64::MAX),
    }
}

fn read_order() -> Result<String, Error> {
    std::fs::read_to_string(order::PATH)
        .map_err(|why| Error::new(format!("failed to read {}", order::PATH), why))
}

/// Sends the answer, and powers off.
fn end(answer: &Answer, bytes_max: u64) {
    if let Err(why) = send(answer, bytes_max) {
        // Only the console is left.
        eprintln!("noisefloor-agent: {}", chain(&why));
    }
    guest::power::off();
}

fn send(answer: &Answer, bytes_max: u64) -> Result<(), Error> {
    let written = answer.to_frames();
    let written = written.map_err(|why| Error::new("failed to write the answer", why))?;
    let length = written.len() as u64;
    if length <= bytes_max {
        return guest::channel::send(&written);
    }
    let text = format!("the answer is {length} bytes, and {bytes_max} are the most");
    send(&Answer::Failed(text), u64::MAX)
}
