//! `lab run --beside sim`: the simulated mean slice of a cell is that of the real kernel.
//!
//! The measured cells do not depend on the machine, the simulated ones do not either: the differences are
//! the same in each run, until a kernel's package, the guests' programs or the rules change.

use serde_json::Value;

use crate::site::{NEW, OLD, Site, text};

/// The newest kernel that the rules are compared with.
const NEWEST: &str = "debian:7.2-cloud";

/// The largest difference of the mean slices in a cell of a second, in ppm. A percent would be too little:
/// a second has 250 to 1,000 slices, and the kernel's threads and the places of the first tasks in the
/// queue, which the simulation knows as means only, decide on some of them.
const SECOND_PPM: f64 = 20_000.0;
/// The same of a cell of `slices`, of four seconds in eight phases.
const WHOLE_PPM: f64 = 10_000.0;

/// The cells of one second and one phase on a kernel, by their numbers of spinners and sleepers.
fn experiment(kernel: &str, loads: &[(u32, u32)]) -> String {
    let row = |(spinners, sleepers): &(u32, u32)| {
        format!(
            "[[workload]]\nname = \"{spinners}+{sleepers}\"\n\
             slices = {{ spinners = {spinners}, sleepers = {sleepers}, duration = \"1s\" }}\n"
        )
    };
    format!(
        "name = \"beside\"\nkernels = [\"{kernel}\"]\nvariations = 1\nphases = 1\n{}",
        loads.iter().map(row).collect::<String>()
    )
}

/// Whether a kernel can be used; if not, the reason is printed.
fn has(site: &Site, kernel: &str) -> bool {
    let output = site.output(&["lab", "kernels", kernel]);
    match output.status.code() {
        Some(0) => true,
        _ => {
            println!("skipped: {kernel}: {}", text(&output.stderr).trim());
            false
        }
    }
}

/// The difference of a simulated mean slice, in ppm, which is printed with both.
fn difference(cell: &Value) -> f64 {
    let simulated = &cell["beside"];
    let mean = |of: &Value| of["summary"]["slice_ns"]["mean"].as_f64();
    let (guest, own) = (mean(cell), mean(simulated));
    let (asked, name) = (&cell["asked"], &cell["name"]);
    let found = simulated["slice_difference_ppm"].as_f64();
    println!("{asked} {name}: guest {guest:?} ns, simulated {own:?} ns: {found:?} ppm");
    found.unwrap_or_else(|| panic!("{asked} {name}: {simulated}"))
}

/// The cells whose difference is larger than a limit, which all must have rules of their version.
fn apart(cells: &[Value], limit: f64) -> Vec<String> {
    let differs = |cell: &&Value| {
        assert_eq!(cell["beside"]["remarks"], serde_json::json!([]), "{}", cell["asked"]);
        difference(cell).abs() > limit
    };
    let name = |cell: &Value| format!("{} on {}", cell["name"], cell["asked"]);
    cells.iter().filter(differs).map(name).collect()
}

/// Check that the mean slices of five cells, of three kernels, are simulated within 2 %.
#[test]
fn five_cells() {
    let Some(site) = Site::new() else { return };
    let all: [(&str, &[(u32, u32)]); 3] =
        [(OLD, &[(16, 1), (4, 2)]), (NEW, &[(16, 2), (8, 0)]), (NEWEST, &[(16, 1)])];
    let mut wrong = Vec::new();
    for (kernel, loads) in all {
        if kernel == NEWEST && !has(&site, kernel) {
            continue;
        }
        let file = site.file("beside.toml", &experiment(kernel, loads));
        let cells = site.cells(&[&file, "--beside", "sim"], 0);
        assert_eq!(cells.len(), loads.len());
        wrong.extend(apart(&cells, SECOND_PPM));
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Check that the mean slices of all cells of `slices` with one CPU and unmodified settings are simulated
/// within 1 %, on every kernel that can be used.
#[test]
fn whole_experiment() {
    if std::env::var_os("NOISEFLOOR_TEST_ALL").is_none() {
        return println!(
            "skipped: it runs a whole experiment; NOISEFLOOR_TEST_ALL is not set"
        );
    }
    let Some(site) = Site::new() else { return };
    let kernels = ["debian:5.10-cloud", OLD, NEW, "debian:6.18-cloud", NEWEST];
    let mut wrong = Vec::new();
    for kernel in kernels.into_iter().filter(|kernel| has(&site, kernel)) {
        let args = ["slices", "--kernel", kernel, "--beside", "sim"];
        let unmodified = ["--set", "boot=", "--set", "setting=", "--set", "variations=1"];
        let cells = site.cells(&[&args[..], &unmodified].concat(), 0);
        assert_eq!(cells.len(), 6, "{kernel}");
        wrong.extend(apart(&cells, WHOLE_PPM));
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
