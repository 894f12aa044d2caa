//! Files of other tools in `report` and `compare`, and files for other programs from `export`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::tool::{first_cpu, json, run, text, turn};

/// HdrHistogram's own reader of logs (Debian: libhdrhistogram-java, and a Java runtime).
const JAR: &str = "/usr/share/java/hdrhistogram.jar";

fn files() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../imports/tests/files")
}

fn file(name: &str) -> String {
    fs::read_to_string(files().join(name)).unwrap()
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}

/// Check that each file has a report that fits the terminal, with the tool's name, and that its JSON
/// with the series is a recording that can be read again.
#[test]
fn reports() {
    let place = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(files()).unwrap() {
        let file = entry.unwrap().path();
        let name = file.to_str().unwrap();
        let output = run(&["report", name]);
        let report = text(&output.stdout);
        assert!(output.status.success(), "{name}: {}", text(&output.stderr));
        let begins = ["Measured by ", "Benchmarks of "];
        assert!(begins.iter().any(|begin| report.starts_with(begin)), "{report}");
        assert!(report.lines().all(|line| line.chars().count() <= 80), "{report}");
        let whole = run(&["report", name, "--json", "--series"]);
        let copy = path(place.path(), "copy.json");
        fs::write(&copy, &whole.stdout).unwrap();
        assert_eq!(text(&run(&["report", &copy]).stdout), report);
    }
}

/// Writes five files of cyclictest in which all latencies are longer by this many microseconds, more
/// or less.
fn cyclictest_runs(folder: &Path, longer: u64) -> String {
    fs::create_dir(folder).unwrap();
    for number in 0..5 {
        let mut object: Value = serde_json::from_str(&file("cyclictest.json")).unwrap();
        for thread in object["thread"].as_object_mut().unwrap().values_mut() {
            let histogram = thread["histogram"].as_object().unwrap();
            let shifted = histogram.iter().map(|(length, count)| {
                let length: u64 = length.parse().unwrap();
                ((length + longer + number).to_string(), count.clone())
            });
            thread["histogram"] = Value::Object(shifted.collect());
        }
        fs::write(folder.join(format!("{number}.json")), object.to_string()).unwrap();
    }
    folder.to_str().unwrap().to_owned()
}

fn conclusion(comparison: &Value, metric: &str) -> String {
    let metrics = comparison["comparisons"][0]["metrics"].as_array().unwrap();
    let found = metrics.iter().find(|one| one["metric"] == metric).unwrap();
    found["verdict"].as_str().or(found["conclusion"].as_str()).unwrap().to_owned()
}

/// Check that sets of another tool's files are compared as recordings are.
#[test]
fn sets_of_files() {
    let place = tempfile::tempdir().unwrap();
    let base = cyclictest_runs(&place.path().join("base"), 0);
    let longer = cyclictest_runs(&place.path().join("longer"), 20);
    let found = json(&["compare", &base, &longer, "--json"]);
    assert_eq!(conclusion(&found, "late_ns_p50"), "higher", "{found}");
    let found = json(&["compare", &base, &base, "--json"]);
    assert_ne!(conclusion(&found, "late_ns_p50"), "higher", "{found}");
    let failed = run(&["compare", &base, &longer, "--fail-if", "late_ns_p50>+5us"]);
    assert_eq!(failed.status.code(), Some(1), "{}", text(&failed.stderr));
}

/// Check that a log is compared by its intervals, with a tool's own files, and with recordings of
/// noisefloor; and that a file without a common metric is refused with both tools' names.
#[test]
fn across_tools() {
    let place = tempfile::tempdir().unwrap();
    let log = file("jhiccup.hlog");
    let (head, intervals): (Vec<&str>, Vec<&str>) =
        log.lines().partition(|line| !line.starts_with(|c: char| c.is_ascii_digit()));
    let twice = [head, intervals.clone(), intervals].concat().join("\n") + "\n";
    let twice_file = path(place.path(), "twice.hlog");
    fs::write(&twice_file, twice).unwrap();
    let found = json(&["compare", &twice_file, &twice_file, "--json"]);
    let block = &found["comparisons"][0]["metrics"][0]["block"];
    assert_eq!((&block["unit"], &block["length"]), (&"intervals".into(), &1.into()));

    let _turn = turn();
    let cpu = first_cpu();
    let latency = path(place.path(), "latency.json");
    let args = ["latency", "-c", &cpu, "-i", "1ms", "-d", "200ms", "-q", "-o", &latency];
    assert!(run(&args).status.success());
    let cyclictest = files().join("cyclictest.json");
    let cyclictest = cyclictest.to_str().unwrap();
    let report = text(&run(&["compare", cyclictest, &latency]).stdout).to_string();
    assert!(
        report.contains("latency, median") && report.contains("cyclictest 2.40"),
        "{report}"
    );
    let sysjitter = files().join("sysjitter.txt");
    let refused = run(&["compare", cyclictest, sysjitter.to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2));
    let said = text(&refused.stderr);
    assert!(said.contains("cyclictest 2.40 and sysjitter"), "{said}");
}

