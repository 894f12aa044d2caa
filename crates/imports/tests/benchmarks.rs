//! Files of benchmarks that the tools wrote: hyperfine 1.15, Google Benchmark 1.7.1, Criterion 0.5.1, divan 0.1.21,
//! JMH 1.37, Go 1.26.8, pytest-benchmark 5.3.1 and perf 6.1.192, on Linux 6.18. Numbers are compared with those
//! that the tools computed.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::path::{Path, PathBuf};

use recording::{Benchmark, BetterValues, Body, Kind, Recording, ValueUnit};
use summary::{BenchmarkSummary, Summary};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn load(name: &str) -> Recording {
    imports::load(&folder().join("files").join(name)).unwrap()
}

fn text(name: &str) -> String {
    fs::read_to_string(folder().join("files").join(name)).unwrap()
}

fn parse(text: &str) -> Result<Recording, recording::Error> {
    imports::read(text.as_bytes(), Path::new("file"))
}

fn benchmarks(recording: &Recording) -> Vec<Benchmark> {
    let Body::Benchmarks { series, .. } = &recording.body else { panic!() };
    series.benchmarks.clone()
}

fn environment(recording: &Recording, key: &str) -> String {
    let Body::Benchmarks { spec, .. } = &recording.body else { panic!() };
    spec.environment.get(key).cloned().unwrap_or_default()
}

/// The summary of a quantity.
fn summary(recording: &Recording, name: &str, unit: &str) -> BenchmarkSummary {
    let Summary::Benchmarks(summary) = Summary::of(recording) else { panic!() };
    let is_it = |one: &&BenchmarkSummary| one.name == name && one.unit.name() == unit;
    let found = summary.benchmarks.iter().find(is_it);
    found.unwrap_or_else(|| panic!("{name} {unit}: {summary:?}")).clone()
}

/// Whether numbers are the same but for the last digits.
fn assert_same(found: Option<f64>, expected: f64) {
    let found = found.unwrap();
    let off = (found - expected).abs() / expected.abs().max(f64::MIN_POSITIVE);
    assert!(off < 1e-6, "{found} {expected}");
}

/// Check that the statistics of the values are those that the file has from the tool itself.
fn assert_statistics_agree(recording: &Recording, stddev_of_sample: bool) {
    for one in benchmarks(recording) {
        let found = summary(recording, &one.name, one.unit.name());
        assert!(one.values.len() > 1, "{}", one.name);
        let tool = one.statistics;
        let pairs = [
            (found.min, tool.min),
            (found.median, tool.median),
            (found.mean, tool.mean),
            (found.max, tool.max),
            (found.stddev, tool.stddev.filter(|_| stddev_of_sample)),
        ];
        for (found, tool) in pairs {
            if let Some(tool) = tool {
                assert_same(found, tool);
            }
        }
    }
}

fn doubts(recording: &Recording) -> Vec<&str> {
    recording.doubts.iter().map(|doubt| doubt.text.as_str()).collect()
}

fn cause(text: &str) -> (Kind, String) {
    let error = parse(text).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    (error.kind(), cause)
}

/// Check hyperfine's times against its own statistics, and that a command whose runs fail is a doubt, and a second
/// one of the same name has its own.
#[test]
fn hyperfine() {
    let recording = load("hyperfine.json");
    let names: Vec<String> =
        benchmarks(&recording).iter().map(|one| one.name.clone()).collect();
    assert_eq!(names, ["sleep 0.005", "sleep 0.007"]);
    assert_statistics_agree(&recording, true);
    assert_eq!(benchmarks(&recording)[0].values[0], 20_237_995.0);
    assert_eq!(doubts(&recording), [""; 0]);
    let failed = text("hyperfine.json")
        .replacen("        0,", "        null,", 3)
        .replace("sleep 0.007", "sleep 0.005");
    let recording = parse(&failed).unwrap();
    assert_eq!(doubts(&recording), ["3 of 12 runs of 'sleep 0.005' failed"]);
    assert_eq!(benchmarks(&recording)[1].name, "sleep 0.005 (2)");
}

