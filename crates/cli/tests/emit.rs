//! `advise --emit` and `advise --verify` as a process: folders, names, exit codes, and the way from advice to a
//! machine on which it is in force. What the files' consumers read is tested in `advise`.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// A machine; its tree has no settings.
const TREE: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/firecracker-6.18");
/// Settings for which rules hold.
const SETTINGS: [(&str, &str); 6] = [
    ("proc/sys/vm/swappiness", "60\n"),
    ("proc/sys/vm/compact_unevictable_allowed", "1\n"),
    ("proc/sys/vm/compaction_proactiveness", "20\n"),
    ("proc/sys/kernel/watchdog_cpumask", "0-1\n"),
    ("proc/sys/kernel/soft_watchdog", "1\n"),
    ("sys/kernel/mm/ksm/run", "1\n"),
];
/// Another user.
const OTHER: u32 = 59_999;

fn advise(arguments: &[&str]) -> Output {
    let mut tool = Command::new(env!("CARGO_BIN_EXE_noisefloor"));
    tool.arg("advise").args(arguments).env("LC_ALL", "C.UTF-8").output().unwrap()
}

fn emit(tree: &Path, format: &str, dir: &Path, more: &[&str]) -> Output {
    let (tree, dir) = (tree.to_str().unwrap(), dir.to_str().unwrap());
    let goal = ["--root", tree, "--goal", "realtime", "--emit", format, dir];
    advise(&[&goal[..], more].concat())
}

fn text(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8(all).unwrap()
}

/// A copy of the tree that can be changed.
fn machine(place: &Path) -> PathBuf {
    let copy = place.join("machine");
    let copied = Command::new("cp").args(["-r", TREE]).arg(&copy).status().unwrap();
    assert!(copied.success());
    for (path, value) in SETTINGS {
        let file = copy.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, value).unwrap();
    }
    copy
}

fn verify(dir: &Path, tree: &Path) -> (Option<i32>, Value) {
    let arguments =
        ["--verify", dir.to_str().unwrap(), "--root", tree.to_str().unwrap(), "--json"];
    let output = advise(&arguments);
    let object = serde_json::from_slice(&output.stdout);
    (output.status.code(), object.unwrap_or_else(|_| panic!("{}", text(&output))))
}

fn states(object: &Value) -> Vec<String> {
    let settings = object["settings"].as_array().unwrap().iter();
    settings.map(|one| one["state"].as_str().unwrap().to_owned()).collect()
}

/// Check that settings are not in force before the script has run, are in force after it, and are not after it has
/// set them back; the exit code says so.
#[test]
fn from_advice_to_force_and_back() {
    let place = tempfile::tempdir().unwrap();
    let (tree, dir) = (machine(place.path()), place.path().join("files"));
    let output = emit(&tree, "script", &dir, &[]);
    assert!(output.status.success(), "{}", text(&output));
    let run = |script: &str| {
        let mut shell = Command::new("sh");
        let output = shell.arg(dir.join(script)).env("ROOT", &tree).output().unwrap();
        assert!(output.status.success(), "{script}: {}", text(&output));
    };
    let (code, object) = verify(&dir, &tree);
    let before = states(&object);
    assert_eq!(code, Some(1), "{object}");
    assert!(
        before.len() > 1 && before.iter().all(|state| state == "differs"),
        "{before:?}"
    );
    run("apply.sh");
    let (code, object) = verify(&dir, &tree);
    assert_eq!(code, Some(0), "{object}");
    assert!(states(&object).iter().all(|state| state == "in_force"), "{object}");
    run("uninstall.sh");
    assert_eq!(verify(&dir, &tree).0, Some(1));
}

/// Check that a boot parameter needs a reboot, and that each format says what it lacks.
#[test]
fn boot_parameters_need_a_reboot() {
    let place = tempfile::tempdir().unwrap();
    let (tree, dir) = (machine(place.path()), place.path().join("files"));
    let found = text(&emit(&tree, "grub", &dir, &[]));
    assert!(found.contains("Chosen, but not expressible as grub"), "{found}");
    let (code, object) = verify(&dir, &tree);
    assert_eq!(code, Some(1), "{object}");
    let states = states(&object);
    assert!(
        !states.is_empty() && states.iter().all(|it| it == "needs_reboot"),
        "{object}"
    );
}

