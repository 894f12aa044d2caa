//! Parsing of experiments: their cells, the built-in ones, and changes to them.
#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use experiments::{CellPlan, Experiment, MachineKind};
use recording::{Mode, Ready, Source, Spec};
use units::{Cpu, Nanos};

/// Two kernels, three boot rows, two settings rows, three workloads.
const TABLE: &str = r#"
    name = "table"
    about = "all that there is"
    kernels = ["a", "b"]
    repeats = 2

    [machine]
    memory_mib = 128

    [[boot]]

    [[boot]]
    name = "two"
    append = "nohz=off"
    cpus = 2
    cpu = "max"
    type = "microvm"
    memory_mib = 512

    [[setting]]

    [[setting]]
    name = "rt"
    write = { "/sys/z" = "2", "/proc/sys/a" = "-1", "/sys/b" = "x" }

    [[workload]]
    name = "spin"
    noise = { cpu = "last", duration = "1.5s", threshold = "2us", fifo = 7 }
    background = [{ cpu = 0, spinners = 3 }]
    trace = "bpf"

    [[workload]]
    name = "rest"
    ticks = { cpu = 0, duration = "250ms" }
    boots = [""]

    [[workload]]
    name = "ask"
    calls = { cpu = 1, calls = ["fork", "getpid"], repeats = 9 }
    boots = ["two"]
"#;

fn table() -> Experiment {
    Experiment::parse(TABLE, "table.toml").unwrap()
}

fn names(experiment: &Experiment) -> Vec<&str> {
    let first = &experiment.cells()[0];
    let same = |plan: &&CellPlan| plan.kernel == first.kernel && plan.repeat == 1;
    experiment.cells().iter().filter(same).map(|plan| plan.name.as_str()).collect()
}

fn changed(experiment: &Experiment, changes: &[&str]) -> Experiment {
    let changes: Vec<String> = changes.iter().map(|&change| change.into()).collect();
    experiment.clone().with_changes(&changes).unwrap()
}

/// Why changes to the table are refused.
fn refused(changes: &[&str]) -> String {
    let changes: Vec<String> = changes.iter().map(|&change| change.into()).collect();
    let error = table().with_changes(&changes).unwrap_err();
    units::chain(&error)
}

/// Check that every combination is a cell, in order of the rows, repeats last.
#[test]
fn every_combination() {
    let table = table();
    let here =
        ["spin", "rest", "rt spin", "rt rest", "two spin", "two ask", "two rt spin"];
    assert_eq!(names(&table), [&here[..], &["two rt ask"]].concat());
    let order = table.cells().iter().map(|plan| (plan.kernel.as_str(), plan.repeat));
    let order: Vec<_> = order.collect();
    assert_eq!(order[..3], [("a", 1), ("a", 2), ("a", 1)]);
    assert_eq!(order.len(), 32);
    assert_eq!(order[16], ("b", 1));
}

/// Check that a cell has the values of its rows, and that a boot row's machine overrides the
/// table's.
#[test]
fn one_cell() {
    let table = table();
    let find = |name: &str| table.cells().iter().find(|plan| plan.name == name).unwrap();
    let plan = find("two rt spin");
    assert_eq!((plan.params.as_str(), plan.mode), ("nohz=off", Mode::Exact));
    let machine = &plan.machine;
    assert_eq!((machine.kind, machine.cpu.as_str()), (MachineKind::Microvm, "max"));
    assert_eq!((machine.cpus, machine.memory_mib), (2, 512));
    let settings =
        plan.settings.iter().map(|set| (set.path.as_str(), set.value.as_str()));
    let written = [("/sys/z", "2"), ("/proc/sys/a", "-1"), ("/sys/b", "x")];
    assert_eq!(settings.collect::<Vec<_>>(), written);
    assert_eq!((plan.background[0].cpu, plan.background[0].spinners), (Cpu::new(0), 3));
    assert_eq!((plan.watch, find("rest").watch), (Some(Source::Bpf), None));
    let Spec::Noise(noise) = &plan.spec else { panic!("{:?}", plan.spec) };
    assert_eq!((noise.cpus.to_string(), noise.fifo), ("1".to_owned(), Some(7)));
    assert_eq!(noise.duration_ns, Nanos::from_millis(1500));
    assert_eq!(noise.threshold_ns, Some(Nanos::from_micros(2)));
    let words = "noise for 1.5s on CPU 1, SCHED_FIFO 7, gaps from 2us, beside 3 spinning \
                 on CPU 0";
    assert_eq!(plan.workload, words);
    let plain = &find("spin").machine;
    assert_eq!((plain.kind, plain.cpu.as_str()), (MachineKind::Pc, "qemu64,-rdrand"));
    assert_eq!((plain.cpus, plain.memory_mib), (1, 128));
}

