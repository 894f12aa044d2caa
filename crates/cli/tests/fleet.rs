//! `fleet`: recordings of many made-up nodes with known causes, histories, and everything that a folder of files from
//! many hosts can contain.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

#[path = "fleet/nodes.rs"]
mod nodes;

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use nodes::{Change, Nodes};

fn run(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_noisefloor"));
    command.args(args).stdin(Stdio::null()).env("LC_ALL", "C.UTF-8");
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn fleet(folder: &Path, more: &[&str]) -> Output {
    run(&[&["fleet", folder.to_str().unwrap()], more].concat())
}

fn found(folder: &Path, more: &[&str], code: i32) -> Value {
    let output = fleet(folder, &[more, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn noisy(found: &Value) -> Vec<&str> {
    let nodes = found["noisy"].as_array().unwrap();
    let mut names: Vec<&str> =
        nodes.iter().map(|one| one["node"].as_str().unwrap()).collect();
    names.sort_unstable();
    names
}

/// The doubts: code and count.
fn doubts(found: &Value) -> Vec<(&str, u64)> {
    let doubts = found["doubts"].as_array().unwrap().iter();
    let mut doubts: Vec<(&str, u64)> = doubts
        .map(|one| (one["code"].as_str().unwrap(), one["count"].as_u64().unwrap()))
        .collect();
    doubts.sort_unstable();
    doubts
}

/// Check that of 300 nodes those with a noisy program and an older kernel are named, with both causes; on one screen
/// of 80 columns, on a page that is small, and as a picture.
#[test]
fn causes_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let nodes = Nodes::new();
    nodes.write(folder.path(), 300, |at| match at {
        70..76 => {
            Change { program: Some("node_exporter"), kernel: Some("6.1.0-28-amd64") }
        }
        _ => Change::default(),
    });
    let json = found(folder.path(), &[], 0);
    assert_eq!(json["nodes"], 300);
    assert_eq!(
        noisy(&json),
        ["r02n06", "r02n07", "r02n08", "r02n09", "r02n10", "r02n11"]
    );
    for one in json["noisy"].as_array().unwrap() {
        let source = &one["sources"][0];
        assert_eq!(
            (&source["kind"], &source["name"]),
            (&json!("thread"), &json!("node_exporter"))
        );
        assert!(source["part_ppm"].as_f64().unwrap() > 5e5, "{source}");
        let group = usize::try_from(one["groups"][0].as_u64().unwrap()).unwrap();
        let group = &json["groups"][group];
        assert_eq!(group["facts"][0]["key"], "kernel.release", "{group}");
        assert_eq!((&group["nodes"], &group["noisy"]), (&json!(6), &json!(6)));
    }
    let page = folder.path().join("fleet.html");
    let picture = folder.path().join("fleet.svg");
    let outputs = ["-o", page.to_str().unwrap(), "-o", picture.to_str().unwrap()];
    let report = text(&fleet(folder.path(), &outputs).stdout);
    assert!(report.lines().all(|line| line.chars().count() <= 80), "{report}");
    assert!(report.lines().count() <= 24, "{report}");
    assert!(
        report.contains("6 of 300 nodes are noisy") && report.contains("node_exporter")
    );
    let full = text(&fleet(folder.path(), &["--full"]).stdout);
    assert!(full.lines().all(|line| line.chars().count() <= 80), "{full}");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("fleet-nodes") || page.contains("Nodes: "), "no heat map");
    assert!(page.len() < 1_000_000 && fs::metadata(picture).unwrap().len() < 500_000);
}

/// Check that racks from a file are labels, and the cause if a rack is noisy.
#[test]
fn racks() {
    let folder = tempfile::tempdir().unwrap();
    let change = |at| Change { program: (at % 4 == 1).then_some("backup"), kernel: None };
    Nodes::new().write(folder.path(), 40, change);
    let labels = folder.path().join("racks.csv");
    let rows = ["a", "b", "c", "d"].into_iter().cycle();
    let lines =
        (0..40).zip(rows).map(|(at, row)| format!("{},row={row}\n", nodes::name(at)));
    fs::write(&labels, format!("# rows\n{}absent,row=x\n", lines.collect::<String>()))
        .unwrap();
    let json = found(folder.path(), &["--labels", labels.to_str().unwrap()], 0);
    assert_eq!(json["groups"][0]["facts"], json!([{"key": "label.row", "value": "b"}]));
    assert_eq!(json["map"]["label"], "name");
    assert_eq!(doubts(&json), [("unknown_node", 1)]);
    assert_eq!(noisy(&json).len(), 10);
}

/// Check that each thing in a folder that is no recording is counted, that the others are read (exit code 4), and
/// that a folder without a recording is an error that says why (2).
#[test]
fn bad_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    Nodes::new().write(folder.path(), 20, |_| Change::default());
    let good = fs::read_to_string(at("r00n03.json")).unwrap();
    fs::write(at("truncated.json"), &good[..good.len() / 2]).unwrap();
    fs::write(at("newer.json"), good.replacen("\"format\":1", "\"format\":9", 1))
        .unwrap();
    fs::write(at("copy.json"), &good).unwrap();
    fs::write(at("corrupt.json"), good.replacen("\"gaps\":[", "\"gaps\":[\"x\",", 1))
        .unwrap();
    fs::write(at("empty.json"), "").unwrap();
    fs::write(at("notes.txt"), "not a recording").unwrap();
    fs::write(at("history.db"), "not a database").unwrap();
    fs::write(at("README"), "is not read").unwrap();
    File::create(at("huge.json")).unwrap().set_len(2 << 30).unwrap();
    fs::create_dir(at("folder.json")).unwrap();
    std::os::unix::fs::symlink("missing", at("dangling.json")).unwrap();
    std::os::unix::fs::symlink("r00n04.json", at("link.json")).unwrap();
    std::os::unix::fs::symlink(".", at("loop")).unwrap();
    assert!(Command::new("mkfifo").arg(at("fifo.json")).status().unwrap().success());
    let json = found(folder.path(), &[], 4);
    assert_eq!(json["nodes"], 20);
    for (code, count) in doubts(&json) {
        let least = match code {
            "truncated" | "foreign" => 2,
            _ => 1,
        };
        assert!(count >= least, "{code}: {count}");
    }
    let codes: Vec<&str> = doubts(&json).into_iter().map(|(code, _)| code).collect();
    for code in [
        "truncated",
        "newer",
        "corrupt",
        "foreign",
        "unreadable",
        "no_file",
        "empty",
        "duplicate",
    ] {
        assert!(codes.contains(&code), "{code} is not in {codes:?}");
    }
    let bad = tempfile::tempdir().unwrap();
    fs::rename(at("truncated.json"), bad.path().join("n1\x1b[2J.json")).unwrap();
    let output = fleet(bad.path(), &[]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("1 truncated file") && !said.contains('\x1b'), "{said}");
    let none = run(&["fleet", "/nonexistent"]);
    assert_eq!(none.status.code(), Some(2));
}

/// Check that a folder for each node, several recordings by time, and two machines of one name are read as such.
#[test]
fn folders_of_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let nodes = Nodes::new();
    nodes.write(folder.path(), 6, |_| Change::default());
    for time in 1..4 {
        fs::write(
            folder.path().join(format!("m@{time}.json")),
            nodes.text(100 + time, Change::default()),
        )
        .unwrap();
    }
    let own = folder.path().join("n7");
    fs::create_dir(&own).unwrap();
    fs::write(own.join("a.json"), nodes.text(201, Change::default())).unwrap();
    let other = nodes.text(202, Change::default()).replacen(
        "\"possible\":\"0,1\"",
        "\"possible\":\"0-95\"",
        1,
    );
    fs::write(own.join("b.json"), other).unwrap();
    let json = found(folder.path(), &[], 0);
    assert_eq!((&json["nodes"], &json["recordings"]), (&json!(9), &json!(11)));
    assert_eq!(doubts(&json), [("same_name", 1)]);
    let values = json["values"].as_array().unwrap();
    let recordings = |name: &str| {
        values
            .iter()
            .find(|one| one["node"] == name)
            .map(|one| one["recordings"].as_u64())
    };
    assert_eq!(recordings("m"), Some(Some(3)));
    assert_eq!((recordings("n7"), recordings("n7#2")), (Some(Some(1)), Some(Some(1))));
}

