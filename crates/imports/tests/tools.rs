//! Files that the tools wrote: rt-tests 2.4 and 2.10, jitterdebugger 0.3, sysjitter 1.4 and jHiccup 2.0.11 on Linux 6.18, rtla 6.1
//! in a guest with Linux 6.1 (PREEMPT_RT).
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::{Path, PathBuf};

use recording::{Body, ImportedLengths, ImportedSpec, Kind, LengthKind, Recording};
use units::{Cpu, Nanos};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files")
}

fn read(name: &str) -> (Recording, ImportedSpec, Vec<ImportedLengths>) {
    let recording = imports::load(&folder().join(name)).unwrap();
    let Body::Imported { spec, series } = recording.body.clone() else { panic!() };
    (recording, spec, series.lengths)
}

fn parse(text: &str) -> Result<Recording, recording::Error> {
    imports::read(text.as_bytes(), Path::new("file"))
}

fn us(length: u64) -> Option<Nanos> {
    Some(Nanos::from_micros(length))
}

fn binned(lengths: &ImportedLengths) -> u64 {
    let of_intervals = lengths.intervals.iter().flat_map(|one| &one.bins);
    lengths.bins.iter().chain(of_intervals).map(|bin| bin.count).sum()
}

/// Check cyclictest's counts, extremes and mean, its version, time and kernel, and that latencies
/// beyond the histogram are a doubt.
#[test]
fn cyclictest() {
    let (recording, spec, lengths) = read("cyclictest.json");
    assert_eq!(recording.tool, "cyclictest 2.40");
    assert_eq!(recording.taken, "2026-11-26T07:57:55Z");
    let release = recording.facts.kernel.release.get().unwrap();
    assert!(release.starts_with("6.18."), "{release}");
    assert!(recording.facts.tick.hz.get().is_none());
    assert_eq!((spec.cpus.to_string(), spec.resolution_ns), ("0,1".to_owned(), us(1)));
    let [first, second] = lengths.as_slice() else { panic!("{lengths:?}") };
    assert_eq!((first.kind, first.cpu), (LengthKind::WakeupLatency, Some(Cpu::new(0))));
    assert_eq!((second.min_ns, second.max_ns), (us(7), us(2990)));
    assert_eq!(second.sum_ns, Some(Nanos::from_nanos(28_860 * 5000)));
    // "# Histogram Overflows: 00015 00018"
    assert_eq!([5000 - binned(first), 5000 - binned(second)], [15, 18]);
    let doubt = &recording.doubts[0].text;
    assert_eq!(doubt, "latencies beyond the histogram: 33; hint: a larger -h");
}

/// Check jitterdebugger's counts, extremes and mean, and that latencies beyond its histogram are a doubt.
#[test]
fn jitterdebugger() {
    let (recording, spec, lengths) = read("jitterdebugger.json");
    assert_eq!(recording.tool, "jitterdebugger, file version 3");
    assert!(recording.facts.kernel.release.get().unwrap().starts_with("6.18."));
    assert_eq!((spec.cpus.to_string(), spec.resolution_ns), ("0,1".to_owned(), us(1)));
    let second = &lengths[1];
    assert_eq!((second.kind, second.cpu), (LengthKind::WakeupLatency, Some(Cpu::new(1))));
    assert_eq!((second.min_ns, second.max_ns), (us(20), us(8140)));
    assert_eq!(second.count, Some(2000));
    assert_eq!(second.sum_ns, Some(Nanos::from_nanos(86_020 * 2000)));
    let beyond: u64 = lengths.iter().map(|one| 2000 - binned(one)).sum();
    let doubt = &recording.doubts[0].text;
    assert_eq!(*doubt, format!("latencies beyond the histogram: {beyond}"));
    // Half of the latencies do not exceed 43 us, in the last bin that `sort | uniq -c` counts up to 1000.
    let below = |us: u64| {
        let bins = second.bins.iter().filter(|bin| bin.from_ns <= Nanos::from_micros(us));
        bins.map(|bin| bin.count).sum::<u64>()
    };
    assert!(below(42) < 1000 && below(43) >= 1000);
}

