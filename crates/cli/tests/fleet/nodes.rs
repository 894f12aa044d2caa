//! Made-up nodes: a real recording of a check, whose gaps are those of a tick of 250 Hz with a length that differs
//! from node to node, and injected causes.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

/// The recording that all nodes are made from.
const RECORDING: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../recording/tests/golden/check-1.json");
/// The length of a tick, and of the gap of a noisy program, in nanoseconds; one of so many ticks has one.
const TICK: f64 = 5_000.0;
const PROGRAM: u64 = 200_000;
const EVERY: u64 = 8;
/// The period of the tick, and the duration of the measurement.
const PERIOD: u64 = 4_000_000;
const DURATION: u64 = 1_000_000_000;

/// What a node has that others have not.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Change {
    pub(crate) program: Option<&'static str>,
    pub(crate) kernel: Option<&'static str>,
}

/// The recording without its gaps.
pub(crate) struct Nodes(Value);

impl Nodes {
    pub(crate) fn new() -> Self {
        Self(serde_json::from_str(&fs::read_to_string(RECORDING).unwrap()).unwrap())
    }

    /// Writes the recordings of so many nodes.
    pub(crate) fn write(
        &self,
        folder: &Path,
        count: u64,
        change: impl Fn(u64) -> Change,
    ) {
        for at in 0..count {
            let file = folder.join(format!("{}.json", name(at)));
            fs::write(file, self.text(at, change(at))).unwrap();
        }
    }

    /// The text of a node's recording.
    pub(crate) fn text(&self, at: u64, change: Change) -> String {
        let mut whole = self.0.clone();
        let [day, hour, minute] = [at / 1440 % 28 + 1, at / 60 % 24, at % 60];
        whole["taken"] = json!(format!("2026-11-{day:02}T{hour:02}:{minute:02}:00Z"));
        if let Some(kernel) = change.kernel {
            whole["facts"]["kernel"]["release"] = json!(kernel);
        }
        let noise = &mut whole["series"]["noise"];
        noise["source"] = json!("bpf");
        let cpus = noise["cpus"].as_array_mut().unwrap();
        for (number, cpu) in cpus.iter_mut().enumerate() {
            let (gaps, shares) = gaps(at, change.program.is_some());
            cpu["cpu"] = json!(number);
            cpu["elapsed_ns"] = json!(DURATION);
            cpu["lost"] = Value::Null;
            let program = change.program.unwrap_or("kworker/0:1");
            let thread =
                json!({"tid": 9, "pid": 9, "prio": 120, "owner": {"program": program}});
            cpu["blamed"] = json!({
                "culprits": [{"kind": "timer", "name": "tick_nohz_handler"},
                    {"kind": "thread", "name": program, "thread": thread}],
                "events": [gaps.len(), shares.len() - gaps.len()],
                "shares": shares, "lost": 0,
            });
            cpu["gaps"] = json!(gaps);
        }
        // The order of keys is that in which they are written.
        let order =
            ["format", "kind", "taken", "tool", "facts", "spec", "series", "doubts"];
        let pairs = order.map(|key| format!("\"{key}\":{}", whole[key]));
        format!("{{{}}}\n", pairs.join(","))
    }
}

type Gaps = (Vec<[u64; 2]>, Vec<[u64; 5]>);

/// The gaps of a CPU, and the shares of its culprits.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a few microseconds"
)]
fn gaps(node: u64, is_noisy: bool) -> Gaps {
    let tick = (TICK * spread(node)) as u64;
    let (mut gaps, mut shares): Gaps = Default::default();
    for number in 0..DURATION / PERIOD - 1 {
        let more = if is_noisy && number % EVERY == 0 { PROGRAM } else { 0 };
        gaps.push([number * PERIOD + 1000, tick + more]);
        shares.push([number, 0, tick, tick - 600, 500]);
        if more > 0 {
            shares.push([number, 1, more, more, 0]);
        }
    }
    (gaps, shares)
}

/// A factor from 0.6 to 1.6 that follows from the node.
fn spread(node: u64) -> f64 {
    let hash = (node + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let parts = [hash >> 48, hash >> 32 & 0xffff, hash >> 16 & 0xffff];
    let sum: u64 = parts.iter().sum();
    ((sum as f64 / f64::from(0xffff) - 1.5) / 3.0).exp()
}

/// The name of a node: 32 in each rack.
pub(crate) fn name(node: u64) -> String {
    format!("r{:02}n{:02}", node / 32, node % 32)
}
