//! `/init` of the lab's guests.
//!
//! ```text
//! mounts ──▶ order ──▶ settings ──▶ rest ──▶ company ──▶ task ──▶ way_out ──▶ power
//! ```
//!
//! Whatever becomes of the order, an answer is sent and the guest powers off. Only
//! `way_out` and `port` know what machine it is on: an x86-64 PC.

mod company;
mod mounts;
mod port;
mod power;
mod program;
mod rest;
mod settings;
mod task;
mod unthrottled;
mod watched;
mod way_out;

use std::panic;
use std::process::{self, ExitCode};

use agent::{Answer, Order, order};

const NOT_INIT: &str = "\
noisefloor-agent: the first program of the lab's guests, and of no use to another system;
`noisefloor lab` puts it there";

fn main() -> ExitCode {
    if process::id() != 1 {
        eprintln!("{NOT_INIT}");
        return ExitCode::from(2);
    }
    panic::set_hook(Box::new(|why| {
        end(&Answer::Failed(format!("the agent panicked: {why}")), u64::MAX);
    }));
    if let Err(text) = way_out::send(Answer::GREETING) {
        // Without one it has no way to answer; the console tells why.
        eprintln!("noisefloor-agent: {text}");
    }
    let (answer, bytes_max) = answer();
    end(&answer, bytes_max);
    // The kernel did not power off: that its first program ends makes it panic.
    ExitCode::FAILURE
}

/// Carries the order out, and says how long the answer may be.
fn answer() -> (Answer, u64) {
    let failed = |text| (Answer::Failed(text), u64::MAX);
    if let Err(text) = mounts::mount() {
        return failed(text);
    }
    let text = match std::fs::read_to_string(order::PATH) {
        Ok(text) => text,
        Err(error) => return failed(format!("{}: {error}", order::PATH)),
    };
    match Order::parse(&text) {
        Ok(order) => {
            let done = task::run(&order);
            (done.unwrap_or_else(Answer::Failed), order.answer_bytes_max)
        }
        Err(text) => (Answer::Refused(text), u64::MAX),
    }
}

/// Sends the answer, and powers off.
fn end(answer: &Answer, bytes_max: u64) {
    if let Err(text) = send(answer, bytes_max) {
        // The console is the only one left to tell.
        eprintln!("noisefloor-agent: {text}");
    }
    power::off();
}

fn send(answer: &Answer, bytes_max: u64) -> Result<(), String> {
    let written = answer.to_frames().map_err(|error| error.to_string())?;
    let length = written.len() as u64;
    if length <= bytes_max {
        return way_out::send(&written);
    }
    let text = format!("the answer is {length} bytes, and {bytes_max} are the most");
    send(&Answer::Failed(text), u64::MAX)
}
