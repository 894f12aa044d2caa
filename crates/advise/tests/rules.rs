//! Each rule holds on the machine of its row where it should, and does not on the other one.
//!
//! Kernels, configurations, boot parameters, settings and services are files of a recorded tree, so that it is
//! facts that are judged. The rest of a case are the answers themselves.
#![expect(clippy::unwrap_used, reason = "an error in a helper fails the test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use advise::{Answer, Holds, Machine, Rule, tables};
use facts::{Facts, Root};

/// Subjects that no file of a case has, with the values of a plain machine; `None`: absent.
const PLAIN: [(&str, Option<&str>); 13] = [
    ("vms", Some("no")),
    ("arch", Some("x86_64")),
    ("guest", Some("no")),
    ("hypervisor", None),
    ("container", Some("no")),
    ("rt", Some("no")),
    ("cpus", Some("8")),
    ("nodes", Some("1")),
    ("packages", Some("1")),
    ("smt", Some("no")),
    ("isolated", Some("0")),
    ("preempt", Some("voluntary")),
    ("cgroup", Some("v2")),
];

/// A case of a rule: its subjects and values.
fn case(rule: &Rule, assignments: &[String]) -> BTreeMap<String, String> {
    let plain = (6, 12, 0);
    let kernel =
        if rule.kernels.contains(plain) { plain } else { rule.kernels.some_version() };
    let kernel = ("kernel".to_owned(), format!("{}.{}.{}", kernel.0, kernel.1, kernel.2));
    let given = assignments.iter().map(|text| {
        let (subject, value) = text
            .split_once('=')
            .unwrap_or_else(|| panic!("{}: '{text}' is not SUBJECT = VALUE", rule.name));
        (subject.trim().to_owned(), value.trim().to_owned())
    });
    [kernel].into_iter().chain(given).collect()
}

/// The files of a case.
fn files(case: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let release = &case["kernel"];
    let mut config = "CONFIG_X86_64=y\n".to_owned();
    let mut command_line = "root=/dev/sda1".to_owned();
    let mut files = vec![
        ("/proc/sys/kernel/osrelease".to_owned(), release.clone()),
        ("/proc/sys/kernel/pid_max".to_owned(), "32768".to_owned()),
        ("/proc/sys/vm/swappiness".to_owned(), "60".to_owned()),
        ("/sys/fs/cgroup/system.slice/cgroup.procs".to_owned(), String::new()),
    ];
    for (subject, value) in case {
        if let Some(option) = subject.strip_prefix("CONFIG_") {
            let is_word =
                matches!(value.as_str(), "y" | "m") || value.parse::<i64>().is_ok();
            match (value.as_str(), is_word) {
                ("n", _) => {}
                (value, true) => config += &format!("CONFIG_{option}={value}\n"),
                (value, false) => config += &format!("CONFIG_{option}=\"{value}\"\n"),
            }
        } else if let Some(name) = subject.strip_prefix("boot.") {
            let value =
                if value.is_empty() { String::new() } else { format!("={value}") };
            command_line += &format!(" {name}{value}");
        } else if let Some(service) = subject.strip_prefix("service.") {
            if value == "yes" {
                let unit = format!("/sys/fs/cgroup/system.slice/{service}.service");
                files.push((format!("{unit}/cgroup.procs"), "1\n".to_owned()));
            }
        } else if let Some(name) = subject.strip_prefix("given.") {
            let file = "/etc/sysctl.d/50-case.conf".to_owned();
            files.push((file, format!("{name} = {value}\n")));
        } else if subject.starts_with('/') {
            files.push((subject.clone(), value.clone()));
        } else if subject.contains('.') && !is_answered(subject) {
            files.push((
                format!("/proc/sys/{}", subject.replace('.', "/")),
                value.clone(),
            ));
        }
    }
    files.push((format!("/boot/config-{release}"), config));
    files.push(("/proc/cmdline".to_owned(), command_line + "\n"));
    files
}

/// Whether a subject's answer is that of the case itself.
fn is_answered(subject: &str) -> bool {
    let measured = ["noise.", "idle.", "gap.", "latency.", "facts."];
    PLAIN.iter().any(|(name, _)| *name == subject)
        || measured.iter().any(|start| subject.starts_with(start))
}

fn answer(case: &BTreeMap<String, String>, subject: &str) -> Answer {
    if let Some(value) = case.get(subject) {
        return Answer::Is(value.clone());
    }
    match PLAIN.iter().find(|(name, _)| *name == subject) {
        Some((_, Some(value))) => Answer::Is((*value).to_owned()),
        None if !subject.starts_with("facts.") => Answer::Is("0".to_owned()),
        Some((_, None)) | None => Answer::Absent,
    }
}

fn write(files: &[(String, String)], folder: &Path) {
    for (path, text) in files {
        let path = folder.join(&path[1..]);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Whether a rule holds in a case.
fn holds<'a>(rule: &'a Rule, assignments: &[String]) -> Holds<'a> {
    let case = case(rule, assignments);
    let folder = tempfile::tempdir().unwrap();
    write(&files(&case), folder.path());
    let facts = Facts::read(&Root::tree(folder.path()).unwrap());
    let machine = Machine::new(&facts, None, None);
    if !machine.version().is_some_and(|version| rule.kernels.contains(version)) {
        return Holds::No;
    }
    rule.holds(|subject| match is_answered(subject) {
        true => answer(&case, subject),
        false => machine.answer(subject),
    })
}

/// Check that each rule holds where it should and nowhere else. A subject that stays unknown is missing in
/// `facts/src/group/setting_names.rs`, or among the parameters whose values are recorded.
#[test]
fn each_holds_where_it_should() {
    let mut wrong = Vec::new();
    for rule in tables().iter().flat_map(|table| &table.rules) {
        let (fires, silent) = (holds(rule, &rule.fires), holds(rule, &rule.silent));
        if fires != Holds::Yes {
            wrong.push(format!("{} does not hold: {fires:?}", rule.name));
        }
        if silent != Holds::No {
            wrong.push(format!("{} is not silent: {silent:?}", rule.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Check that the facts that conditions name exist.
#[test]
fn facts_exist() {
    let facts = Facts::read(&Root::live());
    let page = facts.page();
    let keys: Vec<&str> = page.entries().iter().map(|entry| entry.key).collect();
    let conditions =
        tables().iter().flat_map(|table| &table.rules).flat_map(|rule| &rule.when);
    for condition in conditions {
        let Some(key) = condition.subject.strip_prefix("facts.") else { continue };
        assert!(
            keys.contains(&key) || Machine::derives(key),
            "{condition}: no such fact"
        );
    }
}

/// Check the texts of rules: sentences that end, of a length that a screen can show.
#[test]
fn texts() {
    for rule in tables().iter().flat_map(|table| &table.rules) {
        for text in [&rule.reason, &rule.gain, &rule.price] {
            assert!(text.ends_with('.') && !text.contains("  "), "{}: {text}", rule.name);
            assert!(text.chars().count() <= 300, "{}: {text}", rule.name);
        }
        assert!(!rule.source.is_empty() && !rule.when.is_empty(), "{}", rule.name);
    }
}
