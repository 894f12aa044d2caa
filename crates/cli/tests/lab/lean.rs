//! Kernels with a minimal configuration that lack one option each, and the lab's messages about
//! them.
//!
//! They are real kernels, a minute or two of CPU time each: built with `NOISEFLOOR_TEST_ALL` only.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::builds::{heavy, tiny};
use crate::site::{Site, text};

/// A cell with a minimal measurement.
const SHORT: &str = "name = \"short\"\nkernels = [\"debian:6.1-cloud\"]\n\
     [[workload]]\nname = \"calls\"\n\
     calls = { cpu = 0, calls = [\"getpid\"], repeats = 5 }\n";

/// Options that every guest needs; a kernel without one is refused.
const REFUSED: [&str; 6] =
    ["SERIAL_8250_CONSOLE", "BINFMT_ELF", "BLK_DEV_INITRD", "SYSFS", "PROC_FS", "UNIX"];

/// Options of kernels that guests can use: the second has `/dev/port` only, the third the serial
/// port. Kconfig offers `/dev/port` with a bus only.
const USED: [&str; 3] = ["", ",X86_IOPL_IOPERM=n,PCI=y,DEVPORT=y", NO_PORT];
const NO_PORT: &str = ",X86_IOPL_IOPERM=n,DEVPORT=n";

/// Its image and configuration, copied to a folder of their own.
fn files(site: &Site, options: &str) -> (PathBuf, PathBuf) {
    let folder = site.cache().join("images");
    let args = ["lab", "kernels", "build", &tiny(options), "--json", "--output"];
    let mut command = site.tool(&args);
    let output = command.arg(&folder).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    let file = |key: &str| PathBuf::from(all["builds"][0][key].as_str().unwrap());
    (file("image"), file("config"))
}

/// Check that a minimal kernel with all required options has a result, whichever way its answer
/// takes: all of them execute the same call.
#[test]
fn lean_kernels() {
    let Some(site) = heavy("lean_kernels") else { return };
    let file = site.file("short.toml", SHORT);
    for options in USED {
        let kernel = tiny(options);
        let cells = site.cells(&[file.as_str(), "-k", &kernel, "--deadline", "60"], 0);
        assert_eq!(cells[0]["lost"], Value::Null, "{options}");
        assert!(!cells[0]["summary"].is_null(), "{options}");
    }
}

/// Check that a kernel whose configuration lacks a required option is refused before it boots,
/// with the option's name.
#[test]
fn refused_by_configuration() {
    let Some(site) = heavy("refused_by_configuration") else { return };
    let file = site.file("short.toml", SHORT);
    for option in REFUSED {
        let (image, config) = files(&site, &format!(",{option}=n"));
        assert!(config.exists());
        let image = image.to_str().unwrap().to_owned();
        for kernel in [tiny(&format!(",{option}=n")), image] {
            let output = site.output(&["lab", "run", &file, "-k", &kernel]);
            let said = text(&output.stderr).replace('\n', " ");
            assert_eq!(output.status.code(), Some(2), "{option}: {said}");
            assert!(said.contains(&format!("CONFIG_{option}")), "{option}: {said}");
        }
    }
}

/// Check that a kernel of 32 bits is recognised by its image, after it was built and alone.
#[test]
fn of_32_bits() {
    let Some(site) = heavy("of_32_bits") else { return };
    let file = site.file("short.toml", SHORT);
    let run = |kernel: &str| {
        let output = site.output(&["lab", "run", &file, "-k", kernel]);
        let said = text(&output.stderr).replace('\n', " ");
        assert_eq!(output.status.code(), Some(2), "{kernel}: {said}");
        assert!(
            said.contains("a 32-bit x86 kernel, and guests are x86-64 or arm64"),
            "{said}"
        );
    };
    run(&tiny(",64BIT=n"));
    let builds = fs::read_dir(site.cache().join("builds")).unwrap();
    let images = builds.map(|out| out.unwrap().path().join("arch/x86/boot/bzImage"));
    let image = images.into_iter().find(|image| image.exists()).unwrap();
    run(image.to_str().unwrap());
}

/// Check that such a kernel without a configuration beside it is lost with the reason; except
/// for the one without a console, which prints nothing and has a result.
#[test]
fn without_configuration() {
    let Some(site) = heavy("without_configuration") else { return };
    let file = site.file("short.toml", SHORT);
    for option in REFUSED {
        let alone = site.file(&format!("bzImage-{option}"), "");
        fs::copy(files(&site, &format!(",{option}=n")).0, &alone).unwrap();
        let has_result = option == "SERIAL_8250_CONSOLE";
        let code = i32::from(!has_result);
        let cells = site.cells(&[file.as_str(), "-k", &alone, "--deadline", "60"], code);
        let why = cells[0]["lost"]["why"].as_str();
        assert_eq!(why.is_none(), has_result, "{option}");
        assert!(why.is_none_or(|why| why.contains(option)), "{option}: {why:?}");
    }
}

/// Check that a kernel that denies I/O ports to all programs, unknown to the lab, is lost with
/// the remedy.
#[test]
fn no_port_without_configuration() {
    let Some(site) = heavy("no_port_without_configuration") else { return };
    let file = site.file("short.toml", SHORT);
    let alone = site.file("bzImage", "");
    fs::copy(files(&site, NO_PORT).0, &alone).unwrap();
    let cells = site.cells(&[file.as_str(), "-k", &alone, "--deadline", "60"], 1);
    let why = cells[0]["lost"]["why"].as_str().unwrap();
    assert!(why.contains("hint: put its configuration beside the image"), "{why}");
}
