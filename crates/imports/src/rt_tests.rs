//! The JSON of cyclictest and oslat (rt-tests, file version 1).
//!
//! Written by `rt_write_json` in `src/lib/rt-utils.c`, `write_stats` in `src/cyclictest/cyclictest.c`,
//! `write_summary_json` in `src/oslat/oslat.c` of rt-tests 2.4 and 2.10.

use std::collections::BTreeMap;

use jiff::fmt::rfc2822;
use recording::{Bin, Code, Doubt, ImportedLengths, Kind, LengthKind};
use serde::Deserialize;
use serde_json::{Value, error::Category, json};
use units::{Cpu, Nanos};

use crate::import::{Failure, Import, corrupt, truncated};

/// The version of the format that is read.
const FILE_VERSION: u32 = 1;

#[derive(Deserialize)]
struct Head {
    file_version: u32,
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "cmdline:", alias = "cmdline")]
    command: String,
    #[serde(rename = "rt_test_version:", alias = "rt_test_version")]
    version: String,
    start_time: String,
    #[serde(default)]
    return_code: i64,
    sysinfo: SystemInfo,
    /// 1: lengths are in nanoseconds (`cyclictest -N`).
    #[serde(default)]
    resolution_in_ns: u32,
    #[serde(default)]
    thread: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
struct SystemInfo {
    release: String,
    version: String,
    machine: String,
}

#[derive(Deserialize)]
struct CyclictestThread {
    #[serde(default)]
    histogram: BTreeMap<String, u64>,
    cycles: u64,
    min: u64,
    max: u64,
    avg: f64,
    #[serde(default)]
    cpu: Option<i64>,
}

#[derive(Deserialize)]
struct OslatThread {
    cpu: u32,
    min: f64,
    avg: f64,
    max: f64,
    duration: f64,
    #[serde(default)]
    histogram: BTreeMap<String, u64>,
}

pub(crate) fn parse(text: &str) -> Result<Import, Failure> {
    let version = serde_json::from_str::<Head>(text).map_err(of_json)?.file_version;
    if version != FILE_VERSION {
        let text = format!(
            "a file of rt-tests in version {version}, and this noisefloor reads version \
             {FILE_VERSION}"
        );
        return Err((Kind::Newer, text));
    }
    let file: File = serde_json::from_str(text).map_err(of_json)?;
    let program = file.command.split_whitespace().next().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default().to_owned();
    let mut import = match program.as_str() {
        "cyclictest" => cyclictest(&file)?,
        "oslat" => oslat(&file)?,
        _ => {
            let text = format!(
                "a file of '{program}': of rt-tests, cyclictest and oslat can be read"
            );
            return Err((Kind::Foreign, text));
        }
    };
    import.tool = format!("{program} {}", file.version);
    import.taken = rfc2822::parse(&file.start_time).ok().map(|at| at.timestamp());
    import.facts = vec![
        ("kernel.release", json!(file.sysinfo.release)),
        ("kernel.version", json!(file.sysinfo.version)),
        ("kernel.arch", json!(file.sysinfo.machine)),
    ];
    if file.return_code != 0 {
        let text = format!("{program} ended with code {}", file.return_code);
        import.doubts.push(Doubt::new(Code::Interrupted, text));
    }
    import.command = Some(file.command);
    Ok(import)
}

fn of_json(error: serde_json::Error) -> Failure {
    let place = format!("line {} column {}", error.line(), error.column());
    match error.classify() {
        Category::Eof => truncated(format!("ends in the middle, at {place}: truncated")),
        Category::Syntax | Category::Data | Category::Io => corrupt(error),
    }
}

