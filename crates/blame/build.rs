//! Compiles the BPF programs with clang, to objects that are loaded from memory.
//!
//! The headers are those of the libbpf that loads them, which `libbpf-sys` names
//! (`DEP_BPF_INCLUDE`). Debugging information is needed for the types in it (BTF), and contains no
//! path of this machine.

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// Each `src/bpf/NAME.bpf.c`; its object is `NAME.o`.
const SOURCES: [&str; 5] = ["events", "slices", "top", "wakers", "watch"];
/// Programs for kernels that have its instructions (since 5.12), with exchanges among them.
const NEWER: [&str; 1] = ["watch"];
/// BTF contains the names of source files: the same ones in any build folder.
const FLAGS: [&str; 10] = [
    "-target",
    "bpf",
    "-g",
    "-O2",
    "-Wall",
    "-Werror",
    // Distributions may enable it by default; programs have no place for it.
    "-fno-stack-protector",
    "-fdebug-compilation-dir",
    ".",
    "-c",
];

fn main() -> Result<(), String> {
    println!("cargo::rerun-if-changed=src/bpf");
    let out = PathBuf::from(variable("OUT_DIR")?);
    let headers = variable("DEP_BPF_INCLUDE")?;
    let define =
        format!("-D__TARGET_ARCH_{}", architecture(&variable("CARGO_CFG_TARGET_ARCH")?));
    // The folder of the headers is this machine's.
    let renamed = format!("-fdebug-prefix-map={headers}=libbpf");
    for name in SOURCES {
        let mut clang = Command::new("clang");
        clang.args(FLAGS).args([&define, &renamed, "-I", &headers]);
        if NEWER.contains(&name) {
            clang.arg("-mcpu=v3");
        }
        clang
            .arg(format!("src/bpf/{name}.bpf.c"))
            .arg("-o")
            .arg(out.join(format!("{name}.o")));
        let status = clang.status();
        let status = status.map_err(|error| format!("failed to run clang: {error}"))?;
        if !status.success() {
            return Err(format!("clang failed on {name}.bpf.c: {status}"));
        }
    }
    Ok(())
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|error| format!("{name}: {error}"))
}

/// The name that libbpf's headers have for an architecture (`bpf_tracing.h`).
fn architecture(rust: &str) -> &str {
    match rust {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        "powerpc64" => "powerpc",
        "riscv64" => "riscv",
        "s390x" => "s390",
        "loongarch64" => "loongarch",
        other => other,
    }
}