/// Check lengths in nanoseconds, and without a histogram.
#[test]
fn cyclictest_in_nanoseconds() {
    let (recording, spec, lengths) = read("cyclictest-ns.json");
    assert_eq!(spec.resolution_ns, Some(Nanos::from_nanos(1)));
    assert_eq!(lengths[0].min_ns, Some(Nanos::from_nanos(9392)));
    assert_eq!(lengths[0].max_ns, Some(Nanos::from_nanos(646_700)));
    assert_eq!(binned(&lengths[0]), 0);
    assert!(recording.doubts[0].text.contains("(-h)"));
}

/// Check that gaps of oslat are its passes of more than 1 us, and that their sum with the other passes
/// is the duration, as far as oslat rounds it.
#[test]
fn oslat() {
    let (recording, spec, lengths) = read("oslat.json");
    assert_eq!(recording.tool, "oslat 2.40");
    assert_eq!(spec.threshold_ns, us(1));
    let cpu = &lengths[0];
    assert_eq!((cpu.kind, cpu.elapsed_ns), (LengthKind::Gap, us(3_001_000)));
    // The counts of 2 to 40 us; the last has all that are longer.
    assert_eq!((cpu.count, binned(cpu)), (Some(2464), 2464 - 410));
    assert_eq!(cpu.max_ns, us(11_322));
    // oslat's mean counts each pass as the end of its bin.
    let passes = (51_550_080 + 2464) as f64;
    let all = (1.028_621 * passes - 51_550_080.0) * 1e3;
    let sum = cpu.sum_ns.unwrap().get() as f64;
    // Half a bin less for each of the 2054 gaps in bins; those beyond are counted by their lower ends.
    assert!((all - 0.5e3 * 2054.0 - sum).abs() < 60e3, "{all} {sum}");
    let doubts: Vec<&str> =
        recording.doubts.iter().map(|one| one.text.as_str()).collect();
    assert_eq!(doubts[1], "gaps of CPU 0 beyond the histogram: 410; hint: a larger -b");
    // 2054 * 0.5 us + 410 * 1 us + 51,552,544 * 5e-7 us (25.8 us) in 3.001 s.
    assert!(doubts[0].contains("may differ by 487.4 ppm"), "{}", doubts[0]);
}

/// Check that the sum of a CPU that is not the first is unknown if gaps are beyond its histogram: oslat adds
/// the time beyond that of the first CPU, 1,423,079 us of CPU 0, to the mean of CPU 1, too:
/// 1.030418 * 48,178,239 passes less the ends of its bins are 1,423,057 us.
#[test]
fn oslat_beyond_the_first_thread() {
    let (recording, _, lengths) = read("oslat.json");
    let cpu = &lengths[1];
    assert_eq!((cpu.cpu, cpu.count), (Some(Cpu::new(1)), Some(2379)));
    assert_eq!((binned(cpu), cpu.sum_ns), (2379 - 379, None));
    let doubts: Vec<&str> =
        recording.doubts.iter().map(|one| one.text.as_str()).collect();
    assert!(doubts[2].starts_with("the noise of CPU 1 is unknown"), "{}", doubts[2]);
    assert_eq!(doubts[3], "gaps of CPU 1 beyond the histogram: 379; hint: a larger -b");
    assert_eq!(doubts.len(), 4);
}

/// A file of oslat with these threads.
fn oslat_file(version: &str, threads: &str) -> Vec<ImportedLengths> {
    let text = format!(
        r#"{{"file_version": 1, "cmdline:": "oslat -b 5", "rt_test_version:": "{version}",
        "start_time": "", "sysinfo": {{"release": "", "version": "", "machine": ""}},
        "thread": {{{threads}}}}}"#
    );
    series(&parse(&text).unwrap())
}

/// Check gaps of 10.5 and 20.5 us beyond bins up to 5 us (rt-tests 2.7 to 2.10 and 2.4): they are counted in the
/// last bin as 10 and 20 us, and the mean is (98 * 1 + 10 + 20) / 100 us. The sum is 30 us, and the right
/// one is within 2 us of it.
#[test]
fn oslat_rounds_down_beyond_bins() {
    let threads = r#""0": {"cpu": 0, "min": 1, "avg": 1.28, "max": 20, "duration": 1.0,
        "histogram": {"1": 98, "5": 2}}"#;
    let lengths = oslat_file("2.70", threads);
    assert_eq!((lengths[0].count, lengths[0].sum_ns), (Some(2), us(30)));
}

