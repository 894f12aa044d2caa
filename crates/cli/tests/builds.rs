//! `noisefloor lab kernels build` and `lab check --source`, as far as they need no guest: mistakes,
//! exit codes, interruptions, a full disk. The trees have the interface of a kernel's, but do not
//! build one; real kernels are in `lab/builds.rs`.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const TOOL: &str = env!("CARGO_BIN_EXE_noisefloor");
const LONG: Duration = Duration::from_secs(300);
/// The programs that build kernels.
const TOOLS: [&str; 9] =
    ["gcc", "ld", "make", "flex", "bison", "bc", "perl", "tar", "xz"];

/// `SLOW` waits, once for each folder; every build ends with an error.
const MAKEFILE: &str = "\
VERSION = 6
PATCHLEVEL = 1
allnoconfig:
\tcp $(KCONFIG_ALLCONFIG) $(O)/.config
bzImage:
\t@echo '  CC      a.o'
\t@if grep -q SLOW=y $(O)/.config && ! test -e $(O)/waits; then touch $(O)/waits; sleep 600; fi
\t@echo 'a.c:7:1: error: no semicolon'
\t@exit 1
";
/// An experiment with a limit.
const LIMITED: &str = "name = \"short\"\nkernels = [\"debian:6.1-cloud\"]\n\
     [[workload]]\nname = \"calls\"\n\
     calls = { cpu = 0, calls = [\"getpid\"], repeats = 5 }\n\
     [limits]\ngetpid_instructions = \"<= 100000\"\n";

/// A folder with a tree, an experiment and a cache.
struct Site(TempDir);

impl Site {
    /// `None`, and why, if kernels cannot be built here.
    fn new(test: &str) -> Option<Self> {
        let missing = |tool: &&&str| {
            let found = Command::new(tool).arg("--version").output();
            found.is_err()
        };
        if let Some(missing) = TOOLS.iter().find(missing) {
            println!("skipped: {test}: there is no {missing} here");
            return None;
        }
        let site = Self(tempfile::tempdir().unwrap());
        for (file, text) in [
            ("tree/Makefile", MAKEFILE),
            ("tree/Kconfig", "config SLOW\n\tbool \"Slow\"\n"),
            ("tree/arch/x86/Kconfig", ""),
            ("tree/scripts/kconfig/conf.c", ""),
            ("limited.toml", LIMITED),
        ] {
            site.write(file, text);
        }
        Some(site)
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn tool(&self, args: &[&str]) -> Command {
        let mut command = Command::new(TOOL);
        command.args(args).stdin(Stdio::null()).current_dir(&self.0);
        command.env("NOISEFLOOR_CACHE", self.0.path().join("cache"));
        command
    }

    /// The exit code, and standard error.
    fn run(&self, args: &[&str]) -> (Option<i32>, String) {
        ended(&self.tool(args).output().unwrap())
    }

    fn git(&self, args: &[&str]) -> Output {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=x", "-c", "user.email=x@mail.example"]);
        git.args(["-c", "init.defaultBranch=main"]).args(args);
        git.current_dir(self.0.path().join("tree")).env("GIT_CONFIG_GLOBAL", "/dev/null");
        git.env("NOISEFLOOR_CACHE", self.0.path().join("cache"));
        git.output().unwrap()
    }

    /// The folders of unfinished builds.
    fn unfinished(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.0.path().join("cache/builds"));
        let paths = entries.into_iter().flatten().map(|entry| entry.unwrap().path());
        paths.filter(|path| path.is_dir()).collect()
    }
}

fn ended(output: &Output) -> (Option<i32>, String) {
    let said = String::from_utf8_lossy(&output.stderr);
    // Messages are wrapped at the width of a terminal.
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    (output.status.code(), said)
}

