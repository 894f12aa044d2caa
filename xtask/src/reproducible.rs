//! Builds whose output depends on the sources, the compiler and the system's libraries only: not on the
//! folder, the user's settings or earlier builds.
//!
//! Static programs contain libelf and zlib, which load eBPF programs, and the tool SQLite: `pkg-config`
//! reports where they are, and which other libraries they need on this distribution. For another
//! architecture they are Debian's, installed or in a folder of their own ([`SYSROOT`]).

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::architecture::Architecture;
use crate::workspace::Workspace;
use crate::{command, rustc};

/// How a program is linked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Linking {
    /// With all libraries in the program.
    Static,
    Dynamic,
}

/// The folder of another architecture's libraries, below the target directory; `scripts/setup` fills it.
const SYSROOT: &str = "sysroot";
/// Without symbols. As a flag, because a profile with settings for single packages loses `strip` (cargo
/// 1.95).
pub(crate) const STRIPPED: &str = "-Cstrip=symbols";
/// Neither a dynamic loader nor relocations are needed.
const FLAGS: [&str; 2] = ["-Ctarget-feature=+crt-static", "-Crelocation-model=static"];

/// A `cargo build` of that kind, with further flags of rustc, and without the names of what it builds.
pub(crate) fn cargo(
    workspace: &Workspace,
    architecture: Architecture,
    linking: Linking,
    further: &[&str],
) -> Result<Command, String> {
    let mut cargo = command::cargo();
    cargo.current_dir(&workspace.root).args(["build", "--locked", "--quiet"]);
    // With an explicit target, build scripts and macros are built once, as for the host.
    cargo.args(["--target", architecture.triple(), "--target-dir"]);
    cargo.arg(&workspace.target);
    without_settings(&mut cargo);
    let sysroot = workspace.target.join(SYSROOT).join(architecture.debian());
    let mut flags = vec![rustc::MARK.to_owned()];
    let mut folder = String::new();
    if linking == Linking::Static {
        refuse_white_space(workspace)?;
        flags.extend(FLAGS.map(str::to_owned));
        flags.extend(needed(&of_libelf("--static --libs-only-l")?));
        folder = static_libraries(architecture, &sysroot)?;
        // Else its build script asks for the shared library.
        cargo.env("SQLITE3_STATIC", "1").env("SQLITE3_LIB_DIR", &folder);
    }
    if architecture.is_foreign() {
        flags.push(format!("-Clinker={}", architecture.tool("gcc")));
        flags.extend(standard_library(architecture, &sysroot));
    }
    flags.extend(further.iter().map(|&flag| flag.to_owned()));
    // This variable overrides all other ways to set flags.
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    rustc::wrap(&mut cargo, &folder)?;
    Ok(cargo)
}

/// Removes what a user may have set.
fn without_settings(cargo: &mut Command) {
    // An incremental build divides the code into other codegen units.
    cargo.env("CARGO_INCREMENTAL", "0");
    for (name, _) in env::vars_os() {
        let is_setting =
            |name: &str| name.starts_with("CARGO_PROFILE_") || name.contains("CFLAGS");
        if name.to_str().is_some_and(is_setting) {
            cargo.env_remove(name);
        }
    }
}

fn refuse_white_space(workspace: &Workspace) -> Result<(), String> {
    let target = workspace.target.display();
    if !target.to_string().contains(char::is_whitespace) {
        return Ok(());
    }
    Err(format!(
        "libbpf's makefile fails in a folder whose path has white space: {target}; use make, or set \
         CARGO_TARGET_DIR"
    ))
}

/// The folder of static libraries.
fn static_libraries(
    architecture: Architecture,
    sysroot: &Path,
) -> Result<String, String> {
    if !architecture.is_foreign() {
        let folder = of_libelf("--variable=libdir")?;
        let help = "install libelf-dev (Debian), elfutils-libelf-devel-static (Fedora)";
        return with_libelf(&folder).ok_or_else(|| {
            format!("static libraries are needed, and {folder} has none: {help}")
        });
    }
    let folders = [Path::new("/"), sysroot]
        .map(|root| root.join("usr/lib").join(architecture.gnu()).display().to_string());
    folders.iter().find_map(|folder| with_libelf(folder)).ok_or_else(|| {
        let [installed, unpacked] = &folders;
        format!(
            "static libraries for {} are needed in {installed} or {unpacked}: make packages ARCH={0}",
            architecture.debian()
        )
    })
}

fn with_libelf(folder: &str) -> Option<String> {
    Path::new(folder).join("libelf.a").exists().then(|| folder.to_owned())
}

/// The flags by which a distribution's compiler finds the standard library of another architecture, if
/// it is not installed beside it.
fn standard_library(architecture: Architecture, sysroot: &Path) -> Vec<String> {
    let folder: PathBuf =
        sysroot.join("usr/lib/rustlib").join(architecture.triple()).join("lib");
    if folder.exists() { vec![format!("-L{}", folder.display())] } else { Vec::new() }
}

/// The output of `pkg-config` for libelf.
fn of_libelf(question: &str) -> Result<String, String> {
    let mut asked = Command::new("pkg-config");
    asked.args(question.split(' ')).arg("libelf");
    let failed = |why: &str| {
        let help = "install libelf-dev, zlib1g-dev and pkg-config";
        format!("pkg-config {question} libelf: {}; {help}", why.trim())
    };
    let output = asked.output().map_err(|error| failed(&error.to_string()))?;
    if !output.status.success() {
        return Err(failed(&String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The libraries that libelf needs besides zlib, which is always linked: on Debian 13, libzstd.
fn needed(needs: &str) -> impl Iterator<Item = String> {
    let others =
        needs.split_ascii_whitespace().filter(|lib| !["-lelf", "-lz"].contains(lib));
    others.map(|lib| format!("-Clink-arg={lib}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that further libraries of libelf are linked, and none twice.
    #[test]
    fn needs_of_libelf() {
        let flags = |needs| needed(needs).collect::<Vec<_>>();
        assert_eq!(flags("-lelf -lz"), [""; 0]);
        assert_eq!(flags("-lelf -lz -lzstd"), ["-Clink-arg=-lzstd"]);
    }
}