/// The threads in their order.
fn threads<T: for<'de> Deserialize<'de>>(file: &File) -> Result<Vec<T>, Failure> {
    let mut threads: Vec<(u32, T)> = Vec::new();
    for (number, thread) in &file.thread {
        let order = number.parse().map_err(|_| corrupt(format!("thread '{number}'")))?;
        let read = serde_json::from_value(thread.clone());
        let read = read.map_err(|why| corrupt(format!("thread {number}: {why}")))?;
        threads.push((order, read));
    }
    if threads.is_empty() {
        return Err(corrupt("there is no thread in it"));
    }
    threads.sort_by_key(|(number, _)| *number);
    Ok(threads.into_iter().map(|(_, thread)| thread).collect())
}

fn cyclictest(file: &File) -> Result<Import, Failure> {
    let unit = if file.resolution_in_ns == 0 { 1_000 } else { 1 };
    let scaled = |length: u64| Nanos::from_nanos(length.saturating_mul(unit));
    let mut lengths = Vec::new();
    let (mut is_binned, mut beyond) = (false, 0);
    for thread in threads::<CyclictestThread>(file)? {
        let mut bins = Vec::new();
        for (length, count) in &thread.histogram {
            let length: u64 = length.parse().map_err(|_| not_a_length(length))?;
            let (from_ns, until_ns) = (scaled(length), scaled(length.saturating_add(1)));
            bins.push(Bin { from_ns, until_ns, count: *count });
        }
        bins.sort_by_key(|bin| bin.from_ns);
        let binned = total(&bins);
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

/// A pass of the loop is in the bin that is named after its end; the last one has all that are longer.
/// Shorter passes than the first bin's end are ordinary ones.
fn oslat(file: &File) -> Result<Import, Failure> {
    let words: Vec<&str> = file.command.split_whitespace().collect();
    let width = option(&words, "-W", "--bucket-width");
    let width: u64 = width.and_then(|width| width.parse().ok()).unwrap_or(1_000);
    // As oslat: if bins are no whole microseconds, extremes are in nanoseconds.
    let unit = if width % 1_000 == 0 { 1e3 } else { 1.0 };
    let width = Nanos::from_nanos(width);
    let workload = option(&words, "-w", "--workload").filter(|name| *name != "no");
    let is_busy = workload.is_some();
    let mut import = Import::by("", Vec::new());
    for thread in threads::<OslatThread>(file)? {
        let mut bins = Vec::new();
        for (end, count) in &thread.histogram {
            let end: f64 = end.parse().map_err(|_| not_a_length(end))?;
            let until_ns = nanos(end * 1e3).ok_or_else(|| not_a_length(end))?;
            let from_ns = until_ns.saturating_sub(width);
            bins.push(Bin { from_ns, until_ns, count: *count });
        }
        bins.sort_by_key(|bin| bin.from_ns);
        let max = nanos(thread.max * unit).ok_or_else(|| not_a_length(thread.max))?;
        let passes = Passes { thread: &thread, max, width, unit };
        import.lengths.push(match is_busy {
            true => passes.of_workload(bins),
            false => passes.gaps(bins, &mut import.doubts)?,
        });
    }
    import.resolution_ns = Some(width);
    match is_busy {
        true => {
            import.doubt("these are the times of the loop with its workload, not gaps")
        }
        false => import.threshold_ns = Some(width),
    }
    Ok(import)
}

/// The passes of a thread of oslat.
struct Passes<'a> {
    thread: &'a OslatThread,
    max: Nanos,
    width: Nanos,
    /// The nanoseconds in the unit of its extremes.
    unit: f64,
}

impl Passes<'_> {
    fn of_workload(&self, mut bins: Vec<Bin>) -> ImportedLengths {
        let count = Some(total(&bins));
        let is_extended = bins.last().is_some_and(|last| last.until_ns < self.max);
        if is_extended {
            bins.pop();
        }
        ImportedLengths {
            elapsed_ns: nanos(self.thread.duration * 1e9),
            count,
            min_ns: nanos(self.thread.min * self.unit),
            max_ns: Some(self.max),
            bins,
            ..ImportedLengths::new(LengthKind::Value, Some(Cpu::new(self.thread.cpu)))
        }
    }

    fn gaps(
        &self,
        mut bins: Vec<Bin>,
        doubts: &mut Vec<Doubt>,
    ) -> Result<ImportedLengths, Failure> {
        let passes = total(&bins);
        // oslat's mean is that of the ends of bins in microseconds, with what is beyond the last one in
        // the unit of extremes.
        let ends: f64 =
            bins.iter().map(|bin| as_float(bin.until_ns) / 1e3 * bin.count as f64).sum();
        let beyond = (self.thread.avg * passes as f64 - ends).max(0.0) * self.unit;
        if !bins.is_empty() {
            bins.remove(0);
        }
        let (gaps, half) = (total(&bins), as_float(self.width) / 2.0);
        let middle = |bin: &Bin| (as_float(bin.until_ns) - half) * bin.count as f64;
        let sum: f64 = bins.iter().map(middle).sum();
        let is_extended = bins.last().is_some_and(|last| last.until_ns < self.max);
        let longer = if is_extended { bins.pop() } else { None };
        let (sum, off) = match longer {
            None => (sum, half * gaps as f64),
            Some(bin) if bin.count == 1 => {
                let until_ns = self.max.saturating_add(self.width);
                bins.push(Bin { from_ns: self.max, until_ns, count: 1 });
                (sum - middle(&bin) + as_float(self.max), half * gaps as f64)
            }
            // The mean has six digits after the point.
            Some(_) => {
                (sum + beyond, half * gaps as f64 + 5e-7 * self.unit * passes as f64)
            }
        };
        let elapsed = nanos(self.thread.duration * 1e9).filter(|time| !time.is_zero());
        let elapsed = elapsed.ok_or_else(|| corrupt("a duration of 0"))?;
        let (off, cpu) = (off / as_float(elapsed) * 1e6, self.thread.cpu);
        let mut doubt = |text: String| doubts.push(Doubt::new(Code::Imprecise, text));
        doubt(format!(
            "the noise of CPU {cpu} may differ by {off:.1} ppm, because oslat rounds lengths"
        ));
        if total(&bins) < gaps {
            let count = gaps - total(&bins);
            doubt(format!(
                "gaps of CPU {cpu} beyond the histogram: {count}; hint: a larger -b"
            ));
        }
        Ok(ImportedLengths {
            elapsed_ns: Some(elapsed),
            count: Some(gaps),
            sum_ns: nanos(sum),
            max_ns: (gaps > 0).then_some(self.max),
            bins,
            ..ImportedLengths::new(LengthKind::Gap, Some(Cpu::new(cpu)))
        })
    }
}

