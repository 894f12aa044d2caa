//! The JSON of cyclictest: `write_stats` in `src/cyclictest/cyclictest.c`. A latency is counted in the
//! bin of its whole microseconds (with `-N` nanoseconds).

use std::collections::BTreeMap;

use recording::{Bin, ImportedLengths, LengthKind};
use serde::Deserialize;
use units::{Cpu, Nanos};

use crate::import::{Failure, Import, corrupt};
use crate::rt_tests::{File, nanos, not_a_length, threads};

#[derive(Deserialize)]
struct Thread {
    #[serde(default)]
    histogram: BTreeMap<String, u64>,
    cycles: u64,
    min: u64,
    max: u64,
    avg: f64,
    #[serde(default)]
    cpu: Option<i64>,
}

pub(super) fn parse(file: &File) -> Result<Import, Failure> {
    let unit = if file.resolution_in_ns == 0 { 1_000 } else { 1 };
    let scaled = |length: u64| Nanos::from_nanos(length.saturating_mul(unit));
    let mut lengths = Vec::new();
    let (mut is_binned, mut beyond) = (false, 0);
    for thread in threads::<Thread>(file)? {
        let mut bins = Vec::new();
        for (length, count) in &thread.histogram {
            let length: u64 = length.parse().map_err(|_| not_a_length(length))?;
            let (from_ns, until_ns) = (scaled(length), scaled(length.saturating_add(1)));
            bins.push(Bin { from_ns, until_ns, count: *count });
        }
        bins.sort_by_key(|bin| bin.from_ns);
        let binned = Bin::total(&bins);
        if binned > thread.cycles {
            let text =
                format!("{binned} values in the histogram of {} cycles", thread.cycles);
            return Err(corrupt(text));
        }
        is_binned |= !bins.is_empty();
        beyond += if bins.is_empty() { 0 } else { thread.cycles - binned };
        let cpu = thread.cpu.and_then(|cpu| u32::try_from(cpu).ok()).map(Cpu::new);
        let has_run = thread.cycles > 0;
        lengths.push(ImportedLengths {
            count: Some(thread.cycles),
            sum_ns: has_run
                .then(|| nanos(thread.avg * thread.cycles as f64 * unit as f64))
                .flatten(),
            min_ns: has_run.then(|| scaled(thread.min)),
            max_ns: has_run.then(|| scaled(thread.max)),
            bins,
            ..ImportedLengths::new(LengthKind::WakeupLatency, cpu)
        });
    }
    let mut import = Import::by("", lengths);
    import.resolution_ns = Some(Nanos::from_nanos(unit));
    if !is_binned {
        import
            .doubt("cyclictest was run without a histogram (-h): quantiles are unknown");
    }
    if beyond > 0 {
        import.doubt(format!(
            "latencies beyond the histogram: {beyond}; hint: a larger -h"
        ));
    }
    Ok(import)
}
