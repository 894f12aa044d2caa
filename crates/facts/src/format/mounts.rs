//! What is mounted where, from `/proc/self/mounts`.
//!
//! One mount a line: device, directory, kind, options, two numbers. Blanks in names are
//! written as `\040`. Only what this process sees; which part of a file system is
//! mounted there is not said.

use crate::fact::Unknown;
use crate::tree::root::Root;

/// The file.
pub(crate) const FILE: &str = "/proc/self/mounts";

/// The kinds of file systems facts ask for.
const KINDS: [&str; 6] =
    ["cgroup", "cgroup2", "cpuset", "debugfs", "securityfs", "tracefs"];

/// The text as it may be kept in a recorded tree: without the mounts that are nobody's
/// business, such as a server's name.
pub(crate) fn kept(text: &str) -> String {
    let used =
        |line: &&str| mount(line).is_some_and(|m| KINDS.contains(&m.kind.as_str()));
    text.lines().filter(used).flat_map(|line| [line, "\n"]).collect()
}

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// Where it is mounted.
    pub(crate) directory: String,
    /// The kind of file system.
    pub(crate) kind: String,
    options: String,
}

impl Mount {
    /// Whether it was mounted with that option.
    pub(crate) fn has(&self, option: &str) -> bool {
        self.options.split(',').any(|other| other == option)
    }
}

/// What is mounted, in the order in which it was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Mounts(Vec<Mount>);

impl Mounts {
    /// Reads what is mounted.
    pub(crate) fn read(root: &Root) -> Result<Self, Unknown> {
        Self::parse(&root.text(FILE)?)
    }

    /// Reads the text of `/proc/self/mounts`.
    pub(crate) fn parse(text: &str) -> Result<Self, Unknown> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let mounts = lines.map(|(number, line)| {
            mount(line).ok_or_else(|| Unknown::garbage(FILE, number + 1, line, "a mount"))
        });
        Ok(Self(mounts.collect::<Result<_, _>>()?))
    }

    /// The mounts of that kind, in order.
    pub(crate) fn of_kind<'a>(
        &'a self,
        kind: &'a str,
    ) -> impl Iterator<Item = &'a Mount> {
        self.0.iter().filter(move |mount| mount.kind == kind)
    }
}

fn mount(line: &str) -> Option<Mount> {
    // One blank between words: a device's name may be empty.
    let mut words = line.split(' ').skip(1);
    let directory = plain(words.next()?);
    let kind = words.next()?.to_owned();
    let options = words.next()?.to_owned();
    directory.starts_with('/').then_some(Mount { directory, kind, options })
}

/// A name without the kernel's escapes (`\040` for a blank).
fn plain(name: &str) -> String {
    let mut parts = name.split('\\');
    let mut plain = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let digits = part.get(..3).and_then(|octal| u8::from_str_radix(octal, 8).ok());
        match digits.filter(u8::is_ascii) {
            Some(byte) => {
                plain.push(char::from(byte));
                plain.push_str(&part[3..]);
            }
            None => {
                plain.push('\\');
                plain.push_str(part);
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Check kinds, options, order and names with blanks in them.
    #[test]
    fn reads_mounts() {
        let text = "proc /proc proc rw,relatime 0 0\n\
                    cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n\
                    cgroup /my\\040own\\134 cgroup rw,relatime,cpu,cpuacct 0 0\n";
        let mounts = Mounts::parse(text).unwrap();
        let cgroups: Vec<&Mount> = mounts.of_kind("cgroup").collect();
        assert_eq!(cgroups[0].directory, "/sys/fs/cgroup/cpuset");
        assert!(cgroups[0].has("cpuset") && !cgroups[0].has("cpu"));
        assert_eq!(cgroups[1].directory, "/my own\\");
        let nameless = Mounts::parse(" /mnt tmpfs rw 0 0\n").unwrap();
        assert_eq!(nameless.of_kind("tmpfs").count(), 1);
        assert!(cgroups[1].has("cpu") && mounts.of_kind("tracefs").next().is_none());
    }

    /// Check that a recorded tree does not get the mounts facts do not ask for.
    #[test]
    fn keeps_only_what_is_used() {
        let cgroup = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n";
        let text = format!("//nas/me /home/me cifs rw,username=me 0 0\n{cgroup}");
        assert_eq!(kept(&text), cgroup);
    }

    /// Check that what is no mount is named with its line.
    #[test]
    fn names_garbage() {
        for bad in ["proc /proc", "a b c d 0 0", "x"] {
            let error = Mounts::parse(&format!("proc /proc proc rw 0 0\n{bad}\n"));
            let text = error.unwrap_err().text;
            assert!(text.starts_with("/proc/self/mounts: line 2:"), "{text}");
        }
    }

    proptest! {
        /// Check that no text makes the reader panic.
        #[test]
        fn never_panics(text in "([a-z/\\\\0-9\u{e9} ]|\n){0,60}") {
            let _ = Mounts::parse(&text);
            let _ = plain(&text);
        }
    }
}
