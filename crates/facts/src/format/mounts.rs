//! Mounted file systems, from `/proc/self/mounts`.
//!
//! One mount per line: device, directory, type, options, two numbers. Spaces in names are escaped
//! as `\040`. Only mounts that are visible to this process are listed, without the mounted
//! subdirectory of their file system.

use crate::fact::Unknown;
use crate::tree::root::Root;

/// The file.
pub(crate) const FILE: &str = "/proc/self/mounts";

/// The types of file systems that facts use.
const KINDS: [&str; 7] =
    ["cgroup", "cgroup2", "cpuset", "debugfs", "proc", "securityfs", "tracefs"];

/// The text with these mounts only, for recorded trees: others may have private data such as the
/// names of servers.
pub(crate) fn redact(text: &str) -> String {
    let used =
        |line: &&str| mount(line).is_some_and(|m| KINDS.contains(&m.kind.as_str()));
    text.lines().filter(used).flat_map(|line| [line, "\n"]).collect()
}

/// A mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The mount point.
    pub(crate) directory: String,
    /// The type of the file system.
    pub(crate) kind: String,
    options: String,
}

impl Mount {
    /// Whether it was mounted with an option.
    pub(crate) fn has(&self, option: &str) -> bool {
        self.options().any(|other| other == option)
    }

    /// The options, in order.
    pub(crate) fn options(&self) -> impl Iterator<Item = &str> {
        self.options.split(',')
    }
}

/// All mounts, in order of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Mounts(Vec<Mount>);

impl Mounts {
    /// Reads the mounts.
    pub(crate) fn read(root: &Root) -> Result<Self, Unknown> {
        Self::parse(&root.text(FILE)?)
    }

    /// Parses the text of `/proc/self/mounts`.
    pub(crate) fn parse(text: &str) -> Result<Self, Unknown> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let mounts = lines.map(|(number, line)| {
            mount(line).ok_or_else(|| Unknown::garbage(FILE, number + 1, line, "a mount"))
        });
        Ok(Self(mounts.collect::<Result<_, _>>()?))
    }

    /// The mounts of a type, in order.
    pub(crate) fn of_kind<'a>(
        &'a self,
        kind: &'a str,
    ) -> impl Iterator<Item = &'a Mount> {
        self.0.iter().filter(move |mount| mount.kind == kind)
    }
}

fn mount(line: &str) -> Option<Mount> {
    // Single spaces are separators: the name of the device may be empty.
    let mut words = line.split(' ').skip(1);
    let directory = plain(words.next()?);
    let kind = words.next()?.to_owned();
    let options = words.next()?.to_owned();
    directory.starts_with('/').then_some(Mount { directory, kind, options })
}

/// Decodes the escapes in a name (`\040` for a space).
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

    /// Check types, options, order and names with spaces.
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

    /// Check that unused mounts are removed from a recorded tree.
    #[test]
    fn removes_unused_mounts() {
        let cgroup = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n";
        let text = format!("//nas/me /home/me cifs rw,username=me 0 0\n{cgroup}");
        assert_eq!(redact(&text), cgroup);
    }

    /// Check that an invalid line is reported with its number.
    #[test]
    fn reports_invalid_lines() {
        for bad in ["proc /proc", "a b c d 0 0", "x"] {
            let error = Mounts::parse(&format!("proc /proc proc rw 0 0\n{bad}\n"));
            let text = error.unwrap_err().text;
            assert!(text.starts_with("/proc/self/mounts: line 2:"), "{text}");
        }
    }

    proptest! {
        /// Check that parsing never panics.
        #[test]
        fn never_panics(text in "([a-z/\\\\0-9\u{e9} ]|\n){0,60}") {
            let _ = Mounts::parse(&text);
            let _ = plain(&text);
        }
    }
}
