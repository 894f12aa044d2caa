//! States of settings on trees of machines.

use std::collections::BTreeMap;
use std::fs;

use facts::{Facts, Root};

use super::*;
use crate::emit::Format;
use crate::emit::tests::{boot, emitted, item, set};

/// The states of what these files' manifest has, on a machine with these files.
fn states(
    format: Format,
    items: Vec<crate::AdviceItem>,
    files: &[(&str, &str)],
) -> Vec<State> {
    let emitted = emitted(format, items);
    let manifest =
        emitted.files.iter().find(|file| file.path == crate::MANIFEST).unwrap();
    let manifest = Manifest::parse(&manifest.text).unwrap();
    let tree = tempfile::tempdir().unwrap();
    let plain = [
        ("/sys/devices/system/cpu/online", "0-3\n"),
        ("/proc/sys/kernel/osrelease", "6.12.0\n"),
    ];
    let all: BTreeMap<&str, &str> = plain.iter().chain(files).copied().collect();
    for (path, text) in &all {
        let place = tree.path().join(&path[1..]);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(place, text).unwrap();
    }
    let root = Root::tree(tree.path()).unwrap();
    let facts = Facts::read(&root);
    let machine = Machine::new(&facts, None, None);
    let read = |pattern: &str| {
        let (start, end) = pattern.split_once('*').unwrap_or((pattern, ""));
        let end = end.replace('*', "0");
        let fits = |path: &&&str| match pattern.contains('*') {
            true => path.starts_with(start) && path.ends_with(&end),
            false => **path == pattern,
        };
        let found = all.keys().filter(fits);
        found.map(|path| ((*path).to_owned(), Some(all[path].to_owned()))).collect()
    };
    verify(&manifest, &machine, &read).into_iter().map(|one| one.state).collect()
}

fn differs(now: &str, by: &[&str]) -> State {
    State::Differs { now: Some(now.into()), by: by.iter().map(|&it| it.into()).collect() }
}

const TUNED: (&str, &str) =
    ("/sys/fs/cgroup/system.slice/tuned.service/cgroup.procs", "1\n");
const BALANCER: (&str, &str) =
    ("/sys/fs/cgroup/system.slice/irqbalance.service/cgroup.procs", "7\n");

/// Check a sysctl that is in force, one that another file and a service could have changed, and one without a file.
#[test]
fn sysctls() {
    let of = |files: &[(&str, &str)]| {
        let items = vec![item("a", set("vm.stat_interval", "10"), None)];
        states(Format::Sysctl, items, files).remove(0)
    };
    assert_eq!(of(&[("/proc/sys/vm/stat_interval", "10\n")]), State::InForce);
    let other = ("/etc/sysctl.d/99-other.conf", "# a\nvm.stat_interval = 5\n");
    let own = ("/etc/sysctl.d/60-noisefloor.conf", "vm.stat_interval = 10\n");
    let found = of(&[("/proc/sys/vm/stat_interval", "5\n"), other, own, TUNED, BALANCER]);
    assert_eq!(found, differs("5", &["tuned", other.0]));
    assert!(matches!(of(&[]), State::Unknown { .. }));
}

/// Check that a service is named only for settings that it is known to change.
#[test]
fn services() {
    let of = |name: &str, now: &str, path: &str| {
        let slice = "/sys/fs/cgroup/system.slice";
        let running = ["irqbalance", "power-profiles-daemon", "crio", "kubelet"]
            .map(|name| format!("{slice}/{name}.service/cgroup.procs"));
        let mut files = vec![(path, now)];
        files.extend(running.iter().map(|file| (&**file, "1\n")));
        let items = vec![item("a", set(name, "performance"), None)];
        let state = states(Format::Script, items, &files).remove(0);
        let State::Differs { by, .. } = state else { panic!("{state:?}") };
        by
    };
    let governor = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    assert_eq!(of("governor", "powersave\n", governor), ["power-profiles-daemon"]);
    let forward = "/proc/sys/net/ipv4/ip_forward";
    assert_eq!(of("net.ipv4.ip_forward", "1\n", forward), ["crio", "kubelet"]);
    let interval = "/proc/sys/vm/stat_interval";
    assert_eq!(of("vm.stat_interval", "1\n", interval), Vec::<String>::new());
}