/// Check that each mistake is a usage error with its hint, before anything is built.
#[test]
fn mistakes() {
    let Some(site) = Site::new("mistakes") else { return };
    site.write("no-kernel/Makefile", "all:\n");
    site.write("no-archive.tar.xz", "text");
    site.write("module.config", "CONFIG_SLOW=m\n");
    site.write("long.config", &"x".repeat(1 << 20));
    site.write("two/a/Makefile", "");
    site.write("two/b/Makefile", "");
    let path = |name: &str| site.0.path().join(name);
    let tar = ["-C", path("two").to_str().unwrap(), "-cf"].map(str::to_owned);
    let packed =
        Command::new("tar").args(tar).arg(path("two.tar")).args(["a", "b"]).status();
    assert!(packed.unwrap().success());
    assert!(Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
    for (args, text) in [
        (
            &["--source", "no-kernel"][..],
            "no-kernel is no source of a Linux kernel: it has no Kconfig",
        ),
        (&["--source", "nowhere"], "failed to read nowhere: No such file"),
        (&["--source", "no-archive.tar.xz"], "tar says"),
        (&["--source", "tree", "-o", "SLWO=y"], "has no option SLWO; there is SLOW"),
        (&["--source", "tree", "-o", "SLOW=9"], "the value of SLOW must be y or n"),
        (&["--source", "tree", "-o", "SLOW"], "write OPTION=VALUE"),
        (
            &["--source", "tree", "-o", "HZ=fast"],
            "HZ must be a number of ticks per second",
        ),
        (&["--source", "tree", "-o", "NO_HZ=on"], "NO_HZ must be off, idle or full"),
        (
            &["--source", "tree", "--fragment", "module.config"],
            "module.config:1: SLOW=m: guests load no modules",
        ),
        (
            &["--source", "tree", "--base", "nothing.config"],
            "failed to read nothing.config",
        ),
        (&["--source", "tree", "--fragment", "pipe"], "pipe is not a file with options"),
        (&["--source", "tree", "--fragment", "long.config"], "xxx...' is not an option"),
        (&["--source", "pipe"], "it is neither a directory nor a file"),
        (&["--source", "two.tar"], "it has not one folder, but several"),
        (&["--source", "tree", "-o", "NO_HZ=n"], "NO_HZ must be off, idle or full"),
        (&["--source", "tree", "-o", "SLOW=y\nCONFIG_A=y"], "must not have control"),
        (&["--source", "tree", "-o", "CMDLINE=a,b"], "must not contain a comma"),
        (&["build:tree,lean", "-o", "HZ=40"], "cannot be used with"),
        (&["build:tree,lean", "--base", "none"], "cannot be used with"),
        (&["debian:6.1"], "'debian:6.1' is no kernel to build"),
        (&["build:debian:6.1.192"], "'6.1.192' is no source of Debian's"),
    ] {
        let args = [&["lab", "kernels", "build"][..], args].concat();
        let (code, said) = site.run(&args);
        assert_eq!(code, Some(2), "{args:?}: {said}");
        assert!(said.contains(text), "{args:?}: {said}");
    }
    assert!(site.unfinished().is_empty());
}

/// Check that missing programs are named, with their packages.
#[test]
fn missing_tools() {
    let Some(site) = Site::new("missing_tools") else { return };
    let path = site.0.path().join("bin");
    fs::create_dir(&path).unwrap();
    for tool in TOOLS.iter().filter(|tool| !matches!(**tool, "flex" | "ld" | "xz")) {
        symlink("/bin/true", path.join(tool)).unwrap();
    }
    let mut command = site.tool(&["lab", "kernels", "build", "--source", "tree"]);
    let (code, said) = ended(&command.env("PATH", path).output().unwrap());
    assert_eq!(code, Some(3), "{said}");
    let text =
        "ld, flex and xz are not installed; hint: apt install binutils flex xz-utils";
    assert!(said.contains(text), "{said}");
}

/// Check that a build that fails has exit code 1, and that the message has the first error and the
/// log's place.
#[test]
fn failed_build() {
    let Some(site) = Site::new("failed_build") else { return };
    let args = ["lab", "kernels", "build", "--source", "tree"];
    let (code, said) = site.run(&args);
    assert_eq!(code, Some(1), "{said}");
    let (_, text) =
        said.split_once("a.c:7:1: error: no semicolon; all messages are in ").unwrap();
    assert!(fs::read_to_string(text).unwrap().contains("  CC      a.o"), "{text}");
}

/// Check that Ctrl-C ends a build with exit code 4, that its folder stays, and that the next build
/// continues in it.
#[test]
fn interrupted() {
    let Some(site) = Site::new("interrupted") else { return };
    let args = ["lab", "kernels", "build", "build:tree,none,SLOW=y"];
    let mut command = site.tool(&args);
    let building = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    while !site.unfinished().iter().any(|out| out.join("waits").exists()) {
        assert!(began.elapsed() < LONG);
        thread::sleep(Duration::from_millis(20));
    }
    kill_process(Pid::from_child(&building), Signal::INT).unwrap();
    let (code, said) = ended(&building.wait_with_output().unwrap());
    assert_eq!(code, Some(4), "{said}");
    assert!(began.elapsed() < LONG);
    let [out] = site.unfinished().try_into().unwrap();
    let (code, said) = site.run(&args);
    assert_eq!(code, Some(1), "{said}"); // it comes to the error behind the wait
    assert_eq!(site.unfinished(), [out]);
}

/// Check that a full disk is reported as such, with the remedy.
#[test]
fn full_disk() {
    let Some(site) = Site::new("full_disk") else { return };
    let disk = site.0.path().join("disk");
    fs::create_dir(&disk).unwrap();
    site.write("tree/Makefile", &MAKEFILE.replace("\t@exit 1\n", "\tyes >$(O)/big\n"));
    let ready = site.0.path().join("ready");
    // In a separate mount namespace, which ends with it.
    let script = format!(
        "mount -t tmpfs -o size=1m none '{disk}' && touch '{ready}' && \
         exec '{TOOL}' lab kernels build --source tree",
        disk = disk.display(),
        ready = ready.display(),
    );
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).current_dir(&site.0);
    let output = command.env("NOISEFLOOR_CACHE", &disk).output().unwrap();
    let (code, said) = ended(&output);
    if !ready.exists() {
        println!("skipped: full_disk: no small disk to fill: {said}");
        return;
    }
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("no space left on device"), "{said}");
    assert!(said.contains("NOISEFLOOR_CACHE"), "{said}");
}

