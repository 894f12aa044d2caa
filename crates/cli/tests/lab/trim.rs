//! The experiment `trim` as a whole: 22 kernels of base `debian`, which take hours of CPU time. With
//! `NOISEFLOOR_TEST_CACHE` in the environment, kernels and cells that are in that cache are not made again.

use std::env;

use serde_json::Value;

use crate::builds::heavy;
use crate::site::text;

/// Check that every step is measured alone and with those before it; that all steps together take
/// less from ticks, calls and requests than the base does, in a smaller image; and that no other step
/// than `no-highres` makes a thread wake late.
#[test]
fn every_step() {
    let Some(site) = heavy("every_step") else { return };
    let mut command = site.tool(&["lab", "run", "trim", "--json", "--quiet"]);
    command.envs(
        env::var_os("NOISEFLOOR_TEST_CACHE").map(|cache| ("NOISEFLOOR_CACHE", cache)),
    );
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
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

/// The difference of one metric from the base.
fn difference(kernel: &Value, metric: &str) -> f64 {
    let mut values = kernel["values"].as_array().unwrap().iter();
    let value = values.find(|value| value["metric"] == metric);
    value.unwrap_or_else(|| panic!("{metric}: {kernel}"))["difference"].as_f64().unwrap()
}
