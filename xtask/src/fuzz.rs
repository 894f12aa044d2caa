//! Builds the fuzz targets and runs each briefly, with the stable compiler.
//!
//! `fuzz/` is built with LLVM's coverage counters (`-Cpasses=sancov-module`, which needs
//! no nightly) and libFuzzer, for an explicit target, so that build scripts and macros
//! are compiled without them, and are those of the workspace's other builds. Inputs start from
//! recorded files (`fixtures/`, golden recordings) and from `fuzz/seeds/`. The same seed makes
//! the same inputs, and their number, not the time, ends a target: every machine tries the same.
//!
//! Memory errors are not detected: there is no address sanitizer in stable Rust, and no unsafe
//! code in the fuzzed crates.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;

use crate::command;
use crate::workspace::Workspace;

/// A fuzz target.
struct Target {
    /// Its file in fuzz/src, and its binary.
    name: &'static str,
    /// The longest input, in bytes: several times a real one, or the start of a real one.
    length_max: u32,
    /// Whether a fixture's file is an input for it, by its name.
    eats: fn(&str) -> bool,
}

const TARGETS: &[Target] = &[
    Target { name: "config", length_max: 4096, eats: |name| name.starts_with("config") },
    Target { name: "command_line", length_max: 2048, eats: |name| name == "cmdline" },
    Target { name: "interrupts", length_max: 8192, eats: |name| name == "interrupts" },
    Target { name: "cpu_list", length_max: 8192, eats: holds_cpus },
    Target {
        name: "recording",
        length_max: 32_768,
        eats: |name| name.ends_with(".json"),
    },
    Target { name: "imports", length_max: 8192, eats: is_of_other_tool },
    Target { name: "experiment", length_max: 4096, eats: |name| name.ends_with(".toml") },
    Target { name: "answer", length_max: 4096, eats: |_| false },
];

fn is_of_other_tool(name: &str) -> bool {
    const NAMES: [&str; 13] = [
        "cyclictest",
        "oslat",
        ".hlog",
        ".txt",
        ".csv",
        "jitterdebugger",
        "hyperfine",
        "google-benchmark",
        "go-testing",
        "jmh",
        "pytest",
        "perf-stat",
        "sample.json",
    ];
    NAMES.iter().any(|part| name.contains(part))
}

fn holds_cpus(name: &str) -> bool {
    const NAMES: &[&str] =
        &["online", "offline", "possible", "present", "isolated", "nohz_full"];
    NAMES.contains(&name) || name.contains("cpuset.cpus") || name.contains("affinity")
}

const COVERAGE: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "--cfg=fuzzing",
];

/// Number of inputs for each target if no limit is given: a few seconds.
const RUNS: u64 = 10_000;

/// The options of `fuzz`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    runs: Option<u64>,
    seconds: Option<u64>,
    seed: u64,
    keep: bool,
    only: Vec<String>,
}

impl Default for Plan {
    fn default() -> Self {
        Self { runs: None, seconds: None, seed: 1, keep: false, only: Vec::new() }
    }
}

impl Plan {
    /// Parses the options.
    pub(crate) fn parse(options: &[&str]) -> Result<Self, String> {
        let mut plan = Self::default();
        let mut rest = options.iter();
        while let Some(&option) = rest.next() {
            let mut value = || rest.next().ok_or(format!("{option} needs a value"));
            let number = |text: &&str| {
                text.parse().map_err(|_| format!("{option}: '{text}' is not a number"))
            };
            match option {
                "--keep" => plan.keep = true,
                "--runs" => plan.runs = Some(number(value()?)?),
                "--seconds" => plan.seconds = Some(number(value()?)?),
                "--seed" => plan.seed = number(value()?)?,
                "--target" => plan.only.push((*value()?).to_owned()),
                _ => return Err(format!("unknown option '{option}'")),
            }
        }
        let known = |name: &&String| TARGETS.iter().any(|target| target.name == *name);
        match plan.only.iter().find(|name| !known(name)) {
            Some(name) => Err(format!("unknown fuzz target '{name}'")),
            None => Ok(plan),
        }
    }

    /// The limits, as options of libFuzzer.
    fn limits(&self) -> Vec<String> {
        let runs = self.runs.or(self.seconds.is_none().then_some(RUNS));
        let runs = runs.map(|runs| format!("-runs={runs}"));
        let seconds = self.seconds.map(|seconds| format!("-max_total_time={seconds}"));
        runs.into_iter().chain(seconds).collect()
    }

