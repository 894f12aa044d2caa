//! Runs the test programs, which cargo builds, and adds up their results.
//!
//! The lab's tests keep every CPU busy and do not depend on time: they run in parallel with all
//! other tests, at a lower priority. When the others have ended, their priority is reset, so that
//! they get a fair share of the CPUs during the checks that follow. Their output is printed at
//! their end.
//!
//! Interference between test programs is not detected: tests that measure the machine must
//! tolerate other load in any case.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};

use crate::program::Program;
use crate::workspace::Workspace;
use crate::{command, compiler, priority};

/// The test program that runs in parallel with all others.
const LAB: &str = "cli/lab";
/// Its nice value.
const NICE: &str = "10";

/// Starts the lab's tests, and runs the others; reports how many passed, and why some were skipped.
pub(crate) fn run(
    workspace: &Workspace,
    programs: &[Program],
    lab: &mut Lab,
) -> Result<String, String> {
    let (of_lab, others): (Vec<_>, Vec<_>) = programs
        .iter()
        .filter(|program| program.is_test)
        .partition(|program| program.full_name() == LAB);
    if others.is_empty() {
        return Err("the tests were not built".to_owned());
    }
    lab.begin(&of_lab)?;
    let mut tally = Tally::default();
    for program in others {
        tally.run(&program.full_name(), &mut command_for(program, &program.file));
    }
    let mut cargo = command::cargo();
    cargo.current_dir(&workspace.root).args(["test", "--workspace", "--doc"]);
    // With the same compiler as the tests, or all crates would be compiled again.
    compiler::check_all(&mut cargo, workspace)?;
    tally.run("documentation", cargo.args(["--locked", "--no-fail-fast", "--"]));
    lab.hurry();
    tally.result()
}

/// The lab's tests, while they run.
#[derive(Default)]
pub(crate) struct Lab(Vec<Beside>);

/// A test program that runs in parallel with others.
struct Beside {
    process: u32,
    said: JoinHandle<Said>,
}

/// A program's lines, and how it ended.
type Said = (Vec<String>, Result<(), String>);

impl Lab {
    fn begin(&mut self, programs: &[&Program]) -> Result<(), String> {
        for program in programs {
            let mut nice = command_for(program, "nice");
            let child = start(nice.args(["-n", NICE]).arg(&program.file))?;
            let process = child.id();
            self.0.push(Beside { process, said: thread::spawn(|| kept(child)) });
        }
        Ok(())
    }

    /// Resets their priority.
    fn hurry(&self) {
        self.0.iter().for_each(|one| priority::make_usual(one.process));
    }

    /// Waits for their end; reports how many passed, and why some were skipped.
    pub(crate) fn end(&mut self) -> Result<String, String> {
        let mut tally = Tally::default();
        if self.0.is_empty() {
            return Err("the tests were not built".to_owned());
        }
        for one in self.0.drain(..) {
            let panicked = |_| (Vec::new(), Err("its thread panicked".to_owned()));
            let (lines, ended) = one.said.join().unwrap_or_else(panicked);
            lines.iter().for_each(|line| tally.hear(line));
            tally.end(LAB, ended);
        }
        tally.result()
    }
}

/// A command in the folder in which cargo would run that program.
fn command_for(program: &Program, command: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(command);
    command.current_dir(&program.package).env("CARGO_MANIFEST_DIR", &program.package);
    // A separate namespace of claims: other runs of noisefloor on this machine do not block tests.
    command.env("NOISEFLOOR_CLAIMS", std::process::id().to_string());
    // A snapshot that differs is a failure, not a file to look at later.
    command.env("INSTA_UPDATE", "no");
    command
}

/// All lines of a test program, and how it ended.
fn kept(child: Child) -> Said {
    let mut lines = Vec::new();
    let ended = heard(child, |line| lines.push(line.to_owned()));
    (lines, ended)
}

/// Starts a test program.
fn start(command: &mut Command) -> Result<Child, String> {
    // Shows why a test that counts as passed was skipped.
    let command = command.arg("--show-output").stdout(Stdio::piped());
    command.spawn().map_err(|error| error.to_string())
}

/// Passes on each line that tests write; an error if they fail.
fn heard(mut child: Child, mut hear: impl FnMut(&str)) -> Result<(), String> {
    for line in
        child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines())
    {
        hear(&line.unwrap_or_default());
    }
    let status = child.wait().map_err(|error| error.to_string())?;
    if status.success() { Ok(()) } else { Err(status.to_string()) }
}

/// The results of all test programs.
#[derive(Default)]
struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
    skipped: Vec<String>,
    /// The programs that failed, and how.
    wrong: Vec<String>,
    /// The output of failed tests.
    failures: Vec<String>,
    is_failure: bool,
}

impl Tally {
    /// Runs a test program, and adds its results.
    fn run(&mut self, name: &str, command: &mut Command) {
        println!("     Running {name}");
        let ended = start(command).and_then(|child| heard(child, |line| self.hear(line)));
        self.end(name, ended);
    }

    /// Prints a line, and adds its results.
    fn hear(&mut self, line: &str) {
        println!("{line}");
        self.add(line);
    }

    /// Stores how a test program ended.
    fn end(&mut self, name: &str, ended: Result<(), String>) {
        self.wrong.extend(ended.err().map(|how| format!("{name}: {how}")));
    }

    /// Parses a line of a test program's output.
    fn add(&mut self, line: &str) {
        let line = line.trim();
        self.keep_failure(line);
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

    /// Stores the lines of a test program from `failures:` to its result.
    fn keep_failure(&mut self, line: &str) {
        self.is_failure |= line == "failures:";
        self.is_failure &= !line.starts_with("test result: ");
        if self.is_failure && !line.is_empty() {
            self.failures.push(line.to_owned());
        }
    }

    /// The summary; an error if a program failed, with the output of its tests repeated at the end.
    fn result(&self) -> Result<String, String> {
        match self.wrong.as_slice() {
            [] => Ok(self.text()),
            wrong => {
                let lines = [wrong, &self.failures].concat();
                Err(format!("{}\n{}", self.text(), lines.join("\n")))
            }
        }
    }

    fn text(&self) -> String {
        let Self { passed, failed, ignored, skipped, .. } = self;
        // The test program counts a skipped test as passed.
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

    /// Check that a program's lines are passed on, and that a failure is an error.
    #[test]
    fn failures() {
        let mut shell = Command::new("sh");
        let shell = start(shell.args(["-c", "echo one; echo $1; exit 3", "sh"])).unwrap();
        let (lines, ended) = kept(shell);
        assert_eq!(lines, ["one", "--show-output"]);
        assert!(ended.unwrap_err().contains("exit status: 3"));
    }

    /// Check that the results of programs are added up, and that skipped tests do not count as
    /// passed.
    #[test]
    fn adds_up() {
        let mut tally = Tally::default();
        for line in [
            "test a ... ok",
            "skipped: only root may set a real-time priority",
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; \
             finished in 0.00s",
            "failures:",
            "",
            "---- b stdout ----",
            "test result: FAILED. 2 passed; 3 failed; 0 ignored; 0 measured",
            "test c ... ok",
        ] {
            tally.add(line);
        }
        assert_eq!(tally.failures, ["failures:", "---- b stdout ----"]);
        let expected = "13 passed, 3 failed, 2 skipped\n\
                        skipped: only root may set a real-time priority";
        assert_eq!(tally.text(), expected);
    }
}