/// Check Google Benchmark's repetitions against its aggregates, which are no values, its counters and rates, and
/// that a build without optimization is a doubt.
#[test]
fn google_benchmark() {
    let recording = load("google-benchmark.json");
    assert_eq!(recording.taken, "2026-11-30T14:38:09Z");
    assert_eq!(environment(&recording, "num_cpus"), "2");
    assert!(doubts(&recording)[0].contains("debug"), "{:?}", recording.doubts);
    let whole: serde_json::Value =
        serde_json::from_str(&text("google-benchmark.json")).unwrap();
    let aggregate = |name: &str, aggregate: &str, key: &str| {
        let all = whole["benchmarks"].as_array().unwrap().iter();
        let mut own = all
            .filter(|one| one["run_name"] == name && one["aggregate_name"] == aggregate);
        own.next().unwrap()[key].as_f64().unwrap()
    };
    for (name, factor) in
        [("BM_Copy/64", 1.0), ("BM_Copy/4096", 1.0), ("BM_Sort<int>", 1e3)]
    {
        for (own, key) in [("", "real_time"), (" cpu_time", "cpu_time")] {
            let found = summary(&recording, &format!("{name}{own}"), "ns");
            assert_eq!((found.count, found.has_values), (Some(6), true));
            assert_same(found.mean, factor * aggregate(name, "mean", key));
            assert_same(found.median, factor * aggregate(name, "median", key));
            assert_same(found.stddev, factor * aggregate(name, "stddev", key));
        }
    }
    let rate = summary(&recording, "BM_Copy/64", "B/s");
    assert_same(rate.median, aggregate("BM_Copy/64", "median", "bytes_per_second"));
    assert_eq!(rate.better, BetterValues::More);
    let cost = summary(&recording, "BM_Copy/64", "cost");
    assert_eq!((cost.median, cost.better), (Some(3.0), BetterValues::Unknown));
}

/// Check that aggregates alone are statistics, with their unit.
#[test]
fn google_benchmark_aggregates() {
    let recording = load("google-benchmark-aggregates.json");
    let whole: serde_json::Value =
        serde_json::from_str(&text("google-benchmark-aggregates.json")).unwrap();
    let found = summary(&recording, "BM_Sort<int>", "ns");
    assert_eq!((found.has_values, found.count), (false, Some(3)));
    let all = whole["benchmarks"].as_array().unwrap();
    let own = all.iter().find(|one| one["name"] == "BM_Sort<int>_median").unwrap();
    assert_same(found.median, 1e3 * own["real_time"].as_f64().unwrap());
    assert!(benchmarks(&recording).iter().all(|one| one.values.is_empty()));
}

/// Check Criterion's samples against the means and medians in its `estimates.json`, of a folder, of a baseline
/// below it, and of one sample.
#[test]
fn criterion() {
    let place = folder().join("criterion");
    let read = |name: &Path| imports::load_folder(name).unwrap().unwrap();
    let last = read(&place);
    let names: Vec<String> =
        benchmarks(&last).iter().map(|one| one.name.clone()).collect();
    assert_eq!(names, ["add", "sort/std/16", "sort/std/256"]);
    assert_eq!(read(&place.join("new")).body, last.body);
    let saved = read(&place.join("main"));
    assert_eq!(benchmarks(&saved).len(), 3);
    assert!(saved.body != last.body);
    assert_eq!(imports::load_folder(&place.join("none")).unwrap(), None);
    assert_eq!(imports::load_folder(&folder().join("files")).unwrap(), None);
    // estimates.json of `add`: the mean and the median of its samples.
    let add = summary(&last, "add", "ns");
    assert_eq!(add.count, Some(10));
    assert_same(add.mean, 1.596_653_924_545_073_5);
    assert_same(add.median, 1.306_909_946_670_448_8);
    let one = imports::load(&place.join("sort/std/256/new/sample.json")).unwrap();
    assert_eq!(benchmarks(&one), [benchmarks(&last)[2].clone()]);
    assert_eq!(benchmarks(&load("criterion-sample.json"))[0].name, "criterion");
}

/// Check the statistics that divan prints, the names of groups, and that a table without its end is refused.
#[test]
fn divan() {
    let recording = load("divan.txt");
    let rows: Vec<(String, f64, f64, u64)> = benchmarks(&recording)
        .iter()
        .map(|one| {
            let of = one.statistics;
            (one.name.clone(), of.min.unwrap(), of.median.unwrap(), of.count.unwrap())
        })
        .collect();
    let expected = [
        ("add", 1.46, 1.466, 100),
        ("sort/16", 189.3, 221.8, 20),
        ("sort/256", 3_325.0, 3_646.0, 20),
        ("strings/copy", 93.48, 99.73, 100),
    ];
    let expected =
        expected.map(|(name, min, median, n)| (name.to_owned(), min, median, n));
    assert_eq!(rows, expected);
    assert!(doubts(&recording)[0].contains("no samples"));
    let (kind, _) = cause(&text("divan.txt").replace('╰', "├"));
    assert_eq!(kind, Kind::Truncated);
}

