//! Results are the same as on other machines: the figures in `expected.toml`.

use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::Value;

use crate::site::Site;

#[derive(Deserialize)]
struct Expected {
    cell: Vec<Tick>,
}

/// The frequent kinds of tick of one cell, with their costs.
#[derive(Deserialize)]
struct Tick {
    /// The versions of the kernel's package that cost the same.
    packages: Vec<String>,
    name: String,
    kinds: Vec<u64>,
    /// The additional cost of each of them with another state of RCU.
    rcu: u64,
}

impl Tick {
    fn may_cost(&self, kind: u64) -> bool {
        self.kinds.iter().any(|&known| kind == known || kind == known + self.rcu)
    }
}

/// The version of the kernel's package: `6.1.0-56-cloud-amd64 (6.1.192-2)`.
fn package(cell: &Value) -> &str {
    let (_, version) = cell["kernel"].as_str().unwrap().split_once('(').unwrap();
    version.strip_suffix(')').unwrap()
}

/// A kind is frequent if at least this number per million ticks belong to it.
const FREQUENT_PPM: f64 = 100_000.0;

/// The kernel's instructions in each frequent kind of tick.
fn kinds(cell: &Value) -> Vec<u64> {
    let kinds = cell["summary"]["kinds"]["kinds"].as_array().unwrap().iter();
    let frequent =
        kinds.filter(|kind| kind["share_ppm"].as_f64().unwrap() >= FREQUENT_PPM);
    frequent.map(|kind| kind["instructions"].as_u64().unwrap()).collect()
}

/// The cells of `tick-cost`, and their lab, shared by several tests.
pub(crate) fn tick_cost() -> Option<&'static (Site, Vec<Value>)> {
    static CELLS: OnceLock<Option<(Site, Vec<Value>)>> = OnceLock::new();
    let run = || {
        let site = Site::new()?;
        let cells = site.cells(&["tick-cost"], 0);
        Some((site, cells))
    };
    CELLS.get_or_init(run).as_ref()
}

/// Check that there is no doubt, and that the loop of a real-time task was not throttled: it
/// may use all of its CPU.
fn check_doubts(cell: &Value) {
    assert_eq!(cell["doubts"].as_array().map(Vec::len), Some(0), "{}", cell["doubts"]);
    let gaps = cell["summary"]["gap_instructions"]["values"].as_array();
    let longest = gaps.and_then(|gaps| gaps.last()).map(|pair| pair[0].as_u64().unwrap());
    assert!(
        longest.is_none_or(|gap| gap < 10_000_000),
        "{}: {longest:?}",
        cell["kernel"]
    );
}

/// The rows to add to `expected.toml`.
fn candidate(cell: &Value) -> String {
    let (package, kinds) = (package(cell), kinds(cell));
    format!(
        "[[cell]]\npackages = [\"{package}\"]\nname = {}\nkinds = {kinds:?}\nrcu = 0\n",
        cell["name"]
    )
}

/// Check that the costs of ticks are the expected ones; if the archive has newer kernels, check
/// that a second boot agrees, and print the rows for them.
#[test]
fn ticks() {
    let Some((_, cells)) = tick_cost() else {
        return println!("skipped: no guests, as another test says");
    };
    let expected: Expected = toml::from_str(include_str!("expected.toml")).unwrap();
    assert_eq!(cells.len(), 6);
    let mut unknown = Vec::new();
    for cell in cells {
        check_doubts(cell);
        let is_it = |known: &&Tick| {
            known.packages.iter().any(|one| one == package(cell))
                && cell["name"] == *known.name
        };
        match expected.cell.iter().find(is_it) {
            Some(known) => {
                let found = kinds(cell);
                assert!(!found.is_empty(), "{}", cell["name"]);
                let as_known = found.iter().all(|&kind| known.may_cost(kind));
                assert!(as_known, "not: {}", candidate(cell));
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
