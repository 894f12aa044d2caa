//! Runs all checks in order, with their times; `make test` calls this.
//!
//! A check that cannot run on this machine is skipped, with the reason. Tests do the same: lines
//! of their output that begin with `skipped:` are repeated in the summary. A failure does not
//! stop the following checks. Two checks that build everything again, and whose result does not
//! depend on the machine, run in CI only (variable `CI`).

use std::env;
use std::process::Command;
use std::time::Instant;

use crate::program::{self, Program};
use crate::suite::Lab;
use crate::workspace::Workspace;
use crate::{
    bytes, command, compiler, fuzz, guest, header, layers, pictures, suite, words,
};

/// How a check ended, with a summary or a reason.
enum Ending {
    Passed(String),
    Skipped(String),
    Failed(String),
}

/// What a check leaves to those after it.
#[derive(Default)]
struct Built {
    /// All programs of the workspace.
    programs: Vec<Program>,
    /// The lab's tests, while they run.
    lab: Lab,
}

type Check = fn(&Workspace, &mut Built) -> Ending;

/// The lab's tests start with all others, and continue in parallel with the checks after them.
const CHECKS: &[(&str, Check)] = &[
    ("format", |workspace, _| format(workspace)),
    ("layers", |workspace, _| layers::run(workspace).into()),
    ("words", |workspace, _| words::run(workspace).into()),
    ("build", build),
    ("header", |_, built| header::check(&built.programs).map(|()| String::new()).into()),
    ("pictures", |workspace, built| pictures::check(workspace, &built.programs).into()),
    ("tests", |workspace, built| {
        suite::run(workspace, &built.programs, &mut built.lab).into()
    }),
    ("bytes", |workspace, _| bytes(workspace)),
    ("fuzz", |workspace, _| fuzz(workspace)),
    ("lab", |_, built| built.lab.end().into()),
];

impl From<Result<String, String>> for Ending {
    fn from(result: Result<String, String>) -> Self {
        result.map_or_else(Self::Failed, Self::Passed)
    }
}

/// Runs every check.
pub(crate) fn run(workspace: &Workspace) -> Result<(), String> {
    let (mut summary, mut built) = (Vec::new(), Built::default());
    let mut failures = 0;
    let began = Instant::now();
    for (name, check) in CHECKS {
        println!("== {name}");
        let began = Instant::now();
        let (word, text) = match check(workspace, &mut built) {
            Ending::Passed(text) => ("passed", text),
            Ending::Skipped(text) => ("skipped", text),
            Ending::Failed(text) => ("FAILED", text),
        };
        failures += usize::from(word == "FAILED");
        let seconds = began.elapsed().as_secs_f64();
        println!("== {name}: {word}, {seconds:.1} s\n");
        summary.push(format!("  {word:<8}{name:<14}{seconds:>6.1} s  {}", indent(&text)));
    }
    let seconds = began.elapsed().as_secs();
    println!("{} checks in {seconds} s:\n{}", CHECKS.len(), summary.join("\n"));
    match failures {
        0 => Ok(()),
        1 => Err("1 check failed".to_owned()),
        _ => Err(format!("{failures} checks failed")),
    }
}

fn indent(text: &str) -> String {
    text.replace('\n', "\n      ")
}

fn format(workspace: &Workspace) -> Ending {
    if !command::exists(command::cargo().arg("fmt")) {
        return Ending::Skipped("skipped: cargo fmt is not installed".to_owned());
    }
    let mut wrong = Vec::new();
    for (name, folder) in [("the workspace", "."), ("fuzz/", "fuzz")] {
        let mut cargo = command::cargo();
        cargo.current_dir(workspace.root.join(folder)).args(["fmt", "--all", "--check"]);
        if command::run(&mut cargo).is_err() {
            wrong.push(name);
        }
    }
    if wrong.is_empty() {
        return Ending::Passed(String::new());
    }
    Ending::Failed(format!("cargo fmt would change {}", wrong.join(" and ")))
}

/// Builds all programs, with clippy's lints and the documentation, and the files of guests.
fn build(workspace: &Workspace, built: &mut Built) -> Ending {
    let mut tests = program::all_tests(workspace);
    if let Err(why) = compiler::check_all(&mut tests, workspace) {
        return Ending::Failed(why);
    }
    let (programs, parts) =
        guest::at_once(|| program::build(&mut tests), || guest(workspace));
    match programs.and_then(|programs| benches(&mut tests).map(|()| programs)) {
        Ok(programs) => built.programs = programs,
        Err(why) => return Ending::Failed(why),
    }
    let skipped = "skipped: clippy is not installed".to_owned();
    match guest::put_tests(workspace, guest::ARCHITECTURE, &built.programs).and(parts) {
        Err(why) => Ending::Failed(why),
        Ok(_) if !compiler::has_clippy() => Ending::Skipped(skipped),
        Ok(text) => Ending::Passed(text),
    }
}

/// Builds the benchmarks, too, by the same command and with all else: `cargo build` has another
/// profile, and only the benchmarks have other features, so that both compile every crate again.
fn benches(tests: &mut Command) -> Result<(), String> {
    command::output(tests.arg("--all-targets")).map(drop)
}

/// The files of guests; nothing on other architectures, where tests of the lab are skipped.
fn guest(workspace: &Workspace) -> Result<String, String> {
    let (here, needed) = (env::consts::ARCH, guest::ARCHITECTURE.name());
    if here != needed {
        return Ok(format!("skipped: guests need {needed}; this is {here}"));
    }
    guest::run(workspace)
}

/// The reason to skip a check that runs in CI only.
fn for_ci(command: &str) -> Option<Ending> {
    let text = format!("skipped: runs if CI is set in the environment: {command}");
    env::var_os("CI").is_none().then_some(Ending::Skipped(text))
}

/// Must follow `build`, whose output it compares with that of another folder.
fn bytes(workspace: &Workspace) -> Ending {
    if let Some(skipped) = for_ci("cargo xtask bytes") {
        return skipped;
    }
    let needed = guest::ARCHITECTURE.name();
    if env::consts::ARCH != needed {
        return Ending::Skipped(format!("skipped: guests need {needed}"));
    }
    let mut git = Command::new("git");
    git.current_dir(&workspace.root).args(["rev-parse", "--git-dir"]);
    if !git.output().is_ok_and(|output| output.status.success()) {
        return Ending::Skipped("skipped: not a git clone".to_owned());
    }
    bytes::run(workspace).into()
}

fn fuzz(workspace: &Workspace) -> Ending {
    if let Some(skipped) = for_ci("cargo xtask fuzz") {
        return skipped;
    }
    if !command::exists(&mut Command::new("c++")) {
        let text = "skipped: libFuzzer needs a C++ compiler, and c++ is not installed";
        return Ending::Skipped(text.to_owned());
    }
    fuzz::run(workspace, &fuzz::Plan::default()).into()
}
