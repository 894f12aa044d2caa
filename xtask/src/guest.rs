//! What `noisefloor lab` needs beside itself: the agent, which is the only program of a
//! guest, and the counter, QEMU's plugin.
//!
//! The agent carries libelf and zlib, which load its eBPF programs: `pkg-config` says where
//! they are, and what else they need where a distribution built them so.
//!
//! Both are put into `lab/` below the target directory. The agent finds no shared library
//! in a guest and is linked statically, by profile `guest`. A file that did not change is
//! not written again, so that nobody takes it for new.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use crate::workspace::Workspace;
use crate::{command, program, rustc};

/// The machine that guests are.
pub(crate) const ARCHITECTURE: &str = "x86_64";
pub(crate) const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// Builds both; says what was built.
pub(crate) fn run(workspace: &Workspace) -> Result<String, String> {
    if env::consts::ARCH != ARCHITECTURE {
        let here = env::consts::ARCH;
        return Err(format!("guests are {ARCHITECTURE}, and this machine is {here}"));
    }
    put_all(workspace, parts(workspace)?)
}

/// Builds both; their names in `lab/`, and where they are.
pub(crate) fn parts(workspace: &Workspace) -> Result<Vec<(String, PathBuf)>, String> {
    let (agent, counter) = at_once(|| agent(workspace), || counter(workspace));
    Ok(vec![
        ("noisefloor-agent".to_owned(), agent?),
        ("noisefloor-counter.so".to_owned(), counter?),
    ])
}

/// Builds both, and the tests that also run in guests; says what was built.
pub(crate) fn all(workspace: &Workspace) -> Result<String, String> {
    let (parts, tests) = at_once(|| parts(workspace), || test_programs(workspace));
    put_all(workspace, [parts?, tests?].concat())
}

