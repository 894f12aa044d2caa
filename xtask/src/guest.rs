//! Builds the two files that `noisefloor lab` needs: the agent, which is the only program of a
//! guest, and the instruction counter, a plugin of QEMU.
//!
//! The agent contains libelf and zlib, which load its eBPF programs: `pkg-config` reports where
//! they are, and which other libraries they need on this distribution.
//!
//! Both are copied to `lab/` below the target directory. A guest has no shared libraries, so the
//! agent is linked statically, by profile `guest`. A file that did not change is not written
//! again, so that its modification time stays.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use crate::program::{self, Program};
use crate::workspace::Workspace;
use crate::{command, rustc};

/// The architecture of guests.
pub(crate) const ARCHITECTURE: &str = "x86_64";
pub(crate) const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// Builds both; returns a report.
pub(crate) fn run(workspace: &Workspace) -> Result<String, String> {
    if env::consts::ARCH != ARCHITECTURE {
        let here = env::consts::ARCH;
        return Err(format!("guests need {ARCHITECTURE}; this machine is {here}"));
    }
    put_all(workspace, parts(workspace)?)
}

/// Builds both; returns their names in `lab/` and their paths.
pub(crate) fn parts(workspace: &Workspace) -> Result<Vec<(String, PathBuf)>, String> {
    let (agent, counter) = at_once(|| agent(workspace), || counter(workspace));
    Ok(vec![
        ("noisefloor-agent".to_owned(), agent?),
        ("noisefloor-counter.so".to_owned(), counter?),
    ])
}

/// Runs both builds in parallel: cargo builds each profile in a separate folder, and the linker
/// uses one thread.
pub(crate) fn at_once<A: Send, B>(
    one: impl FnOnce() -> A + Send,
    other: impl FnOnce() -> B,
) -> (A, B) {
    thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        (one.join().unwrap_or_else(|why| resume_unwind(why)), other)
    })
}

fn put_all(
    workspace: &Workspace,
    built: Vec<(String, PathBuf)>,
) -> Result<String, String> {
    let lab = workspace.target.join("lab");
    let put = built.iter().map(|(name, from)| put(from, &lab.join(name)));
    Ok(put.collect::<Result<Vec<_>, _>>()?.join("\n"))
}

/// The tests that also run in guests.
const TESTS: [&str; 2] = ["truth", "isolation"];
/// The program that they call.
const TOOL: &str = "noisefloor";

/// Builds the tests that also run in guests, and the program that they call; returns a report.
pub(crate) fn tests(workspace: &Workspace) -> Result<String, String> {
    put_tests(workspace, &program::build(&mut program::all_tests(workspace))?)
}

/// Copies the tests that also run in guests, and the program that they call, without symbols: a
/// guest unpacks every byte under emulation.
pub(crate) fn put_tests(
    workspace: &Workspace,
    programs: &[Program],
) -> Result<String, String> {
    let is_wanted = |program: &&Program| match program.is_test {
        true => TESTS.contains(&program.name.as_str()),
        false => program.name == TOOL,
    };
    let small = workspace.target.join("lab/small");
    let mut stripped = Vec::new();
    for program in programs.iter().filter(is_wanted) {
        let name = format!("noisefloor-{}", program.name.replace(TOOL, "tool"));
        let file = small.join(&name);
        fs::create_dir_all(&small)
            .map_err(|error| format!("{}: {error}", small.display()))?;
        command::run(Command::new("strip").arg("-o").arg(&file).arg(&program.file))?;
        stripped.push((name, file));
    }
    put_all(workspace, stripped)
}

fn agent(workspace: &Workspace) -> Result<PathBuf, String> {
    let mut cargo = cargo_for_guests(workspace)?;
    cargo.args(["--package", "agent", "--bin", "noisefloor-agent"]);
    cargo.args(["--features", "static", "--profile", "guest"]);
    command::run(&mut cargo)?;
    Ok(workspace.target.join(TRIPLE).join("guest/noisefloor-agent"))
}

