//! The culprits of late wake-ups, compared with the automatic analysis of `rtla timerlat` (since Linux
//! 6.3): in a guest of the real-time kernel, which has that tracer, beside delays of known kinds.
//!
//! rtla is from Debian's backports. A kernel module makes the delays; it is built with the headers of the
//! guest's kernel, which are unpacked and not installed, as QEMU's packages are. In such a kernel softirqs are
//! threads.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use lab::Program;
use recording::Mode;
use serde_json::Value;

use crate::guest_program::GuestProgram;
use crate::packages::{run, unpack, unpacked};
use crate::site::{FOLDER, Site, text};

const KERNEL: &str = "debian:6.12-rt";
/// How long the guest may take on a busy host.
const LONG: Duration = Duration::from_secs(1_200);
/// A kind of delay; the parts of which one is the largest for rtla, and the thread that it names, if that is
/// the culprit; and what noisefloor's sentence contains. The delayed timer is part of the interrupt, or the
/// interrupt follows its own.
const KINDS: [(&str, &[&str], Option<&str>, &str); 3] = [
    ("thread", &["Blocking thread"], Some("pathd"), "pathd ("),
    ("irq", &["Timerlat IRQ duration", "IRQ interference"], None, "timer delay_irq took"),
    ("off", &["IRQ handler delay"], Some("program"), "while program ("),
];
/// The parts of a latency, as rtla names them.
const PARTS: [&str; 6] = [
    "IRQ handler delay",
    "Timerlat IRQ duration",
    "Blocking thread",
    "IRQ interference",
    "Softirq interference",
    "Thread interference",
];

/// The release of the guest's kernel.
fn release(site: &Site) -> Result<String, String> {
    let output = site.output(&["lab", "kernels", KERNEL, "--json"]);
    if !output.status.success() {
        return Err(text(&output.stderr).trim().replace('\n', " "));
    }
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let lists = all["kernels"].as_object().unwrap().values();
    let mut kernels = lists.filter_map(Value::as_array).flatten();
    let kernel = kernels.find(|kernel| kernel["name"] == KERNEL);
    Ok(kernel.unwrap()["release"].as_str().unwrap().to_owned())
}

/// Builds the module for that kernel.
fn module(release: &str) -> Result<Vec<u8>, String> {
    let (version, _) = release.split_once("-rt").unwrap();
    let folder = tempfile::tempdir_in(FOLDER).unwrap();
    let names = [
        format!("linux-headers-{release}"),
        format!("linux-headers-{version}-common-rt"),
        format!("linux-kbuild-{version}"),
    ];
    run(Command::new("apt-get").arg("download").args(&names).current_dir(&folder))?;
    let root = folder.path().join("root");
    unpack(folder.path(), &root)?;
    let headers = root.join("usr/src").join(&names[0]);
    let makefile = fs::read_to_string(headers.join("Makefile")).unwrap();
    let sources = root.join("usr/src").display().to_string();
    fs::write(headers.join("Makefile"), makefile.replace("/usr/src", &sources)).unwrap();
    let made = folder.path().join("delays");
    fs::create_dir(&made).unwrap();
    fs::write(made.join("Makefile"), "obj-m := delays.o\n").unwrap();
    fs::write(made.join("delays.c"), include_str!("rtla/delays.c")).unwrap();
    // Debian's makefile names the compiler of its archive; types of the module are not needed.
    let options = ["CC=cc", "CONFIG_DEBUG_INFO_BTF_MODULES=", "modules"];
    let in_headers = Command::new("make")
        .arg("-C")
        .arg(&headers)
        .args(options)
        .arg(format!("M={}", made.display()))
        .output();
    let output = in_headers.map_err(|error| format!("make: {error}"))?;
    let built = fs::read(made.join("delays.ko"));
    built.map_err(|_| format!("make: {}", text(&output.stderr).trim().replace('\n', " ")))
}

/// The program that injects delays and runs the script, linked statically.
fn injector() -> Result<Vec<u8>, String> {
    let folder = tempfile::tempdir_in(FOLDER).unwrap();
    let (source, made) = (folder.path().join("inject.c"), folder.path().join("inject"));
    fs::write(&source, include_str!("rtla/inject.c")).unwrap();
    run(Command::new("cc").args(["-O2", "-static", "-o"]).arg(&made).arg(&source))?;
    Ok(fs::read(made).unwrap())
}

