//! CPU lists of boot parameters: this program's verdict is that of the kernel.

use std::fmt::Write;

use serde_json::Value;

use crate::site::{NEW, OLD, Site};
use crate::watched::kernels;

/// Lists for a guest with two CPUs; of each row, those of `isolcpus=` and `nohz_full=`.
const LISTS: &[[&str; 2]] = &[
    ["4-3", "2-5"],
    ["1,nohz", "1"],
    ["all", "ALL"],
    ["domain,,1", "1-N"],
    ["managed-irq,1", "1,"],
    ["1-1:1/1", "1:1/2"],
    ["x,1", "0-1:2/1"],
    ["domain,2", "n"],
];

fn table() -> String {
    let mut text = format!(
        "name = \"lists\"\nkernels = [\"{OLD}\", \"{NEW}\"]\nvariations = 1\n[machine]\ncpus = 2\n\
         [[workload]]\nname = \"cat\"\n[workload.program]\n\
         run = [\"cat\", \"/sys/devices/system/cpu/isolated\", \
         \"/sys/devices/system/cpu/nohz_full\"]\n"
    );
    for (number, [isolcpus, nohz_full]) in LISTS.iter().enumerate() {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "[[boot]]\nname = \"row-{number}\"\n\
             append = \"isolcpus={isolcpus} nohz_full={nohz_full}\""
        );
    }
    text
}

/// Whether a cell has a doubt about this parameter.
fn is_doubted(cell: &Value, parameter: &str) -> bool {
    let mut doubts = cell["doubts"].as_array().unwrap().iter();
    doubts.any(|doubt| {
        let text = doubt["text"].as_str().unwrap();
        doubt["code"] == "no_such_cpu" && text.contains(&format!("{parameter}: "))
    })
}

/// Check that a parameter is doubted if, and only if, the kernel's own list of its CPUs is empty.
#[test]
fn verdicts() {
    let Some(site) = Site::new() else { return };
    if !kernels(&site, &[OLD, NEW]) {
        return;
    }
    // Nothing is counted: in real time, guests boot in half of the CPU time.
    let file = site.file("lists.toml", &table());
    let output = site.output(&["lab", "run", "--json", "--mode", "timed", &file]);
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let cells = all["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2 * LISTS.len());
    let mut seen = [0, 0];
    for cell in cells {
        let output = cell["summary"]["output"]["text"].as_str().unwrap();
        let [isolated, nohz_full] = output.lines().collect::<Vec<_>>()[..] else {
            panic!("{cell}")
        };
        let params = cell["params"].as_str().unwrap();
        for (parameter, own) in params.split(' ').zip([isolated, nohz_full]) {
            let is_rejected = ["", "(null)"].contains(&own);
            seen[usize::from(is_rejected)] += 1;
            assert_eq!(is_doubted(cell, parameter), is_rejected, "{parameter}: {cell}");
        }
    }
    assert!(seen.iter().all(|&count| count >= 8), "{seen:?}");
}
