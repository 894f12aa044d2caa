//! Kernels that are built from Debian's source, in guests. In CI (variable `CI`) one minimal kernel is
//! built by every run of these tests with an empty cache; with `NOISEFLOOR_TEST_ALL`, several, also
//! lean ones, which take longer.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::site::{FOLDER, Site, TOOL, named, text};

pub(crate) const LEAN: &str = "build:debian:6.1,lean,HZ=40,NO_HZ=off";
/// Timer interrupts of an idle CPU, and a call.
const SHORT: &str = "name = \"short\"\nkernels = [\"debian:6.1-cloud\"]\n\
     [[workload]]\nname = \"idle\"\nticks = { cpu = 0, duration = \"1s\" }\n\
     [[workload]]\nname = \"calls\"\n\
     calls = { cpu = 0, calls = [\"getpid\"], repeats = 5 }\n";

/// A site for a test that builds several kernels; `None`, with the reason printed, unless all tests
/// are requested.
pub(crate) fn heavy(test: &str) -> Option<Site> {
    if std::env::var_os("NOISEFLOOR_TEST_ALL").is_none() {
        println!("skipped: {test}: builds kernels; make test-all runs it");
        return None;
    }
    can_build(test)
}

/// A site; `None`, with the reason printed, if kernels cannot be built here.
fn can_build(test: &str) -> Option<Site> {
    let missing = ["gcc", "make", "flex", "bison", "bc", "perl", "xz"]
        .into_iter()
        .find(|tool| Command::new(tool).arg("--version").output().is_err());
    if let Some(missing) = missing {
        println!("skipped: {test}: there is no {missing} here");
        return None;
    }
    // `make test` builds below a link without spaces.
    let folder = Path::new(FOLDER).canonicalize().unwrap().display().to_string();
    // Neither make nor a shell takes others as part of a path, nor the name of a kernel a comma.
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+~@".contains(c);
    if !folder.chars().all(is_plain) {
        println!("skipped: {test}: kernels cannot be built below {folder}");
        return None;
    }
    Site::new()
}

/// The name of a minimal kernel with those options.
pub(crate) fn tiny(options: &str) -> String {
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lab/tiny.config");
    format!("build:debian:6.1,none,{config}{options}")
}

