//! What a user has to know of a command that ran on this machine, and of the files that are packed.

use std::collections::BTreeMap;
use std::fmt::Display;

use units::printable;

/// So many names are printed; others are counted.
const NAMED: usize = 3;

/// Something that holds for several files or processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Remark {
    Secret,
    LookedUp,
    Unreadable,
    Vanished,
    Special,
    NotUtf8,
    Privileged,
    Outlived,
}

impl Remark {
    /// The words before the names, and after them.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Secret => {
                ("not packed, as it may be secret: ", "; hint: --file packs it")
            }
            Self::LookedUp => (
                "packed without contents, as it is large and was looked up only: ",
                "; hint: --file packs it",
            ),
            Self::Unreadable => ("not packed, as it cannot be read: ", ""),
            Self::Vanished => ("not packed, as it does not exist any more: ", ""),
            Self::Special => {
                ("not packed, as it is neither a file nor a folder nor a link: ", "")
            }
            Self::NotUtf8 => ("not packed, as the name is not UTF-8: ", ""),
            Self::Privileged => (
                "ran here without the privileges of its owner (set-user-ID), which it has in the \
                 guest: ",
                "",
            ),
            Self::Outlived => ("killed here, as it had not ended with the command: ", ""),
        }
    }
}

/// All remarks of a command.
#[derive(Debug, Default)]
pub(super) struct Remarks {
    lines: Vec<String>,
    names: BTreeMap<Remark, Vec<String>>,
}

impl Remarks {
    /// Adds a line.
    pub(super) fn say(&mut self, line: String) {
        self.lines.push(line);
    }

    /// Adds a name to a remark.
    pub(super) fn add(&mut self, remark: Remark, name: impl Display) {
        let name = printable(&name.to_string()).into_owned();
        let names = self.names.entry(remark).or_default();
        if !names.contains(&name) {
            names.push(name);
        }
    }

    /// All lines.
    pub(super) fn lines(self) -> Vec<String> {
        let listed = self.names.into_iter().map(|(remark, names)| {
            let (before, after) = remark.words();
            let named = &names[..names.len().min(NAMED)];
            let more = match names.len() - named.len() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            format!("{before}{}{more}{after}", named.join(", "))
        });
        self.lines.into_iter().chain(listed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a few names are printed, without control characters, and that others are counted.
    #[test]
    fn lines() {
        let mut remarks = Remarks::default();
        remarks.say("one".to_owned());
        for name in ["a", "b\x1b[1m", "c", "d", "e"] {
            remarks.add(Remark::Vanished, name);
        }
        remarks.add(Remark::Secret, "k");
        let lines = remarks.lines();
        assert_eq!(lines[0], "one");
        assert_eq!(lines[1], "not packed, as it may be secret: k; hint: --file packs it");
        assert!(lines[2].ends_with("c and 2 more") && !lines[2].contains('\x1b'));
    }
}
