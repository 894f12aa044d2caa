//! Guests of QEMU's machine `pc`, whose firmware takes a CPU without an event that the kernel sees.

use std::time::Duration;

use lab::Program;
use recording::Mode;

use crate::guest_program::GuestProgram;
use crate::site::{NEW, OLD, Site};

/// The longest time for a guest on a busy host.
const LONG: Duration = Duration::from_secs(1_200);
/// Intel's first processor that counts SMIs, and one that does not.
const COUNTING: &str = "Nehalem";
const NOT_COUNTING: &str = "qemu64";

/// Runs the test in a guest of that kernel, with that processor; returns its output.
fn run(site: &Site, kernel: &str, cpu: &str, tests: GuestProgram) -> String {
    let program = Program {
        bytes: tests.program,
        others: tests.libraries,
        arguments: &["--test-threads=1", "--show-output", "firmware::"],
        mode: Mode::Exact,
        cpus: 1,
        cpu: Some(cpu),
        params: "NOISEFLOOR_TEST_SMI=1",
    };
    let (code, said) = site.run_program(kernel, program, LONG);
    assert_eq!(code, Some(0), "{kernel}, {cpu}: {said}");
    for test in ["trains_of_smis", "smis_of_a_measurement"] {
        assert!(said.contains(&format!("{test} ... ok")), "{kernel}, {cpu}: {said}");
    }
    assert!(!said.contains("skipped: "), "{kernel}, {cpu}: {said}");
    let words = ["trains of", "a train takes", "counted: "];
    let is_shown = |line: &&str| words.iter().any(|word| line.contains(word));
    for line in said.lines().filter(is_shown) {
        println!("{kernel}, {cpu}: {line}");
    }
    said
}

/// Check that trains of system management interrupts are gaps without events, and that each of them is
/// counted by a processor that has the register; one that has not has a reason.
#[test]
fn system_management_interrupts() {
    let Some(site) = Site::new() else { return };
    let Some(tests) = GuestProgram::find("truth") else {
        return println!("skipped: firmware: not built: cargo xtask guest --tests");
    };
    for kernel in [OLD, NEW] {
        let text = run(&site, kernel, COUNTING, tests.clone());
        assert!(text.contains("\ncounted: 0 without SMIs, "), "{kernel}: {text}");
        let text = run(&site, kernel, NOT_COUNTING, tests.clone());
        let why = "not counted: no event smi in the msr PMU";
        assert!(text.contains(why), "{kernel}: {text}");
    }
}