/// Does both at once. Cargo builds each profile in a folder of its own, and much of what is built
/// here is linked by one thread.
fn at_once<A: Send, B>(
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

/// The rooms whose tests also run in guests, and these tests.
const ROOMS: [&str; 2] = ["blame", "cli"];
const TESTS: [&str; 2] = ["truth", "isolation"];

/// What guests execute most of in these tests: unoptimised it takes longer there than it takes to
/// optimise. None is a build script's or a macro's.
const EXECUTED: [&str; 6] = ["blame", "cli", "facts", "isolate", "miniz_oxide", "units"];

/// Builds the tests that also run in guests, and the tool that they call; says what was built.
pub(crate) fn tests(workspace: &Workspace) -> Result<String, String> {
    put_all(workspace, test_programs(workspace)?)
}

/// Builds them; their names in `lab/`, and where they are.
fn test_programs(workspace: &Workspace) -> Result<Vec<(String, PathBuf)>, String> {
    let mut cargo = cargo_for_guests(workspace, "test", &SMALL)?;
    cargo.arg("--no-run");
    for package in EXECUTED {
        let level = format!("profile.dev.package.{package}.opt-level=1");
        cargo.args(["--config", &level]);
    }
    // All at once: what they share is built once, and not for each room's features again.
    for room in ROOMS {
        cargo.args(["--package", room, "--features", &format!("{room}/static")]);
    }
    cargo.args(TESTS.iter().flat_map(|test| ["--test", test]));
    // With tests, cargo builds the programs of their packages.
    let programs = program::build(&mut cargo)?.into_iter().filter_map(|built| {
        let name = if built.name == "noisefloor" { "tool" } else { &built.name };
        let is_wanted = name == "tool" || TESTS.contains(&name);
        is_wanted.then(|| (format!("noisefloor-{name}"), built.file))
    });
    Ok(programs.collect())
}

fn agent(workspace: &Workspace) -> Result<PathBuf, String> {
    let mut cargo = cargo_for_guests(workspace, "build", &[])?;
    cargo.args(["--package", "agent", "--bin", "noisefloor-agent"]);
    cargo.args(["--features", "static", "--profile", "guest"]);
    command::run(&mut cargo)?;
    Ok(workspace.target.join(TRIPLE).join("guest/noisefloor-agent"))
}

/// A cargo that makes static programs.
fn cargo_for_guests(
    workspace: &Workspace,
    verb: &str,
    more: &[&str],
) -> Result<Command, String> {
    let target = workspace.target.display();
    if target.to_string().contains(char::is_whitespace) {
        return Err(format!(
            "libbpf's makefile fails in a folder whose path has white space: {target}; use \
             make, or set CARGO_TARGET_DIR"
        ));
    }
    let mut cargo = command::cargo();
    cargo.current_dir(&workspace.root).args([verb, "--locked", "--quiet"]);
    let folder = of_libelf("--variable=libdir")?;
    if !Path::new(&folder).join("libelf.a").exists() {
        let help = "install libelf-dev (Debian), elfutils-libelf-devel-static (Fedora)";
        return Err(format!(
            "guests need static libraries, and {folder} has none: {help}"
        ));
    }
    let needs = of_libelf("--static --libs-only-l")?;
    let flags: Vec<String> = FLAGS
        .iter()
        .chain(more)
        .map(|&flag| flag.to_owned())
        .chain(needed(&needs))
        .collect();
    reproducible(&mut cargo, workspace, &flags, &folder)?;
    Ok(cargo)
}

/// Nothing to load, nothing to move to where it is loaded.
const FLAGS: [&str; 2] = ["-Ctarget-feature=+crt-static", "-Crelocation-model=static"];
/// A guest unpacks every byte under emulation. As flags, and not as a profile, so that build
/// scripts and macros are those of the other tests.
const SMALL: [&str; 2] = ["-Cdebuginfo=0", "-Cstrip=symbols"];

/// Keeps this machine's paths, its user's settings and what was built before out of what is
/// built: the same bytes everywhere.
fn reproducible(
    cargo: &mut Command,
    workspace: &Workspace,
    flags: &[String],
    libraries: &str,
) -> Result<(), String> {
    // With a target named, build scripts and macros are built as the host's are: once.
    cargo.args(["--target", TRIPLE, "--target-dir"]).arg(&workspace.target);
    // Of all the ways to give flags, cargo lets this one win.
    let flags = [&[rustc::MARK.to_owned()], flags].concat();
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    // An incremental build divides code into other units.
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

/// What `pkg-config` says of libelf.
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

/// What libelf needs besides zlib, which is linked anyway: Debian 13's needs libzstd.
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

/// Copies a file where the copy differs; says which and how long. A guest that is being
/// started has the old file or the new one, never half of it.
fn put(from: &Path, to: &Path) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", to.display());
    let new = fs::read(from).map_err(|error| format!("{}: {error}", from.display()))?;
    let told = |what: &str| format!("{}: {} bytes, {what}", to.display(), new.len());
    match fs::read(to) {
        Ok(old) if old == new => return Ok(told("as it was")),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let beside = to.with_extension(format!("{}.new", std::process::id()));
    fs::copy(from, &beside).and_then(|_| fs::rename(&beside, to)).map_err(failed)?;
    Ok(told("new"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that what libelf needs elsewhere is linked too, and nothing twice.
    #[test]
    fn needs_of_libelf() {
        let flags = |needs| needed(needs).collect::<Vec<_>>();
        assert_eq!(flags("-lelf -lz"), [""; 0]);
        assert_eq!(flags("-lelf -lz -lzstd"), ["-Clink-arg=-lzstd"]);
    }

    /// Check that a file is copied with its folder, and left alone while it is the same.
    #[test]
    fn copies_what_changed() {
        let place = env::temp_dir().join(format!("xtask-guest-{}", std::process::id()));
        let (from, to) = (place.join("from"), place.join("lab/to"));
        fs::create_dir_all(&place).unwrap();
        let mut written = |text: &str| {
            fs::write(&from, text).unwrap();
            let told = put(&from, &to).unwrap();
            assert_eq!(fs::read_to_string(&to).unwrap(), text);
            told.rsplit(' ').next().unwrap() == "new"
        };
        assert_eq!(["a", "a", "b"].map(&mut written), [true, false, true]);
        assert_eq!(fs::read_dir(place.join("lab")).unwrap().count(), 1);
        fs::remove_dir_all(place).unwrap();
    }
}
