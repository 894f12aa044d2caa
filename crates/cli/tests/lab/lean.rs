//! Kernels with a minimal configuration that lack one option each, and the lab's messages about
//! them.
//!
//! They are real kernels, built by `scripts/kernels DIR`; `NOISEFLOOR_TEST_KERNELS` names that
//! folder. Without it, and for each kernel that is not in it, tests are skipped.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::site::{Site, text};

/// A cell with a minimal measurement.
const SHORT: &str = "name = \"short\"\nkernels = [\"debian:6.1-cloud\"]\n\
     [[workload]]\nname = \"calls\"\n\
     calls = { cpu = 0, calls = [\"getpid\"], repeats = 5 }\n";

/// Kernels without an option that every guest needs, and the option.
const REFUSED: [(&str, &str); 6] = [
    ("no-console", "CONFIG_SERIAL_8250_CONSOLE"),
    ("no-elf", "CONFIG_BINFMT_ELF"),
    ("no-initrd", "CONFIG_BLK_DEV_INITRD"),
    ("no-sysfs", "CONFIG_SYSFS"),
    ("no-proc", "CONFIG_PROC_FS"),
    ("no-unix", "CONFIG_UNIX"),
];

/// Kernels that guests can use: the second has `/dev/port` only, the third the serial port.
const USED: [&str; 3] = ["base", "devport", "no-port"];

/// The folder of minimal kernels.
fn folder(name: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("NOISEFLOOR_TEST_KERNELS").map(PathBuf::from);
    if folder.is_none() {
        println!(
            "skipped: {name}: NOISEFLOOR_TEST_KERNELS names no folder of lean kernels \
             (scripts/kernels DIR builds one)"
        );
    }
    folder
}

/// The image of that name in it.
fn image(folder: &Path, name: &str) -> Option<String> {
    let image = folder.join(format!("vmlinuz-{name}"));
    if !image.is_file() {
        println!("skipped: {}: not built (scripts/kernels)", image.display());
        return None;
    }
    Some(image.to_str().unwrap().to_owned())
}

/// Check that a minimal kernel with all required options has a result, whichever way its answer
/// takes: all of them execute the same call.
#[test]
fn lean_kernels() {
    let Some(folder) = folder("lean_kernels") else { return };
    let Some(site) = Site::new() else { return };
    let file = site.file("short.toml", SHORT);
    for name in USED {
        let Some(image) = image(&folder, name) else { continue };
        let cells = site.cells(&[file.as_str(), "-k", &image, "--deadline", "60"], 0);
        assert_eq!(cells[0]["lost"], Value::Null, "{name}");
        assert!(!cells[0]["summary"].is_null(), "{name}");
    }
}

/// Check that a kernel whose configuration lacks a required option is refused before it boots,
/// with the option's name.
#[test]
fn refused_by_configuration() {
    let Some(folder) = folder("refused_by_configuration") else { return };
    let Some(site) = Site::new() else { return };
    let file = site.file("short.toml", SHORT);
    for (name, option) in REFUSED {
        let Some(image) = image(&folder, name) else { continue };
        let output = site.output(&["lab", "run", &file, "-k", &image]);
        let said = text(&output.stderr).replace('\n', " ");
        assert_eq!(output.status.code(), Some(2), "{name}: {said}");
        assert!(said.contains(option), "{name}: {said}");
    }
}

/// Check that a kernel of 32 bits is recognised by its image, with and without a configuration
/// beside it.
#[test]
fn of_32_bits() {
    let Some(folder) = folder("of_32_bits") else { return };
    let Some(site) = Site::new() else { return };
    let Some(image) = image(&folder, "no-64bit") else { return };
    let file = site.file("short.toml", SHORT);
    let alone = site.file("bzImage", "");
    fs::copy(&image, &alone).unwrap();
    for image in [image, alone] {
        let output = site.output(&["lab", "run", &file, "-k", &image]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{image}: {said}");
        assert!(said.contains("a 32-bit x86 kernel, and guests are x86-64"), "{said}");
    }
}

/// Check that such a kernel without a configuration beside it is lost with the reason; except
/// for the one without a console, which prints nothing and has a result.
#[test]
fn without_configuration() {
    let Some(folder) = folder("without_configuration") else { return };
    let Some(site) = Site::new() else { return };
    let file = site.file("short.toml", SHORT);
    for (name, option) in REFUSED {
        let Some(image) = image(&folder, name) else { continue };
        let alone = site.file(&format!("bzImage-{name}"), "");
        fs::copy(image, &alone).unwrap();
        let code = i32::from(name != "no-console");
        let cells = site.cells(&[file.as_str(), "-k", &alone, "--deadline", "60"], code);
        let why = cells[0]["lost"]["why"].as_str();
        assert_eq!(why.is_none(), name == "no-console", "{name}");
        assert!(why.is_none_or(|why| why.contains(option)), "{name}: {why:?}");
    }
}

/// Check that a kernel that denies I/O ports to all programs, unknown to the lab, is lost with
/// the remedy.
#[test]
fn no_port_without_configuration() {
    let Some(folder) = folder("no_port_without_configuration") else { return };
    let Some(site) = Site::new() else { return };
    let Some(image) = image(&folder, "no-port") else { return };
    let file = site.file("short.toml", SHORT);
    let alone = site.file("bzImage", "");
    fs::copy(image, &alone).unwrap();
    let cells = site.cells(&[file.as_str(), "-k", &alone, "--deadline", "60"], 1);
    let why = cells[0]["lost"]["why"].as_str().unwrap();
    assert!(why.contains("hint: put its configuration beside the image"), "{why}");
}