/// Check JMH's iterations of both forks against its scores, and throughput and time of one benchmark.
#[test]
fn jmh() {
    let recording = load("jmh.json");
    assert_eq!(recording.tool, "JMH 1.37");
    assert_eq!(environment(&recording, "jdk"), "17.0.21.1");
    let whole: serde_json::Value = serde_json::from_str(&text("jmh.json")).unwrap();
    let score = |at: usize| whole[at]["primaryMetric"]["score"].as_f64().unwrap();
    let rate = summary(&recording, "bench.B.sort (n=10)", "ops/s");
    assert_eq!((rate.count, rate.better), (Some(6), BetterValues::More));
    assert_same(rate.mean, 1e6 * score(0));
    let time = summary(&recording, "bench.B.sort (n=10)", "ns");
    assert_eq!(time.count, Some(6));
    assert!((time.mean.unwrap() / (1e3 * score(1)) - 1.0).abs() < 1e-4, "{time:?}");
    // Samples: the score is the mean of all, and an iteration has nearly as many as another.
    let sample = summary(&recording, "bench.B.sum (n=10, sample)", "ns");
    assert_eq!(sample.count, Some(6));
    let off = sample.mean.unwrap() / (1e3 * score(2)) - 1.0;
    assert!(off.abs() < 0.1, "{off}");
}

/// Check Go's lines against the medians of benchstat, and which values of its units are better.
#[test]
fn go_testing() {
    let recording = load("go-testing.txt");
    assert_eq!(environment(&recording, "goarch"), "amd64");
    // benchstat -format csv, in seconds per operation and bytes per second.
    for (name, unit, median) in [
        ("BenchmarkSort/n=16-2", "ns", 357.85),
        ("BenchmarkSort/n=256-2", "ns", 16_714.0),
        ("BenchmarkAdd-2", "ns", 2.021),
        ("BenchmarkCopy-2", "ns", 342.35),
        ("BenchmarkCopy-2", "MB/s", 11_972.71),
        ("BenchmarkSort/n=256-2", "B/op", 2_048.0),
        ("BenchmarkSort/n=256-2", "allocs/op", 1.0),
        ("BenchmarkSort/n=256-2", "elements/op", 256.0),
    ] {
        let found = summary(&recording, name, unit);
        assert_eq!(found.count, Some(6));
        assert_same(found.median, median);
        let better = match unit {
            "MB/s" => BetterValues::More,
            "elements/op" => BetterValues::Unknown,
            _ => BetterValues::Less,
        };
        assert_eq!(found.better, better, "{unit}");
    }
    let described = text("go-testing.txt") + "Unit elements/op better=higher\n";
    let again = parse(&described).unwrap();
    let units = benchmarks(&again);
    let of = units.iter().find(|one| one.unit.name() == "elements/op").unwrap();
    assert_eq!(of.better, BetterValues::Unknown, "the description comes after the lines");
    let described =
        "Unit elements/op better=higher\n".to_owned() + &text("go-testing.txt");
    let of = summary(&parse(&described).unwrap(), "BenchmarkSort/n=16-2", "elements/op");
    assert_eq!(of.better, BetterValues::More);
}

/// Check that the JSON of `go test` has the same lines, and that packages with the same names are distinguished.
#[test]
fn go_packages() {
    let recording = load("go-testing.json");
    assert_eq!(benchmarks(&recording)[0].name, "BenchmarkAdd-2");
    assert_eq!(benchmarks(&recording)[0].values.len(), 2);
    let line = "BenchmarkAdd 10 5 ns/op\n";
    let both = format!("pkg: a/b\n{line}pkg: c\n{line}{line}");
    let found = benchmarks(&parse(&both).unwrap());
    let counts: Vec<(&str, usize)> =
        found.iter().map(|one| (one.name.as_str(), one.values.len())).collect();
    assert_eq!(counts, [("a/b.BenchmarkAdd", 1), ("c.BenchmarkAdd", 2)]);
}

/// Check pytest-benchmark's rounds against its own statistics, and that files without rounds are a doubt.
#[test]
fn pytest_benchmark() {
    let recording = load("pytest-benchmark.json");
    assert_eq!(recording.tool, "pytest-benchmark 5.3.1");
    assert_eq!(recording.taken, "2026-11-30T14:39:20Z");
    assert!(recording.facts.kernel.release.get().unwrap().starts_with("6.18."));
    assert_eq!(benchmarks(&recording)[0].name, "test_b.py::test_sum");
    assert_statistics_agree(&recording, true);
    let without = text("pytest-benchmark.json").replace("\"data\":", "\"other\":");
    let recording = parse(&without).unwrap();
    assert!(doubts(&recording)[0].contains("--benchmark-save-data"));
    assert_eq!(summary(&recording, "test_b.py::test_sum", "ns").count, Some(12));
}