/// Check that ticks and calls become the agent's tasks.
#[test]
fn tasks() {
    let table = table();
    let find = |name: &str| table.cells().iter().find(|plan| plan.name == name).unwrap();
    let Spec::Ticks(ticks) = &find("rest").spec else { panic!("no ticks") };
    let eighth = Nanos::from_micros(31_250);
    assert_eq!((ticks.interval_ns, ticks.count), (eighth, Some(8)));
    let Spec::Calls(calls) = &find("two ask").spec else { panic!("no calls") };
    assert_eq!((calls.cpu, calls.calls.len(), calls.repeats), (Cpu::new(1), 2, 9));
    assert_eq!(find("two ask").workload, "2 calls, 9 times each, on CPU 1");
}

/// Check that a boot row can be for some kernels only, and that wake-ups become the agent's task.
#[test]
fn boots_of_kernels() {
    let text = r#"
        name = "x"
        kernels = ["a", "b"]
        [[boot]]
        [[boot]]
        name = "full"
        append = "nohz_full=1"
        kernels = ["b"]
        [[workload]]
        name = "wake"
        latency = { cpu = 0, interval = "9973us", duration = "10s", fifo = 50 }
    "#;
    let table = Experiment::parse(text, "x.toml").unwrap();
    let cells = table.cells().iter();
    let cells: Vec<_> =
        cells.map(|plan| (plan.kernel.as_str(), plan.name.as_str())).collect();
    assert_eq!(cells, [("a", "wake"), ("b", "wake"), ("b", "full wake")]);
    let Spec::Latency(latency) = &table.cells()[0].spec else { panic!("no latency") };
    assert_eq!((latency.interval_ns, latency.fifo), (Nanos::from_micros(9973), Some(50)));
    let words = "wake-ups every 9973us for 10s on CPU 0, SCHED_FIFO 50";
    assert_eq!(table.cells()[0].workload, words);
    let shorter = changed(&table, &["seconds=2"]);
    let Spec::Latency(latency) = &shorter.cells()[0].spec else { panic!("no latency") };
    assert_eq!(latency.duration_ns, Nanos::from_secs(2));
}

/// Check that exact cells are measured in phases, as many as requested, with different offsets, and
/// timed ones in one.
#[test]
fn phases() {
    let phases = |changes: &[&str]| {
        let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
        let table = table().with_changes(&changes).unwrap();
        let spin = table.cells().iter().find(|plan| plan.name == "spin").unwrap();
        let Spec::Noise(noise) = &spin.spec else { panic!("no noise") };
        noise.phases
    };
    let eight = phases(&[]).unwrap();
    let mut starts: Vec<Nanos> =
        (0..eight.count).map(|part| eight.start(part, Nanos::ZERO)).collect();
    starts.sort_unstable();
    starts.dedup();
    assert_eq!(starts.len(), 8);
    assert_eq!(phases(&["phases=3"]).map(|phases| phases.count), Some(3));
    assert_eq!(phases(&["mode=timed"]), None);
}

