//! The file `stat` of a process or thread: `/proc/PID/stat`, `/proc/PID/task/TID/stat`
//! (`proc_pid_stat(5)`).
//!
//! The second field is the name in parentheses, which may contain spaces and parentheses; later
//! fields are words. Fields have the numbers of the manual page.

use std::str::{FromStr, SplitAsciiWhitespace};

/// The number of the first field after the name.
const FIRST: usize = 3;

/// A parsed `stat`.
#[derive(Debug, Clone)]
pub struct TaskStat<'a> {
    /// The PID or TID.
    pub tid: u32,
    /// The name.
    pub name: &'a str,
    fields: SplitAsciiWhitespace<'a>,
}

impl<'a> TaskStat<'a> {
    /// Parses the text; `None` if it does not begin with a number and a name.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (head, rest) = text.rsplit_once(") ")?;
        let (tid, name) = head.split_once(" (")?;
        Some(Self { tid: tid.parse().ok()?, name, fields: rest.split_ascii_whitespace() })
    }

    /// A field by its number, from 3 (the state).
    pub fn word(&self, number: usize) -> Option<&'a str> {
        self.fields.clone().nth(number.checked_sub(FIRST)?)
    }

    /// A field as a number.
    pub fn number<T: FromStr>(&self, number: usize) -> Option<T> {
        self.word(number)?.parse().ok()
    }

    /// Whether the state is `R`: running or waiting for a CPU.
    pub fn is_runnable(&self) -> bool {
        self.word(FIRST) == Some("R")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the numbers of fields for any name, and that there are no fields after the end.
    #[test]
    fn fields_by_their_numbers() {
        let stat = TaskStat::parse("12 (a) (b c) R 5 6 7\n").unwrap();
        assert_eq!((stat.tid, stat.name), (12, "a) (b c"));
        assert_eq!((stat.word(3), stat.number(4)), (Some("R"), Some(5_u32)));
        assert!(stat.is_runnable());
        assert_eq!((stat.number(6), stat.number::<u32>(7)), (Some(7_u8), None));
        assert_eq!((stat.word(2), stat.number::<u32>(3)), (None, None));
        assert!(
            TaskStat::parse("12 (a").is_none() && TaskStat::parse("x (a) R").is_none()
        );
    }
}