/// The files of the guest, by their names: both tools, a shell, the module and the script.
fn files(release: &str, tool: GuestProgram) -> Result<Vec<(String, Vec<u8>)>, String> {
    let suites = ("bookworm", ["bookworm-backports"]);
    let packages = ["rtla", "busybox-static"];
    let root = unpacked("rtla", suites.0, &suites.1, &packages)?.join("root");
    let read =
        |path: &str| fs::read(root.join(path)).map_err(|why| format!("{path}: {why}"));
    let libraries = Path::new("lib/x86_64-linux-gnu");
    let mut files = tool.libraries;
    for name in ["libtracefs.so.1", "libtraceevent.so.1"] {
        let library = read(&format!("usr/lib/x86_64-linux-gnu/{name}"))?;
        files.push((libraries.join(name).display().to_string(), library));
    }
    files.extend([
        ("rtla".to_owned(), read("usr/bin/rtla")?),
        ("busybox".to_owned(), read("bin/busybox")?),
        ("noisefloor".to_owned(), tool.program),
        ("delays.ko".to_owned(), module(release)?),
        ("compare.sh".to_owned(), include_bytes!("rtla/compare.sh").to_vec()),
    ]);
    Ok(files)
}

/// The time of a part in an analysis of rtla's, in microseconds: `PART: ... TIME us (SHARE %)`.
fn time(analysis: &str, part: &str) -> f64 {
    let line = analysis.lines().find_map(|line| line.trim().strip_prefix(part));
    let time =
        line.and_then(|line| line.split_once(" us (")?.0.split_whitespace().last());
    time.map_or(0.0, |time| time.parse().unwrap())
}

/// The largest part, and the thread that was interrupted.
fn analysed(analysis: &str) -> (&str, &str) {
    let part =
        PARTS.into_iter().max_by(|a, b| time(analysis, a).total_cmp(&time(analysis, b)));
    let mut lines =
        analysis.lines().skip_while(|line| !line.contains("Blocking thread:"));
    let thread = lines.nth(1).and_then(|line| line.trim().split(':').next());
    (part.unwrap(), thread.unwrap_or_default())
}

/// Check that noisefloor names the same culprit as rtla for each of three delays: a thread, the function of a
/// timer in its interrupt, and disabled interrupts.
#[test]
fn the_same_culprits() {
    let Some(site) = Site::new() else { return };
    let Some(tool) = GuestProgram::find("tool") else {
        println!("skipped: the_same_culprits: not built: cargo xtask guest --tests");
        return;
    };
    let made = release(&site).and_then(|release| files(&release, tool));
    let (others, bytes) = match made.and_then(|files| Ok((files, injector()?))) {
        Ok(made) => made,
        Err(why) => {
            println!("skipped: the_same_culprits: {why}");
            return;
        }
    };
    let arguments: &[&str] = &[];
    let (mode, cpus, cpu, params) = (Mode::Exact, 1, None, "");
    let program = Program { bytes, others, arguments, mode, cpus, cpu, params };
    let (_, said) = site.run_program(KERNEL, program, LONG);
    let delays: Vec<_> = said.split("DELAY ").skip(1).collect();
    assert_eq!(delays.len(), KINDS.len(), "{said}");
    for delay in delays {
        let (of_rtla, of_noisefloor) = delay.split_once("NOISEFLOOR").unwrap();
        let kind = of_rtla.lines().next().unwrap();
        let (_, parts, thread, sentence) =
            KINDS.into_iter().find(|it| it.0 == kind).unwrap();
        let (part, blocking) = analysed(of_rtla);
        assert!(parts.contains(&part), "{part}: {delay}");
        assert_eq!(blocking, thread.unwrap_or(blocking), "{delay}");
        let words = of_noisefloor.split_whitespace().collect::<Vec<_>>().join(" ");
        let (_, cause) = words.split_once(" late: ").unwrap_or_else(|| panic!("{delay}"));
        assert!(
            cause.split(" part source ").next().unwrap().contains(sentence),
            "{delay}"
        );
    }
}
