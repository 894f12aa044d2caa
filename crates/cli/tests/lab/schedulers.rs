//! Services beside measurements, and among them schedulers of `sched_ext`, of which noisefloor has none: the
//! program is this machine's (`scripts/schedulers`).

use std::process::Command;

use serde_json::Value;

use crate::site::{OLD, Site, named, text};

/// A Debian kernel with `sched_ext`.
const KERNEL: &str = "debian:7.3-cloud";
/// The simplest scheduler of the kernel's source; its slices are of 20 ms, so that 16 spinners alone have
/// slices of that length.
const SCHEDULER: &str = "scx_simple";
const SLICE_MS: f64 = 20.0;

/// The experiment with one service in a setting row, and the unmodified kernel beside it.
fn with_service(kernel: &str, service: &str, workload: &str) -> String {
    format!(
        "name = \"services\"\nkernels = [\"{kernel}\"]\nvariations = 1\nphases = 1\n[[setting]]\n\
         [[setting]]\nname = \"beside\"\n[[setting.service]]\nname = \"own\"\n{service}\n\
         [[workload]]\nname = \"spin\"\n{workload}\n"
    )
}

const SPIN: &str = "slices = { spinners = 2, duration = \"100ms\" }";

/// Check that a service runs beside a measurement from before its start: it becomes ready, its work is part of
/// the guest's, the cell has its command line, and a second run is the same.
#[test]
fn beside_a_measurement() {
    let Some(site) = Site::new() else { return };
    let script = "echo yes >/tmp/up; while :; do sleep 0.01; done";
    let service = format!(
        "run = [\"sh\", \"-c\", \"{script}\"]\nready = {{ file = \"/tmp/up\", text = \"yes\" }}"
    );
    let file = site.file("services.toml", &with_service(OLD, &service, SPIN));
    let cells = site.cells(&[&file, "--set", "repeats=2"], 0);
    let passes = |cell: &Value| cell["summary"]["passes"].as_u64().unwrap();
    assert_eq!(cells.len(), 4);
    let (alone, beside) = (named(&cells, "spin"), named(&cells, "beside spin"));
    assert!(passes(beside) < passes(alone), "{} {}", passes(beside), passes(alone));
    assert!(beside["services"][0].as_str().unwrap().starts_with("sh -c"), "{beside}");
    assert!(alone["services"].is_null());
    let same: Vec<_> =
        cells.iter().filter(|cell| cell["name"] == "beside spin").collect();
    assert_eq!(same[0]["identity"], same[1]["identity"]);
    assert_eq!(same[0]["series"], same[1]["series"]);
    assert_eq!(same[0]["counts"], same[1]["counts"]);
}

/// Check that a service that ends with an error, before it is ready or later, makes a lost cell with the last
/// line of its output, and that one whose program is missing has the hint, once; other cells run.
#[test]
fn services_that_fail() {
    let Some(site) = Site::new() else { return };
    let ready = "ready = { file = \"/sys/kernel/sched_ext/state\", text = \"enabled\" }";
    let no_program =
        format!("run = [\"no-such-scheduler\"]\n{ready}\nhint = \"build it\"");
    let early = format!("run = [\"sh\", \"-c\", \"echo no BTF; exit 3\"]\n{ready}");
    let late = "run = [\"sh\", \"-c\", \"sleep 1; echo too late; exit 4\"]";
    let (never, ended) = ("before it was ready", "before the measurement ended");
    for (service, reason) in [
        (no_program.as_str(), "no program 'no-such-scheduler' in ".to_owned()),
        (
            &early,
            format!("exited with code 3 {never}; the last line of its output: no BTF"),
        ),
        (
            late,
            format!("exited with code 4 {ended}; the last line of its output: too late"),
        ),
    ] {
        let spin = SPIN.replace("100ms", "2s");
        let file = site.file("services.toml", &with_service(OLD, service, &spin));
        let cells = site.cells(&[&file], 1);
        let why = named(&cells, "beside spin")["lost"]["why"].as_str().unwrap();
        assert!(why.contains(&reason), "{why}");
        assert!(named(&cells, "spin")["lost"].is_null());
    }
    let two = format!("{SPIN}\n[[workload]]\nname = \"again\"\n{SPIN}");
    let file = site.file("services.toml", &with_service(OLD, &no_program, &two));
    let output = site.output(&["lab", "run", &file]);
    let said = text(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(said.matches("hint: build it").count(), 1, "{said}");
}

/// Whether this machine has the scheduler's program, and the archive the kernel; prints why not.
fn has_scheduler(site: &Site) -> bool {
    let found = Command::new("sh").args(["-c", "command -v \"$0\"", SCHEDULER]).output();
    if !found.unwrap().status.success() {
        println!(
            "skipped: no program {SCHEDULER} in PATH (scripts/schedulers builds it)"
        );
        return false;
    }
    let output = site.output(&["lab", "kernels", KERNEL]);
    if !output.status.success() {
        println!("skipped: {}", text(&output.stderr));
    }
    output.status.success()
}

/// Check that under a scheduler of sched_ext spinners have its slices and not EEVDF's, that the recording has its
/// name, that the report has it, and that a second guest has the same numbers to the last instruction.
#[test]
fn sched_ext() {
    let Some(site) = Site::new() else { return };
    if !has_scheduler(&site) {
        return;
    }
    let service = format!(
        "run = [\"{SCHEDULER}\"]\n\
         ready = {{ file = \"/sys/kernel/sched_ext/state\", text = \"enabled\" }}"
    );
    let spin = "slices = { spinners = 4, duration = \"1s\" }";
    let file = site.file("sched-ext.toml", &with_service(KERNEL, &service, spin));
    let cells = site.cells(&[&file, "--set", "repeats=2"], 0);
    let slice =
        |cell: &Value| cell["summary"]["slice_ns"]["mean"].as_f64().unwrap() / 1e6;
    let (own, other) = (named(&cells, "spin"), named(&cells, "beside spin"));
    assert!(slice(own) < SLICE_MS / 2.0, "{}", slice(own));
    let is_its = (SLICE_MS * 0.8..=SLICE_MS * 1.25).contains(&slice(other));
    assert!(is_its, "{}", slice(other));
    let same: Vec<_> =
        cells.iter().filter(|cell| cell["name"] == "beside spin").collect();
    assert_eq!(same[0]["series"], same[1]["series"]);
    assert_eq!(same[0]["counts"], same[1]["counts"]);
    let said = text(&site.output(&["lab", "run", &file]).stdout);
    assert!(said.contains("simple (sched_ext)"), "{said}");
}