/// Check that bins of rt-tests 2.5 and 2.6 end a microsecond earlier: a gap of 2.2 us is rounded up to 3 us
/// there, and counted in the bin of 3 to 4 us, "4". A gap of 7.3 us is the longest, 8 us.
#[test]
fn oslat_rounds_up() {
    let threads = r#""0": {"cpu": 0, "min": 1, "avg": 2.0, "max": 8, "duration": 1.0,
        "histogram": {"2": 97, "4": 2, "5": 1}}"#;
    let bins = |version| {
        let bins = oslat_file(version, threads)[0].bins.clone();
        bins.iter()
            .map(|bin| (bin.from_ns.get(), bin.until_ns.get(), bin.count))
            .collect()
    };
    let found: [Vec<(u64, u64, u64)>; 3] = ["2.50", "2.60", "2.70"].map(bins);
    assert_eq!(found[0], [(2_000, 3_000, 2), (8_000, 9_000, 1)]);
    assert_eq!(found[1], found[0]);
    assert_eq!(found[2], [(3_000, 4_000, 2), (8_000, 9_000, 1)]);
}

/// Check that threads on one CPU are one series, and so are threads that are not pinned: counts and sums
/// are added (5000 cycles each, with 15 and 18 latencies beyond the histogram).
#[test]
fn threads_of_one_cpu() {
    let text = fs::read_to_string(folder().join("cyclictest.json")).unwrap();
    let of = |cpu: &str| {
        let text = text.replace("\"cpu\": 0", cpu).replace("\"cpu\": 1", cpu);
        parse(&text).unwrap()
    };
    let (on_one, unpinned) = (of("\"cpu\": 3"), of("\"cpu\": -1"));
    let [one] = &series(&on_one)[..] else { panic!() };
    assert_eq!(
        (one.cpu, one.count, binned(one)),
        (Some(Cpu::new(3)), Some(10_000), 9_967)
    );
    let each = series(&parse(&text).unwrap());
    let sum = each.iter().filter_map(|one| one.sum_ns).sum();
    assert_eq!(
        (one.sum_ns, one.max_ns),
        (Some(sum), each.iter().filter_map(|it| it.max_ns).max())
    );
    let doubt = &on_one.doubts.last().unwrap().text;
    assert_eq!(doubt, "several threads ran on CPU 3: their lengths are one series");
    let [one] = &series(&unpinned)[..] else { panic!() };
    assert_eq!((one.cpu, one.count), (None, Some(10_000)));
    let doubt = &unpinned.doubts.last().unwrap().text;
    assert_eq!(doubt, "several threads were not pinned: their lengths are one series");
}

/// Check a histogram without rows, of which all values are beyond the last one: its zeros are no values.
/// Without a column, nothing was recorded.
#[test]
fn osnoise_without_rows() {
    let text = |columns: &str| {
        format!(
            "# RTLA osnoise histogram\n# Time unit is microseconds (us)\n\
             # Duration:   0 00:00:03\nIndex{columns}\n\
             over:  0\ncount: 0\nmin:   0\navg:   0\nmax:   0\n"
        )
    };
    for (columns, count) in [("   CPU-000", 1), ("   CPU-000   CPU-001", 2)] {
        let recording = parse(&text(columns)).unwrap();
        let found = series(&recording);
        assert_eq!(found.len(), count);
        let expected = ImportedLengths::new(LengthKind::Gap, Some(Cpu::new(0)));
        assert_eq!(found[0], expected);
        let doubt = &recording.doubts[0].text;
        assert_eq!(doubt, "all values are beyond the histogram; hint: more entries (-E)");
    }
    let error = parse(&text("")).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("nothing was recorded"), "{cause}");
    assert_eq!(error.kind(), Kind::Foreign);
}