    fn includes(&self, target: &Target) -> bool {
        self.only.is_empty() || self.only.iter().any(|name| name == target.name)
    }
}

/// Builds the targets and runs them, one per CPU at a time; returns the number of inputs.
pub(crate) fn run(workspace: &Workspace, plan: &Plan) -> Result<String, String> {
    let binaries = build(workspace)?;
    let mut inputs = 0;
    let mut failed = Vec::new();
    let wanted: Vec<&Target> =
        TARGETS.iter().filter(|target| plan.includes(target)).collect();
    for some in wanted.chunks(thread::available_parallelism().map_or(1, usize::from)) {
        let ran = thread::scope(|scope| {
            let run = |target| run_target(workspace, plan, target, &binaries);
            let running: Vec<_> =
                some.iter().map(|target| scope.spawn(move || run(target))).collect();
            running.into_iter().map(|one| one.join()).collect::<Vec<_>>()
        });
        for ran in ran {
            match ran.unwrap_or_else(|_| Err("a target's thread panicked".to_owned())) {
                Ok(runs) => inputs += runs,
                Err(text) => failed.push(text),
            }
        }
    }
    if failed.is_empty() {
        return Ok(format!("{inputs} inputs"));
    }
    Err(failed.join("\n"))
}

/// Builds the targets; the folder their binaries are in.
fn build(workspace: &Workspace) -> Result<PathBuf, String> {
    let rustc = command::output(Command::new("rustc").arg("-vV"))?;
    let host = rustc.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.ok_or("rustc -vV does not name the host")?;
    let folder = &workspace.target;
    let mut cargo = command::cargo();
    cargo.current_dir(workspace.root.join("fuzz"));
    cargo.args(["build", "--locked", "--bins", "--target", host, "--target-dir"]);
    cargo.arg(folder);
    // Replaces the user's own flags, which may conflict with these.
    cargo.env("CARGO_ENCODED_RUSTFLAGS", COVERAGE.join("\u{1f}"));
    command::run(&mut cargo)?;
    Ok(folder.join(host).join("debug"))
}

/// Runs one target; returns its number of inputs.
fn run_target(
    workspace: &Workspace,
    plan: &Plan,
    target: &Target,
    binaries: &Path,
) -> Result<u64, String> {
    let name = target.name;
    let corpus = corpus(workspace, plan, name)?;
    let seeds = seeds(workspace, target)?;
    let artifacts = folder(workspace.root.join("fuzz/artifacts").join(name))?;
    let binary = binaries.join(name);
    let output = Command::new(&binary)
        .args(plan.limits())
        .arg(format!("-seed={}", plan.seed))
        .arg(format!("-max_len={}", target.length_max))
        .arg("-timeout=10")
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args([corpus, seeds, workspace.root.join("fuzz/seeds").join(name)])
        // The panic message is enough; most of the stack is libFuzzer's.
        .env("RUST_BACKTRACE", "0")
        .output()
        .map_err(|error| format!("{}: {error}", binary.display()))?;
    let summary = parse_output(name, &output)?;
    println!("  {name:<14}{summary}");
    Ok(summary.runs)
}

/// The summary that libFuzzer prints at the end.
struct Summary {
    runs: u64,
    places: u64,
    seconds: u64,
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { runs, places, seconds } = self;
        write!(f, "{runs:>7} inputs, {places:>5} places in the code, {seconds:>3} s")
    }
}

fn parse_output(name: &str, output: &Output) -> Result<Summary, String> {
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let end = last_lines(&text, 20).join("\n    ");
        return Err(format!("fuzz target {name} failed ({}):\n    {end}", output.status));
    }
    // Without counters libFuzzer has no feedback, and would still succeed.
    match read(&text) {
        Some(summary) if summary.places > 0 => Ok(summary),
        _ => Err(format!("fuzz target {name} ran without coverage:\n{text}")),
    }
}

/// The lines of a text from the panic on, or its last lines; an input can be long.
fn last_lines(text: &str, count: usize) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let end = lines.len().saturating_sub(count);
    let panic = lines.iter().position(|line| line.contains("panicked at"));
    let from = lines.iter().skip(panic.unwrap_or(end)).take(count);
    from.map(|line| line.chars().take(300).collect()).collect()
}