/// Check the built-in experiments' cells.
#[test]
fn builtins() {
    let all = Experiment::builtins().unwrap();
    let message: Vec<_> = all.iter().map(|built| (built.name(), names(built))).collect();
    let calls = [
        "calls",
        "mitigations=auto calls",
        "mitigations=off calls",
        "audit=0 calls",
        "audit=1 calls",
        "nohz_full=1 calls",
    ];
    let idle = ["nohz=on idle", "nohz=off idle", "nohz_full=1 idle", "highres=off idle"];
    let delays = [
        "highres=on ordinary",
        "highres=on fifo",
        "highres=off ordinary",
        "highres=off fifo",
    ];
    let pages = [
        "nginx-2k",
        "nginx-80k",
        "nginx-10m",
        "lighttpd-2k",
        "lighttpd-80k",
        "lighttpd-10m",
    ];
    let probes = [
        "tick",
        "tick-bpf",
        "tick-classic",
        "tick-tracefs",
        "switch",
        "switch-bpf",
        "switch-classic",
        "switch-tracefs",
    ];
    // Those of its first kernel, one setting row after the other.
    let rows = ["", "gentle=off ", "wakeup=off "].map(|setting| {
        ["alone", "one", "both", "getrusage-alone", "getrusage-both", "read"]
            .map(|workload| format!("{setting}{workload}"))
    });
    let others = ["two ", "two wakeup=off ", "nohz=off "].map(|setting| {
        ["alone", "one", "both"].map(|workload| format!("{setting}{workload}"))
    });
    let slices: Vec<String> =
        rows.into_iter().flatten().chain(others.into_iter().flatten()).collect();
    let schedulers = ["", "simple ", "lavd ", "rusty "].map(|setting| {
        ["alone", "one", "both"].map(|workload| format!("{setting}{workload}"))
    });
    let schedulers = schedulers.as_flattened();
    let trim = [
        "tick-cost other",
        "syscalls calls",
        "web nginx-2k",
        "wake-delay highres=on fifo",
    ];
    let expected = [
        ("tick-cost", vec!["other", "fifo", "nohz=off idle"]),
        ("idle-cost", idle.to_vec()),
        ("idle-hz", vec!["nohz=off idle", "nohz=on idle"]),
        ("wake-delay", delays.to_vec()),
        ("syscalls", calls.to_vec()),
        ("nohz-entry", vec!["plain", "forced"]),
        ("slices", slices.iter().map(String::as_str).collect()),
        ("schedulers", schedulers.iter().map(String::as_str).collect()),
        ("web", pages.to_vec()),
        ("trim", trim.to_vec()),
        ("probe-cost", probes.to_vec()),
        ("atlas", vec!["tick", "idle", "calls", "slices"]),
    ];
    assert_eq!(message, expected);
}

/// Check the first and the last kernel of each built-in experiment, and that it is found by name.
#[test]
fn kernels_of_builtins() {
    let all = Experiment::builtins().unwrap();
    for built in &all {
        assert!(!built.about().is_empty());
        assert_eq!(Experiment::builtin(built.name()).unwrap().text(), built.text());
        let kernels = [&built.cells()[0].kernel, &built.cells().last().unwrap().kernel];
        let long = match built.name() {
            "trim" => Some(["build:debian:6.1,debian", ",name=to-tickless"]),
            "web" => Some(["debian:6.1-cloud", ",name=trimmed"]),
            _ => None,
        };
        if let Some([first, end]) = long {
            assert_eq!(kernels[0], first);
            assert!(kernels[1].ends_with(end), "{}", kernels[1]);
            continue;
        }
        let expected = match built.name() {
            "nohz-entry" | "probe-cost" => ["debian:6.1-cloud", "debian:6.12-rt"],
            "atlas" => ["debian:5.10-cloud", "debian:7.3-rt"],
            "schedulers" => ["debian:7.3-cloud"; 2],
            "idle-hz" => [
                "build:debian:6.1,lean,HZ=1000",
                "build:debian:6.1,lean,HZ=1000,NO_HZ=full",
            ],
            "wake-delay" => {
                ["build:debian:6.1,lean,HZ=1000", "build:debian:6.1,lean,HZ=40"]
            }
            _ => ["debian:6.1-cloud", "debian:6.12-cloud"],
        };
        assert_eq!(kernels, expected);
    }
}

