//! Other versions of QEMU: the same ticks, counted by each; what one cannot do is refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::counter::{TIMER, beside_the_clock, cpu, list, number};
use crate::packages::qemus;
use crate::site::{Site, TOOL, named, text};

/// Short cells of one CPU on both kernels.
const SHORT: &str = "name = \"short\"\nkernels = [\"debian:6.1-cloud\", \"debian:6.12-cloud\"]\n\
     [[workload]]\nname = \"other\"\nnoise = { cpu = 0, duration = \"150ms\" }\n\
     [[workload]]\nname = \"fifo\"\nnoise = { cpu = 0, duration = \"150ms\", fifo = 50 }\n";
/// Of how many ticks one is to cost that much for a cost to be a usual one. The costs that
/// these kernels' ticks have make up a tenth of them or less, or two fifths and more.
const USUAL: u64 = 5;

/// A lab with the QEMU of another suite; says why, and gives none, where it cannot be had.
fn other(number: usize) -> Option<Site> {
    let site = Site::new()?;
    match qemus() {
        Ok(qemus) => Some(site.using(&qemus[number])),
        Err(why) => {
            println!("skipped: {why}");
            None
        }
    }
}

/// The costs of ticks that are usual in a cell.
fn usual(cell: &Value) -> Vec<u64> {
    let mut times = BTreeMap::<u64, u64>::new();
    let counts = cpu(&cell["counts"]["phases"][0], 0);
    let timer = list(&counts["interruptions"]).iter().filter(|way| way["entry"] == TIMER);
    for pair in timer.flat_map(|way| list(&way["kernel"])) {
        *times.entry(number(&pair[0])).or_default() += number(&pair[1]);
    }
    let all: u64 = times.values().sum();
    let frequent = times.iter().filter(|&(_, &often)| often * USUAL >= all);
    frequent.map(|(&cost, _)| cost).collect()
}

/// The instructions of each function in the ticks of that cost, by its callers.
fn functions(site: &Site, cell: &Value, cost: u64) -> BTreeMap<Vec<String>, u64> {
    let counts = fs::read(site.kept(cell).join("counts.json")).unwrap();
    let counts: Value = serde_json::from_slice(&counts).unwrap();
    let profile = &counts["profile"];
    let name = |place: &Value| {
        let place = usize::try_from(number(place)).unwrap();
        profile["names"][place].as_str().unwrap().to_owned()
    };
    let is_it = |episode: &&Value| {
        number(&episode["total"]) == cost
            && episode["what"]["interruption"]["entry"] == TIMER
    };
    let episode = list(&profile["episodes"]).iter().find(is_it).unwrap();
    let stacks = list(&episode["stacks"]).iter();
    stacks
        .map(|stack| {
            let frames = list(&stack["frames"]).iter().map(name).collect();
            (frames, number(&stack["own"]))
        })
        .collect()
}

/// Check that on the QEMU of an older and a newer suite usual ticks cost what they do on
/// this machine's, function by function, and that each counts what its guest's clock does.
#[test]
fn same_ticks() {
    let (Some(old), Some(new)) = (other(0), other(1)) else { return };
    let own = Site::new().unwrap();
    let cells = |site: &Site| site.cells(&[&site.file("short.toml", SHORT)], 0);
    let expected = cells(&own);
    for site in [&old, &new] {
        let got = cells(site);
        assert_eq!(got.len(), expected.len());
        for (here, there) in expected.iter().zip(&got) {
            let what = format!("{} {}", here["kernel"], here["name"]);
            assert_ne!(here["identity"], there["identity"], "{what}");
            assert_eq!(usual(here), usual(there), "{what}");
            for cost in usual(here) {
                let both = [(&own, here), (site, there)];
                let [here, there] = both.map(|(site, cell)| functions(site, cell, cost));
                assert_eq!(here, there, "{what}");
            }
            for cell in [here, there] {
                let beside = beside_the_clock(cell);
                assert!(beside.is_some_and(|n| n < 100), "{what}: {beside:?}");
            }
        }
    }
}

/// A cell of one CPU, and one of two.
const BOTH: &str = "name = \"both\"\nkernels = [\"debian:6.1-cloud\"]\n\
     [[boot]]\n[[boot]]\nname = \"two\"\ncpus = 2\n\
     [[workload]]\nname = \"other\"\nnoise = { cpu = 0, duration = \"50ms\" }\n";

/// Check that the QEMU of an older suite, which hangs with two CPUs, is not tried with them.
#[test]
fn two_cpus_are_refused() {
    let Some(site) = other(0) else { return };
    let file = site.file("both.toml", BOTH);
    let output = site.output(&["lab", "run", &file, "--json"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("two other needs 2 CPUs, and QEMU 7.2"), "{said}");
    assert!(said.contains("--set cpus=1"), "{said}");
}

/// Check that a counter that QEMU does not load is told once, with QEMU's reason: as a doubt
/// of a cell of one CPU, whose gaps are measured, and before anything boots with two.
#[test]
fn counter_that_is_not_loaded() {
    let Some(site) = Site::new() else { return };
    let parts = site.cache().join("parts");
    fs::create_dir(&parts).unwrap();
    let agent = "noisefloor-agent";
    let real = Path::new(TOOL).with_file_name("../lab").join(agent);
    fs::copy(real, parts.join(agent)).unwrap();
    fs::write(parts.join("noisefloor-counter.so"), "no library").unwrap();
    let file = site.file("both.toml", BOTH);
    let run = |args: &[&str]| {
        let mut command = site.tool(&["lab", "run", &file, "--json"]);
        command.args(args).env("NOISEFLOOR_PARTS", &parts).output().unwrap()
    };
    let refused = run(&[]);
    let said = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(3), "{said}");
    let why = "Could not load plugin ./counter.so";
    assert!(said.contains("two other needs 2 CPUs") && said.contains(why), "{said}");
    let measured = run(&["--set", "boot="]);
    assert_eq!(measured.status.code(), Some(0), "{}", text(&measured.stderr));
    let all: Value = serde_json::from_slice(&measured.stdout).unwrap();
    let cell = named(list(&all["cells"]), "other");
    assert!(cell["summary"]["gap_instructions"]["mode"].is_u64(), "{cell}");
    let doubt = list(&cell["doubts"]).iter().find(|doubt| doubt["code"] == "uncounted");
    assert!(doubt.unwrap()["text"].as_str().unwrap().contains(why), "{doubt:?}");
}
