//! Steps that change a kernel's configuration: a short series, and the experiment `trim` with its 22
//! kernels of base `debian`, which take hours of CPU time. With `NOISEFLOOR_TEST_CACHE` in the
//! environment, kernels and cells of that experiment that are in that cache are not made again.

use std::env;
use std::process::Command;

use serde_json::Value;

use crate::builds::{LEAN, heavy};
use crate::site::text;

/// Two steps on the kernel of [`LEAN`], with a call and late wake-ups. Both steps are quick to build.
const STEPS: &str = "name = \"steps\"\n\
     kernels = [{ source = \"debian:6.1\", options = { HZ = 40, NO_HZ = \"off\" } }]\n\
     [[include]]\nexperiment = \"wake-delay\"\ncells = [\"highres=on fifo\"]\n\
     [[workload]]\nname = \"calls\"\n\
     calls = { cpu = 0, calls = [\"getpid\"], repeats = 5 }\n\
     [[step]]\nname = \"no-port\"\noptions = { DEVPORT = false }\n\
     costs = \"no /dev/port\"\n\
     [[step]]\nname = \"no-highres\"\n\
     options = { CMDLINE_BOOL = true, CMDLINE = \"highres=off\" }\n";

/// Check that steps are compared with their base: without high-resolution timers a thread wakes
/// milliseconds later, alone and together; a device that nothing uses has no effect on that.
#[test]
fn steps_of_a_series() {
    let Some(site) = heavy("steps_of_a_series") else { return };
    let file = site.file("steps.toml", STEPS);
    let object = run(&mut site.tool(&["lab", "run", &file, "--json", "--quiet"]));
    assert_eq!(object["cells"].as_array().unwrap().len(), 8);
    let trim = &object["trim"][0];
    assert_eq!(trim["base"]["kernel"], LEAN);
    assert!(trim["base"]["image_bytes"].as_u64().unwrap() > 1_000_000);
    let late = |kernel: &Value| difference(kernel, "late_ns_p50");
    let [port, slow] = trim["steps"].as_array().unwrap().as_slice() else {
        panic!("{trim}")
    };
    assert!(late(&port["alone"]).abs() < 1e5, "{port}");
    assert_eq!(
        (&port["cumulated"], &port["costs"]),
        (&port["alone"], &"no /dev/port".into())
    );
    assert!(late(&slow["alone"]) > 1e6, "{slow}");
    assert!(late(&slow["cumulated"]) > 1e6, "{slow}");
}

/// Check that every step is measured alone and with those before it; that all steps together take
/// less from ticks, calls and requests than the base does, in a smaller image; and that no other step
/// than `no-highres` makes a thread wake late.
#[test]
fn every_step() {
    let Some(site) = heavy("every_step") else { return };
    let mut command = site.tool(&["lab", "run", "trim", "--json", "--quiet"]);
    if let Some(cache) = env::var_os("NOISEFLOOR_TEST_CACHE") {
        command.env("NOISEFLOOR_CACHE", cache);
    }
    let object = run(&mut command);
    let trim = &object["trim"][0];
    let steps = trim["steps"].as_array().unwrap();
    assert_eq!(steps.len(), 11);
    for step in steps {
        let is_late = difference(&step["alone"], "late_ns_p50") > 1e6;
        assert_eq!(is_late, step["name"] == "no-highres", "{step}");
    }
    let all = &steps[steps.len() - 1]["cumulated"];
    for metric in ["tick_kernel_instructions", "calls_instructions", "unit_instructions"]
    {
        assert!(difference(all, metric) < 0.0, "{metric}: {all}");
    }
    let size = |kernel: &Value| kernel["image_bytes"].as_u64().unwrap();
    assert!(size(all) < size(&trim["base"]), "{all}");
}

/// The JSON object of a run without lost cells.
fn run(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The difference of one metric of a kernel from the base.
fn difference(kernel: &Value, metric: &str) -> f64 {
    let mut values = kernel["values"].as_array().unwrap().iter();
    let value = values.find(|value| value["metric"] == metric);
    value.unwrap_or_else(|| panic!("{metric}: {kernel}"))["difference"].as_f64().unwrap()
}
