//! Other versions of QEMU: each counts the same ticks; unsupported features are an error.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::counter::{TIMER, beside_the_clock, list, number, of_cpu, phases};
use crate::expected::tick_cost;
use crate::packages::qemus;
use crate::site::{NEW, OLD, Site, TOOL, named, text};

/// The experiment of each QEMU, as `tick-cost` on this machine's: an ordinary task's ticks, and
/// a real-time task's. One second of them: `update_vsyscall` takes one of two paths by the
/// position in the second of the wall clock.
const CELLS: [(&str, &str); 2] = [(OLD, "other"), (NEW, "fifo")];
/// A cost is usual if at least this share of the ticks has it: one in five.
const USUAL: u64 = 5;
/// The function that takes another path by the kernel's state, here by what RCU waits for: 4 or
/// 6 more instructions, for all ticks of a boot or for some, with any QEMU.
const BY_STATE: &str = "rcu_sched_clock_irq";

/// A lab with the QEMU of another suite; `None`, with the reason printed, if it is not
/// available.
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

/// The usual costs of ticks in a cell.
fn usual(cell: &Value) -> Vec<u64> {
    let mut times = BTreeMap::<u64, u64>::new();
    let ways = of_cpu(cell, 0).flat_map(|counts| list(&counts["interruptions"]));
    let timer = ways.filter(|way| way["entry"] == TIMER);
    for pair in timer.flat_map(|way| list(&way["kernel"])) {
        *times.entry(number(&pair[0])).or_default() += number(&pair[1]);
    }
    let all: u64 = times.values().sum();
    let frequent = times.iter().filter(|&(_, &often)| often * USUAL >= all);
    frequent.map(|(&cost, _)| cost).collect()
}

/// A tick: the instructions of each function, by its callers.
type Functions = BTreeMap<Vec<String>, u64>;

/// The different ticks of a cell, the usual ones only or all: as far as their instructions do
/// not depend on the kernel's state.
fn ticks(site: &Site, cell: &Value, of: impl Fn(u64) -> bool) -> BTreeSet<Functions> {
    let counts = fs::read(site.kept(cell).join("counts.json")).unwrap();
    let counts: Value = serde_json::from_slice(&counts).unwrap();
    let profile = &counts["profile"];
    let name = |place: &Value| {
        let place = usize::try_from(number(place)).unwrap();
        profile["names"][place].as_str().unwrap().to_owned()
    };
    let frames = |stack: &Value| list(&stack["frames"]).iter().map(name).collect();
    let is_tick = |episode: &&Value| {
        episode["what"]["interruption"]["entry"] == TIMER && of(number(&episode["total"]))
    };
    let functions = |episode: &Value| {
        let stacks = list(&episode["stacks"]).iter();
        let mut functions: Functions =
            stacks.map(|stack| (frames(stack), number(&stack["own"]))).collect();
        functions.retain(|stack, _| stack.last().is_none_or(|last| last != BY_STATE));
        functions
    };
    list(&profile["episodes"]).iter().filter(is_tick).map(functions).collect()
}

/// Those cells of a lab.
fn cells(site: &Site) -> Vec<Value> {
    let run = |(kernel, name)| {
        let workload = format!("workload={name}");
        // With other load on the machine a boot takes minutes.
        let patient = ["tick-cost", "--deadline", "600", "-k", kernel, "-s", &workload];
        site.cells(&patient, 0)
    };
    CELLS.into_iter().flat_map(run).collect()
}

/// Checks that the usual ticks of one cell are among those of the other.
fn check_ticks(one: (&Site, &Value), other: (&Site, &Value)) {
    let usual = usual(one.1);
    assert!(!usual.is_empty());
    let usual = ticks(one.0, one.1, |cost| usual.contains(&cost));
    let all = ticks(other.0, other.1, |_| true);
    let missing: Vec<_> = usual.difference(&all).collect();
    assert!(missing.is_empty(), "{}: {missing:?}", one.1["kernel"]);
}

/// Check that on the QEMU of an older and a newer suite usual ticks execute the same functions
/// and instructions as on this machine's, and that each counter agrees with the guest's clock.
#[test]
fn same_ticks() {
    let (Some(old), Some(new)) = (other(0), other(1)) else { return };
    let (own, all) = tick_cost().unwrap();
    let is = |cell: &&Value, asked: (&str, &str)| {
        cell["asked"] == asked.0 && cell["name"] == asked.1
    };
    let expected = CELLS.map(|asked| all.iter().find(|cell| is(cell, asked)).unwrap());
    for site in [&old, &new] {
        let got = cells(site);
        assert_eq!(got.len(), CELLS.len());
        for (here, there) in expected.into_iter().zip(&got) {
            println!("{}: {:?} {:?}", here["kernel"], usual(here), usual(there));
            check_ticks((own, here), (site, there));
            check_ticks((site, there), (own, here));
        }
        let cell = named(&got, "other");
        let (beside, most) = (beside_the_clock(cell), 100 * phases(cell));
        assert!(beside.is_some_and(|n| n < most), "{beside:?}");
    }
}

/// A cell of one CPU, and one of two.
const BOTH: &str = "name = \"both\"\nkernels = [\"debian:6.1-cloud\"]\n\
     [[boot]]\n[[boot]]\nname = \"two\"\ncpus = 2\n\
     [[workload]]\nname = \"other\"\nnoise = { cpu = 0, duration = \"50ms\" }\n";

/// Check that the QEMU of an older suite, which hangs with two CPUs, is not started with them.
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

/// Check that a counter that QEMU does not load is reported once, with QEMU's reason: as a
/// doubt of a cell of one CPU, whose gaps are measured, and before anything boots with two.
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
    assert!(cell["summary"]["gap_instructions"]["p50"].is_u64(), "{cell}");
    let doubt = list(&cell["doubts"]).iter().find(|doubt| doubt["code"] == "uncounted");
    assert!(doubt.unwrap()["text"].as_str().unwrap().contains(why), "{doubt:?}");
}
