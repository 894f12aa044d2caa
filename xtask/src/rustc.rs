//! The compiler wrapper for guests' programs: calls rustc without any path of this machine.
//!
//! Panics contain the names of source files, including generated ones (`OUT_DIR`). An exact guest
//! executes the same instructions only if the program that it unpacks is the same to the
//! last byte, so these names must not depend on where the sources, the target directory or
//! cargo's registry are.
//!
//! cargo calls this program instead of rustc (`RUSTC_WRAPPER`), because the folders of a package
//! are known only at that point, and because flags in `RUSTFLAGS` are hashed into the names of
//! files and symbols: flags that name a path would be a difference themselves. Cargo does not know
//! these flags, so a change of this file must also change [`MARK`].
//!
//! Paths that a build script writes are not covered; each build script is responsible for them.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// A flag that is visible to cargo: it identifies output of this wrapper, and the wrapper's version.
pub(crate) const MARK: &str = "--cfg=names_of_folders=\"1\"";
/// Set if cargo calls this program instead of rustc, to the folder of static libraries, if any.
const VARIABLE: &str = "NOISEFLOOR_XTASK_IS_RUSTC";

/// Makes cargo call this program instead of rustc, with static libraries from that folder.
/// `LIBBPF_SYS_LIBRARY_PATH` would do so, too, but then everything that contains libbpf is
/// built again whenever the variable is set or unset.
pub(crate) fn wrap(cargo: &mut Command, libraries: &str) -> Result<(), String> {
    let own = env::current_exe().map_err(|error| format!("xtask: {error}"))?;
    cargo.env("RUSTC_WRAPPER", own).env(VARIABLE, libraries);
    Ok(())
}

/// Whether cargo called this program instead of rustc.
pub(crate) fn is_asked_for() -> bool {
    env::var_os(VARIABLE).is_some()
}

/// Calls rustc with cargo's arguments; returns only on failure.
pub(crate) fn run() -> ExitCode {
    let mut words = env::args_os().skip(1);
    let Some(program) = words.next() else {
        eprintln!("xtask: {VARIABLE} is set, but no compiler is named");
        return ExitCode::FAILURE;
    };
    let mut rustc = Command::new(&program);
    rustc.args(words);
    if let Some(manifest) = env::var_os("CARGO_MANIFEST_DIR") {
        let folder = env::current_dir().unwrap_or_default().into_os_string();
        let package = format!("/{}-{}", variable("PKG_NAME"), variable("PKG_VERSION"));
        let out = env::var_os("OUT_DIR");
        rustc.args(remapped(&folder, &manifest, out.as_deref(), &package));
        let libraries = env::var(VARIABLE).unwrap_or_default();
        if !libraries.is_empty() {
            rustc.arg(format!("-Lnative={libraries}"));
        }
    }
    let error = rustc.exec();
    eprintln!("xtask: {}: {error}", Path::new(&program).display());
    ExitCode::FAILURE
}

fn variable(name: &str) -> String {
    env::var(format!("CARGO_{name}")).unwrap_or_default()
}

/// The flags that rename a package's folders; if several apply, rustc uses the last.
fn remapped(
    folder: &OsStr,
    manifest: &OsStr,
    out: Option<&OsStr>,
    package: &str,
) -> Vec<OsString> {
    let flag = |from: &OsStr, to: &str| {
        let mut flag = OsString::from("--remap-path-prefix=");
        flag.push(from);
        flag.push("=");
        flag.push(to);
        flag
    };
    let out = out.map(|out| flag(out, &format!("{package}/out")));
    let named = [flag(folder, "/workspace"), flag(manifest, package)];
    named.into_iter().chain(out).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that every folder is renamed, and that the most specific comes last.
    #[test]
    fn folders_are_renamed() {
        let [folder, manifest, out] =
            ["/home/me/w", "/home/me/w/crates/blame", "/t/blame-1f/out"].map(OsStr::new);
        let expected = [
            "--remap-path-prefix=/home/me/w=/workspace",
            "--remap-path-prefix=/home/me/w/crates/blame=/blame-0.1.0",
            "--remap-path-prefix=/t/blame-1f/out=/blame-0.1.0/out",
        ];
        let flags = remapped(folder, manifest, Some(out), "/blame-0.1.0");
        assert_eq!(flags, expected);
        assert_eq!(remapped(folder, manifest, None, "/blame-0.1.0"), expected[..2]);
    }
}
