//! Facts of the trees in `fixtures/`, which were recorded on real machines, or written manually
//! from documented formats.
#![expect(clippy::unwrap_used, reason = "an error in a helper fails the test")]

use std::fs;
use std::path::{Path, PathBuf};

use facts::{Chosen, Facts, Flavour, Interrupts, Model, Root, TickMode, Why, WhyInert};
use units::Hz;

/// The expected facts of a tree.
struct Expected {
    tree: &'static str,
    hz: u32,
    mode: TickMode,
    /// The resulting CPUs; `Err`: why they are unknown.
    nohz_full: Result<&'static str, Why>,
    housekeeping: Result<&'static str, Why>,
    flavour: Flavour,
    arch: &'static str,
    config: &'static str,
    model: Model,
    chosen: Chosen,
    /// Parameters without effect.
    inert: &'static [(&'static str, WhyInert)],
}

const BOOT_CONFIG: &str = "/boot/config-";

const EXPECTED: &[Expected] = &[
    Expected {
        tree: "rhel5-divider",
        hz: 1000,
        mode: TickMode::Periodic,
        nohz_full: Err(Why::TooOld),
        housekeeping: Err(Why::TooOld),
        flavour: Flavour::Generic,
        arch: "x86_64",
        config: BOOT_CONFIG,
        model: Model::Voluntary,
        chosen: Chosen::Static,
        inert: &[],
    },
    Expected {
        tree: "ubuntu-24.04",
        hz: 1000,
        mode: TickMode::Full,
        nohz_full: Ok("1-3"),
        housekeeping: Ok("0"),
        flavour: Flavour::Generic,
        arch: "x86_64",
        config: BOOT_CONFIG,
        model: Model::Voluntary,
        chosen: Chosen::Default,
        inert: &[
            ("preempt=lazy", WhyInert::Refused),
            ("kthread_cpus=0", WhyInert::Unrecognised),
            ("divider=10", WhyInert::OtherAge),
            ("elevator=noop", WhyInert::OtherAge),
        ],
    },
    Expected {
        tree: "kernel-7.2",
        hz: 250,
        mode: TickMode::Idle,
        nohz_full: Ok(""),
        housekeeping: Ok("0,1"),
        flavour: Flavour::Generic,
        arch: "x86_64",
        config: "/usr/lib/modules/7.2.13-amd64/config",
        model: Model::Lazy,
        chosen: Chosen::Default,
        inert: &[
            ("preempt=none", WhyInert::Refused),
            ("rcutree.enable_rcu_lazy=1", WhyInert::Contradictory),
        ],
    },
    Expected {
        tree: "arm64",
        hz: 250,
        mode: TickMode::Idle,
        nohz_full: Err(Why::NotConfigured),
        housekeeping: Ok("0-2"),
        flavour: Flavour::Generic,
        arch: "aarch64",
        config: "/proc/config.gz",
        model: Model::Full,
        chosen: Chosen::Static,
        inert: &[
            ("nohz_full=3", WhyInert::Unsupported),
            ("rcu_nocbs=3", WhyInert::Unsupported),
        ],
    },
    Expected {
        tree: "debian-6.1",
        hz: 250,
        mode: TickMode::Idle,
        nohz_full: Ok(""),
        housekeeping: Ok("0,1"),
        flavour: Flavour::Generic,
        arch: "x86_64",
        config: BOOT_CONFIG,
        model: Model::Voluntary,
        chosen: Chosen::Default,
        inert: &[],
    },
    Expected {
        tree: "debian-6.1-arm64",
        hz: 250,
        mode: TickMode::Idle,
        nohz_full: Ok(""),
        housekeeping: Ok("0,1"),
        flavour: Flavour::Generic,
        arch: "aarch64",
        config: BOOT_CONFIG,
        model: Model::Voluntary,
        chosen: Chosen::Static,
        inert: &[],
    },
    Expected {
        tree: "debian-6.1-rt",
        hz: 250,
        mode: TickMode::Idle,
        nohz_full: Ok(""),
        housekeeping: Ok("0,1"),
        flavour: Flavour::Rt,
        arch: "x86_64",
        config: BOOT_CONFIG,
        model: Model::Rt,
        chosen: Chosen::Static,
        inert: &[
            ("divider=10", WhyInert::OtherAge),
            ("preempt=full", WhyInert::Unsupported),
        ],
    },
    Expected {
        tree: "debian-6.12",
        hz: 250,
        mode: TickMode::Full,
        nohz_full: Ok("1"),
        housekeeping: Ok("0"),
        flavour: Flavour::Generic,
        arch: "x86_64",
        config: BOOT_CONFIG,
        model: Model::Voluntary,
        chosen: Chosen::Default,
        inert: &[],
    },
    Expected {
        tree: "debian-6.12-rt",
        hz: 250,
        mode: TickMode::Idle,
        nohz_full: Ok(""),
        housekeeping: Ok("0,1"),
        flavour: Flavour::Rt,
        arch: "x86_64",
        config: BOOT_CONFIG,
        model: Model::Rt,
        chosen: Chosen::Static,
        inert: &[],
    },
    Expected {
        tree: "debian-7.2",
        hz: 250,
        mode: TickMode::Idle,
        nohz_full: Ok(""),
        housekeeping: Ok("0,1"),
        flavour: Flavour::Generic,
        arch: "x86_64",
        config: "/usr/lib/modules/7.2.13+deb14-amd64/config",
        model: Model::Lazy,
        chosen: Chosen::Default,
        inert: &[],
    },
    Expected {
        tree: "debian-7.3-scx",
        hz: 250,
        mode: TickMode::Idle,
        nohz_full: Ok(""),
        housekeeping: Ok("0,1"),
        flavour: Flavour::Cloud,
        arch: "x86_64",
        config: BOOT_CONFIG,
        model: Model::Lazy,
        chosen: Chosen::Default,
        inert: &[],
    },
    Expected {
        tree: "firecracker-6.18",
        hz: 250,
        mode: TickMode::Idle,
        nohz_full: Err(Why::NotConfigured),
        housekeeping: Ok("0,1"),
        flavour: Flavour::Generic,
        arch: "x86_64",
        config: "/proc/config.gz",
        model: Model::None,
        chosen: Chosen::Default,
        inert: &[],
    },
];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

