//! Guests of QEMU's machine `pc`, whose firmware takes a CPU without an event that the kernel sees.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lab::{Cache, Lab, Program, Run};
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
    let lab = Lab::open(Cache::at(&site.cache()).unwrap()).unwrap();
    let stop = AtomicBool::new(false);
    let run = Run { jobs: 1, fresh: false, deadline: LONG, stop: &stop };
    let program = Program {
        bytes: tests.program,
        others: tests.libraries,
        arguments: &["--test-threads=1", "--show-output", "firmware::"],
        mode: Mode::Timed,
        cpus: 2,
        cpu: Some(cpu),
        params: "NOISEFLOOR_TEST_SMI=1",
    };
    let ran = lab.run_program(kernel, program, &run).unwrap();
    assert_eq!(ran.code, Some(0), "{kernel}, {cpu}: {}", ran.text);
    assert!(ran.text.contains("trains_of_smis ... ok"), "{kernel}, {cpu}: {}", ran.text);
    assert!(!ran.text.contains("skipped: "), "{kernel}, {cpu}: {}", ran.text);
    ran.text
}

/// Check that trains of system management interrupts are gaps without events, and that they are counted by
/// a processor that has the register; one that has not has a reason.
#[test]
fn system_management_interrupts() {
    let Some(site) = Site::new() else { return };
    let Some(tests) = GuestProgram::find("truth") else {
        return println!("skipped: firmware: not built: cargo xtask guest --tests");
    };
    for kernel in [OLD, NEW] {
        let text = run(&site, kernel, COUNTING, tests.clone());
        assert!(text.contains("counted: 0 without trains, "), "{kernel}: {text}");
        let text = run(&site, kernel, NOT_COUNTING, tests.clone());
        let why = "not counted: no event smi in the msr PMU";
        assert!(text.contains(why), "{kernel}: {text}");
    }
}