/// Check the mistakes of `lab ablate`, before anything is built: a metric, a file and a source; and that
/// equal configurations need no explanation.
#[test]
fn ablations() {
    let Some(site) = Site::new("ablations") else { return };
    site.write("headless.config", "# CONFIG_SLOW is not set\n");
    let lean = "build:tree,none,SLOW=y";
    let metric = "getpid_instructions";
    for (args, text) in [
        (
            &["--from", lean, "--to", lean, "--metric", "getpid_instruction"][..],
            "no metric 'getpid_instruction': there are getpid_instructions, ",
        ),
        (
            &["--from", "nothing.config", "--to", lean, "--metric", metric],
            "failed to read nothing.config",
        ),
        (
            &["--from", "limited.toml", "--to", lean, "--metric", metric],
            "limited.toml:1: 'name = \"short\"' is not an option",
        ),
        (
            &["--from", lean, "--to", "build:debian:6.1", "--metric", metric],
            "--source, --from and --to must have one source, not tree and debian:6.1",
        ),
        (
            &["--from", "headless.config", "--to", "headless.config", "--metric", metric],
            "headless.config does not name its version of Linux; hint: --source",
        ),
        (
            &["--from", lean, "--to", lean, "--metric", "program_ns"],
            "no built-in experiment is for program_ns",
        ),
        (
            &["--from", lean, "--to", lean, "--metric", metric, "--budget", "soon"],
            "invalid value 'soon'",
        ),
    ] {
        let args = [&["lab", "ablate"][..], args].concat();
        let (code, said) = site.run(&args);
        assert_eq!(code, Some(2), "{args:?}: {said}");
        assert!(said.contains(text), "{args:?}: {said}");
    }
    let same = "build:tree,none,SLOW=n,SLOW=y";
    let args = ["lab", "ablate", "--from", lean, "--to", same, "--metric", metric];
    let output = site.tool(&args).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{:?}", ended(&output));
    let printed = String::from_utf8_lossy(&output.stdout).replace('\n', " ");
    assert!(printed.contains("give the same configuration"), "{printed}");
}

/// Check that `git bisect run` skips commits that do not build, and ends at a source that is no kernel.
#[test]
fn untestable_commits() {
    let Some(site) = Site::new("untestable_commits") else { return };
    let limited = site.0.path().join("limited.toml");
    let check = ["lab", "check", limited.to_str().unwrap(), "--source", "."];
    let in_tree = |args: &[&str]| {
        let mut command = site.tool(args);
        ended(&command.current_dir(site.0.path().join("tree")).output().unwrap())
    };
    let (code, said) = in_tree(&check);
    assert_eq!(code, Some(125), "{said}");
    assert!(said.contains("the source cannot be tested: failed to build"), "{said}");
    site.write("other/Makefile", "all:\n");
    for arguments in
        [["limited.toml", "nowhere"], ["limited.toml", "other"], ["no", "tree"]]
    {
        let [experiment, source] = arguments;
        let (code, said) = site.run(&["lab", "check", experiment, "--source", source]);
        assert_eq!(code, Some(128 + 2), "{said}");
    }
    if Command::new("git").arg("--version").output().is_err() {
        println!("skipped: untestable_commits: there is no git here");
        return;
    }
    site.git(&["init", "-q"]);
    for version in ["1", "2", "3", "4"] {
        site.write("tree/version", version);
        site.git(&["add", "."]);
        let output = site.git(&["commit", "-qm", version]);
        assert!(output.status.success(), "{:?}", ended(&output));
    }
    site.git(&["bisect", "start", "HEAD", "HEAD~3"]);
    let output = site.git(&[&["bisect", "run", TOOL][..], &check].concat());
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let only = "There are only 'skip'ped commits left to test";
    assert!(printed.contains(only), "{printed}{:?}", ended(&output));
}

/// Check that a failure that says nothing about the tree ends `git bisect run`.
#[test]
fn ends_bisection() {
    let Some(site) = Site::new("ends_bisection") else { return };
    let mut command = site.tool(&["lab", "check", "limited.toml", "--source", "tree"]);
    let output = command.env("PATH", Path::new("/no/such/folder")).output().unwrap();
    let (code, said) = ended(&output);
    assert_eq!(code, Some(128 + 3), "{said}");
}