/// Check that only the named rules are in the files, and that other names, formats and folders are usage errors.
#[test]
fn names() {
    let place = tempfile::tempdir().unwrap();
    let dir = |name: &str| place.path().join(name);
    let tree = &machine(place.path());
    let all = emit(tree, "sysctl", &dir("all"), &["--json"]);
    let all: Value = serde_json::from_slice(&all.stdout).unwrap();
    let rules = all["rules"].as_array().unwrap();
    let first = rules[0].as_str().unwrap();
    let one = emit(tree, "sysctl", &dir("one"), &["--only", first, "--json"]);
    let one: Value = serde_json::from_slice(&one.stdout).unwrap();
    assert!(rules.len() > 1, "{all}");
    assert_eq!(one["rules"], serde_json::json!([first]));
    assert_eq!(one["left_out"], serde_json::json!([]));
    let other = emit(tree, "sysctl", &dir("other"), &["--only", "no-such-rule"]);
    assert_eq!(other.status.code(), Some(2));
    assert!(text(&other).contains("not advised here: no-such-rule"), "{}", text(&other));
    let format = emit(tree, "systemv", &dir("format"), &[]);
    assert_eq!(format.status.code(), Some(2));
    assert!(text(&format).contains("kernel-cmdline, grub"), "{}", text(&format));
    assert!(!dir("format").exists());
    let none = advise(&["--verify", place.path().to_str().unwrap()]);
    assert_eq!(none.status.code(), Some(2));
    fs::write(dir("manifest.json"), "{\"format\": 1}").unwrap();
    let damaged = advise(&["--verify", place.path().to_str().unwrap()]);
    assert_eq!(damaged.status.code(), Some(2));
    assert!(text(&damaged).contains("is no manifest"), "{}", text(&damaged));
}

/// Check that a folder is used only if it is empty and no other user can write to it, and that scripts can be
/// executed.
#[test]
fn folders() {
    let place = tempfile::tempdir().unwrap();
    let dir = |name: &str| place.path().join(name);
    let refused = |name: &str, why: &str| {
        let output = emit(Path::new(TREE), "sysctl", &dir(name), &[]);
        let found = text(&output);
        assert_eq!(output.status.code(), Some(2), "{name}: {found}");
        assert!(found.contains(name) && found.contains(why), "{name}: {found}");
    };
    fs::create_dir(dir("full")).unwrap();
    fs::write(dir("full/a"), "").unwrap();
    refused("full", "is not empty");
    fs::write(dir("file"), "").unwrap();
    refused("file", "");
    fs::create_dir(dir("open")).unwrap();
    fs::set_permissions(dir("open"), Permissions::from_mode(0o777)).unwrap();
    refused("open", "another user");
    fs::create_dir(dir("other")).unwrap();
    match chown(dir("other"), Some(OTHER), None) {
        Ok(()) => refused("other", "another user"),
        Err(_) => {
            println!("skipped: folders: it takes root to make another user's folder")
        }
    }
    fs::create_dir(dir("empty")).unwrap();
    fs::set_permissions(dir("empty"), Permissions::from_mode(0o755)).unwrap();
    let output = emit(Path::new(TREE), "sysctl", &dir("empty"), &[]);
    assert!(output.status.success(), "{}", text(&output));
    let script = "umask 000; exec \"$0\" advise --root \"$1\" --emit systemd \"$2\"";
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script, env!("CARGO_BIN_EXE_noisefloor"), TREE])
        .arg(dir("new/new"));
    let output = shell.output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    for name in ["new/new", "new/new/install.sh", "new/new/etc/sysctl.d"] {
        let mode = fs::metadata(dir(name)).unwrap().mode();
        assert_eq!(mode & 0o022, 0, "{name}: {mode:o}");
    }
    let mode = |name: &str| fs::metadata(dir("empty").join(name)).unwrap().mode() & 0o777;
    assert_eq!((mode("install.sh"), mode("manifest.json")), (0o755, 0o644));
}
