//! The context switches of a thread, in `/proc/PID/status` and `/proc/PID/task/TID/status`
//! (`proc_pid_status(5)`, since Linux 2.6.23).
//!
//! The file of a process has the switches of its first thread only.

/// The context switches of a thread since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContextSwitches {
    /// Switches because it slept; each ends in a wake-up, unless the thread ends.
    pub voluntary: u64,
    /// Switches although it could have continued.
    pub involuntary: u64,
}

impl ContextSwitches {
    /// Parses a status. Its last two lines are `voluntary_ctxt_switches:\t12` and
    /// `nonvoluntary_ctxt_switches:\t34`; `None` if they are missing.
    pub fn parse(status: &str) -> Option<Self> {
        let number = |name: &str| {
            let mut lines = status.lines().rev();
            lines.find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
        };
        Some(Self {
            voluntary: number("voluntary_ctxt_switches:")?,
            involuntary: number("nonvoluntary_ctxt_switches:")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the two counts are distinguished, and that a truncated status is not 0.
    #[test]
    fn statuses() {
        let text =
            "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t34\n";
        let found = ContextSwitches { voluntary: 12, involuntary: 34 };
        assert_eq!(ContextSwitches::parse(text), Some(found));
        assert_eq!(ContextSwitches::parse(&text[..40]), None);
    }
}