/// All trees, with their names.
fn trees() -> Vec<(String, Root)> {
    let mut trees = Vec::new();
    for entry in fs::read_dir(fixtures()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        // Other fixtures (recordings, sessions) are in the same directory.
        if entry.path().join("proc").is_dir() {
            trees.push((name, Root::tree(&entry.path()).unwrap()));
        }
    }
    assert!(!trees.is_empty());
    trees
}

fn read(tree: &str) -> Facts {
    Facts::read(&Root::tree(&fixtures().join(tree)).unwrap())
}

/// Check the expected facts of each tree.
#[test]
fn expected_facts() {
    for expected in EXPECTED {
        let (tree, facts) = (expected.tree, read(expected.tree));
        assert_eq!(facts.tick.hz.get(), Some(&Hz::new(expected.hz)), "{tree}");
        assert_eq!(facts.tick.mode.get(), Some(&expected.mode), "{tree}");
        let cpus = |fact: &facts::Fact<units::CpuSet>| match fact.value() {
            Ok(cpus) => Ok(cpus.to_string()),
            Err(unknown) => Err(unknown.code),
        };
        let as_text = |result: Result<&str, Why>| result.map(str::to_owned);
        assert_eq!(cpus(&facts.tick.nohz_full), as_text(expected.nohz_full), "{tree}");
        let housekeeping = as_text(expected.housekeeping);
        assert_eq!(cpus(&facts.cpus.housekeeping), housekeeping, "{tree}");
        assert_eq!(facts.kernel.flavour.get(), Some(&expected.flavour), "{tree}");
        assert_eq!(facts.kernel.arch.get().unwrap(), expected.arch, "{tree}");
        let config = facts.kernel.config.get().unwrap();
        assert!(config.starts_with(expected.config), "{tree}: {config}");
        assert_eq!(facts.preempt.model.get(), Some(&expected.model), "{tree}");
        assert_eq!(facts.preempt.chosen.get(), Some(&expected.chosen), "{tree}");
        let inert = facts.boot.inert.get().unwrap().iter();
        let inert: Vec<_> = inert.map(|p| (p.parameter.as_str(), p.why)).collect();
        assert_eq!(inert, expected.inert, "{tree}");
    }
}

/// Check the scheduler of a guest in which a program loaded one of sched_ext; that a kernel with sched_ext has
/// none without such a program; and the reasons of kernels that are not built with it, or older.
#[test]
fn schedulers_of_sched_ext() {
    let loaded = read("debian-7.3-scx").sched;
    assert_eq!(loaded.ext_scheduler(), Some(("simple", true)));
    assert_eq!(loaded.policy.get().unwrap(), "simple");
    assert_eq!(loaded.ext_class.get(), Some(&true));
    assert_eq!(loaded.ext_enable_seq.get(), Some(&1));
    assert_eq!(loaded.ext_nr_rejected.get(), Some(&0));
    let own = read("debian-7.2").sched;
    assert_eq!(own.ext_state.get().unwrap(), "disabled");
    assert_eq!(
        (own.ext_scheduler(), own.policy.get().unwrap().as_str()),
        (None, "eevdf")
    );
    assert_eq!(own.ext_ops.value().unwrap_err().code, Why::NotApplicable);
    for (tree, code) in [("debian-6.12", Why::NotConfigured), ("debian-6.1", Why::TooOld)]
    {
        let sched = read(tree).sched;
        assert_eq!(sched.ext_state.value().unwrap_err().code, code, "{tree}");
        assert_eq!(sched.ext_ops.value().unwrap_err().code, code, "{tree}");
        assert_eq!(sched.ext_scheduler(), None);
    }
}