/// The value of an option in a command line.
fn option<'a>(words: &[&'a str], short: &str, long: &str) -> Option<&'a str> {
    words.iter().enumerate().find_map(|(at, word)| {
        let inline = word.strip_prefix(long).and_then(|rest| rest.strip_prefix('='));
        let attached = word.strip_prefix(short).filter(|rest| !rest.is_empty());
        match *word == short || *word == long {
            true => words.get(at + 1).copied(),
            false => inline.or(attached.filter(|_| !word.starts_with("--"))),
        }
    })
}

/// The number of values in bins.
fn total(bins: &[Bin]) -> u64 {
    bins.iter().map(|bin| bin.count).fold(0, u64::saturating_add)
}

fn not_a_length(text: impl std::fmt::Display) -> Failure {
    corrupt(format!("'{text}' is not a length"))
}

fn as_float(length: Nanos) -> f64 {
    length.get() as f64
}

/// A length of so many nanoseconds; `None` if it cannot be one.
fn nanos(length: f64) -> Option<Nanos> {
    /// The longest: 292 years.
    const MAX: f64 = 9.2e18;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "in range"
    )]
    let rounded = |length: f64| Nanos::from_nanos(length.round() as u64);
    (0.0..MAX).contains(&length).then(|| rounded(length))
}