/// A cargo command that builds static programs.
fn cargo_for_guests(workspace: &Workspace) -> Result<Command, String> {
    let target = workspace.target.display();
    if target.to_string().contains(char::is_whitespace) {
        return Err(format!(
            "libbpf's makefile fails in a folder whose path has white space: {target}; use \
             make, or set CARGO_TARGET_DIR"
        ));
    }
    let mut cargo = command::cargo();
    cargo.current_dir(&workspace.root).args(["build", "--locked", "--quiet"]);
    let folder = of_libelf("--variable=libdir")?;
    if !Path::new(&folder).join("libelf.a").exists() {
        let help = "install libelf-dev (Debian), elfutils-libelf-devel-static (Fedora)";
        return Err(format!(
            "guests need static libraries, and {folder} has none: {help}"
        ));
    }
    let needs = of_libelf("--static --libs-only-l")?;
    let flags: Vec<String> =
        FLAGS.iter().map(|&flag| flag.to_owned()).chain(needed(&needs)).collect();
    reproducible(&mut cargo, workspace, &flags, &folder)?;
    Ok(cargo)
}

/// Neither a dynamic loader nor relocations are needed.
const FLAGS: [&str; 2] = ["-Ctarget-feature=+crt-static", "-Crelocation-model=static"];

/// Makes the build reproducible: the output does not depend on paths of this machine, on the
/// user's settings or on earlier builds.
fn reproducible(
    cargo: &mut Command,
    workspace: &Workspace,
    flags: &[String],
    libraries: &str,
) -> Result<(), String> {
    // With an explicit target, build scripts and macros are built once, as for the host.
    cargo.args(["--target", TRIPLE, "--target-dir"]).arg(&workspace.target);
    // This variable overrides all other ways to set flags.
    let flags = [&[rustc::MARK.to_owned()], flags].concat();
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    // An incremental build divides the code into other codegen units.
    cargo.env("CARGO_INCREMENTAL", "0");
    for (name, _) in env::vars_os() {
        let is_setting =
            |name: &str| name.starts_with("CARGO_PROFILE_") || name.contains("CFLAGS");
        if name.to_str().is_some_and(is_setting) {
            cargo.env_remove(name);
        }
    }
    rustc::wrap(cargo, libraries)
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

fn counter(workspace: &Workspace) -> Result<PathBuf, String> {
    let mut cargo = command::cargo();
    cargo.current_dir(&workspace.root).args(["build", "--locked", "--quiet"]);
    cargo.args(["--package", "counter", "--lib", "--release"]);
    reproducible(&mut cargo, workspace, &[], "")?;
    command::run(&mut cargo)?;
    Ok(workspace.target.join(TRIPLE).join("release/libcounter.so"))
}

/// Copies a file if the copy differs; returns a report with its length. The copy is renamed into
/// place, so that a starting guest reads either the old file or the new one.
pub(crate) fn put(from: &Path, to: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", to.display());
    let new = fs::read(from).map_err(|error| format!("{}: {error}", from.display()))?;
    let report = |what: &str| format!("{}: {} bytes, {what}", to.display(), new.len());
    match fs::read(to) {
        Ok(old) if old == new => return Ok(report("unchanged")),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let beside = to.with_extension(format!("{}.new", std::process::id()));
    fs::copy(from, &beside).and_then(|_| fs::rename(&beside, to)).map_err(failed)?;
    Ok(report("new"))
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

    /// Check that a file is copied with its folder, and not written again while it is the same.
    #[test]
    fn copies_what_changed() {
        let place = env::temp_dir().join(format!("xtask-guest-{}", std::process::id()));
        let (from, to) = (place.join("from"), place.join("lab/to"));
        fs::create_dir_all(&place).unwrap();
        let mut written = |text: &str| {
            fs::write(&from, text).unwrap();
            let report = put(&from, &to).unwrap();
            assert_eq!(fs::read_to_string(&to).unwrap(), text);
            report.rsplit(' ').next().unwrap() == "new"
        };
        assert_eq!(["a", "a", "b"].map(&mut written), [true, false, true]);
        assert_eq!(fs::read_dir(place.join("lab")).unwrap().count(), 1);
        fs::remove_dir_all(place).unwrap();
    }
}