/// Check the quota of a session, how often it was used up, and the pressure of the session and of the
/// machine; and that a hybrid layout, in which no file of the controller was recorded, has reasons.
#[test]
fn quota_and_pressure() {
    let facts = read("ubuntu-24.04");
    let session = "/sys/fs/cgroup/user.slice/user-0.slice/session-1.scope";
    let quota = facts.cgroup.quota.get().unwrap();
    assert_eq!(quota.cgroup, session);
    assert_eq!((quota.quota_us, quota.period_us), (150_000, 100_000));
    assert_eq!(quota.burst_us, Some(20_000));
    let throttling = facts.cgroup.throttling.get().unwrap();
    assert_eq!((throttling.times, throttling.periods), (17, 120));
    assert_eq!((throttling.ns, throttling.burst_ns), (871_204_000, Some(41_000_000)));
    assert_eq!(facts.pressure.cgroup_cpu.get().unwrap().some.total_us, 1_204_331);
    assert_eq!(facts.pressure.io.get().unwrap().full.unwrap().total_us, 2_911_854);
    let hybrid = read("firecracker-6.18");
    assert_eq!(hybrid.cgroup.layout.get().unwrap(), "hybrid");
    assert!(hybrid.cgroup.throttling.get().is_none());
    assert!(hybrid.pressure.cgroup_cpu.get().is_none());
}

/// Check that no tree has invalid files, and that facts of all kernels are known.
#[test]
fn trees_are_valid() {
    for (tree, root) in trees() {
        let facts = Facts::read(&root);
        assert_eq!(facts.garbage(), [], "{tree}");
        for key in ["kernel.release", "kernel.version", "cpus.online", "cpus.allowed"] {
            let page = facts.page();
            let entry = page.entries().iter().find(|entry| entry.key == key).unwrap();
            assert!(entry.value.is_ok(), "{tree}: {entry:?}");
        }
    }
}

/// Check that facts are unchanged after serialization as JSON.
#[test]
fn json_round_trip() {
    for (tree, root) in trees() {
        let facts = Facts::read(&root);
        let text = serde_json::to_string(&facts).unwrap();
        let back: Facts = serde_json::from_str(&text).unwrap();
        assert_eq!(back, facts, "{tree}");
    }
}

fn record(root: &Root, dir: &Path) -> usize {
    facts::record(root, dir, fs::File::open(dir).unwrap()).unwrap()
}

/// Check that a tree recorded from a tree has the same facts: nothing that facts use is missing or
/// redacted.
#[test]
fn recorded_trees_have_the_same_facts() {
    for (tree, root) in trees() {
        let facts = Facts::read(&root);
        let copy = tempfile::tempdir().unwrap();
        let files = record(&root, copy.path());
        assert!(files > 10, "{tree}: {files} files");
        let again = Facts::read(&Root::tree(copy.path()).unwrap());
        for (one, other) in facts.page().entries().iter().zip(again.page().entries()) {
            assert_eq!(one, other, "{tree}");
        }
        assert!(copy.path().join(&Interrupts::FILE[1..]).is_file(), "{tree}");
    }
}

/// Check that the recorded tree of this machine has the same facts, except for changes in the
/// meantime.
#[test]
fn recorded_machines_have_the_same_facts() {
    let root = Root::live();
    let facts = Facts::read(&root);
    let copy = tempfile::tempdir().unwrap();
    record(&root, copy.path());
    let again = Facts::read(&Root::tree(copy.path()).unwrap());
    assert_eq!(facts.garbage(), []);
    for (one, other) in facts.page().entries().iter().zip(again.page().entries()) {
        let only_live = one.source == "uname(2)";
        assert!(only_live || one == other, "{one:?} is not {other:?}");
    }
}

/// Check that a recorded tree has no values of parameters that may be secret.
#[test]
fn recorded_trees_have_no_secrets() {
    let root = Root::tree(&fixtures().join("ubuntu-24.04")).unwrap();
    let copy = tempfile::tempdir().unwrap();
    record(&root, copy.path());
    for file in ["proc/cmdline", "dev/kmsg"] {
        let text = fs::read_to_string(copy.path().join(file)).unwrap();
        assert!(!text.contains("UUID") && text.contains("divider=10"), "{file}: {text}");
    }
}

