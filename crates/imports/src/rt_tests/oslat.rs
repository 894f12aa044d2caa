//! The JSON of oslat: `write_summary_json` in `src/oslat/oslat.c`.

use std::collections::BTreeMap;

use recording::{Bin, Code, Doubt, ImportedLengths, LengthKind};
use serde::Deserialize;
use units::{Cpu, Nanos};

use crate::import::{Failure, Import, corrupt};
use crate::rt_tests::{File, nanos, not_a_length, threads, total};

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
    let workload = option(&words, "-w", "--workload").filter(|name| *name != "no");
    let is_busy = workload.is_some();
    let mut import = Import::by("", Vec::new());
    for thread in threads::<Thread>(file)? {
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
    thread: &'a Thread,
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

fn as_float(length: Nanos) -> f64 {
    length.get() as f64
}
