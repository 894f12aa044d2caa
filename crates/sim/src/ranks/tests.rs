//! Cases that are counted by hand, and properties.

mod by_hand;
mod properties;
mod recordings;

use std::sync::atomic::AtomicBool;

use recording::{Network, Pattern};
use units::{Nanos, Span};

use super::cpus::Cpus;
use super::{Program, Trace};

fn nanos(nanos: u64) -> Nanos {
    Nanos::from_nanos(nanos)
}

fn span(start: u64, length: u64) -> Span {
    Span { start: nanos(start), length: nanos(length) }
}

/// A trace of these detours.
fn trace(window: u64, detours: &[(u64, u64)]) -> Trace {
    Trace::new(nanos(window), detours.iter().map(|(start, length)| span(*start, *length)))
        .unwrap()
}

/// One step of 100 ns, and messages of one byte that take 2 + 10 + 2 ns.
fn program(pattern: Pattern) -> Program {
    let network = Network {
        latency_ns: nanos(10),
        overhead_ns: nanos(2),
        gap_ns: nanos(1),
        byte_gap_ns: nanos(0),
        byte_overhead_ns: nanos(0),
        eager_bytes: 1 << 20,
    };
    Program { pattern, algorithm: None, compute: nanos(100), steps: 1, bytes: 1, network }
}

/// The run time without noise.
fn base(program: &Program, ranks: usize) -> u64 {
    program.run(ranks, &[], &AtomicBool::new(false)).unwrap().get()
}

/// The run time of ranks that have one trace each.
fn with(program: &Program, traces: &[Trace]) -> u64 {
    with_parts(program, &[traces])
}

/// The same with the noise of each rank in several traces.
fn with_parts(program: &Program, parts: &[&[Trace]]) -> u64 {
    let parts: Vec<(&[Trace], Nanos)> =
        parts.iter().map(|traces| (*traces, Nanos::ZERO)).collect();
    program.run_on(Cpus::each(&parts), &AtomicBool::new(false)).unwrap().get()
}