/// Check the files of rt-tests 2.10, and bins of 200 ns, with which oslat writes extremes in nanoseconds.
#[test]
fn version_2_10() {
    let (recording, spec, lengths) = read("oslat-2.10.json");
    assert_eq!(recording.tool, "oslat 2.10");
    assert_eq!(spec.threshold_ns, Some(Nanos::from_nanos(200)));
    let cpu = &lengths[0];
    let longest = 1_359_244;
    assert_eq!((cpu.count, cpu.max_ns), (Some(1575), Some(Nanos::from_nanos(longest))));
    // The middles of the bins of all gaps but the longest: 26485.0 us.
    assert_eq!(cpu.sum_ns, Some(Nanos::from_nanos(26_485_000 + longest)));
    let (recording, _, lengths) = read("cyclictest-2.10.json");
    assert_eq!(recording.tool, "cyclictest 2.10");
    let thread = &lengths[0];
    assert_eq!((thread.count, binned(thread), thread.max_ns), (Some(1000), 999, us(931)));
}

/// Check that passes with a workload are no gaps.
#[test]
fn oslat_with_a_workload() {
    let (_, spec, lengths) = read("oslat-workload.json");
    assert_eq!((spec.threshold_ns, lengths[0].kind), (None, LengthKind::Value));
    assert!(lengths[0].count.unwrap() > 22_000_000);
}

/// Check sysjitter's statistics.
#[test]
fn sysjitter() {
    let (_, spec, lengths) = read("sysjitter.txt");
    assert_eq!(spec.threshold_ns, us(1));
    let cpu = &lengths[1];
    assert_eq!((cpu.cpu, cpu.count), (Some(Cpu::new(1)), Some(2245)));
    assert_eq!(cpu.elapsed_ns, Some(Nanos::from_nanos(3_006_008_761)));
    assert_eq!(cpu.sum_ns, Some(Nanos::from_nanos(1_539_898_013)));
    assert!(cpu.quantiles.contains(&(500_000, Nanos::from_nanos(27_346))));
    assert!(cpu.quantiles.contains(&(999_000, Nanos::from_nanos(12_064_341))));
    assert_eq!(cpu.max_ns, Some(Nanos::from_nanos(20_272_833)));
}

/// Check that statistics of sysjitter which overflowed are a doubt.
#[test]
fn sysjitter_overflows() {
    let text = fs::read_to_string(folder().join("sysjitter.txt")).unwrap();
    let text = text.replace("int_max(ns): 28229250", "int_max(ns): 44000");
    let doubts = parse(&text).unwrap().doubts;
    assert!(
        doubts[0].text.starts_with("the statistics of core 0 contradict"),
        "{doubts:?}"
    );
}

/// Check the columns of timerlat's histogram, with its own counts.
#[test]
fn timerlat_histogram() {
    let (recording, spec, lengths) = read("rtla-timerlat-hist.txt");
    assert_eq!(
        (recording.tool.as_str(), spec.resolution_ns),
        ("rtla timerlat hist", us(1))
    );
    let kinds: Vec<(LengthKind, u32)> =
        lengths.iter().map(|one| (one.kind, one.cpu.unwrap().get())).collect();
    let [interrupt, thread] =
        [LengthKind::TimerInterruptLatency, LengthKind::WakeupLatency];
    assert_eq!(kinds, [(interrupt, 0), (thread, 0), (interrupt, 1), (thread, 1)]);
    let last = &lengths[3];
    assert_eq!((last.count, binned(last), last.max_ns), (Some(3000), 2999, us(333)));
    assert_eq!((lengths[1].count, binned(&lengths[1])), (Some(3000), 3000));
    // 0 to 3000 us, and 12,013 to 15,013 us.
    assert_eq!([lengths[0].sum_ns, lengths[1].sum_ns], [us(1_500), us(13_513)]);
    // 12,027 to 15,026 us in the rows, and one of 14 to 334 us.
    assert_eq!(last.sum_ns, Some(Nanos::from_nanos(13_700_500)));
}

/// Check that the width of bins is found if there are only a few.
#[test]
fn timerlat_buckets() {
    let (_, spec, lengths) = read("rtla-timerlat-buckets.txt");
    assert_eq!(spec.resolution_ns, us(10));
    assert_eq!(Some(lengths[3].bins[2].until_ns), us(340));
    // All are below 1 us, although their row ends at 10 us.
    assert_eq!((lengths[0].max_ns, lengths[0].sum_ns), (us(0), us(1_000)));
    // 2000 of 4 to 6 us, by their mean.
    assert_eq!(lengths[3].sum_ns, us(10_000));
}

