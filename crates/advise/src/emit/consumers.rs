//! The real consumers of each format: what they read is what was meant, also for values that look like syntax.
//!
//! What would change this machine runs in a private mount namespace, with another tree in place of the files
//! that it would write. A consumer that is missing is skipped, with a message.

mod boot;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use super::tests::{all_kinds, emitted};
use super::*;

/// The value that looks like syntax of many formats.
const HOSTILE: &str = "$(touch PWNED) 'q' \"d\" #c %b \\n";

/// The files of a machine, with their values.
const TREE: [(&str, &str); 16] = [
    ("proc/sys/vm/stat_interval", "1\n"),
    ("proc/sys/kernel/a", "`touch PWNED`\n"),
    ("proc/irq/9/smp_affinity_list", "0-3\n"),
    ("proc/irq/default_smp_affinity", "f\n"),
    ("sys/kernel/mm/ksm/run", "1\n"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n"),
    ("sys/module/kvm/parameters/halt_poll_ns", "200000\n"),
    ("sys/kernel/debug/sched/features", "PLACE_LAG HRTICK NO_X\n"),
    ("sys/kernel/debug/sched/base_slice_ns", "2800000\n"),
    ("sys/devices/virtual/workqueue/cpumask", "f\n"),
    ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
    ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "schedutil\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state0/latency", "2\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state0/disable", "0\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state1/latency", "90\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state1/disable", "0\n"),
];

/// The files of a format in a folder, and a tree of a machine.
struct Place {
    folder: TempDir,
    tree: TempDir,
    emitted: Emitted,
}

impl Place {
    fn new(format: Format) -> Self {
        Self::of(emitted(format, all_kinds()))
    }

    fn of(emitted: Emitted) -> Self {
        let (folder, tree) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for file in &emitted.files {
            write(&folder.path().join(&file.path), &file.text);
        }
        for (path, text) in TREE {
            write(&tree.path().join(path), text);
        }
        Self { folder, tree, emitted }
    }

    fn file(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// A file of the tree.
    fn value(&self, path: &str) -> String {
        fs::read_to_string(self.tree.path().join(path)).unwrap().trim().to_owned()
    }

    /// Runs one of the scripts on the tree.
    fn run(&self, script: &str) {
        let mut command = Command::new("sh");
        command.arg(self.file(script)).env("ROOT", self.tree.path());
        let output = command.current_dir(self.tree.path()).output().unwrap();
        assert!(output.status.success(), "{script}: {}", text(&output));
        assert!(!self.tree.path().join("PWNED").exists(), "{script}");
    }

    /// Runs a script as root in a mount namespace of its own, in the tree, with the folder as `$1`; `None` if
    /// that is not possible here.
    fn unshared(&self, script: &str) -> Option<Output> {
        let unshare = || {
            let mut command = Command::new("unshare");
            command.args(["-m", "--propagation", "private", "sh", "-euc"]);
            command
        };
        let can = unshare().arg("mount -t tmpfs none /mnt").output();
        if !can.is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: no mount namespace can be created here");
            return None;
        }
        let mut command = unshare();
        command.arg(script).arg("sh").arg(self.folder.path());
        Some(command.current_dir(self.tree.path()).output().unwrap())
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn text(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&all).into_owned()
}

/// Whether a program is installed; a message if not.
fn has(program: &str) -> bool {
    let found =
        ["/usr/bin", "/usr/sbin", "/bin", "/sbin", "/lib/systemd", "/usr/lib/systemd"]
            .iter()
            .any(|folder| Path::new(folder).join(program).exists());
    if !found {
        eprintln!("skipped: {program} is not installed");
    }
    found
}

/// Check that the shell accepts every script of every format.
#[test]
fn shells_parse_all_scripts() {
    for format in Format::ALL {
        let place = Place::new(format);
        let scripts =
            place.emitted.files.iter().filter(|file| file.text.starts_with("#!/bin/sh"));
        let mut count = 0;
        for script in scripts {
            let output = Command::new("sh")
                .arg("-n")
                .arg(place.file(&script.path))
                .output()
                .unwrap();
            assert!(
                output.status.success(),
                "{format:?} {}: {}",
                script.path,
                text(&output)
            );
            count += 1;
        }
        assert!(count > 0, "{format:?}");
    }
}

/// Check that the installer copies each file of the formats to its place, and the uninstaller removes all of them.
#[test]
fn files_are_installed_and_removed() {
    for format in Format::ALL {
        if [Format::Ansible, Format::KernelCmdline, Format::Script].contains(&format) {
            continue;
        }
        let place = Place::new(format);
        place.run("install.sh");
        let files = place.emitted.files.iter().filter(|file| file.path.contains('/'));
        let copies: Vec<PathBuf> =
            files.map(|file| place.tree.path().join(&file.path)).collect();
        assert!(
            !copies.is_empty() && copies.iter().all(|file| file.exists()),
            "{format:?}"
        );
        place.run("uninstall.sh");
        assert!(copies.iter().all(|file| !file.exists()), "{format:?}");
    }
}

/// What the tree has after all settings of run time are set.
const APPLIED: [(&str, &str); 10] = [
    ("proc/sys/vm/stat_interval", "10"),
    ("proc/sys/kernel/a", HOSTILE),
    ("proc/irq/9/smp_affinity_list", "0"),
    ("sys/kernel/mm/ksm/run", "0"),
    ("sys/kernel/mm/transparent_hugepage/enabled", "madvise"),
    ("sys/kernel/debug/sched/features", "NO_HRTICK"),
    ("sys/devices/virtual/workqueue/cpumask", "1"),
    ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state0/disable", "0"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state1/disable", "1"),
];