/// Check that the histories of nodes are read without a change to their folders, also if these are read-only.
#[test]
fn histories() {
    let folder = tempfile::tempdir().unwrap();
    let nodes = Nodes::new();
    for at in 0..8 {
        let own = folder.path().join(nodes::name(at));
        fs::create_dir(&own).unwrap();
        let mut history = history::History::create(&own.join("history.db")).unwrap();
        for day in 0..12 {
            let program = (at == 5).then_some("backup");
            let text = nodes.text(at * 100 + day, Change { program, kernel: None });
            let recording =
                recording::Recording::from_json(&text, Path::new("node")).unwrap();
            let numbers = history::RunNumbers::of(&recording, None);
            history.append(&nodes::name(at), "check", &numbers).unwrap();
        }
    }
    let before = names(folder.path());
    let json = found(folder.path(), &[], 0);
    assert_eq!((&json["nodes"], &json["recordings"]), (&json!(8), &json!(80)));
    assert_eq!(noisy(&json), ["r00n05"]);
    assert!(json["noisy"][0]["spread"].as_f64().is_some());
    assert_eq!(found(folder.path(), &["--last", "1"], 0)["recordings"], 8);
    assert_eq!(names(folder.path()), before, "no file was created");
}

/// The names of all files.
fn names(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for own in fs::read_dir(folder).unwrap() {
        for file in fs::read_dir(own.unwrap().path()).unwrap() {
            all.push(file.unwrap().path().display().to_string());
        }
    }
    all.sort();
    all
}

/// Check that a file is written for each host, in a folder that is created, and that a pattern without a meaning and a
/// missing folder of a name without a pattern are errors before anything is measured.
#[test]
fn file_of_each_host() {
    let folder = tempfile::tempdir().unwrap();
    let golden =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../recording/tests/golden/noise-1.json");
    let write = |name: &str| {
        let to = folder.path().join(name);
        run(&["report", "-q", golden, "-o", to.to_str().unwrap()])
    };
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert!(write("out/%h/%h-100%%.html").status.success());
    assert!(folder.path().join(format!("out/{0}/{0}-100%.html", host.trim())).is_file());
    let refused = write("%x.html");
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("%h is the host name"));
    assert_eq!(write("missing/a.html").status.code(), Some(2));
    assert!(!folder.path().join("missing").exists());
}
