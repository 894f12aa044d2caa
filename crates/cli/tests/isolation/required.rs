//! Isolation that is required is reached, or the command fails before it starts anything.

use std::fs;

use serde_json::Value;

use crate::{alone, cpu, output, settings, text};

/// Whether a partition can be created here, according to the facts.
fn can_partition() -> bool {
    facts::Facts::read(&facts::Root::live()).can_partition()
}

/// `run` of this test's own program, as guests have no other, with these options: whether it was
/// started, the exit code, and what was printed.
fn started(options: &[&str]) -> (bool, Option<i32>, String) {
    let program = std::env::current_exe().unwrap();
    let program = ["--", program.to_str().unwrap(), "--list"];
    let done = output(&[&["run"], options, &program[..]].concat());
    let is_started = text(&done.stdout).contains("required::partition");
    (is_started, done.status.code(), text(&done.stderr))
}

/// Check that a program with a required partition runs in one, or is not started: exit code 3, and
/// what would help; and that the program runs with a warning if the partition is not required.
#[test]
fn partition() {
    let Some(cpu) = cpu("partition") else { return };
    let _alone = alone();
    let before = settings::now();
    let required = started(&["-c", &cpu, "--partition", "--require"]);
    let preferred = started(&["-c", &cpu, "--partition"]);
    assert_eq!(settings::changed(&before, &settings::now()), [""; 0]);
    let warning = "was not isolated as requested: no isolated partition";
    assert_eq!((preferred.0, preferred.1), (true, Some(0)), "{}", preferred.2);
    match can_partition() {
        true => {
            assert_eq!((required.0, required.1), (true, Some(0)), "{}", required.2);
            assert!(!preferred.2.contains(warning), "{}", preferred.2);
        }
        false => {
            assert_eq!((required.0, required.1), (false, Some(3)), "{}", required.2);
            let text = &required.2;
            assert!(
                text.contains("failed to isolate CPU") && text.contains("hint: "),
                "{text}"
            );
            assert!(preferred.2.contains(warning), "{}", preferred.2);
        }
    }
}

/// Check that a measurement has a doubt if its CPU is not isolated as requested, and does not begin
/// if that is required.
#[test]
fn measurements() {
    let Some(cpu) = cpu("measurements") else { return };
    let _alone = alone();
    let latency = ["latency", "-c", &cpu, "-d", "100ms", "--partition", "--json"];
    let done = output(&latency);
    let json: Value = serde_json::from_slice(&done.stdout).unwrap();
    let doubts = json["doubts"].as_array().unwrap();
    let has_doubt = doubts.iter().any(|doubt| doubt["code"] == "not_isolated");
    assert_eq!(has_doubt, !can_partition(), "{doubts:?}");
    let required = output(&[&latency[..], &["--require"]].concat());
    let code = if can_partition() { 0 } else { 3 };
    assert_eq!(required.status.code(), Some(code), "{}", text(&required.stderr));
    assert_eq!(required.stdout.is_empty(), !can_partition());
}

/// Check that interrupts that cannot be moved are an error only if they are delivered to the CPU.
#[test]
fn interrupts() {
    let Some(cpu) = cpu("interrupts") else { return };
    let _alone = alone();
    let facts = facts::Facts::read(&facts::Root::live());
    let Some(fixed) = facts.irq.fixed.get() else {
        println!("skipped: interrupts: the kernel does not show which cannot be moved");
        return;
    };
    let is_here = |irq: &&u32| {
        let file = format!("/proc/irq/{irq}/effective_affinity_list");
        let cpus: units::CpuSet =
            fs::read_to_string(file).unwrap().trim().parse().unwrap();
        cpus.contains(cpu.parse().unwrap())
    };
    let stuck = || fixed.iter().filter(is_here).collect::<Vec<_>>();
    let before = stuck();
    let (is_started, code, text) = started(&["-c", &cpu, "--irqs", "--require"]);
    if stuck() != before {
        println!("skipped: interrupts: the kernel has moved some (a CPU was offline)");
        return;
    }
    match before.first() {
        None => assert_eq!((is_started, code), (true, Some(0)), "{text}"),
        Some(irq) => {
            assert_eq!((is_started, code), (false, Some(3)), "{text}");
            assert!(
                text.contains(&format!("/proc/irq/{irq}/smp_affinity_list")),
                "{text}"
            );
        }
    }
}