/// Reads `#5000 DONE cov: 338 ft: ...` and `Done 5000 runs in 3 second(s)`.
fn read(text: &str) -> Option<Summary> {
    let after = |line: &str, word: &str| -> Option<u64> {
        let mut words = line.split_whitespace();
        words.find(|&found| found == word)?;
        words.next()?.parse().ok()
    };
    let done = text.lines().rev().find(|line| line.contains("DONE"))?;
    let end = text.lines().rev().find(|line| line.starts_with("Done "))?;
    Some(Summary {
        runs: after(end, "Done")?,
        places: after(done, "cov:")?,
        seconds: after(end, "in")?,
    })
}

/// The folder that libFuzzer starts from and writes to: empty, or the saved corpus with `--keep`.
fn corpus(workspace: &Workspace, plan: &Plan, name: &str) -> Result<PathBuf, String> {
    if plan.keep {
        return folder(workspace.root.join("fuzz/corpus").join(name));
    }
    emptied(workspace.target.join("fuzz/corpus").join(name))
}

/// A folder with the recorded files that a target can read.
fn seeds(workspace: &Workspace, target: &Target) -> Result<PathBuf, String> {
    let seeds = emptied(workspace.target.join("fuzz/seeds").join(target.name))?;
    let mut files = Vec::new();
    const FOLDERS: [&str; 4] = [
        "fixtures",
        "crates/recording/tests",
        "crates/imports/tests",
        "crates/experiments/experiments",
    ];
    for folder in FOLDERS {
        collect(&workspace.root.join(folder), target, &mut files);
    }
    files.sort();
    for (number, file) in files.iter().enumerate() {
        let copied = fs::copy(file, seeds.join(number.to_string()));
        copied.map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(seeds)
}

/// Adds the files under a folder that a target can read; a missing folder has none.
fn collect(folder: &Path, target: &Target, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        // A recorded tree can contain links to files outside of it.
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            collect(&path, target, files);
        } else if kind.is_file() && (target.eats)(&entry.file_name().to_string_lossy()) {
            files.push(path);
        }
    }
}

fn folder(path: PathBuf) -> Result<PathBuf, String> {
    let made = fs::create_dir_all(&path);
    made.map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}

fn emptied(path: PathBuf) -> Result<PathBuf, String> {
    if path.exists() {
        let gone = fs::remove_dir_all(&path);
        gone.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    folder(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that options are parsed, and that an invalid one is named.
    #[test]
    fn options() {
        let plan = Plan::parse(&["--runs", "5", "--target", "config", "--keep"]).unwrap();
        assert_eq!(
            (plan.limits(), plan.keep, plan.seed),
            (vec!["-runs=5".into()], true, 1)
        );
        assert_eq!(plan.only, ["config"]);
        assert_eq!(Plan::parse(&[]), Ok(Plan::default()));
        assert_eq!(Plan::default().limits(), ["-runs=10000"]);
        let timed = Plan::parse(&["--seconds", "60"]).unwrap();
        assert_eq!(timed.limits(), ["-max_total_time=60"]);
        for (words, why) in [
            (["--runs", "x"], "'x' is not a number"),
            (["--keep", "--runs"], "--runs needs a value"),
            (["--target", "attic"], "unknown fuzz target 'attic'"),
            (["--keep", "--fast"], "unknown option '--fast'"),
        ] {
            let error = Plan::parse(&words).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }

    /// Check that libFuzzer's summary is parsed, and that a missing one is an error.
    #[test]
    fn last_words() {
        let text = "INFO: x\n#50\tDONE   cov: 338 ft: 9 corp: 2/4b\nDone 50 runs in 4 second(s)\n";
        let summary = read(text).unwrap();
        assert_eq!((summary.runs, summary.places, summary.seconds), (50, 338, 4));
        assert!(read("").is_none());
        assert!(read("#50\tDONE   corp: 1/1b\nDone 50 runs in 4 second(s)\n").is_none());
    }

    /// Check that every target has its file and its seeds.
    #[test]
    fn targets_are_there() {
        let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
        for target in TARGETS {
            assert!(fuzz.join("src").join(format!("{}.rs", target.name)).exists());
            assert!(fuzz.join("seeds").join(target.name).exists());
        }
        let files = fs::read_dir(fuzz.join("src")).unwrap().count();
        assert_eq!(files, TARGETS.len(), "a file without a target");
    }
}