/// Check that an unknown name is refused with those that exist, and an impossible change with the
/// experiment's name.
#[test]
fn refused_builtins() {
    let all = Experiment::builtins().unwrap();
    let message = Experiment::builtin("tick").unwrap_err().to_string();
    let there = "there are tick-cost, idle-cost, idle-hz, wake-delay, syscalls, nohz-entry, slices, \
                 schedulers, web, trim, probe-cost and atlas";
    let file = "a file is named with its ending: ./tick.toml";
    assert_eq!(message, format!("no experiment 'tick': {there}; {file}"));
    let host = all[0].clone().with_changes(&["cpu=host".to_owned()]).unwrap_err();
    let message = "with cpu=host: the built-in tick-cost: exact mode";
    assert!(units::chain(&host).starts_with(message), "{host}");
}

/// Check that each cell of `schedulers` but the first ones has the program of a scheduler beside its
/// processes, with a hint for a machine without it; that it is ready once the kernel has enabled it; and
/// that cells of one workload differ in nothing else.
#[test]
fn schedulers_are_services() {
    let experiment = Experiment::builtin("schedulers").unwrap();
    let (own, others) = experiment.cells().split_at(3);
    for plan in own {
        assert_eq!((plan.services.len(), &plan.files), (0, &None), "{}", plan.name);
    }
    assert_eq!(others.len(), 9);
    for (plan, same) in others.iter().zip(own.iter().cycle()) {
        let [service] = plan.services.as_slice() else { panic!("{}", plan.name) };
        let program = service.command.program().unwrap().to_str().unwrap();
        assert_eq!(program, service.name);
        let state = "/sys/kernel/sched_ext/state".to_owned();
        let enabled = Ready::Text { file: state, text: "enabled".to_owned() };
        assert_eq!(service.ready.as_ref(), Some(&enabled));
        let files = plan.files.as_ref().unwrap();
        let [(of, hint)] = files.hints.as_slice() else { panic!("{}", plan.name) };
        let name = program.strip_prefix("scx_").unwrap();
        assert!(of == program && hint.contains("scripts/schedulers"), "{hint}");
        assert!(hint.contains(name) && files.grows, "{hint}");
        assert_eq!(plan.name, format!("{name} {}", same.name));
        assert_eq!((&plan.spec, &plan.machine), (&same.spec, &same.machine));
    }
}

/// Check that the CPU without a tick is measured, and that cells to be compared differ only in
/// their boot parameters.
#[test]
fn nohz_full_measures_its_cpu() {
    let idle = Experiment::builtin("idle-cost").unwrap();
    let Spec::Ticks(ticks) = &idle.cells()[0].spec else { panic!("no ticks") };
    assert_eq!(ticks.cpus.to_string(), "1");
    for plan in idle.cells() {
        assert_eq!(plan.spec, idle.cells()[0].spec, "{}", plan.name);
        assert_eq!(plan.machine, idle.cells()[0].machine, "{}", plan.name);
    }
}

/// Check that the cells of `probe-cost` differ from an untraced one only in the tracing.
#[test]
fn probes_are_compared() {
    let probes = Experiment::builtin("probe-cost").unwrap();
    let of = |kind: &str| {
        let cells = probes.cells().iter();
        cells.filter(|plan| plan.name.starts_with(kind)).collect::<Vec<_>>()
    };
    for cells in [of("tick"), of("switch")] {
        assert_eq!(cells.len(), 16);
        for plan in cells.iter().filter(|plan| plan.kernel == cells[0].kernel) {
            assert_eq!(
                (&plan.spec, &plan.workload),
                (&cells[0].spec, &cells[0].workload)
            );
            assert_eq!(plan.watch.is_none(), plan.name == cells[0].name, "{}", plan.name);
        }
    }
}