/// Check the table of osnoise below its colours, and its histogram.
#[test]
fn osnoise() {
    let (_, _, lengths) = read("rtla-osnoise-top.txt");
    let cpu = &lengths[1];
    assert_eq!((cpu.elapsed_ns, cpu.sum_ns), (us(2_700_000), us(1_620_437)));
    assert_eq!((cpu.max_ns, cpu.count), (us(1465), None));
    let (_, _, lengths) = read("rtla-osnoise-hist.txt");
    assert_eq!((lengths[0].kind, lengths[0].count), (LengthKind::Gap, Some(2406)));
    assert_eq!(2406 - binned(&lengths[0]), 2013);
    // Most of them are beyond the rows, and their mean is 448 to 450 us.
    assert_eq!(lengths[0].sum_ns, us(449 * 2406));
}

/// Check a log of jHiccup against `HistogramLogProcessor` of HdrHistogram 2.1.11: 9220 values, 540 of
/// them up to 16383, a maximum of 5636095, 9139 up to 147455.
#[test]
fn jhiccup() {
    let (recording, _, lengths) = read("jhiccup.hlog");
    assert_eq!(recording.tool, "jHiccup 2.0.11-SNAPSHOT");
    assert_eq!(recording.taken, "2026-11-26T07:58:56Z");
    let all = &lengths[0];
    assert_eq!((lengths.len(), all.intervals.len()), (1, 10));
    assert_eq!((all.kind, binned(all)), (LengthKind::WakeupLatency, 9220));
    let bins = || all.intervals.iter().flat_map(|one| &one.bins);
    let up_to = |length: u64| -> u64 {
        let until = Nanos::from_nanos(length + 1);
        bins().filter(|bin| bin.until_ns <= until).map(|bin| bin.count).sum()
    };
    assert_eq!([up_to(16_383), up_to(147_455)], [540, 9139]);
    let longest = bins().map(|bin| bin.until_ns).max().unwrap();
    assert_eq!(longest, Nanos::from_nanos(5_636_096));
}

/// Check that the intervals of a tag are separate, that a tag of noisefloor is a CPU, and that other tags
/// are named in a doubt.
#[test]
fn tags() {
    let text = fs::read_to_string(folder().join("jhiccup.hlog")).unwrap();
    let text = text
        .replace("\n1.404,", "\nTag=CPU3,1.404,")
        .replace("\n2.403,", "\nTag=a,2.403,");
    let recording = parse(&text).unwrap();
    let of = |one: &ImportedLengths| {
        (one.cpu.map(Cpu::get), one.tag.clone(), one.intervals.len())
    };
    let found: Vec<_> = series(&recording).iter().map(of).collect();
    let tag = Some("a".to_owned());
    assert_eq!(found, [(None, None, 8), (Some(3), None, 1), (None, tag, 1)]);
    assert_eq!(recording.doubts[0].text, "histograms with a tag are not compared: a");
}

/// Check that a file that ends anywhere is refused, or has the contents of the whole file, of which a
/// log and a table by CPU may lack later lines.
#[test]
fn cut_off() {
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        let whole = parse(&text).unwrap();
        // Files of benchmarks: `benchmarks.rs`.
        let Body::Imported { series: whole, .. } = whole.body else { continue };
        let whole = whole.lengths;
        let is_open = name.ends_with(".hlog") || name.contains("osnoise-top");
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            let Ok(part) = parse(&text[..end]) else { continue };
            let part = series(&part);
            let is_start = part.iter().zip(&whole).all(|(part, whole)| {
                let intervals = part.intervals.len();
                let start = whole.intervals.get(..intervals).unwrap_or_default();
                part.kind == whole.kind
                    && part.bins == whole.bins
                    && part.sum_ns == whole.sum_ns
                    && part.intervals == start
            });
            assert!(part == whole || (is_open && is_start), "{name}: {end} bytes");
        }
    }
}

fn series(recording: &Recording) -> Vec<ImportedLengths> {
    let Body::Imported { series, .. } = &recording.body else { panic!() };
    series.lengths.clone()
}

