//! `lab run --beside sim`: the simulated mean slice of a cell is that of the real kernel.
//!
//! The measured cells do not depend on the machine, the simulated ones do not either. But where the order
//! of wake-ups is not forced, a kernel's package or the guests' programs change it: such cells differ by
//! several percent among their variations. Those of few variations are therefore compared where the order
//! hardly matters, by ten measurements.

use serde_json::Value;

use crate::site::{NEW, OLD, Site, text};

/// The newest kernel that the rules are compared with.
const NEWEST: &str = "debian:7.2-cloud";

/// The largest difference of the mean slices, in ppm.
const LARGEST_PPM: f64 = 10_000.0;
/// The kernels of which all cells are compared.
const KERNELS: [&str; 5] = ["debian:5.10-cloud", OLD, NEW, "debian:6.18-cloud", NEWEST];

/// Numbers of spinners and sleepers.
type Load = (u32, u32);

/// The cells of one second, one phase and two variations on a kernel, by their loads.
fn experiment(kernel: &str, loads: &[Load]) -> String {
    let row = |(spinners, sleepers): &Load| {
        format!(
            "[[workload]]\nname = \"{spinners}+{sleepers}\"\n\
             slices = {{ spinners = {spinners}, sleepers = {sleepers}, duration = \"1s\" }}\n"
        )
    };
    format!(
        "name = \"beside\"\nkernels = [\"{kernel}\"]\nvariations = 2\nphases = 1\n{}",
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

/// The difference of a simulated mean slice and its ±, in ppm, which are printed with both means.
fn difference(cell: &Value) -> (f64, f64) {
    let simulated = &cell["beside"];
    let (guest, own) =
        (&cell["means"]["slice_ns_mean"]["mean"], &simulated["slice_ns_mean"]["mean"]);
    let (asked, name) = (&cell["asked"], &cell["name"]);
    let number = |key| {
        let found = simulated[key].as_f64();
        found.unwrap_or_else(|| panic!("{asked} {name}: {simulated}"))
    };
    let (by, within) =
        (number("slice_difference_ppm"), number("slice_difference_within_ppm"));
    println!(
        "{asked} {name}: guest {guest} ns, simulated {own} ns: {by:.0} ± {within:.0} ppm"
    );
    (by, within)
}

/// The cells whose difference is larger than the limit, or with `doubted` than that and its ±; they all must
/// have rules of their version.
fn apart(cells: &[Value], doubted: bool) -> Vec<String> {
    let differs = |cell: &&Value| {
        assert_eq!(cell["beside"]["remarks"], serde_json::json!([]), "{}", cell["asked"]);
        let (by, within) = difference(cell);
        by.abs() > LARGEST_PPM + if doubted { within } else { 0.0 }
    };
    let name = |cell: &Value| format!("{} on {}", cell["name"], cell["asked"]);
    cells.iter().filter(differs).map(name).collect()
}

/// Check that the mean slices of five cells, of three kernels, are simulated within 1 %.
#[test]
fn five_cells() {
    let Some(site) = Site::new() else { return };
    // EEVDF keeps the lags with which spinners begin, which a sleeper then meets: of several, one guest
    // says little.
    let all: [(&str, &[Load]); 3] =
        [(OLD, &[(16, 1), (4, 1)]), (NEW, &[(1, 1), (8, 0)]), (NEWEST, &[(32, 0)])];
    let mut wrong = Vec::new();
    for (kernel, loads) in all {
        if kernel == NEWEST && !has(&site, kernel) {
            continue;
        }
        let file = site.file("beside.toml", &experiment(kernel, loads));
        let cells = site.cells(&[&file, "--beside", "sim"], 0);
        assert_eq!(cells.len(), loads.len());
        wrong.extend(apart(&cells, false));
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// Check that the mean slices of the cells of `slices` with one CPU and unmodified settings are simulated
/// within 1 % and the ± of their variations, on each kernel that can be used.
#[test]
fn whole_experiment() {
    if std::env::var_os("NOISEFLOOR_TEST_ALL").is_none() {
        return println!(
            "skipped: it runs a whole experiment; NOISEFLOOR_TEST_ALL is not set"
        );
    }
    let Some(site) = Site::new() else { return };
    let mut wrong = Vec::new();
    for kernel in KERNELS.into_iter().filter(|kernel| has(&site, kernel)) {
        let args = ["slices", "--kernel", kernel, "--beside", "sim"];
        let unmodified = ["--set", "boot=", "--set", "setting=", "--set", "variations=3"];
        let cells = site.cells(&[&args[..], &unmodified].concat(), 0);
        assert_eq!(cells.len(), 6, "{kernel}");
        wrong.extend(apart(&cells, true));
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
