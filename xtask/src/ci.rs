//! Every check there is, one after the other, with its time; what `make test` runs.
//!
//! A check that cannot run here is skipped and says why, and so does a test: a line of
//! its output that begins with `skipped:` is repeated in the summary. Each check runs,
//! whatever became of those before it.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::workspace::Workspace;
use crate::{bytes, command, fuzz, guest, header, layers};

/// How a check ended, and what there is to say about it.
enum Ending {
    Passed(String),
    Skipped(String),
    Failed(String),
}

type Check = fn(&Workspace) -> Ending;

const CHECKS: &[(&str, Check)] = &[
    ("format", format),
    ("layers", |workspace| layers::run(workspace).into()),
    ("clippy", clippy),
    ("header", |workspace| {
        header::run(workspace, &["--check"]).map(|()| String::new()).into()
    }),
    ("guest", guest),
    ("bytes", bytes),
    ("tests", tests),
    ("documentation", documentation),
    ("fuzz", fuzz),
];

impl From<Result<String, String>> for Ending {
    fn from(result: Result<String, String>) -> Self {
        result.map_or_else(Self::Failed, Self::Passed)
    }
}

/// Runs every check.
pub(crate) fn run(workspace: &Workspace) -> Result<(), String> {
    let mut summary = Vec::new();
    let mut failures = 0;
    let began = Instant::now();
    for (name, check) in CHECKS {
        println!("== {name}");
        let began = Instant::now();
        let (word, text) = match check(workspace) {
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

fn clippy(_: &Workspace) -> Ending {
    if !command::exists(command::cargo().arg("clippy")) {
        return Ending::Skipped("skipped: cargo clippy is not installed".to_owned());
    }
    let mut cargo = command::cargo();
    cargo.args(["clippy", "--workspace", "--all-targets", "--locked", "--quiet"]);
    cargo.args(["--", "-D", "warnings"]);
    command::run(&mut cargo).map(|()| String::new()).into()
}

/// Comes before the tests: those of the lab boot what is built here.
fn guest(workspace: &Workspace) -> Ending {
    if std::env::consts::ARCH != guest::ARCHITECTURE {
        let text = format!("skipped: guests are {}", guest::ARCHITECTURE);
        return Ending::Skipped(text);
    }
    let tests = || guest::tests(workspace);
    guest::run(workspace).and_then(|built| Ok(built + "\n" + &tests()?)).into()
}

/// Comes after the guests' programs, which it compares with those of another folder.
fn bytes(workspace: &Workspace) -> Ending {
    if std::env::consts::ARCH != guest::ARCHITECTURE {
        return Ending::Skipped(format!("skipped: guests are {}", guest::ARCHITECTURE));
    }
    let mut git = Command::new("git");
    git.current_dir(&workspace.root).args(["rev-parse", "--git-dir"]);
    if !git.output().is_ok_and(|output| output.status.success()) {
        return Ending::Skipped("skipped: this is no clone of git's to copy".to_owned());
    }
    bytes::run(workspace).into()
}

fn documentation(_: &Workspace) -> Ending {
    let mut cargo = command::cargo();
    cargo.args(["doc", "--workspace", "--no-deps", "--locked", "--quiet"]);
    cargo.env("RUSTDOCFLAGS", "-D warnings");
    command::run(&mut cargo).map(|()| String::new()).into()
}

fn fuzz(workspace: &Workspace) -> Ending {
    if !command::exists(&mut Command::new("c++")) {
        let text = "skipped: libFuzzer needs a C++ compiler, and there is no c++";
        return Ending::Skipped(text.to_owned());
    }
    fuzz::run(workspace, &fuzz::Plan::default()).into()
}

fn tests(_: &Workspace) -> Ending {
    let mut cargo = command::cargo();
    cargo.args(["test", "--workspace", "--locked", "--no-fail-fast"]);
    // A snapshot that differs is a failure, not a file to look at later.
    cargo.env("INSTA_UPDATE", "no");
    // Else the tests that pass because they cannot run would keep it to themselves.
    cargo.args(["--", "--show-output"]);
    let mut tally = Tally::default();
    let mut child = match cargo.stdout(Stdio::piped()).spawn() {
        Ok(child) => child,
        Err(error) => return Ending::Failed(format!("cargo test: {error}")),
    };
    for line in
        child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines())
    {
        let Ok(line) = line else { continue };
        println!("{line}");
        tally.add(&line);
    }
    match child.wait() {
        Ok(status) if status.success() => Ending::Passed(tally.text()),
        Ok(status) => Ending::Failed(format!("{}\n{status}", tally.text())),
        Err(error) => Ending::Failed(format!("cargo test: {error}")),
    }
}

/// What all the test programs together say.
#[derive(Default)]
struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
    skipped: Vec<String>,
}

impl Tally {
    /// Takes in a line of a test program's output.
    fn add(&mut self, line: &str) {
        let line = line.trim();
        if line.starts_with("skipped:") {
            self.skipped.push(line.to_owned());
        }
        let Some(result) = line.strip_prefix("test result: ") else { return };
        let mut before = "";
        for word in result.split([' ', ';']) {
            let number = before.parse().unwrap_or(0);
            match word {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
            before = word;
        }
    }

    fn text(&self) -> String {
        let Self { passed, failed, ignored, skipped } = self;
        // A test that skipped itself counts as passed to the test program.
        let ran = passed.saturating_sub(skipped.len() as u64);
        let left_out = ignored + skipped.len() as u64;
        let mut text = format!("{ran} passed, {failed} failed, {left_out} skipped");
        for line in skipped {
            text.push('\n');
            text.push_str(line);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the programs' results add up, and that a skipped test is not a passed one.
    #[test]
    fn adds_up() {
        let mut tally = Tally::default();
        for line in [
            "test a ... ok",
            "skipped: only root may set a real-time priority",
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; \
             finished in 0.00s",
            "test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured",
        ] {
            tally.add(line);
        }
        let expected = "13 passed, 3 failed, 2 skipped\n\
                        skipped: only root may set a real-time priority";
        assert_eq!(tally.text(), expected);
    }
}
