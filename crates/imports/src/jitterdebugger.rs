//! The results of jitterdebugger 0.3 (`results.json` of `-o DIR`): `__display_stats` and `jd_write_results` in
//! `jitterdebugger.c`. A latency is counted in the bin of its whole microseconds (with `-N` nanoseconds); those
//! beyond the last bin are in none.

use std::collections::BTreeMap;

use recording::{Bin, ImportedLengths, LengthKind};
use serde::Deserialize;
use serde_json::json;
use units::{Cpu, Nanos};

use crate::import::{Failure, Import, corrupt, of_json};

#[derive(Deserialize)]
struct File {
    version: u32,
    sysinfo: SystemInfo,
    cpu: BTreeMap<String, Thread>,
}

#[derive(Deserialize)]
struct SystemInfo {
    release: String,
    version: String,
    machine: String,
    /// The unit of lengths: 1000 ns, or 1 with `-N`.
    #[serde(default)]
    resolution_in_ns: Option<u64>,
}

#[derive(Deserialize)]
struct Thread {
    #[serde(default)]
    histogram: BTreeMap<String, u64>,
    count: u64,
    min: u64,
    max: u64,
    avg: f64,
}

pub(crate) fn parse(text: &str) -> Result<Import, Failure> {
    let file: File = serde_json::from_str(text).map_err(of_json)?;
    let unit = file.sysinfo.resolution_in_ns.unwrap_or(1_000);
    let mut beyond = 0;
    let mut lengths = Vec::new();
    for (name, thread) in &file.cpu {
        let cpu: u32 = name.parse().map_err(|_| corrupt(format!("no CPU '{name}'")))?;
        lengths.push(thread.lengths(cpu, unit)?);
        let binned =
            thread.histogram.values().fold(0, |sum: u64, n| sum.saturating_add(*n));
        beyond += thread.count.saturating_sub(binned);
    }
    if lengths.is_empty() {
        return Err(corrupt("there is no CPU in it"));
    }
    lengths.sort_by_key(|one: &ImportedLengths| one.cpu);
    let mut import =
        Import::by(format!("jitterdebugger, file version {}", file.version), lengths);
    import.resolution_ns = Some(Nanos::from_nanos(unit));
    import.facts = vec![
        ("kernel.release", json!(file.sysinfo.release)),
        ("kernel.version", json!(file.sysinfo.version)),
        ("kernel.arch", json!(file.sysinfo.machine)),
    ];
    if beyond > 0 {
        import.doubt(format!("latencies beyond the histogram: {beyond}"));
    }
    Ok(import)
}

impl Thread {
    fn lengths(&self, cpu: u32, unit: u64) -> Result<ImportedLengths, Failure> {
        let scaled = |length: u64| Nanos::from_nanos(length.saturating_mul(unit));
        let mut bins = Vec::new();
        for (length, count) in &self.histogram {
            let refuse = || corrupt(format!("'{length}' is not a length"));
            let length: u64 = length.parse().map_err(|_| refuse())?;
            let (from_ns, until_ns) = (scaled(length), scaled(length.saturating_add(1)));
            bins.push(Bin { from_ns, until_ns, count: *count });
        }
        bins.sort_by_key(|bin| bin.from_ns);
        let binned = Bin::total(&bins);
        if binned > self.count {
            let text = format!("{binned} values in the histogram of {}", self.count);
            return Err(corrupt(text));
        }
        let has_run = self.count > 0;
        let sum = self.avg * self.count as f64 * unit as f64;
        let sum = (0.0..=9.2e18).contains(&sum).then_some(sum);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "in range"
        )]
        let sum_ns =
            sum.filter(|_| has_run).map(|sum| Nanos::from_nanos(sum.round() as u64));
        Ok(ImportedLengths {
            count: Some(self.count),
            sum_ns,
            min_ns: has_run.then(|| scaled(self.min)),
            max_ns: has_run.then(|| scaled(self.max)),
            bins,
            ..ImportedLengths::new(LengthKind::WakeupLatency, Some(Cpu::new(cpu)))
        })
    }
}
