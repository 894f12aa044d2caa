//! Variations of cells: their means, the same on each run, and variations that are lost.

use serde_json::{Value, json};

use crate::site::{OLD, Site, text};

/// An experiment whose program fails if the guest's memory, in KiB, fulfils a condition of test(1).
fn experiment(condition: &str) -> String {
    format!(
        "name = \"varied\"\nkernels = [\"{OLD}\"]\nvariations = 3\nmachine.memory_mib = 128\n\
         [[workload]]\nname = \"sh\"\n[workload.program]\n\
         run = [\"sh\", \"-c\", \"read _ kib _ < /proc/meminfo; echo $kib; ! test {condition}\"]\n"
    )
}

/// The cell and the exit code.
fn cell(site: &Site, condition: &str) -> (Value, Option<i32>) {
    cell_with(site, condition, &[])
}

fn cell_with(site: &Site, condition: &str, more: &[&str]) -> (Value, Option<i32>) {
    let file = site.file("varied.toml", &experiment(condition));
    let output = site.output(&[&["lab", "run", "--json", &file], more].concat());
    let all: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|why| panic!("{why}: {}", text(&output.stderr)));
    (all["cells"][0].clone(), output.status.code())
}

/// The memory that the program saw.
fn kib(cell: &Value) -> u64 {
    cell["summary"]["output"]["text"].as_str().unwrap().trim().parse().unwrap()
}

fn numbers(cell: &Value) -> Vec<&Value> {
    let variations = cell["variations"].as_array().unwrap().iter();
    variations.map(|variation| &variation["number"]).collect()
}

/// Check that metrics are the means of variations, that these are the same when they are read from the
/// cache, that a variation without a result is doubted and the others count, the first one included.
#[test]
fn means() {
    let Some(site) = Site::new() else { return };
    let (all, code) = cell(&site, "$kib = 0");
    assert_eq!(code, Some(0), "{all}");
    assert_eq!(numbers(&all), [2, 3]);
    let mean = &all["means"]["guest_instructions"];
    assert_eq!(mean["variations"], 3);
    let [low, high] = ["min", "max"].map(|key| mean[key].as_f64().unwrap());
    let value = all["metrics"]["guest_instructions"].as_f64().unwrap();
    assert!(
        (low..=high).contains(&value) && mean["within"].as_f64() >= Some(0.0),
        "{mean}"
    );
    let (again, _) = cell(&site, "$kib = 0");
    assert_eq!(again["means"], all["means"]);
    assert_eq!(again["variations"][1]["cached"], true);
    // The memory of the third is 3 MiB larger, of which the kernel takes parts for itself.
    let as_third = ["--set", "memory_mib=131", "--set", "variations=1"];
    let (third, _) = cell_with(&site, "$kib = 0", &as_third);
    let [first, third] = [all, third].map(|cell| kib(&cell));
    for (condition, lost, done) in [
        (format!("$kib -eq {third}"), &[3][..], 2),
        (format!("$kib -eq {first}"), &[1], 2),
        (format!("$kib -ne {first}"), &[2, 3], 1),
    ] {
        let (cell, code) = cell(&site, &condition);
        assert_eq!(code, Some(4), "{condition}: {cell}");
        let doubts = cell["doubts"].to_string();
        for number in lost {
            assert!(
                doubts.contains(&format!("variation {number} of 3 was lost")),
                "{doubts}"
            );
        }
        let counted = cell["means"]["guest_instructions"]["variations"].clone();
        assert_eq!(
            counted,
            if done > 1 { json!(done) } else { Value::Null },
            "{condition}"
        );
        assert!(!cell["summary"].is_null(), "{condition}");
    }
    let (none, code) = cell(&site, "$kib -gt 0");
    assert_eq!((code, &none["summary"]), (Some(1), &Value::Null));
}
