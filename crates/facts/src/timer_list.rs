//! `/proc/timer_list`: whether each CPU's tick is stopped at this moment (root only).
//!
//! A CPU's part begins with `cpu: N`; in it `.tick_stopped   : 1` says that its tick is
//! stopped, idle or not. Versions v0.8 (5.10) to v0.11 (7.2) of the file all say it so; it is
//! missing where the kernel was built with `HZ_PERIODIC`.
//!
//! Cannot see whether the CPU is interrupted by anything else.

use units::Cpu;

use crate::fact::{Unknown, Why};

/// What the kernel says about its timers.
#[derive(Debug, Clone, Copy)]
pub struct TimerList;

impl TimerList {
    /// The file's path.
    pub const FILE: &'static str = "/proc/timer_list";

    /// Whether the tick of that CPU is stopped, in the file's text as far as it was read;
    /// `Ok(None)` where more has to be read.
    ///
    /// # Errors
    /// `Why::Garbage` for a line that is neither 0 nor 1.
    pub fn tick_stopped(text: &str, cpu: Cpu) -> Result<Option<bool>, Unknown> {
        let head = format!("cpu: {cpu}");
        let mut lines = text.lines().enumerate().skip_while(|(_, line)| *line != head);
        let found = lines.find_map(|(at, line)| {
            let value = line.trim_start().strip_prefix(".tick_stopped")?;
            Some((at + 1, line, value.trim_start().strip_prefix(':')?.trim()))
        });
        match found {
            None => Ok(None),
            Some((_, _, "0")) => Ok(Some(false)),
            Some((_, _, "1")) => Ok(Some(true)),
            // Cut off in the middle of the line.
            Some((_, _, "")) => Ok(None),
            Some((at, line, _)) => Err(Unknown::garbage(Self::FILE, at, line, "0 or 1")),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of 6.1's and of 6.12's file.
    const TEXT: &str = "Timer List Version: v0.9\nnow at 5 nsecs\n\ncpu: 0\n clock 0:\n\
        \x20 .tick_stopped   : 0\n  .idle_jiffies   : 7\n\ncpu: 10\n  .nohz           : 1\n\
        \x20 .tick_stopped   : 1\n\ncpu: 1\n  .tick_stopped   :";

    /// Check that each CPU's own line is found, and that a cut text is not taken for an answer.
    #[test]
    fn each_cpu_has_its_own() {
        let stopped = |cpu| TimerList::tick_stopped(TEXT, Cpu::new(cpu)).unwrap();
        assert_eq!([0, 10, 1, 2].map(stopped), [Some(false), Some(true), None, None]);
    }

    /// Check that what is no answer is told with its line.
    #[test]
    fn garbage_is_told() {
        let text = "cpu: 0\n  .tick_stopped   : maybe\n";
        let error = TimerList::tick_stopped(text, Cpu::new(0)).unwrap_err();
        assert_eq!(error.code, Why::Garbage);
        assert!(error.text.contains('2'), "{}", error.text);
    }
}
