//! C programs in guests, linked with static libraries only: they restore the settings they
//! change.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use lab::Program;
use recording::Mode;

use crate::site::{OLD, Site, TOOL, text};
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
    let others = Vec::new();
    let (mode, cpus, cpu) = (Mode::Timed, 2, Some("max"));
    let program = Program { bytes, others, arguments, mode, cpus, cpu, params };
    Some(site.run_program(OLD, program, LONG))
}

/// A program written for TIF, linked with the shared library, and a folder with noisefloor and that
/// library as they are installed; `None`, and why, where it cannot be built.
fn installed_with_tif(folder: &Path) -> Option<PathBuf> {
    let library = Path::new(TOOL).with_file_name("deps/libtif.so");
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../capi/tests/programs");
    for part in ["bin", "lib"] {
        fs::create_dir(folder.join(part)).unwrap();
    }
    let tool = folder.join("bin/noisefloor");
    fs::hard_link(TOOL, &tool).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-pthread", "-I"]).arg(programs.join("../../../tif/include"));
    compiler.arg("-o").arg(folder.join("tif_style")).arg(programs.join("tif_style.c"));
    if fs::copy(&library, folder.join("lib/libtif.so")).is_err() {
        println!("skipped: not built: cargo test -p tif --no-run");
        return None;
    }
    if compiler.arg(library).output().is_ok_and(|output| output.status.success()) {
        return Some(tool);
    }
    println!("skipped: no cc with a C library");
    None
}

/// Check that one command runs a program written for TIF on a CPU whose tick stops, with libtif, and
/// prints its output; and that a single CPU is refused.
#[test]
fn written_for_tif() {
    let Some(site) = Site::new() else { return };
    let folder = site.cache().with_file_name("prefix");
    fs::create_dir(&folder).unwrap();
    let Some(tool) = installed_with_tif(&folder) else { return };
    let run = |options: &[&str]| {
        let mut command = Command::new(&tool);
        command.env("NOISEFLOOR_CACHE", site.cache());
        command.env("NOISEFLOOR_PARTS", Path::new(TOOL).with_file_name("../lab"));
        command.args(["lab", "cost", "--full", "--tif", "-k", OLD]).args(options);
        command.args(["--", "./tif_style"]).current_dir(&folder).output().unwrap()
    };
    let output = run(&[]);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{shown}{}", text(&output.stderr));
    for words in ["nohz_full=1 isolcpus=1", "\nfirst 1\n", "\nwaited 0\n"] {
        assert!(shown.contains(words), "{shown}");
    }
    let output = run(&["--cpus", "1"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
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