/// Check RHEL 5's divider: effective with a warning on RHEL 5, inert on a current kernel with a
/// text about its replacement.
#[test]
fn divider() {
    let old = read("rhel5-divider").tick.divider;
    let old = old.get().unwrap().as_ref().unwrap();
    assert_eq!((old.asked.as_str(), old.effective_hz), ("10", Some(Hz::new(100))));
    assert!(old.text.contains("could panic"), "{}", old.text);
    let new = read("ubuntu-24.04").tick.divider;
    let new = new.get().unwrap().as_ref().unwrap();
    assert_eq!((new.asked.as_str(), new.effective_hz), ("10", None));
    assert!(new.text.contains("NO_HZ_IDLE") && new.text.contains("CONFIG_HZ"));
    assert_eq!(read("kernel-7.2").tick.divider.get(), Some(&None));
}

/// Check the energy counters of a package and its parts, and that a machine without them has none.
#[test]
fn energy() {
    let zones =
        |tree: &str| facts::energy_zones(&Root::tree(&fixtures().join(tree)).unwrap());
    let found = zones("ubuntu-24.04").unwrap();
    let found: Vec<_> = found
        .iter()
        .map(|zone| (zone.name.as_str(), zone.energy_uj, zone.range_uj))
        .collect();
    let expected = [
        ("package-0", 93_270_551_814, 262_143_328_850),
        ("package-0 core", 21_745_660_205, 262_143_328_850),
        ("package-0 dram", 5_601_117_218, 65_712_999_613),
    ];
    assert_eq!(found, expected);
    assert_eq!(zones("arm64").unwrap_err().code, Why::Absent);
}

/// Check what slows a processor down, and the reasons of machines without these counts.
#[test]
fn hardware() {
    let metal = read("ubuntu-24.04").hardware;
    assert_eq!(metal.smi_event.get().unwrap(), "msr/smi/");
    assert_eq!(metal.frequency_source.get().unwrap(), "msr/aperf/, msr/mperf/");
    assert_eq!(
        (metal.base_khz.get(), metal.turbo.get()),
        (Some(&2_600_000), Some(&true))
    );
    assert_eq!(
        (metal.heat_throttles.get(), metal.power_limits.get()),
        (Some(&5), Some(&0))
    );
    for tree in ["arm64", "rhel5-divider"] {
        let why = read(tree).hardware.smi_event.value().unwrap_err().clone();
        assert_eq!((why.code, why.text.as_str()), (Why::Absent, "no msr PMU"), "{tree}");
    }
    let guest = read("firecracker-6.18").hardware;
    let why = guest.heat_throttles.value().unwrap_err();
    assert!(why.text.ends_with(": a virtual machine (KVM)"), "{why}");
}

/// Check cores, caches, packages and nodes, from lists and from masks of old kernels.
#[test]
fn topology() {
    let sets = |fact: &facts::Fact<Vec<units::CpuSet>>| -> Vec<String> {
        fact.get().unwrap().iter().map(ToString::to_string).collect()
    };
    let ubuntu = read("ubuntu-24.04").cpus;
    assert_eq!(sets(&ubuntu.cores), ["0,1", "2,3"]);
    assert_eq!(sets(&ubuntu.caches), ["0-3"]);
    assert_eq!(sets(&ubuntu.memory_nodes), ["0-3"]);
    assert!(ubuntu.smt.get().unwrap().active);
    let old = read("rhel5-divider").cpus;
    assert_eq!(sets(&old.cores), ["0", "1"]);
    assert_eq!(sets(&old.packages), ["0,1"]);
    assert_eq!(sets(&old.nodes), ["0,1"]);
    assert_eq!(old.online.source(), "/proc/cpuinfo");
}

/// Check that invalid contents of any file are handled, and reported for the most important files.
#[test]
fn invalid_files_are_reported() {
    let named = [
        "proc/sys/kernel/osrelease",
        "usr/lib/modules/7.2.13-amd64/config",
        "dev/kmsg",
        "sys/devices/system/cpu/online",
        "sys/devices/system/cpu/nohz_full",
        "sys/kernel/debug/sched/preempt",
    ];
    for file in named {
        let copy = tempfile::tempdir().unwrap();
        record(&Root::tree(&fixtures().join("kernel-7.2")).unwrap(), copy.path());
        fs::write(copy.path().join(file), b"\xff\x00 garbage\n").unwrap();
        let garbage = Facts::read(&Root::tree(copy.path()).unwrap()).garbage();
        let names =
            |entry: &facts::Entry| entry.value.as_ref().unwrap_err().text.contains(file);
        assert!(garbage.iter().any(names), "{file}: {garbage:?}");
    }
}