/// Check that the script sets every value exactly, also if it is run twice, and sets each of them back.
#[test]
fn script_applies_and_sets_back() {
    let place = Place::new(Format::Script);
    place.run("apply.sh");
    for (path, value) in APPLIED {
        assert_eq!(place.value(path), value, "{path}");
    }
    // A feature is one word of a file that has all of them.
    write(
        &place.tree.path().join("sys/kernel/debug/sched/features"),
        "PLACE_LAG NO_HRTICK NO_X\n",
    );
    place.run("apply.sh");
    place.run("uninstall.sh");
    for (path, before) in TREE {
        let expected = match path {
            "sys/kernel/mm/transparent_hugepage/enabled" => "always",
            "sys/kernel/debug/sched/features" => "HRTICK",
            _ => before.trim(),
        };
        assert_eq!(place.value(path), expected, "{path}");
    }
}

/// Check that the uninstaller sets back what is still as it was set, and leaves what something else has changed.
#[test]
fn uninstaller_sets_back() {
    let place = Place::new(Format::Sysctl);
    write(&place.tree.path().join("proc/sys/vm/stat_interval"), "10\n");
    write(&place.tree.path().join("proc/sys/kernel/a"), "another\n");
    place.run("uninstall.sh");
    assert_eq!(place.value("proc/sys/vm/stat_interval"), "1");
    assert_eq!(place.value("proc/sys/kernel/a"), "another");
}

/// Check that procps and systemd read every sysctl exactly as it is meant.
#[test]
fn sysctls_are_read() {
    for program in ["sysctl -p", "/lib/systemd/systemd-sysctl"] {
        let place = Place::new(Format::Sysctl);
        let name = program.rsplit('/').next().unwrap().split(' ').next().unwrap();
        if !has(name) {
            continue;
        }
        let script = format!(
            "mount --bind proc/sys /proc/sys; {program} \"$1/etc/sysctl.d/60-noisefloor.conf\""
        );
        let Some(output) = place.unshared(&script) else { return };
        assert!(output.status.success(), "{program}: {}", text(&output));
        assert_eq!(place.value("proc/sys/vm/stat_interval"), "10", "{program}");
        assert_eq!(place.value("proc/sys/kernel/a"), HOSTILE, "{program}");
    }
}

