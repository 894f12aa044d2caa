//! `advise --prove`: boot parameters and options of the kernel's configuration, tried in guests.

use serde_json::Value;

use crate::builds::heavy;
use crate::site::{NEW, Site, text};

/// The items of the proof of advice for a goal that have a change of that kind; `None`, with the reason printed, if this
/// user may not change settings or there are none.
fn proven(site: &Site, goal: &str, kind: &str, budget: &str) -> Option<Vec<Value>> {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: {goal}: settings are changed as root only");
        return None;
    }
    let args = ["advise", "--no-measure", "--prove", "--json", "--quiet"];
    let guests = ["--guest-kernel", NEW, "--goal", goal, "--budget", budget];
    let output = site.output(&[&args[..], &guests].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let items = ["items", "not_advised"]
        .into_iter()
        .flat_map(|key| report["summary"][key].as_array().unwrap());
    let items =
        items.filter(|item| item["change"]["how"] == kind && item["shown_by"] == "guest");
    let items: Vec<Value> = items.cloned().collect();
    if items.is_empty() {
        println!("skipped: {goal}: no such change is advised for this machine");
        return None;
    }
    Some(items)
}

/// Check that a proof is of two guests, whose exact numbers have the tolerance of another guest.
fn assert_exact(item: &Value) {
    let proof = &item["proof"];
    assert_eq!(proof["state"], "proven", "{item:#}");
    let measured = &proof["measured"];
    assert_eq!(measured["runs"], serde_json::json!([1, 1]), "{item:#}");
    let number = |value: &Value| value.as_f64().unwrap();
    let [low, high] = [0, 1].map(|end| number(&measured["interval"][end]));
    let difference = number(&measured["difference"]);
    assert!(low <= difference && difference <= high, "{measured:#}");
    let [base, tried] = [0, 1].map(|side| number(&measured["values"][side]));
    assert!(base > 0.0 && (tried - base - difference).abs() < 1e-6, "{measured:#}");
}

/// Check that a boot parameter is tried in guests of the kernel that is named.
#[test]
fn boot_parameters() {
    let Some(site) = Site::new() else { return };
    let Some(items) = proven(&site, "throughput", "boot", "3m") else { return };
    for item in &items {
        assert_exact(item);
        let kernel = item["proof"]["kernel"].as_str().unwrap();
        assert!(kernel.starts_with("6.12.") && kernel.contains("cloud"), "{item:#}");
    }
}

/// Check that an option is tried with two kernels of the source, which are built.
#[test]
fn options_of_the_configuration() {
    let Some(site) = heavy("options_of_the_configuration") else { return };
    let Some(items) = proven(&site, "realtime", "build", "45m") else { return };
    for item in &items {
        assert_exact(item);
        let kernel = item["proof"]["kernel"].as_str().unwrap();
        let option = item["change"]["option"].as_str().unwrap();
        let expected = format!("build:debian:6.12,lean,{option}=");
        assert!(kernel.starts_with(&expected), "{item:#}");
    }
}
