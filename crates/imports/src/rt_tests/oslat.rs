//! The JSON of oslat: `write_summary_json` in `src/oslat/oslat.c`.

use std::collections::BTreeMap;

use recording::{Bin, Code, Doubt, ImportedLengths, LengthKind};
use serde::Deserialize;
use units::{Cpu, Nanos};

use crate::import::{Failure, Import, corrupt};
use crate::rt_tests::{File, nanos, not_a_length, threads};

#[derive(Deserialize)]
struct Thread {
    cpu: u32,
    min: f64,
    avg: f64,
    max: f64,
    duration: f64,
    #[serde(default)]
    histogram: BTreeMap<String, u64>,
}

/// A pass of the loop is in the bin that is named after its end; the last one has all that are longer.
/// Shorter passes than the first bin's end are ordinary ones.
pub(super) fn parse(file: &File) -> Result<Import, Failure> {
    let words: Vec<&str> = file.command.split_whitespace().collect();
    let width = option(&words, "-W", "--bucket-width");
    let width: u64 = width.and_then(|width| width.parse().ok()).unwrap_or(1_000);
    // As oslat: if bins are no whole microseconds, extremes are in nanoseconds.
    let unit = if width % 1_000 == 0 { 1e3 } else { 1.0 };
    let width = Nanos::from_nanos(width);
    let excess = excess(&file.version, width);
    let workload = option(&words, "-w", "--workload").filter(|name| *name != "no");
    let is_busy = workload.is_some();
    let mut import = Import::by("", Vec::new());
    for (at, thread) in threads::<Thread>(file)?.into_iter().enumerate() {
        let mut bins = Vec::new();
        for (end, count) in &thread.histogram {
            let end: f64 = end.parse().map_err(|_| not_a_length(end))?;
            let until_ns = nanos(end * 1e3).ok_or_else(|| not_a_length(end))?;
            let until_ns = until_ns.saturating_sub(excess);
            let from_ns = until_ns.saturating_sub(width);
            bins.push(Bin { from_ns, until_ns, count: *count });
        }
        bins.sort_by_key(|bin| bin.from_ns);
        let max = nanos(thread.max * unit).ok_or_else(|| not_a_length(thread.max))?;
        let is_first = at == 0;
        let passes = Passes { thread: &thread, is_first, max, width, excess, unit };
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
        false => import.threshold_ns = Some(shortest_gap(width, excess)),
    }
    Ok(import)
}

/// By how much the names of bins are too long. Versions 2.5 and 2.6 round lengths up to whole
/// microseconds, and then count them in the bin from that length on.
fn excess(version: &str, width: Nanos) -> Nanos {
    let rounds_up = matches!(version, "2.50" | "2.60") && width.get() % 1_000 == 0;
    if rounds_up { Nanos::from_micros(1) } else { Nanos::ZERO }
}

/// The end of the first bin that is not empty. A length that is rounded up is in no bin of 0 to 1 us.
fn shortest_gap(width: Nanos, excess: Nanos) -> Nanos {
    let end = width.saturating_sub(excess);
    if end.is_zero() { width } else { end }
}

/// The passes of a thread of oslat.
struct Passes<'a> {
    thread: &'a Thread,
    /// Whether it is the first thread of the file, of which alone the mean has what is beyond the bins.
    is_first: bool,
    max: Nanos,
    width: Nanos,
    /// What was subtracted from the names of its bins.
    excess: Nanos,
    /// The nanoseconds in the unit of its extremes.
    unit: f64,
}

