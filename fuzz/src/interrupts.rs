//! `/proc/interrupts`, read twice: tests the difference of two readings.
//!
//! The input is two tables with a line `--` between them, or one that is read twice.
//! From a table to itself no count increases; from one to another, each line of the later one
//! is reported at most once for each of its CPUs.
#![no_main]

use facts::Interrupts;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let (earlier, later) = text.split_once("--\n").unwrap_or((text, text));
    let (earlier, later) = (read(earlier), read(later));
    let (Some(earlier), Some(later)) = (earlier, later) else { return };
    assert!(!later.cpus().is_empty());
    for cpu in later.cpus().iter() {
        let mut lines = later.lines().iter();
        for (line, _) in later.since(&earlier, cpu) {
            assert!(lines.any(|own| std::ptr::eq(own, line)), "in order, each once");
            assert!(!line.label.is_empty());
        }
        for (line, grown) in later.since(&later, cpu) {
            let twins = later
                .lines()
                .iter()
                .filter(|own| own.label == line.label && own.name == line.name);
            assert!(grown == Some(0) || twins.count() > 1, "{line:?} grew {grown:?}");
        }
        let timers = later.lines().iter().filter(|line| line.timer).count();
        assert!(timers > 0 || later.timer(cpu).is_none());
    }
    let printed = later.cpus().to_string();
    assert_eq!(printed.parse(), Ok(later.cpus()), "printed as {printed}");
});

fn read(text: &str) -> Option<Interrupts> {
    match Interrupts::parse(text, "interrupts") {
        Ok(table) => Some(table),
        Err(unknown) => {
            assert!(unknown.text.starts_with("interrupts: line "), "{unknown}");
            None
        }
    }
}
