//! Guests without a result: each is a lost cell with a reason, and its console is saved.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::site::{OLD, Site, text};

/// A cell with a minimal measurement.
const SHORT: &str = "name = \"short\"\nkernels = [\"debian:6.1-cloud\"]\n\
     [[workload]]\nname = \"calls\"\n\
     calls = { cpu = 0, calls = [\"getpid\"], repeats = 5 }\n";

/// Runs the short cell, which has to be lost, and returns the reason; its console has to be
/// saved.
fn lost(site: &Site, experiment: &str, more: &[&str]) -> (String, String) {
    let file = site.file("short.toml", experiment);
    let cells = site.cells(&[&[file.as_str()], more].concat(), 1);
    assert_eq!(cells[0]["summary"], Value::Null);
    let lost = &cells[0]["lost"];
    let console = fs::read(lost["console"].as_str().unwrap()).unwrap();
    assert!(!has_guests(&site.cache()), "no QEMU is left");
    (lost["why"].as_str().unwrap().to_owned(), text(&console))
}

/// Whether a process works below that folder, which may be reached through a link.
pub(crate) fn has_guests(folder: &Path) -> bool {
    let folder = folder.canonicalize().unwrap();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|process| fs::read_link(process.path().join("cwd")).ok())
        .any(|works| works.starts_with(folder.join("work")))
}

/// Check that a kernel that panics is lost with the panic's reason, and that its complete boot
/// log is saved, which it does not print by default.
#[test]
fn panic() {
    let Some(site) = Site::new() else { return };
    // It finds no agent, because it does not unpack its first file system. With too little memory some
    // builds of the agent hang instead.
    let without_files = "append = \"initcall_blacklist=populate_rootfs\"\n";
    let experiment = format!("{SHORT}[[boot]]\n{without_files}");
    let (why, console) = lost(&site, &experiment, &[]);
    assert!(why.starts_with("its kernel panicked: "), "{why}");
    assert!(console.contains("Kernel panic"), "{console}");
    assert!(why.contains("; booted again without 'quiet', "), "{why}");
    assert!(console.contains("Linux version 6.1"), "{console}");
}

/// Check that a cell whose agent dies is lost: the kernel then has no init.
#[test]
fn crash() {
    let Some(site) = Site::new() else { return };
    let real = Path::new(crate::site::TOOL).with_file_name("../lab");
    let parts = site.cache().join("parts");
    fs::create_dir(&parts).unwrap();
    let counter = "noisefloor-counter.so";
    fs::copy(real.join(counter), parts.join(counter)).unwrap();
    // The program ends where its code should continue.
    let agent = fs::read(real.join("noisefloor-agent")).unwrap();
    fs::write(parts.join("noisefloor-agent"), &agent[..agent.len() / 2]).unwrap();
    let file = site.file("short.toml", SHORT);
    let mut command = site.tool(&["lab", "run", &file, "--json"]);
    let output = command.env("NOISEFLOOR_PARTS", &parts).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let why = all["cells"][0]["lost"]["why"].as_str().unwrap();
    assert!(why.contains("its kernel panicked: "), "{why}");
}

/// Check that a kernel that guests cannot use loses its own cells, with the reason, and no
/// others, and that `lab check` fails for it.
#[test]
fn one_of_two_kernels() {
    let Some(site) = Site::new() else { return };
    let output = site.output(&["lab", "kernels", "--json"]);
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let kept = all["kernels"]["kept"].as_array().unwrap();
    let old = kept.iter().find(|kernel| kernel["name"] == OLD).unwrap();
    let folder = site.cache().join("kernels").join(old["sha256"].as_str().unwrap());
    let image = site.file("vmlinuz-mute", "");
    fs::copy(folder.join("vmlinuz"), &image).unwrap();
    let config = fs::read_to_string(folder.join("config")).unwrap();
    let without = config.replace("CONFIG_SERIAL_8250_CONSOLE=y\n", "");
    assert_ne!(config, without);
    site.file("config-mute", &without);
    let file = site
        .file("short.toml", &format!("{SHORT}[limits]\ngetpid_instructions = \"> 0\"\n"));
    let both = [file.as_str(), "-k", image.as_str(), "-k", OLD];
    let cells = site.cells(&both, 1);
    assert_eq!(cells.len(), 2);
    let why = cells[0]["lost"]["why"].as_str().unwrap();
    assert!(why.contains("CONFIG_SERIAL_8250_CONSOLE"), "{why}");
    assert_eq!(cells[0]["asked"], image.as_str());
    assert!(cells[1]["lost"].is_null() && !cells[1]["summary"].is_null(), "{}", cells[1]);
    let gate = site.output(&[&["lab", "check"], both.as_slice()].concat());
    assert_eq!(gate.status.code(), Some(1), "{}", text(&gate.stderr));
    let alone = site.output(&["lab", "run", &file, "-k", &image]);
    assert_eq!(alone.status.code(), Some(2), "{}", text(&alone.stderr));
}

