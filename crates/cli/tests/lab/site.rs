//! A separate lab for each test: an empty cache, and kernels that all tests share.
//!
//! The kernels are downloaded once, and stay in cargo's folder for tests.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lab::{Cache, Lab, Program, Run};
use serde_json::Value;
use tempfile::TempDir;

use crate::install::install;

pub(crate) const TOOL: &str = env!("CARGO_BIN_EXE_noisefloor");
pub(crate) const OLD: &str = "debian:6.1-cloud";
pub(crate) const NEW: &str = "debian:6.12-cloud";
const QEMU: &str = "qemu-system-x86_64";
/// The folder of the tests' files, on one file system.
pub(crate) const FOLDER: &str = env!("CARGO_TARGET_TMPDIR");

/// A lab's cache, the files beside it, and its QEMU.
pub(crate) struct Site {
    folder: TempDir,
    qemu: PathBuf,
}

impl Site {
    /// An empty one; `None`, with the reason printed, if guests are not available.
    pub(crate) fn new() -> Option<Self> {
        match shared() {
            Ok(shared) => Some(Self::with(shared)),
            Err(why) => {
                println!("skipped: {why}");
                None
            }
        }
    }

    fn with(shared: &Path) -> Self {
        let folder = tempfile::Builder::new().prefix("site-").tempdir_in(FOLDER).unwrap();
        let site = Self { folder, qemu: QEMU.into() };
        fs::create_dir(site.cache()).unwrap();
        for kept in ["kernels", "sources", "symbols"] {
            fs::create_dir_all(shared.join(kept)).unwrap();
            symlink(shared.join(kept), site.cache().join(kept)).unwrap();
        }
        site
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    /// The path of a cell's cached result.
    pub(crate) fn kept(&self, cell: &Value) -> PathBuf {
        self.cache().join("cells").join(cell["identity"].as_str().unwrap())
    }

    /// Writes a file, and returns its name.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let file = self.folder.path().join(name);
        fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    }

    /// An executable script of that name.
    pub(crate) fn script(&self, name: &str, text: &str) -> PathBuf {
        let to = self.folder.path().join(name);
        install(self.file(&format!("{name}.sh"), text), &to);
        to
    }

    /// Uses another QEMU.
    pub(crate) fn using(self, qemu: &Path) -> Self {
        Self { qemu: qemu.to_owned(), ..self }
    }

    /// Replaces QEMU by a shell script, for guests; `$QEMU` in it is the real one.
    pub(crate) fn with_qemu(mut self, script: &str) -> Self {
        let text = format!(
            "#!/bin/sh\nQEMU={QEMU}\n\
             case \"$*\" in --version | *probe=on*) exec $QEMU \"$@\" ;; esac\n{script}\n"
        );
        self.qemu = self.script("qemu", &text);
        self
    }

    /// The program, with this cache and this QEMU.
    pub(crate) fn tool(&self, args: &[&str]) -> Command {
        let mut command = Command::new(TOOL);
        command.args(args).stdin(Stdio::null()).current_dir(&self.folder);
        command.env("NOISEFLOOR_CACHE", self.cache()).env("NOISEFLOOR_QEMU", &self.qemu);
        command
    }

    pub(crate) fn output(&self, args: &[&str]) -> Output {
        self.tool(args).output().unwrap()
    }

    /// The exit code and the output of a program in a guest of that kernel.
    pub(crate) fn run_program(
        &self,
        kernel: &str,
        program: Program<'_>,
        deadline: Duration,
    ) -> (Option<i32>, String) {
        let lab = Lab::open(Cache::at(&self.cache()).unwrap()).unwrap();
        let stop = AtomicBool::new(false);
        let run = Run { jobs: 1, fresh: false, deadline, stop: &stop };
        let ran = lab.run_program(kernel, program, &run).unwrap();
        (ran.code, ran.text)
    }

    /// The cells of `lab run ... --json`, which must have that exit code.
    pub(crate) fn cells(&self, args: &[&str], code: i32) -> Vec<Value> {
        let mut command = self.tool(&["lab", "run", "--json", "--series"]);
        let output = command.args(args).output().unwrap();
        let said = text(&output.stderr);
        let all: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{args:?}: {error}: {said}"));
        let cells = all["cells"].as_array().unwrap().clone();
        let lost: Vec<_> = cells.iter().filter_map(|cell| cell.get("lost")).collect();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said} {lost:?}");
        cells
    }
}

/// The text of a stream.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The cell of that name.
pub(crate) fn named<'a>(cells: &'a [Value], name: &str) -> &'a Value {
    cells.iter().find(|cell| cell["name"] == name).unwrap()
}

/// The cache with the kernels, or why there is none.
fn shared() -> &'static Result<PathBuf, String> {
    static SHARED: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    SHARED.get_or_init(|| {
        refuse_qemu()?;
        refuse_parts()?;
        let cache = Path::new(FOLDER).join("lab");
        let mut command = Command::new(TOOL);
        command.args(["lab", "kernels", OLD, NEW]).env("NOISEFLOOR_CACHE", &cache);
        let output = command.output().unwrap();
        match output.status.code() {
            Some(0) => Ok(cache),
            // This machine has no apt, or its archive cannot be reached.
            Some(3) => Err(text(&output.stderr).trim().replace('\n', " ")),
            code => panic!("{code:?}: {}", text(&output.stderr)),
        }
    })
}

fn refuse_qemu() -> Result<(), String> {
    let output = Command::new(QEMU).arg("--version").output();
    let version = text(&output.map_err(|error| format!("{QEMU}: {error}"))?.stdout);
    let number = version.split_whitespace().nth(3).unwrap_or_default();
    let major = number.split('.').next().and_then(|major| major.parse::<u32>().ok());
    match major {
        Some(10..) => Ok(()),
        _ => Err(format!("the lab's tests need QEMU 10; this is '{number}'")),
    }
}

fn refuse_parts() -> Result<(), String> {
    let agent = Path::new(TOOL).with_file_name("../lab/noisefloor-agent");
    match agent.exists() {
        true => Ok(()),
        false => Err("the guests' parts are not built: cargo xtask guest".to_owned()),
    }
}