/// Check that systemd-tmpfiles writes every value, and that its service is valid and its program works.
#[test]
fn systemd_reads_its_files() {
    let place = Place::new(Format::Systemd);
    place.run("install.sh");
    let program = place.tree.path().join("usr/local/sbin/noisefloor-advice");
    let run = |argument: &str| {
        let mut command = Command::new(&program);
        command.arg(argument).env("ROOT", place.tree.path());
        let output = command.current_dir(place.tree.path()).output().unwrap();
        assert!(output.status.success(), "{argument}: {}", text(&output));
    };
    run("start");
    assert_eq!(place.value("proc/irq/9/smp_affinity_list"), "0");
    assert_eq!(place.value("sys/kernel/debug/sched/base_slice_ns"), "3000000");
    let governor = "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor";
    assert_eq!(place.value(governor), "performance");
    run("stop");
    assert_eq!(place.value(governor), "schedutil");
    assert_eq!(place.value("sys/kernel/debug/sched/base_slice_ns"), "2800000");
    if has("systemd-tmpfiles") {
        let mut command = Command::new("systemd-tmpfiles");
        command.arg(format!("--root={}", place.tree.path().display())).arg("--create");
        let output = command.arg("60-noisefloor.conf").output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        for (path, value) in [
            ("sys/kernel/mm/ksm/run", "0"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "madvise"),
            ("sys/devices/virtual/workqueue/cpumask", "1"),
        ] {
            // An ordinary file keeps what is longer than the value.
            assert!(place.value(path).starts_with(value), "{path}");
        }
    }
    if has("systemd-analyze") {
        let script = "mount --bind usr/local/sbin /usr/local/sbin; systemd-analyze verify \
                      etc/systemd/system/noisefloor-advice.service";
        let Some(output) = place.unshared(script) else { return };
        let text = text(&output);
        assert!(output.status.success() && !text.contains("noisefloor-advice"), "{text}");
    }
}

/// Check that irqbalance gets the CPUs, and that its unit with the drop-in is valid.
#[test]
fn irqbalance_bans_the_cpus() {
    let place = Place::new(Format::Irqbalance);
    let drop_in = "etc/systemd/system/irqbalance.service.d/60-noisefloor.conf";
    let text_of = fs::read_to_string(place.file(drop_in)).unwrap();
    let list =
        text_of.lines().find_map(|line| line.strip_prefix("Environment=")).unwrap();
    assert_eq!(list, "IRQBALANCE_BANNED_CPULIST=1-3");
    if !has("irqbalance") {
        return;
    }
    // It may not move any interrupt.
    let script = format!(
        "mount --bind /proc/irq /proc/irq; mount -o remount,bind,ro /proc/irq; \
         env {list} timeout 20 irqbalance --oneshot --foreground --debug"
    );
    let Some(output) = place.unshared(&script) else { return };
    let text_of = text(&output);
    let banned = text_of.lines().find_map(|line| line.strip_prefix("Banned CPUs: "));
    let banned: units::CpuSet =
        units::CpuSet::from_mask(banned.unwrap_or_else(|| panic!("{text_of}")).trim())
            .unwrap();
    // CPUs that do not exist are not banned.
    assert!(banned.contains(units::Cpu::new(1)) && !banned.contains(units::Cpu::new(0)));
    if has("systemd-analyze")
        && Path::new("/lib/systemd/system/irqbalance.service").exists()
    {
        let folder = place.file("etc/systemd/system");
        fs::copy(
            "/lib/systemd/system/irqbalance.service",
            folder.join("irqbalance.service"),
        )
        .unwrap();
        let mut command = Command::new("systemd-analyze");
        let output = command
            .arg("verify")
            .arg(folder.join("irqbalance.service"))
            .output()
            .unwrap();
        let text = text(&output);
        assert!(!text.contains("60-noisefloor"), "{text}");
    }
}

