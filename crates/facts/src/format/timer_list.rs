//! `/proc/timer_list`: whether each CPU's tick is stopped at this moment (root only).
//!
//! A CPU's part begins with `cpu: N`; in it `.tick_stopped   : 1` says that its tick is
//! stopped, idle or not. Versions v0.8 (5.10) to v0.11 (7.2) of the file all say it so; it is
//! missing where the kernel was built with `HZ_PERIODIC`.
//!
//! Cannot see whether the CPU is interrupted by anything else.

use std::io::BufRead;

use units::Cpu;

use crate::fact::{Unknown, Why};

/// What the kernel says about its timers.
#[derive(Debug, Clone, Copy)]
pub struct TimerList;

impl TimerList {
    /// The file's path.
    pub const FILE: &'static str = "/proc/timer_list";

    /// Whether the tick of that CPU is stopped; `Ok(None)` where the file does not say. It is read
    /// no further than to the answer: the kernel makes up the file while it is read, CPU by CPU.
    ///
    /// # Errors
    /// `Why::Garbage` for a line that is neither 0 nor 1; `Why::Absent` where the file cannot be
    /// read any more.
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
            let answer = inside.then(|| answer(&line)).flatten();
            let garbage =
                |line: &str| Unknown::garbage(Self::FILE, number, line, "0 or 1");
            match answer {
                None => {}
                Some(b"0") => return Ok(Some(false)),
                Some(b"1") => return Ok(Some(true)),
                Some(_) => return Err(garbage(String::from_utf8_lossy(&line).trim())),
            }
        }
        Ok(None)
    }

    /// Why the file says it of no CPU.
    pub fn silent() -> Unknown {
        let text = format!(
            "{} does not say whether the tick is stopped: this kernel was built without \
             CONFIG_NO_HZ_COMMON, or the CPU is offline",
            Self::FILE
        );
        Unknown::new(Why::Absent, text)
    }
}

/// What stands behind `.tick_stopped   :`, in the line that has it.
fn answer(line: &[u8]) -> Option<&[u8]> {
    let value = line.trim_ascii_start().strip_prefix(b".tick_stopped")?;
    Some(value.trim_ascii_start().strip_prefix(b":")?.trim_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of 6.1's and of 6.12's file.
    const TEXT: &str = "Timer List Version: v0.9\nnow at 5 nsecs\n\ncpu: 0\n clock 0:\n\
        \x20 .tick_stopped   : 0\n  .idle_jiffies   : 7\n\ncpu: 10\n  .nohz           : 1\n\
        \x20 .tick_stopped   : 1\n\ncpu: 1\n  .nohz           : 1\n";

    /// Check that each CPU's own line is found, and that nothing behind it is read.
    #[test]
    fn each_cpu_has_its_own() {
        let stopped =
            |cpu| TimerList::tick_stopped(TEXT.as_bytes(), Cpu::new(cpu)).unwrap();
        assert_eq!([0, 10, 1, 2].map(stopped), [Some(false), Some(true), None, None]);
        let mut rest = TEXT.as_bytes();
        TimerList::tick_stopped(&mut rest, Cpu::new(0)).unwrap();
        assert!(rest.starts_with(b"  .idle_jiffies"));
    }

    /// Check that what is no answer is told with its line.
    #[test]
    fn garbage_is_told() {
        let text = "cpu: 0\n  .tick_stopped   : maybe\n";
        let error = TimerList::tick_stopped(text.as_bytes(), Cpu::new(0)).unwrap_err();
        assert_eq!(error.code, Why::Garbage);
        assert!(error.text.contains('2'), "{}", error.text);
    }
}
