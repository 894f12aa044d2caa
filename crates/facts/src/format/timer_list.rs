//! `/proc/timer_list`: whether the tick of each CPU is stopped at this moment (root only).
//!
//! The section of a CPU begins with `cpu: N`; its line `.tick_stopped   : 1` means that the tick is
//! stopped, whether the CPU is idle or not. This is the same in versions v0.8 (5.10) to v0.11 (7.2)
//! of the file; the line is missing if the kernel is built with `HZ_PERIODIC`.
//!
//! Other interrupts of the CPU are not shown.

use std::io::BufRead;

use units::Cpu;

use crate::fact::{Unknown, Why};

/// The file `/proc/timer_list`.
#[derive(Debug, Clone, Copy)]
pub struct TimerList;

impl TimerList {
    /// The file's path.
    pub const FILE: &'static str = "/proc/timer_list";
    /// The functions of the tick's hrtimer: before and since Linux 6.8 (`kernel/time/tick-sched.c`).
    /// The first existing one counts: before 6.9 the last one is not a timer's.
    pub const TICKS: [&'static str; 3] =
        ["tick_sched_timer", "tick_nohz_highres_handler", "tick_nohz_handler"];

    /// Whether the tick of a CPU is stopped; `Ok(None)` if the file does not show it. The file is
    /// not read beyond that line, since the kernel generates it during reading, CPU by CPU.
    ///
    /// # Errors
    /// `Why::Garbage` for a value that is neither 0 nor 1; `Why::Absent` if the file can no longer
    /// be read.
    pub fn tick_stopped(
        mut list: impl BufRead,
        cpu: Cpu,
    ) -> Result<Option<bool>, Unknown> {
        let head = format!("cpu: {cpu}\n");
        let (mut line, mut inside) = (Vec::new(), false);
        for number in 1.. {
            line.clear();
            let read = list.read_until(b'\n', &mut line);
            let failed =
                |error| Unknown::new(Why::Absent, format!("{}: {error}", Self::FILE));
            if read.map_err(failed)? == 0 {
                break;
            }
            inside |= line == head.as_bytes();
            let value = inside.then(|| value(&line)).flatten();
            let garbage =
                |line: &str| Unknown::garbage(Self::FILE, number, line, "0 or 1");
            match value {
                None => {}
                Some(b"0") => return Ok(Some(false)),
                Some(b"1") => return Ok(Some(true)),
                Some(_) => return Err(garbage(String::from_utf8_lossy(&line).trim())),
            }
        }
        Ok(None)
    }

    /// The reason if the file does not show the state of the tick.
    pub fn unavailable() -> Unknown {
        let text = format!(
            "{} does not say whether the tick is stopped: this kernel was built without \
             CONFIG_NO_HZ_COMMON, or the CPU is offline",
            Self::FILE
        );
        Unknown::new(Why::Absent, text)
    }
}

/// The text after `.tick_stopped   :`, if the line has it.
fn value(line: &[u8]) -> Option<&[u8]> {
    let value = line.trim_ascii_start().strip_prefix(b".tick_stopped")?;
    Some(value.trim_ascii_start().strip_prefix(b":")?.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of the file in 6.1 and 6.12.
    const TEXT: &str = "Timer List Version: v0.9\nnow at 5 nsecs\n\ncpu: 0\n clock 0:\n\
        \x20 .tick_stopped   : 0\n  .idle_jiffies   : 7\n\ncpu: 10\n  .nohz           : 1\n\
        \x20 .tick_stopped   : 1\n\ncpu: 1\n  .nohz           : 1\n";

    /// Check that the line of each CPU is found, and that the file is not read beyond it.
    #[test]
    fn each_cpu_has_its_own() {
        let stopped =
            |cpu| TimerList::tick_stopped(TEXT.as_bytes(), Cpu::new(cpu)).unwrap();
        assert_eq!([0, 10, 1, 2].map(stopped), [Some(false), Some(true), None, None]);
        let mut rest = TEXT.as_bytes();
        TimerList::tick_stopped(&mut rest, Cpu::new(0)).unwrap();
        assert!(rest.starts_with(b"  .idle_jiffies"));
    }

    /// Check that an invalid value is reported with its line.
    #[test]
    fn invalid_values() {
        let text = "cpu: 0\n  .tick_stopped   : maybe\n";
        let error = TimerList::tick_stopped(text.as_bytes(), Cpu::new(0)).unwrap_err();
        assert_eq!(error.code, Why::Garbage);
        assert!(error.text.contains('2'), "{}", error.text);
    }
}