/// Check that udev reads the rules without a complaint, and complains about a wrong one.
#[test]
fn udev_reads_its_rules() {
    let place = Place::new(Format::Udev);
    let rules = "etc/udev/rules.d/60-noisefloor.rules";
    let text_of = fs::read_to_string(place.file(rules)).unwrap();
    assert!(
        text_of.contains("ATTR{cpufreq/scaling_governor}=\"performance\""),
        "{text_of}"
    );
    if !has("udevadm") {
        return;
    }
    let read = |place: &Place| {
        // Versions before 254 have no `verify`; `test` reads all rules, and applies those of the device.
        let script = "if udevadm verify --help >/dev/null 2>&1; then\n\
                      udevadm verify \"$1/etc/udev/rules.d/60-noisefloor.rules\"; exit; fi\n\
                      mount -t tmpfs none /etc/udev/rules.d\n\
                      cp \"$1\"/etc/udev/rules.d/* /etc/udev/rules.d/\n\
                      udevadm test /devices/virtual/mem/null 2>&1 | grep noisefloor";
        let folder = place.unshared("mkdir -p /etc/udev/rules.d")?;
        assert!(folder.status.success(), "{}", text(&folder));
        place.unshared(script).map(|output| text(&output))
    };
    let Some(found) = read(&place) else { return };
    assert!(!found.contains("noisefloor.rules:"), "{found}");
    assert!(found.contains("60-noisefloor.rules"), "{found}");
    write(&place.file(rules), "ATTR{a=\"b\n");
    let found = read(&place).unwrap();
    assert!(found.contains("noisefloor.rules:"), "{found}");
}

/// Check that tuned's own loader reads the options, each with its value.
#[test]
fn tuned_reads_its_profile() {
    let place = Place::new(Format::Tuned);
    if !has("tuned-adm") {
        return;
    }
    let script = "import sys\n\
                  from tuned.profiles import Loader, Locator, Factory, Merger\n\
                  from tuned.profiles.variables import Variables\n\
                  from tuned.utils.global_config import GlobalConfig\n\
                  profile = Loader(Locator([sys.argv[1]]), Factory(), Merger(), \
                  GlobalConfig(), Variables()).load(['noisefloor'])\n\
                  for unit in profile.units.values():\n    \
                  for name, value in unit.options.items(): print(unit.name, name, value)\n";
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-c", script]).arg(place.file("etc/tuned"));
    let output = command.output().unwrap();
    let found = text(&output);
    assert!(output.status.success(), "{found}");
    for line in [
        "cpu governor performance",
        "cpu force_latency 10",
        "sysctl vm.stat_interval 10",
        "sysfs /sys/kernel/mm/ksm/run 0",
        "sysfs /sys/kernel/debug/sched/base_slice_ns 3000000",
    ] {
        assert!(found.lines().any(|it| it == line), "{line}: {found}");
    }
    let boot =
        found.lines().filter(|line| line.starts_with("bootloader cmdline_noisefloor"));
    assert!(boot.clone().any(|line| line.ends_with(" +nohz_full=1-3")), "{found}");
    let names: std::collections::BTreeSet<_> =
        boot.clone().filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(names.len(), boot.count(), "{found}");
    // It would end a value at the mark of a comment.
    assert!(!found.contains("kernel.a"), "{found}");
}

/// Check that ansible accepts both playbooks, and that a dry run finds all files that they copy.
#[test]
fn ansible_reads_its_playbooks() {
    let place = Place::new(Format::Ansible);
    if !has("ansible-playbook") {
        return;
    }
    let run = |playbook: &str, options: &[&str]| {
        let mut command = Command::new("ansible-playbook");
        command.args(["-i", "localhost,", "-c", "local"]).args(options);
        command.args(["-e", "ansible_become=false ansible_python_interpreter=python3"]);
        command.arg(place.file(playbook)).current_dir(place.tree.path());
        command.env("HOME", place.tree.path()).env("LC_ALL", "C.UTF-8");
        let output = command.output().unwrap();
        let found = text(&output);
        assert!(output.status.success(), "{playbook} {options:?}: {found}");
        found
    };
    for playbook in ["playbook.yml", "uninstall.yml"] {
        run(playbook, &["--syntax-check"]);
    }
    let found = run("playbook.yml", &["--check", "--diff"]);
    assert!(found.contains("+vm.stat_interval = 10"), "{found}");
    assert!(found.contains(&format!("+kernel.a = {HOSTILE}")), "{found}");
    assert!(!place.tree.path().join("PWNED").exists());
}