/// The quantiles of gaps in a report.
fn gaps(summary: &Value) -> [f64; 3] {
    ["p50", "p99", "max"].map(|key| summary[key].as_f64().unwrap())
}

/// Check that a log of gaps has those of the recording, to three digits, by noisefloor's reader and by
/// HdrHistogram's own.
#[test]
fn a_log_can_be_read_back() {
    let place = tempfile::tempdir().unwrap();
    let (recording, log) =
        (path(place.path(), "noise.json"), path(place.path(), "noise.hlog"));
    {
        let _turn = turn();
        let args = ["noise", "-c", &first_cpu(), "-d", "2500ms", "-q", "-o", &recording];
        assert!(run(&args).status.success());
    }
    let written = json(&["export", &recording, "-o", &log, "--json"]);
    assert_eq!((&written["kind"], &written["recordings"]), (&"export".into(), &1.into()));
    let original = json(&["report", &recording, "--json"]);
    let read = json(&["report", &log, "--json"]);
    let (original, read) =
        (&original["summary"]["cpus"][0], &read["summary"]["lengths"][0]);
    assert_eq!((&read["kind"], &read["cpu"]), (&"gap".into(), &original["cpu"]));
    assert_eq!(read["count"], original["gaps"]);
    let noise =
        [&original["noise_ppm"], &read["noise_ppm"]].map(|it| it.as_f64().unwrap());
    assert!((noise[0] - noise[1]).abs() <= noise[0] / 500.0, "{noise:?}");
    for (a, b) in gaps(&original["gap_ns"]).into_iter().zip(gaps(&read["ns"])) {
        assert!((a - b).abs() <= a / 500.0, "{a} {b}");
    }
    if !Path::new(JAR).exists() {
        println!("skipped: a_log_can_be_read_back: {JAR} is missing");
        return;
    }
    let mut reader = Command::new("java");
    reader.args(["-cp", JAR, "org.HdrHistogram.HistogramLogProcessor", "-i", &log]);
    match reader.args(["-outputValueUnitRatio", "1"]).output() {
        Ok(output) => {
            let said = text(&output.stdout);
            let total = said.split("Total count").nth(1).unwrap();
            let total: u64 = total
                .trim_matches([' ', '=', '\n', ']'])
                .split(']')
                .next()
                .unwrap()
                .trim()
                .parse()
                .unwrap();
            assert_eq!(Some(total), original["gaps"].as_u64(), "{said}");
        }
        Err(error) => println!("skipped: a_log_can_be_read_back: java: {error}"),
    }
}

/// Check the other formats, from a file and from a folder, and the refusals.
#[test]
fn exports() {
    let place = tempfile::tempdir().unwrap();
    let set = cyclictest_runs(&place.path().join("set"), 0);
    let csv = text(&run(&["export", &set, "--format", "csv"]).stdout).to_string();
    assert!(csv.starts_with("file,taken,metric,cpu,unit,value\n"), "{csv}");
    // Two CPUs with p50, p99 and max; p99.9 is beyond the histogram.
    assert_eq!(csv.lines().count(), 1 + 5 * 6, "{csv}");
    let entries = json(&["export", &set, "--format", "benchmark-action"]);
    let first = &entries[0];
    assert_eq!(
        (&first["name"], &first["unit"]),
        (&"late_ns_p50 of CPU 0".into(), &"ns".into())
    );
    assert_eq!(
        (&first["value"], &first["range"]),
        (&20_000.0.into(), &"18000 to 22000".into())
    );
    let one = files().join("oslat.json");
    let one = one.to_str().unwrap();
    let metrics =
        text(&run(&["export", one, "--format", "prometheus"]).stdout).to_string();
    assert!(metrics.contains("noisefloor_noise_ratio{cpu=\"0\"}"), "{metrics}");
    let ticks = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ticks = ticks.join("../recording/tests/golden/ticks-1.json");
    for (args, reason) in [
        (&["export", one][..], "--format"),
        (&["export", one, "-o", "x.pdf"], "--format"),
        (&["export", &set, "--format", "hlog"], "one recording"),
        (&["export", ticks.to_str().unwrap(), "--format", "hlog"], "kind 'ticks'"),
        (&["export", "no-such-file", "--format", "csv"], "no-such-file"),
        (&["export", one, "--format", "csv", "-o", "/no/such/file"], "/no/such/file"),
    ] {
        let refused = run(args);
        assert_eq!(refused.status.code(), Some(2), "{args:?}");
        assert!(text(&refused.stderr).contains(reason), "{}", text(&refused.stderr));
    }
}