/// Check that a guest that hangs is ended at the deadline.
#[test]
fn hang() {
    let Some(site) = Site::new() else { return };
    let site = site.with_qemu("exec $QEMU \"$@\" -S");
    let began = Instant::now();
    let (why, _) = lost(&site, SHORT, &["--deadline", "2"]);
    assert!(why.contains("its kernel did not start the agent within 2 s"), "{why}");
    assert!(began.elapsed() >= Duration::from_secs(2));
}

/// Check that an image whose compressed part is damaged is reported as such.
#[test]
fn damaged_image() {
    let Some(site) = Site::new() else { return };
    let kernels = fs::read_dir(site.cache().join("kernels")).unwrap().flatten();
    let is_image =
        |path: &Path| fs::metadata(path).is_ok_and(|file| file.len() > 1 << 20);
    let mut images = kernels.flat_map(|entry| match entry.path().is_dir() {
        true => fs::read_dir(entry.path()).unwrap().flatten().map(|e| e.path()).collect(),
        false => vec![entry.path()],
    });
    let image = images.find(|path| is_image(path)).unwrap();
    let mut bytes = fs::read(image).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + (64 << 10)].fill(0xff);
    let damaged = site.cache().join("vmlinuz-damaged");
    fs::write(&damaged, bytes).unwrap();
    let image = damaged.to_str().unwrap();
    let (why, console) = lost(&site, SHORT, &["--kernel", image, "--deadline", "5"]);
    assert!(why.contains("it cannot unpack itself, the image is damaged"), "{why}");
    assert!(!console.contains("Linux version"), "{console}");
}

/// Check that a guest that spins for ever is ended at the deadline of CPU time, and that the
/// message names it: its firmware is a jump to itself.
#[test]
fn spin() {
    const RESET: usize = 0xfff0;
    let Some(site) = Site::new() else { return };
    let mut firmware = vec![0x90; 64 << 10];
    firmware[RESET..RESET + 2].copy_from_slice(&[0xeb, 0xfe]);
    let file = site.cache().join("firmware");
    fs::write(&file, firmware).unwrap();
    let site = site.with_qemu(&format!("exec $QEMU \"$@\" -bios {}", file.display()));
    let (why, _) = lost(&site, SHORT, &["--deadline", "2"]);
    assert!(why.contains("its kernel did not start the agent within 2 s"), "{why}");
    assert!(why.contains("of CPU time") && why.contains("--deadline"), "{why}");
}

/// Check that a guest is not lost because QEMU is stopped for longer than its deadline.
#[test]
fn stopped_for_a_while() {
    let Some(site) = Site::new() else { return };
    let site = site.with_qemu(
        "case \"$*\" in *counter.so*)\n\
         (until grep -q qemu-system /proc/$$/comm; do sleep 0.1; done; kill -STOP $$ && \
         touch ../../stopped; sleep 32; kill -CONT $$) >/dev/null 2>&1 &\n\
         ;;\nesac\nexec $QEMU \"$@\"",
    );
    let file = site.file("short.toml", SHORT);
    let began = Instant::now();
    let cells = site.cells(&[&file, "--deadline", "30"], 0);
    assert_eq!(cells[0]["lost"], Value::Null);
    assert!(site.cache().join("stopped").exists());
    assert!(began.elapsed() >= Duration::from_secs(32));
}

/// Check that a truncated answer is not accepted.
#[test]
fn cut_off() {
    let Some(site) = Site::new() else { return };
    let site = site.with_qemu(
        "$QEMU \"$@\" && case \"$*\" in *counter.so*) truncate -s -9 answer ;; esac",
    );
    let (why, _) = lost(&site, SHORT, &[]);
    assert!(why.contains("cut off"), "{why}");
}

/// Check that a guest cannot fill the host's disk through its console.
#[test]
fn flood() {
    let Some(site) = Site::new() else { return };
    let site = site.with_qemu("exec yes 'printk: lost in space' >console");
    let (why, console) = lost(&site, SHORT, &[]);
    assert!(why.contains("it wrote more than 64 MiB to its console"), "{why}");
    assert!(console.len() < 1 << 20 && console.contains("omitted"));
}

/// Check that a setting that the guest's kernel does not have is named.
#[test]
fn refused_setting() {
    let Some(site) = Site::new() else { return };
    let setting = "[[setting]]\nwrite = { \"/proc/sys/kernel/no_such_thing\" = \"1\" }\n";
    let (why, _) = lost(&site, &format!("{SHORT}{setting}"), &[]);
    assert!(why.contains("/proc/sys/kernel/no_such_thing"), "{why}");
}

/// Check that error messages of QEMU itself are reported.
#[test]
fn qemu_refuses() {
    let Some(site) = Site::new() else { return };
    let experiment = format!("{SHORT}[machine]\ncpu = \"no-such-cpu\"\n");
    let (why, _) = lost(&site, &experiment, &[]);
    assert!(why.contains("no-such-cpu"), "{why}");
}
