//! C programs in guests, linked with static libraries only: they restore the settings they
//! change.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lab::{Cache, Lab, Program, Run};
use recording::Mode;

use crate::site::{OLD, Site, TOOL};
use crate::watched::kernels;

/// The longest time for a guest on a busy host.
const LONG: Duration = Duration::from_secs(1_800);
/// A guest with a CPU whose tick can stop.
const NOHZ_FULL: &str = "nohz_full=1 isolcpus=1 rcu_nocbs=1";

/// A C program of `capi`'s tests, with both C libraries; `None`, and why, where it cannot be built.
fn built(name: &str) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let capi = Path::new(env!("CARGO_MANIFEST_DIR")).join("../capi");
    let libraries = ["deps/libnoisefloor.a", "deps/libtif.a"]
        .map(|library| Path::new(TOOL).with_file_name(library));
    if !libraries.iter().all(|library| library.exists()) {
        println!("skipped: {name}: not built: cargo test -p capi --no-run");
        return None;
    }
    let (source, program) =
        (format!("tests/programs/{name}.c"), folder.path().join(name));
    let mut compiler = Command::new("cc");
    compiler.args(["-static", "-O1", "-Wall", "-Wextra", "-Werror", "-I"]);
    compiler.arg(capi.join("include")).arg("-I").arg(capi.join("../tif/include"));
    compiler.arg(capi.join(source)).args(libraries).args(["-lm", "-o"]).arg(&program);
    if compiler.output().is_ok_and(|output| output.status.success()) {
        return Some(fs::read(program).unwrap());
    }
    println!("skipped: {name}: no cc with a static C library");
    None
}

/// The output of such a program in a guest of 6.1 with these boot parameters; `None`, with the
/// reason printed, if there is none.
fn ran(name: &str, arguments: &[&str], params: &str) -> Option<(Option<i32>, String)> {
    let site = Site::new()?;
    let bytes = built(name)?;
    if !kernels(&site, &[OLD]) {
        return None;
    }
    let lab = Lab::open(Cache::at(&site.cache()).unwrap()).unwrap();
    let stop = AtomicBool::new(false);
    let run = Run { jobs: 1, fresh: false, deadline: LONG, stop: &stop };
    let others = Vec::new();
    let (mode, cpus, cpu) = (Mode::Timed, 2, Some("max"));
    let program = Program { bytes, others, arguments, mode, cpus, cpu, params };
    let ran = lab.run_program(OLD, program, &run).unwrap();
    Some((ran.code, ran.text))
}

/// Check that 20 programs that SIGINT ends while they use `nohz_enter` leave
/// `sched_rt_runtime_us` unchanged, or in the journal, and never at the kernel's default.
#[test]
fn interrupted() {
    let Some((code, text)) = ran("interrupted", &["20"], NOHZ_FULL) else { return };
    assert_eq!(code, Some(0), "{text}");
    print!("{text}");
}

/// Check that a partition does not change the affinity of workers of unbound workqueues: it is
/// created if they may run on all CPUs, and refused otherwise, because it could not be
/// restored.
#[test]
fn partitioned() {
    for (params, outcome) in [("", "made"), (NOHZ_FULL, "not made: ")] {
        let Some((code, text)) = ran("partitioned", &[], params) else { return };
        print!("{params}: {text}");
        assert_eq!(code, Some(0), "{params}: {text}");
        assert!(text.starts_with(outcome), "{params}: {text}");
        assert!(outcome == "made" || text.contains("kworker/u"), "{params}: {text}");
    }
}