/// Check that unknown versions and programs, and impossible values, are refused by name.
#[test]
fn refused() {
    let file = |name: &str| fs::read_to_string(folder().join(name)).unwrap();
    let json = file("cyclictest.json");
    let hlog = file("jhiccup.hlog");
    for (text, kind, reason) in [
        (json.replace("version\": 1", "version\": 2"), Kind::Newer, "in version 2"),
        (json.replace("\"cyclictest ", "\"pmqtest "), Kind::Foreign, "'pmqtest'"),
        (json.replace("\"8\": 1,", "\"8\": 99999,"), Kind::Corrupt, "of 5000 cycles"),
        (json.replace("\"8\": 1,", "\"-8\": 1,"), Kind::Corrupt, "'-8' is not a length"),
        (json.replace("28.86", "-nan"), Kind::Corrupt, "line"),
        (file("sysjitter.txt").replace("int_n: 2301", "int_n: x"), Kind::Corrupt, "'x'"),
        (
            file("rtla-timerlat-hist.txt").replace("Thr-001", "Abc-001"),
            Kind::Corrupt,
            "column 'Abc-001'",
        ),
        (hlog.replace("HISTFAAAAD542", "HISTEwAAAD542"), Kind::Truncated, "is cut off"),
        (hlog.replace("HISTFAAAAD542", "HISTFAAAAD5!2"), Kind::Corrupt, "Invalid byte"),
        (hlog.replace("pNpmSzMwMAg", "pNpmSzMwMBg"), Kind::Corrupt, "histogram"),
        // The head of a compressed histogram is cut after its cookie.
        (
            "#[Histogram log format version 1.3]\n0.0,1.0,1.0,HISTFAcIGg==\n".to_owned(),
            Kind::Truncated,
            "of a few bytes",
        ),
        (hlog.replace("HISTFAAAAD5", "AAAAFAAAAD5"), Kind::Newer, "unknown version"),
        (hlog + "x,y\n", Kind::Corrupt, "line 15 is not an interval"),
        ("T: 0 ( 7) P:80 I:1000 C: 9\n".to_owned(), Kind::Foreign, "--json=FILE"),
        ("hello\n".to_owned(), Kind::Foreign, "not a noisefloor recording"),
    ] {
        let error = parse(&text).unwrap_err();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert_eq!(error.kind(), kind, "{cause}");
        assert!(cause.contains(reason), "{cause}");
    }
}

/// Check that a histogram whose head claims gigabytes takes no memory.
#[test]
fn claims_of_size() {
    let head: Vec<u8> = [0x1c84_9313_u32, 0xffff_ff00, 0, 3]
        .into_iter()
        .flat_map(u32::to_be_bytes)
        .chain([0; 24])
        .collect();
    let encoded = base64(&head);
    let text = format!("#[Histogram log format version 1.3]\n0.0,1.0,1.0,{encoded}\n");
    let error = parse(&text).unwrap_err();
    assert_eq!(error.kind(), Kind::Truncated);
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8] =
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let all = chunk.iter().fold(0_u32, |all, byte| all << 8 | u32::from(*byte));
        let all = all << (8 * (3 - chunk.len()));
        for digit in 0..=chunk.len() {
            let value = (all >> (18 - 6 * digit)) & 63;
            text.push(char::from(DIGITS[value as usize]));
        }
        text.push_str(&"=".repeat(3 - chunk.len()));
    }
    text
}

/// Check that devices and folders are refused, and a FIFO is read.
#[test]
fn kinds_of_files() {
    assert_eq!(imports::load(Path::new("/dev/null")).unwrap_err().kind(), Kind::Read);
    assert_eq!(imports::load(Path::new("/")).unwrap_err().kind(), Kind::Read);
    let place = tempfile::tempdir().unwrap();
    let fifo = place.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let text = fs::read_to_string(folder().join("sysjitter.txt")).unwrap();
    let writer = {
        let fifo = fifo.clone();
        std::thread::spawn(move || fs::write(fifo, text).unwrap())
    };
    assert_eq!(imports::load(&fifo).unwrap().tool, "sysjitter");
    writer.join().unwrap();
}