/// Check perf's counts with any separator, its times, means of several runs, intervals and CPUs.
#[test]
fn perf_stat() {
    let recording = load("perf-stat.csv");
    let clock = summary(&recording, "task-clock", "ns");
    assert_eq!((clock.median, clock.better), (Some(670_000.0), BetterValues::Less));
    let faults = summary(&recording, "page-faults", "count");
    assert_eq!(faults.median, Some(50.0));
    let missing = "not counted: branch-misses, branches, cycles, instructions";
    assert_eq!(doubts(&recording), [missing]);
    for (name, median, error) in [
        ("perf-stat-r5.csv", 740_000.0, "6.31"),
        ("perf-stat-r5.json", 572_560.0, "1.26"),
    ] {
        let recording = load(name);
        let clock = summary(&recording, "task-clock", "ns");
        assert_eq!((clock.has_values, clock.mean), (false, Some(median)));
        let doubt = format!("means of its runs only (standard errors up to {error} %)");
        assert!(doubts(&recording)[0].contains(&doubt), "{:?}", recording.doubts);
    }
    let intervals = load("perf-stat-intervals.csv");
    let faults = benchmarks(&intervals).into_iter().find(|one| one.name == "page-faults");
    assert_eq!(faults.unwrap().values, [72.0, 0.0]);
    let cpus = load("perf-stat-cpus.json");
    let second = summary(&cpus, "cpu-clock CPU1", "ns");
    assert_same(second.median, 22_126_304.0);
    let shared = text("perf-stat.csv")
        .replace("50,,page-faults,668388,100.00", "50,,page-faults,668388,41.00");
    assert!(doubts(&parse(&shared).unwrap())[0].contains("counted 41 % of the time"));
}

/// Check tables with units, names, missing and quoted fields, another separator, and a mark of the byte order.
#[test]
fn tables() {
    let text = "\u{feff}run;name;time (ms);rate [MB/s];size\r\n1;\"a;b\";1.5;10;3\r\n\
                2;\"a;b\";NA;11;3\r\n3;c;2;;4\r\n";
    let recording = parse(text).unwrap();
    let found: Vec<(String, ValueUnit, Vec<f64>)> = benchmarks(&recording)
        .into_iter()
        .map(|one| (one.name, one.unit, one.values))
        .collect();
    let other = |unit: &str| ValueUnit::Other(unit.to_owned());
    let expected = [
        ("a;b time", ValueUnit::Ns, vec![1.5e6]),
        ("a;b rate", other("MB/s"), vec![10.0, 11.0]),
        ("a;b size", other("number"), vec![3.0, 3.0]),
        ("c time", ValueUnit::Ns, vec![2e6]),
        ("c size", other("number"), vec![4.0]),
    ];
    assert_eq!(found, expected.map(|(name, unit, all)| (name.to_owned(), unit, all)));
    let one = benchmarks(&parse("latency_us\n3\n4\n").unwrap());
    assert_eq!((one[0].name.as_str(), &one[0].values[..]), ("latency", &[3e3, 4e3][..]));
}

/// Check plain numbers with comments, with a unit and without one.
#[test]
fn plain_numbers() {
    let found = benchmarks(&parse("# of today\n\n12.5 ms\n13ms\n").unwrap());
    assert_eq!(
        (found[0].unit.clone(), &found[0].values[..]),
        (ValueUnit::Ns, &[12.5e6, 13e6][..])
    );
    let found = benchmarks(&parse("-3\n1e3\n.5").unwrap());
    assert_eq!(
        (found[0].better, &found[0].values[..]),
        (BetterValues::Unknown, &[-3.0, 1e3, 0.5][..])
    );
}

