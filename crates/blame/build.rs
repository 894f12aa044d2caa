//! Compiles the BPF programs, and generates their Rust bindings.

use std::path::Path;

use libbpf_cargo::SkeletonBuilder;

/// Each `NAME.bpf.c`; its skeleton is `NAME.skel.rs`.
const SOURCES: [&str; 3] = ["events", "slices", "wakers"];
/// BTF contains the names of source files: the same ones in any build folder.
const FLAGS: [&str; 4] = ["-Wall", "-Werror", "-fdebug-compilation-dir", "."];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=src/bpf");
    let folder = std::env::var_os("OUT_DIR").ok_or("cargo tells no OUT_DIR")?;
    for name in SOURCES {
        let mut builder = SkeletonBuilder::new();
        builder.source(format!("src/bpf/{name}.bpf.c")).clang_args(FLAGS);
        builder.build_and_generate(Path::new(&folder).join(format!("{name}.skel.rs")))?;
    }
    Ok(())
}