/// Check that a kernel to build may be a table, which becomes its name, and that mistakes in it have
/// their line.
#[test]
fn kernels_to_build() {
    let parse = |kernels: &str| {
        let text = TABLE.replace("[\"a\", \"b\"]", kernels);
        Experiment::parse(&text, "table.toml")
    };
    let all = parse(
        r#"["a", { source = "debian:6.1" }, { source = "./linux", base = "debian", name = "x",
        options = { NO_HZ = "off", HZ = 40, AUDIT = false }, fragments = ["f.config"] }]"#,
    );
    let all = all.unwrap();
    let mut kernels: Vec<&str> =
        all.cells().iter().map(|cell| cell.kernel.as_str()).collect();
    kernels.dedup();
    let expected = [
        "a",
        "build:debian:6.1,lean",
        "build:./linux,debian,f.config,AUDIT=n,HZ=40,NO_HZ=off,name=x",
    ];
    assert_eq!(kernels, expected);
    for (kernels, part) in [
        ("[{ base = \"lean\" }]", "missing field `source`"),
        ("[{ source = \"debian:6.1\", sauce = 1 }]", "unknown field `sauce`"),
        ("[{ source = \"debian:6.1-rt\" }]", "'6.1-rt' is no source of Debian's"),
        ("[{ source = \"x\", fragments = [\"a,b\"] }]", "must not contain a comma"),
        ("[{ source = \"x\", options = { HZ = \"fast\" } }]", "HZ must be a number"),
        ("[{ source = \"x\", options = { HZ = 1.5 } }]", "expected a string, a number"),
        ("[\"build:\"]", "has no source"),
    ] {
        let error = units::chain(&parse(kernels).unwrap_err());
        assert!(error.contains(part) && error.contains("table.toml:4"), "{error}");
    }
}

/// Check that other kernels replace the table's, each once, and that an empty list does not.
#[test]
fn other_kernels() {
    let kernels = |names: &[&str]| {
        let names: Vec<String> = names.iter().map(|&name| name.into()).collect();
        let cells = table().with_kernels(&names).unwrap().cells().to_vec();
        let mut kernels: Vec<String> =
            cells.into_iter().map(|cell| cell.kernel).collect();
        kernels.dedup();
        kernels
    };
    assert_eq!(kernels(&["/boot/vmlinuz", "c", "c"]), ["/boot/vmlinuz", "c"]);
    assert_eq!(kernels(&[]), ["a", "b"]);
    let error = table().with_kernels(&[String::new()]).unwrap_err().to_string();
    assert!(error.contains("not a kernel"), "{error}");
}

/// Check that each change reaches all cells, also those whose row specifies another value.
#[test]
fn changes() {
    let all = ["machine=pc", "cpu=max,-x", "cpus=4", "memory_mib=99", "append=a=\"b c\""];
    let more = ["mode=timed", "repeats=1", "seconds=0.5", "calls_repeats=3"];
    let changed = changed(&table(), &[&all[..], &more[..]].concat());
    assert_eq!(changed.cells().len(), 16);
    for plan in changed.cells() {
        let machine = &plan.machine;
        assert_eq!((machine.kind, machine.cpu.as_str()), (MachineKind::Pc, "max,-x"));
        assert_eq!((machine.cpus, machine.memory_mib), (4, 99));
        assert_eq!(plan.mode, Mode::Timed);
        let two = plan.name.starts_with("two");
        assert_eq!(plan.params, if two { "nohz=off a=\"b c\"" } else { "a=\"b c\"" });
        if let Spec::Noise(noise) = &plan.spec {
            assert_eq!(noise.duration_ns, Nanos::from_millis(500));
        } else if let Spec::Ticks(ticks) = &plan.spec {
            assert_eq!(ticks.interval_ns, Nanos::from_millis(500));
        } else if let Spec::Calls(calls) = &plan.spec {
            assert_eq!(calls.repeats, 3);
        } else {
            panic!("not in the table: {:?}", plan.spec);
        }
    }
}

