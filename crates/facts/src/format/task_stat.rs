//! The `stat` of a process or a thread: `/proc/PID/stat`, `/proc/PID/task/TID/stat`
//! (`proc_pid_stat(5)`).
//!
//! The second field is the name in parentheses, and may itself hold spaces and parentheses; those
//! after it are words. A field is named by its number in the manual page.

use std::str::{FromStr, SplitAsciiWhitespace};

/// The number of the first field after the name.
const FIRST: usize = 3;

/// One line of `stat`, taken apart.
#[derive(Debug, Clone)]
pub struct TaskStat<'a> {
    /// The process or thread.
    pub tid: u32,
    /// Its name.
    pub name: &'a str,
    fields: SplitAsciiWhitespace<'a>,
}

impl<'a> TaskStat<'a> {
    /// Takes the text apart; `None` where it does not begin with a number and a name.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (head, rest) = text.rsplit_once(") ")?;
        let (tid, name) = head.split_once(" (")?;
        Some(Self { tid: tid.parse().ok()?, name, fields: rest.split_ascii_whitespace() })
    }

    /// The field of that number, from the third, the state.
    pub fn word(&self, number: usize) -> Option<&'a str> {
        self.fields.clone().nth(number.checked_sub(FIRST)?)
    }

    /// The same as a number.
    pub fn number<T: FromStr>(&self, number: usize) -> Option<T> {
        self.word(number)?.parse().ok()
    }

    /// Whether it runs or waits for a CPU (state `R`).
    pub fn is_runnable(&self) -> bool {
        self.word(FIRST) == Some("R")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that fields have their numbers whatever the name is, and that there are none where
    /// the text ends.
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