/// Check that a manifest cannot make a file that is no setting be read.
#[test]
fn other_files() {
    for path in ["/etc/shadow", "/sys/../etc/shadow"] {
        let items = vec![item("a", set(path, "1"), None)];
        let found = states(Format::Script, items, &[(path, "secret\n")]);
        assert!(matches!(&found[..], [State::Unknown { .. }]), "{found:?}");
    }
}

/// Check that a boot parameter needs a reboot until there was one, and that CPUs are compared as sets.
#[test]
fn parameters() {
    let of = |line: &str, booted: &str| {
        let items = vec![
            item("a", boot("isolcpus=managed_irq,domain,1-3"), None),
            item("b", crate::Change::Unboot { parameter: "idle".into() }, None),
        ];
        states(Format::Grub, items, &[("/proc/cmdline", line), ("/proc/stat", booted)])
    };
    let [before, after] = ["btime 0\n", "btime 2\n"];
    let in_force = of("isolcpus=domain,managed_irq,1,2,3\n", after);
    assert_eq!(in_force, [State::InForce, State::InForce]);
    let needs = [State::NeedsReboot, State::NeedsReboot];
    assert_eq!(of("isolcpus=domain,1-3 idle=poll\n", before), needs);
    let found = of("isolcpus=domain,1-3 idle=poll\n", after);
    assert_eq!(found, [differs("domain,1-3", &[]), differs("poll", &[])]);
}

/// Check that a hypervisor is named that loads the kernel itself, and not if a boot loader does.
#[test]
fn parameters_of_a_hypervisor() {
    let of = |line: &str| {
        let items = vec![item("a", boot("skew_tick=1"), None)];
        let files = [
            ("/proc/cmdline", line),
            ("/proc/stat", "btime 2\n"),
            ("/sys/hypervisor/type", "xen\n"),
        ];
        states(Format::Grub, items, &files).remove(0)
    };
    let by = |by: &[&str]| {
        let by = by.iter().map(|&it| it.to_owned()).collect();
        State::Differs { now: None, by }
    };
    assert_eq!(of("quiet\n"), by(&["the hypervisor (Xen)"]));
    assert_eq!(of("BOOT_IMAGE=/vmlinuz quiet\n"), by(&[]));
    assert_eq!(of("initrd=\\initrd quiet\n"), by(&[]));
}

/// Check that a boot parameter that is given, but has no effect on this kernel, is not in force.
#[test]
fn without_effect() {
    let items = vec![item("a", boot("nohz_full=1-3"), None)];
    let files = [
        ("/proc/cmdline", "nohz_full=1-3\n"),
        ("/proc/sys/kernel/osrelease", "6.12.0\n"),
        ("/boot/config-6.12.0", "CONFIG_NO_HZ_IDLE=y\n# CONFIG_NO_HZ_FULL is not set\n"),
    ];
    let found = states(Format::Grub, items, &files);
    let is_inert = |now: &str| now.starts_with("given, but without effect");
    assert!(
        matches!(&found[..], [State::Differs { now: Some(now), .. }] if is_inert(now)),
        "{found:?}"
    );
}

/// Check that interrupts and masks are compared as sets, and that irqbalance is named.
#[test]
fn cpus() {
    let of = |irq: &str, mask: &str| {
        let items = vec![
            item("a", set("irqs", "0,1"), None),
            item("b", set("workqueues", "0-1"), None),
        ];
        let files = [
            ("/proc/irq/9/smp_affinity_list", irq),
            ("/sys/devices/virtual/workqueue/cpumask", mask),
            BALANCER,
        ];
        states(Format::Script, items, &files)
    };
    assert_eq!(of("1\n", "00000000,00000003\n"), [State::InForce, State::InForce]);
    let found = of("0-2\n", "f\n");
    assert_eq!(found, [differs("IRQ 9: 0-2", &["irqbalance"]), differs("f", &[])]);
}

/// Check the environment of irqbalance, and that without its process nothing is known.
#[test]
fn irqbalance() {
    let of = |environment: Option<&str>| {
        let items = vec![item("a", set("irqs", "0"), None)];
        let files = environment.map(|text| [BALANCER, ("/proc/7/environ", text)]);
        states(Format::Irqbalance, items, files.as_ref().map_or(&[], |it| it)).remove(0)
    };
    assert_eq!(of(Some("A=b\0IRQBALANCE_BANNED_CPULIST=1,2,3\0")), State::InForce);
    assert!(matches!(of(Some("A=b\0")), State::Differs { now: None, .. }));
    assert!(matches!(of(None), State::Unknown { .. }));
}