/// Builds a kernel, and returns its description.
fn build(site: &Site, args: &[&str]) -> Value {
    let args = [&["lab", "kernels", "build", "--json"][..], args].concat();
    let output = site.output(&args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    all["builds"][0].clone()
}

/// Check that a minimal kernel with a frequency that Kconfig does not offer ticks at that frequency.
#[test]
fn ticks_at_any_frequency() {
    let test = "ticks_at_any_frequency";
    let is_ci = std::env::var_os("CI").is_some();
    let site = if is_ci { can_build(test) } else { heavy(test) };
    let Some(site) = site else { return };
    let name = tiny(",HZ=40,NO_HZ=off");
    ticks_40_times(&site, &name, &[&name]);
}

/// Check the same of a lean kernel.
#[test]
fn lean_kernels_tick() {
    let Some(site) = heavy("lean_kernels_tick") else { return };
    let args = ["--source", "debian:6.1", "-o", "HZ=40", "-o", "NO_HZ=off"];
    ticks_40_times(&site, LEAN, &args);
}

/// Builds a kernel of that name with these arguments. Its idle CPU must have 40 ticks a second, its
/// cells repeat, and it must not be built twice.
fn ticks_40_times(site: &Site, name: &str, args: &[&str]) {
    let built = build(site, args);
    let cpu_s = built["build"]["cpu_ms"].as_u64().unwrap() / 1000;
    println!("{} took {cpu_s} s of CPU time", built["name"]);
    assert_eq!(built["name"], name);
    let config = fs::read_to_string(built["config"].as_str().unwrap()).unwrap();
    assert!(
        config.contains("CONFIG_HZ=40\n") && config.contains("CONFIG_HZ_PERIODIC=y\n")
    );
    assert_eq!(build(site, &[name]), built);
    let file = site.file("short.toml", SHORT);
    let run = || site.cells(&[file.as_str(), "-k", name, "--fresh"], 0);
    let cells = run();
    let idle = &named(&cells, "idle")["metrics"];
    // Each of the eight phases of the second may have one timer interrupt more: that of its end.
    let timers = idle["idle_timer_hz"].as_f64().unwrap();
    assert!((timers - 40.0).abs() <= 8.5, "{idle}");
    assert_eq!(named(&cells, "calls")["metrics"], named(&run(), "calls")["metrics"]);
}

/// Check that an option that Kconfig drops is an error that names its missing dependency, and a
/// frequency that the headers refuse one with their message. Neither takes a whole build.
#[test]
fn refused_options() {
    let Some(site) = can_build("refused_options") else { return };
    for (option, part) in [
        ("EXT4_FS=y", "EXT4_FS=y: it needs BLOCK=y"),
        ("AUDTI=y", "has no option AUDTI; there is AUDIT"),
        ("PROC_FS=n,NET=7", "the value of NET must be y or n"),
        ("HZ_PERIODIC=n,HZ=13000", "HZ=13000 is refused by the kernel's headers"),
        ("HZ=11", "Invalid value of HZ"),
    ] {
        let name = format!("build:debian:6.1,lean,{option}");
        let output = site.output(&["lab", "kernels", "build", &name]);
        let said = text(&output.stderr).replace('\n', " ");
        assert_eq!(output.status.code(), Some(2), "{option}: {said}");
        assert!(said.contains(part), "{option}: {said}");
    }
}

/// Check that the same source in another folder, built in another folder, gives the same bytes.
#[test]
fn same_bytes() {
    let Some(site) = heavy("same_bytes") else { return };
    let built = build(&site, &[LEAN]);
    let copy = copy_of_source(&site);
    let name = format!("build:{},lean,HZ=40,NO_HZ=off", copy.display());
    assert_eq!(build(&site, &[&name])["sha256"], built["sha256"]);
}

/// Check that kernels built one after another in the same folder have the same bytes as kernels built
/// in empty ones: after an interruption, and back to the first configuration; and that a build in a
/// folder in which one was killed gives them, too.
#[test]
fn same_bytes_with_reused_objects() {
    let Some(site) = heavy("same_bytes_with_reused_objects") else { return };
    let [first_name, second_name] = [tiny(",HZ=1000"), tiny(",HZ=40,NO_HZ=off,AUDIT=y")];
    let kernels = site.cache().join("kernels");
    fs::remove_file(&kernels).unwrap(); // a link to those of all tests
    let built = |name: &str| {
        fs::remove_dir_all(&kernels).unwrap_or_default();
        let kernel = build(&site, &[name]);
        println!("{name}: {} ms of CPU time", kernel["build"]["cpu_ms"]);
        kernel["sha256"].as_str().unwrap().to_owned()
    };
    let first = built(&first_name); // in an empty folder
    interrupt(&site, &second_name, Signal::INT);
    let second = built(&second_name);
    assert_eq!(built(&first_name), first);
    interrupt(&site, &second_name, Signal::KILL);
    assert_eq!(built(&second_name), second); // in a folder that was emptied
}

/// Check that the two options of eleven that change the cost of a tick are found, that the parts add up,
/// and that the same command needs no build.
#[test]
fn ablates() {
    let Some(site) = heavy("ablates") else { return };
    const LEAN: &str = "build:debian:6.1,lean";
    /// The first two have an effect on ticks; each concerns few files of the kernel.
    const CHANGES: &str = "NO_HZ=off,CFS_BANDWIDTH=y,POSIX_MQUEUE=n,LOG_BUF_SHIFT=15,FHANDLE=n,\
         IKCONFIG=n,PACKET=n,SIGNALFD=n,X86_MSR=n,CROSS_MEMORY_ATTACH=y";
    let to = format!("{LEAN},{CHANGES}");
    let ablate = |args: &[&str]| {
        let metric = ["--metric", "tick_kernel_instructions", "--set", "workload=other"];
        let ends = ["lab", "ablate", "--from", LEAN, "--to", &to, "--json"];
        let output = site.output(&[&ends[..], &metric, args].concat());
        let found: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
        println!("{found:#}");
        (output.status.code(), found)
    };
    let sum = |found: &Value| {
        let parts = found["contributions"].as_array().unwrap();
        let parts = parts.iter().map(|part| part["difference"].as_f64().unwrap());
        parts.sum::<f64>() + found["unexplained_sum"].as_f64().unwrap()
    };
    let (code, found) = ablate(&[]);
    assert_eq!((code, found["ended"].is_null()), (Some(0), true));
    assert_eq!(sum(&found), found["difference"].as_f64().unwrap());
    let parts = found["contributions"].to_string();
    assert!(parts.contains("\"HZ_PERIODIC\""), "{parts}");
    assert!(parts.contains("\"CFS_BANDWIDTH\""), "{parts}");
    let others = ["POSIX_MQUEUE", "FHANDLE", "IKCONFIG", "PACKET", "SIGNALFD", "X86_MSR"];
    for without in others {
        assert!(!parts.contains(&format!("\"{without}\"")), "{parts}");
    }
    let (code, again) = ablate(&[]);
    assert_eq!((code, &again["builds"]), (Some(0), &Value::from(0)));
    assert_eq!(again["contributions"], found["contributions"]);
}

/// Begins a build, and ends it by a signal after some files were made.
fn interrupt(site: &Site, name: &str, signal: Signal) {
    let logs = || {
        let folders = fs::read_dir(site.cache().join("builds")).unwrap();
        folders.map(|folder| folder.unwrap().path().join("noisefloor-build.log"))
    };
    for log in logs().filter(|log| log.exists()) {
        fs::remove_file(log).unwrap();
    }
    let mut command = site.tool(&["lab", "kernels", "build", name]);
    let mut building =
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let made = || {
        let texts = logs().filter_map(|log| fs::read_to_string(log).ok());
        texts.map(|text| text.matches("  CC      kernel/").count()).sum::<usize>()
    };
    while made() < 10 {
        assert_eq!(building.try_wait().unwrap(), None, "{name} was not interrupted");
        thread::sleep(Duration::from_millis(10));
    }
    kill_process(Pid::from_child(&building), signal).unwrap();
    assert!(!building.wait().unwrap().success());
}

/// Check that `git bisect run` finds the commit that adds five instructions to a call, and skips one
/// that does not build.
#[test]
fn bisects() {
    let Some(site) = heavy("bisects") else { return };
    let tree = copy_of_source(&site);
    let git = |args: &[&str]| git(&site, &tree, args);
    git(&["init", "-q"]);
    git(&["config", "gc.auto", "0"]);
    let commit = |name: &str| {
        git(&["add", "-Af"]); // Debian's .gitignore excludes all but its packaging
        git(&["commit", "-qm", name]);
    };
    commit("first");
    let call = "SYSCALL_DEFINE0(getpid)\n{\n";
    let file = tree.join("kernel/sys.c");
    let original = fs::read_to_string(&file).unwrap();
    assert!(original.contains(call));
    fs::write(&file, format!("{original}#error unfinished\n")).unwrap();
    commit("does not build");
    let slow = original
        .replace(call, &format!("{call}\tasm volatile(\".rept 5; nop; .endr\");\n"));
    fs::write(&file, &slow).unwrap();
    commit("slow");
    fs::write(&file, format!("{slow}\n/* later */\n")).unwrap();
    commit("later");
    git(&["checkout", "-q", "HEAD~3"]);
    let file = site.file("calls.toml", SHORT);
    let source = tree.to_str().unwrap();
    let name = format!("build:{source},lean");
    let cells = site.cells(&[&file, "-k", &name, "--set", "workload=calls"], 0);
    let metrics = &cells[0]["metrics"];
    let good = metrics["getpid_instructions"].as_f64().unwrap();
    let limited = format!("{SHORT}[limits]\ngetpid_instructions = \"<= {good}\"\n");
    let file = site.file("limited.toml", &limited);
    git(&["checkout", "-q", "-"]);
    git(&["bisect", "start", "HEAD", "HEAD~3"]);
    let run = [
        "bisect",
        "run",
        TOOL,
        "lab",
        "check",
        &file,
        "--source",
        ".",
        "--set",
        "workload=calls",
    ];
    let output = git(&run);
    let printed = text(&output.stdout);
    // The commit before cannot be tested, so it may be the first bad one, too.
    assert!(
        printed.contains("We cannot bisect more") || printed.contains("] slow"),
        "{printed}"
    );
    assert!(!printed.contains("] later") || printed.contains("] slow"), "{printed}");
}

fn git(site: &Site, tree: &Path, args: &[&str]) -> Output {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=x", "-c", "user.email=x@mail.example"]);
    git.args(args).current_dir(tree).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let output = git.env("NOISEFLOOR_CACHE", site.cache()).output().unwrap();
    if args.first() != Some(&"bisect") {
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    }
    output
}

/// A copy of the unpacked source of Debian's package, in the site's folder.
fn copy_of_source(site: &Site) -> PathBuf {
    let sources = site.cache().join("sources");
    if !sources.join("linux-source-6.1").exists() {
        build(site, &[LEAN]);
    }
    let name = fs::read_to_string(sources.join("linux-source-6.1")).unwrap();
    let copy = site.cache().join("copy");
    let mut cp = Command::new("cp");
    let copied = cp.arg("-a").arg(sources.join(name.trim())).arg(&copy).status().unwrap();
    assert!(copied.success());
    copy
}