impl Passes<'_> {
    fn of_workload(&self, mut bins: Vec<Bin>) -> ImportedLengths {
        let count = Some(Bin::total(&bins));
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
        let cpu = self.thread.cpu;
        let elapsed = nanos(self.thread.duration * 1e9).filter(|time| !time.is_zero());
        let elapsed = elapsed.ok_or_else(|| corrupt("a duration of 0"))?;
        let beyond = self.beyond(&bins);
        if !bins.is_empty() {
            bins.remove(0);
        }
        let gaps = Bin::total(&bins);
        let sum = self.sum(&mut bins, beyond);
        doubts.push(Doubt::new(Code::Imprecise, imprecise(cpu, elapsed, sum)));
        if Bin::total(&bins) < gaps {
            let count = gaps - Bin::total(&bins);
            let text = format!(
                "gaps of CPU {cpu} beyond the histogram: {count}; hint: a larger -b"
            );
            doubts.push(Doubt::new(Code::Imprecise, text));
        }
        Ok(ImportedLengths {
            elapsed_ns: Some(elapsed),
            count: Some(gaps),
            sum_ns: sum.and_then(|sum| nanos(sum.ns)),
            max_ns: (gaps > 0).then_some(self.max),
            bins,
            ..ImportedLengths::new(LengthKind::Gap, Some(Cpu::new(cpu)))
        })
    }

    /// The time beyond the last bin's end, and by how much it may differ; `None` if it is unknown.
    ///
    /// oslat's mean is that of the ends of bins in microseconds, with what is beyond the last one in the
    /// unit of extremes. To each thread's sum it adds what is beyond the bins of the first thread
    /// (`calculate`, rt-tests 2.4 to 2.10).
    fn beyond(&self, bins: &[Bin]) -> Option<Sum> {
        let passes = Bin::total(bins) as f64;
        let end = |bin: &Bin| as_float(bin.until_ns.saturating_add(self.excess)) / 1e3;
        let ends: f64 = bins.iter().map(|bin| end(bin) * bin.count as f64).sum();
        let ns = (self.thread.avg * passes - ends).max(0.0) * self.unit;
        // The mean has six digits after the point.
        self.is_first.then_some(Sum { ns, off: 5e-7 * passes * self.unit })
    }

    /// The sum of gaps; `None` if it is unknown. The last bin is removed if longer gaps are in it, or has
    /// the longest gap only.
    ///
    /// Each gap is in the middle of its bin, give or take half a bin. Of a longer one, oslat adds the
    /// lower end of the bin that it would be in, but of gaps that are in the last bin the upper one: these
    /// are the ends of the bins, give or take a bin.
    fn sum(&self, bins: &mut Vec<Bin>, beyond: Option<Sum>) -> Option<Sum> {
        let half = as_float(self.width) / 2.0;
        let is_extended = bins.last().is_some_and(|last| last.until_ns < self.max);
        let longer = if is_extended { bins.pop() } else { None };
        let middle = |bin: &Bin| (as_float(bin.until_ns) - half) * bin.count as f64;
        let ns: f64 = bins.iter().map(middle).sum();
        let off = half * Bin::total(&*bins) as f64;
        match longer {
            None => Some(Sum { ns, off }),
            Some(bin) if bin.count == 1 => {
                let until_ns = self.max.saturating_add(self.width);
                bins.push(Bin { from_ns: self.max, until_ns, count: 1 });
                Some(Sum { ns: ns + as_float(self.max), off: off + half })
            }
            Some(bin) => {
                let (beyond, count) = (beyond?, bin.count as f64);
                let ns = ns + as_float(bin.until_ns) * count + beyond.ns;
                let off = off + as_float(self.width) * count + beyond.off;
                Some(Sum { ns, off })
            }
        }
    }
}

/// A sum of lengths in ns, and by how much it may differ.
#[derive(Clone, Copy)]
struct Sum {
    ns: f64,
    off: f64,
}

/// What is not known of the noise of a CPU.
fn imprecise(cpu: u32, elapsed: Nanos, sum: Option<Sum>) -> String {
    match sum.map(|sum| sum.off / as_float(elapsed) * 1e6) {
        Some(off) => format!(
            "the noise of CPU {cpu} may differ by {off:.1} ppm, because oslat rounds lengths"
        ),
        None => format!(
            "the noise of CPU {cpu} is unknown, because oslat counts the time of gaps beyond the \
             histogram for the first CPU only"
        ),
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

fn as_float(length: Nanos) -> f64 {
    length.get() as f64
}
