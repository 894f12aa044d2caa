//! What slows a CPU down below the kernel, as a report of this machine has it, and with files that the
//! test writes.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::tool::{first_cpu, is_root, json, text, turn};

/// The keys of a CPU's counts.
const KEYS: [&str; 5] =
    ["smis", "throttled", "frequency", "machine_checks", "machine_check_polls"];

/// Check that each count of this machine is known or has a reason, in the recording, and that the facts
/// have the sources or the reasons.
#[test]
fn known_or_with_a_reason() {
    let _turn = turn();
    let object = json(&["noise", "-c", &first_cpu(), "-d", "0.2", "--json"]);
    let hardware = &object["hardware"];
    for key in KEYS {
        let is_known = !hardware["cpus"][0][key].is_null();
        let has_reason = hardware["unknown"][key]["text"].is_string();
        assert!(is_known != has_reason, "{key}: {hardware}");
    }
    let facts = &object["facts"];
    for (key, value) in facts["hardware"].as_object().unwrap() {
        let why = &facts["unknown"][format!("hardware.{key}")];
        assert!(value.is_null() != why.is_null(), "{key}: {value}, {why}");
    }
    let (smis, event) = (&hardware["cpus"][0]["smis"], &facts["hardware"]["smi_event"]);
    assert!(!event.is_null() || smis.is_null(), "{smis} without an event");
    // The bound is there if and only if they were counted.
    let firmware = &object["summary"]["cpus"][0]["firmware"];
    if object["summary"]["source"] == "bpf" {
        assert_eq!(firmware["smis"], *smis);
    }
}

/// Runs a measurement with this machine's files of CPUs, to which those of heat and frequency are added, and
/// are changed while it runs.
fn while_throttled(folder: &Path, cpu: &str, measurement: &str) -> Result<Value, String> {
    let script = format!(
        "set -e\n\
         cp -r /sys/devices/system/cpu {folder}/cpu 2> {folder}/refused || :\n\
         own={folder}/cpu/cpu{cpu}; rm -rf $own/cpuidle; mkdir -p $own/cpufreq $own/thermal_throttle\n\
         heat() {{ for of in core package; do echo $1 > $own/thermal_throttle/${{of}}_throttle_count; \
         echo $2 > $own/thermal_throttle/${{of}}_throttle_total_time_ms; done; }}\n\
         heat 3 40; echo 3000000 > $own/cpufreq/scaling_cur_freq\n\
         mount --bind {folder}/cpu /sys/devices/system/cpu\n\
         (sleep 1; heat 5 52; echo 2400000 > $own/cpufreq/scaling_cur_freq) &\n\
         {tool} {measurement}\n",
        folder = folder.display(),
        tool = env!("CARGO_BIN_EXE_noisefloor"),
    );
    let output = Command::new("unshare").args(["--mount", "sh", "-c", &script]).output();
    let output = output.map_err(|why| format!("unshare: {why}"))?;
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", text(&output.stderr)))
}

/// Check that heat and a frequency that changes are doubts of `noise`, `latency` and `run`, with their
/// values, as far as another CPU can take samples.
#[test]
fn heat_and_frequency() {
    let _turn = turn();
    if !is_root() {
        return println!("skipped: heat_and_frequency: it takes root");
    }
    let cpu = first_cpu();
    let measurements = [
        format!("noise --json -c {cpu} -d 2"),
        format!("latency --json -c {cpu} -d 2"),
        format!("run --json -c {cpu} -- sleep 2"),
    ];
    for measurement in measurements {
        let folder = tempfile::tempdir().unwrap();
        let object = match while_throttled(folder.path(), &cpu, &measurement) {
            Ok(object) => object,
            Err(why) if why.contains("unshare") || why.contains("mount") => {
                return println!("skipped: heat_and_frequency: {why}");
            }
            Err(why) => panic!("{measurement}: {why}"),
        };
        let own = &object["hardware"]["cpus"][0];
        let throttled = serde_json::json!(
            {"core_heat": 2, "package_heat": 2, "heat_ms": 12, "power_limits": 0});
        assert_eq!(own["throttled"], throttled, "{measurement}");
        assert_eq!(own["frequency"]["mean_khz"], 2_400_000, "{measurement}");
        let codes = object["doubts"].as_array().unwrap().iter();
        let codes: Vec<&str> =
            codes.map(|doubt| doubt["code"].as_str().unwrap()).collect();
        assert!(codes.contains(&"hardware_throttled"), "{measurement}: {codes:?}");
        // The others leave the CPU idle at times: without counts of idle states samples do not count.
        let has_samples = measurement.starts_with("noise") && others(&object, &cpu);
        assert_eq!(codes.contains(&"frequency_changed"), has_samples, "{measurement}");
        if has_samples {
            let range = serde_json::json!([2_400_000, 3_000_000]);
            assert_eq!(own["frequency"]["range_khz"], range);
        }
    }
}

/// Whether there is a CPU that is not measured, and whether the kernel stores frequencies of this one.
fn others(object: &Value, cpu: &str) -> bool {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = kernel.split('.').map_while(|part| part.parse::<u32>().ok());
    let stores = numbers.next().zip(numbers.next()) >= Some((5, 18));
    stores && object["facts"]["cpus"]["allowed"] != cpu
}