/// Check that ansible applies its playbook to a machine, and removes all of it with the other one: sysctls by their
/// handler, and boot parameters by the script for machines without update-grub.
#[test]
fn ansible_applies_and_removes() {
    let items = all_kinds().into_iter().filter(|item| {
        ["sysctl", "dollar", "boot", "spaces", "unboot"].contains(&item.rule.name)
    });
    let place = Place::of(emitted(Format::Ansible, items.collect()));
    let has_grub = Path::new("/usr/sbin/update-grub").exists();
    if !has("ansible-playbook") || has_grub || !Path::new("/etc/kernel").exists() {
        return eprintln!(
            "skipped: needs a machine with /etc/kernel, without update-grub"
        );
    }
    write(&place.tree.path().join("etc/kernel/cmdline"), "root=/dev/a idle=poll\n");
    fs::create_dir_all(place.tree.path().join("etc/sysctl.d")).unwrap();
    fs::create_dir_all(place.tree.path().join("home")).unwrap();
    let run = |playbook: &str| {
        let script = format!(
            "mount --bind etc/sysctl.d /etc/sysctl.d\nmount --bind etc/kernel /etc/kernel\n\
             mount --bind proc/sys /proc/sys\nexport HOME=\"$PWD/home\" LC_ALL=C.UTF-8\n\
             ansible-playbook -i localhost, -c local -e 'ansible_become=false \
             ansible_python_interpreter=/usr/bin/python3' \"$1/{playbook}\""
        );
        let output = place.unshared(&script)?;
        assert!(output.status.success(), "{playbook}: {}", text(&output));
        Some(())
    };
    let Some(()) = run("playbook.yml") else { return };
    assert_eq!(place.value("proc/sys/vm/stat_interval"), "10");
    assert_eq!(place.value("proc/sys/kernel/a"), HOSTILE);
    let line = place.value("etc/kernel/cmdline");
    assert_eq!(line, "root=/dev/a nohz_full=1-3 \"dyndbg=file a +p\"");
    run("uninstall.yml").unwrap();
    assert!(!place.tree.path().join("etc/sysctl.d/60-noisefloor.conf").exists());
    assert_eq!(place.value("etc/kernel/cmdline"), "root=/dev/a idle=poll");
    assert!(!place.tree.path().join("PWNED").exists());
}

/// Check that the kubelet's configuration is YAML with these fields only, each of its type: a list of CPUs is a
/// string also if it is one number. They are those of `KubeletConfiguration` v1beta1 in Kubernetes
/// (`staging/src/k8s.io/kubelet/config/v1beta1/types.go` as of commit 001332b04220).
#[test]
fn kubelet_configuration_has_known_fields() {
    let place = Place::new(Format::Kubernetes);
    let script = "import sys, json\ntry:\n    import yaml\nexcept ImportError:\n    sys.exit(77)\n\
                  print(json.dumps(yaml.safe_load(open(sys.argv[1]))))";
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-c", script]);
    command.arg(place.file("etc/kubernetes/kubelet.conf.d/60-noisefloor.conf"));
    let Ok(output) = command.output() else { return eprintln!("skipped: no python3") };
    if output.status.code() == Some(77) {
        return eprintln!("skipped: python3 has no yaml");
    }
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let expected = serde_json::json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cpuManagerPolicy": "static",
        "reservedSystemCPUs": "0",
    });
    assert_eq!(found, expected);
}
