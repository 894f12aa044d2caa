//! What was measured elsewhere is measured here: the figures in `expected.toml`.

use serde::Deserialize;
use serde_json::Value;

use crate::site::Site;

#[derive(Deserialize)]
struct Expected {
    cell: Vec<Tick>,
}

/// The most frequent tick of one cell: what it may be.
#[derive(Deserialize)]
struct Tick {
    package: String,
    name: String,
    tick: Vec<u64>,
}

/// The version of the kernel's package: `6.1.0-56-cloud-amd64 (6.1.192-2)`.
fn package(cell: &Value) -> &str {
    let (_, version) = cell["kernel"].as_str().unwrap().split_once('(').unwrap();
    version.strip_suffix(')').unwrap()
}

/// The kernel's instructions in the most frequent tick.
fn tick(cell: &Value) -> u64 {
    let summary = &cell["summary"];
    let spinning = &summary["kernel_instructions"]["mode"];
    let idle = &summary["tick_kernel_instructions"]["mode"];
    spinning.as_u64().or(idle.as_u64()).unwrap()
}

/// Check that a cell is told of RT throttling where it was kept off its CPU, and else not.
fn check_throttling(cell: &Value) {
    let gaps = cell["summary"]["gap_instructions"]["values"].as_array();
    let longest = gaps.and_then(|gaps| gaps.last()).map(|pair| pair[0].as_u64().unwrap());
    let doubts = cell["doubts"].as_array().unwrap();
    let told = doubts.iter().any(|doubt| doubt["code"] == "rt_throttled");
    let kept_off = cell["name"] == "fifo" && longest.is_some_and(|gap| gap > 10_000_000);
    assert_eq!(told, kept_off, "{}: {longest:?} {doubts:?}", cell["kernel"]);
}

/// What to add to `expected.toml`.
fn candidate(cell: &Value) -> String {
    let (package, tick) = (package(cell), tick(cell));
    format!(
        "[[cell]]\npackage = \"{package}\"\nname = {}\ntick = [{tick}]\n",
        cell["name"]
    )
}

/// Check that ticks cost what they did where the expectations were written; where the
/// archive has newer kernels, that a second boot agrees, and say what to expect of them.
#[test]
fn ticks() {
    let Some(site) = Site::new() else { return };
    let expected: Expected = toml::from_str(include_str!("expected.toml")).unwrap();
    let cells = site.cells(&["tick-cost"], 0);
    assert_eq!(cells.len(), 6);
    let mut unknown = Vec::new();
    for cell in &cells {
        check_throttling(cell);
        let is_it = |e: &&Tick| e.package == package(cell) && cell["name"] == *e.name;
        match expected.cell.iter().find(is_it) {
            Some(known) => {
                assert!(known.tick.contains(&tick(cell)), "not: {}", candidate(cell));
            }
            None => unknown.push(cell),
        }
    }
    if unknown.is_empty() {
        return;
    }
    println!("skipped: the archive has newer kernels; once checked, for expected.toml:");
    unknown.iter().for_each(|cell| println!("{}", candidate(cell)));
    let again = Site::new().unwrap().cells(&["tick-cost"], 0);
    for (one, other) in cells.iter().zip(&again) {
        assert_eq!(one["counts"], other["counts"]);
        assert_eq!(one["series"], other["series"]);
    }
}
