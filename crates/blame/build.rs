//! Compiles the BPF programs, and makes the Rust names for them.

use std::path::Path;

use libbpf_cargo::SkeletonBuilder;

const SOURCE: &str = "src/bpf/events.bpf.c";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=src/bpf");
    let folder = std::env::var_os("OUT_DIR").ok_or("cargo tells no OUT_DIR")?;
    let skeleton = Path::new(&folder).join("events.skel.rs");
    let mut builder = SkeletonBuilder::new();
    builder.source(SOURCE).clang_args(["-Wall", "-Werror"]);
    Ok(builder.build_and_generate(skeleton)?)
}