/// Check that what no run can have measured is refused, with the place and the remedy.
#[test]
fn refused() {
    let hyperfine = text("hyperfine.json");
    let go = text("go-testing.txt");
    for (text, kind, reason) in [
        (
            hyperfine.replace("0.010868633", "-0.010868633"),
            Kind::Corrupt,
            "no time is negative",
        ),
        (hyperfine.replace("0.010868633", "1e999"), Kind::Corrupt, "number out of range"),
        (hyperfine.replace("0.010868633", "NaN"), Kind::Corrupt, "line"),
        (hyperfine.replace("0.010868633", "null"), Kind::Corrupt, "null"),
        ("{\"results\": [], \"command\": 1}".to_owned(), Kind::Foreign, "no result"),
        (go.replace("517.1 ns/op", "NaN ns/op"), Kind::Corrupt, "line 5: NaN in"),
        (go.replace("517.1 ns/op", "-Inf ns/op"), Kind::Corrupt, "not a number"),
        (go.replace("1 allocs/op", "x allocs/op"), Kind::Corrupt, "line 5: 'x'"),
        ("12 ms\n13 us\n".to_owned(), Kind::Corrupt, "units are mixed"),
        (
            "12\n\x1b[31mno\n".to_owned(),
            Kind::Corrupt,
            "line 2: '\\x1b[31mno' is no number",
        ),
        ("a,b\n1,2\n3\n".to_owned(), Kind::Corrupt, "row 3 has 1 fields, and the head 2"),
        ("a,b\n1,2\n3,\"4".to_owned(), Kind::Truncated, "does not end"),
        ("t_ms\n1\n-2\n".to_owned(), Kind::Corrupt, "no time is negative"),
        ("t_ms\n1\nnan\n".to_owned(), Kind::Corrupt, "NaN in 't' is not a number"),
        (
            "command,mean,stddev,median,user,system,min,max\ntrue,1,2,3,4,5,6,7\n"
                .to_owned(),
            Kind::Foreign,
            "--export-json",
        ),
        (
            text("google-benchmark.json").replace("\"ns\"", "\"parsec\""),
            Kind::Corrupt,
            "'parsec' is not a unit of time",
        ),
        (
            text("criterion-sample.json").replacen("[", "[1.0,", 1),
            Kind::Corrupt,
            "20 times of 21 samples",
        ),
        (
            text("jmh.json").replace("ops/us", "ops/x"),
            Kind::Corrupt,
            "unit of throughput",
        ),
        (
            "{\"mean\":{\"confidence_interval\":{},\"point_estimate\":1}}".to_owned(),
            Kind::Foreign,
            "sample.json",
        ),
    ] {
        let (found, cause) = cause(&text);
        assert_eq!(found, kind, "{cause}");
        assert!(cause.contains(reason), "{cause}");
    }
}

/// Check that a file that ends anywhere is refused, or has some of the first values of the whole file and no other.
#[test]
fn cut_off() {
    for entry in fs::read_dir(folder().join("files")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let whole = parse(&text).unwrap();
        if !matches!(whole.body, Body::Benchmarks { .. }) {
            continue;
        }
        let whole = benchmarks(&whole);
        let step = if text.len() > 8_000 { 7 } else { 1 };
        let ends = (0..text.len()).step_by(step);
        for end in ends.filter(|end| text.is_char_boundary(*end)) {
            let Ok(part) = parse(&text[..end]) else { continue };
            // The first digits of a file of perf are a number, too.
            if text[..end].trim().parse::<f64>().is_ok() {
                continue;
            }
            for one in benchmarks(&part) {
                let is_it =
                    |other: &&Benchmark| other.name == one.name && other.unit == one.unit;
                let all = whole.iter().find(is_it);
                let all =
                    all.unwrap_or_else(|| panic!("{}: {end}: {one:?}", path.display()));
                assert!(all.values.starts_with(&one.values), "{}: {end}", path.display());
                assert_eq!(all.statistics, one.statistics, "{}: {end}", path.display());
            }
        }
    }
}

/// Check that a million values are read, and that the most benchmarks are a limit.
#[test]
fn large_files() {
    let text: String = (0..1_000_000).map(|at| format!("{}\n", at % 1_000)).collect();
    assert_eq!(benchmarks(&parse(&text).unwrap())[0].values.len(), 1_000_000);
    let (kind, reason) = cause(&"1\n".repeat(4_000_001));
    assert_eq!(kind, Kind::Corrupt);
    assert!(reason.contains("more than 4000000 values"), "{reason}");
    let many = |count: usize| -> String {
        (0..count).map(|at| format!("BenchmarkX{at} 1 5 ns/op\n")).collect()
    };
    assert_eq!(benchmarks(&parse(&many(10_000)).unwrap()).len(), 10_000);
    let (kind, cause) = cause(&many(10_001));
    assert_eq!(kind, Kind::Corrupt);
    assert!(cause.contains("more than 10000 quantities"), "{cause}");
}