/// Check that one workload or one boot row can be selected, with what runs with it.
#[test]
fn only_one() {
    assert_eq!(names(&changed(&table(), &["workload=ask"])), ["two ask", "two rt ask"]);
    let two = changed(&table(), &["boot=two", "workload=spin", "duration=2ms"]);
    assert_eq!(names(&two), ["two spin", "two rt spin"]);
    let plain = ["spin", "rest", "rt spin", "rt rest"];
    assert_eq!(names(&changed(&table(), &["boot="])), plain);
    let idle = Experiment::builtin("idle-cost").unwrap();
    assert_eq!(names(&changed(&idle, &["boot=nohz=off"])), ["nohz=off idle"]);
}

/// Check that changes are checked together, not one after the other.
#[test]
fn together() {
    assert_eq!(names(&changed(&table(), &["cpus=1", "workload=rest"])).len(), 2);
    let message = refused(&["cpus=1"]);
    assert!(
        message.starts_with("with cpus=1: table.toml:39:21: no CPU 1: "),
        "{message}"
    );
    let message = refused(&["cpu=host"]);
    assert!(
        message.starts_with("with cpu=host: table.toml: exact mode emulates"),
        "{message}"
    );
}

/// Check that the message for an invalid change names it, and the valid ones.
#[test]
fn refuses_changes() {
    for (change, why) in [
        (
            "fifo=3",
            "fifo=3: no key 'fifo': there are seconds, duration, repeats, phases, ",
        ),
        ("seconds", "seconds: write key=value; keys are seconds, "),
        ("seconds=2s", "seconds=2s: '2s' is not a number of seconds"),
        ("seconds=0", "seconds=0: 0s is not a length of more than 0s and at most 1h"),
        ("duration=9", "duration=9: '9' is not a length of time"),
        ("repeats=x", "repeats=x: 'x' is not a number from 1 to 1000"),
        ("phases=65", "phases=65: '65' is not a number from 1 to 64"),
        ("mode=fast", "mode=fast: 'fast' is no mode: exact or timed"),
        ("machine=q35", "machine=q35: 'q35' is no machine: pc or microvm"),
        ("cpus=9", "cpus=9: '9' is not a number from 1 to 8"),
        ("append=init=/x", "append=init=/x: the lab itself sets init="),
        ("workload=x", "workload=x: no workload 'x': there are 'spin', 'rest', 'ask'"),
        (
            "boot=x",
            "boot=x: no boot row 'x': there are '' (the row without a name), 'two'",
        ),
    ] {
        let message = refused(&[change]);
        assert!(message.starts_with(why), "{message}\ninstead of\n{why}");
    }
    let message = refused(&["workload=ask", "seconds=2"]);
    assert_eq!(message, "seconds=2: no workload has a duration");
    let message = refused(&["workload=rest", "calls_repeats=2"]);
    assert_eq!(message, "calls_repeats=2: no workload makes calls");
}

/// Check that the manual's example is an experiment with the cells that the manual names.
#[test]
fn the_manuals_example() {
    let manual = include_str!("../../../docs/experiments.md");
    let example = manual.split("```").find_map(|part| part.strip_prefix("toml\n"));
    let example = Experiment::parse(example.unwrap(), "experiments.md").unwrap();
    let cells = ["fifo", "crowd", "nohz=off idle", "rt-unlimited fifo"];
    assert_eq!(names(&example).len(), 8);
    for cell in cells {
        assert!(names(&example).contains(&cell), "{cell}: {:?}", names(&example));
    }
    assert!(!example.limits().is_empty());
}
