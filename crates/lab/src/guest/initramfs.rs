//! A guest's first file system: the agent, its order, and the mount points.
//!
//! A cpio archive of the kind `newc`, as described in
//! Documentation/driver-api/early-userspace/buffer-format.rst; uncompressed, as the guest would
//! have to decompress it under emulation. Inode numbers are fixed, and times unless they are given:
//! the bytes depend only on the agent and the order, and so does the guest's work on them.

use std::collections::BTreeSet;
use std::io;

use agent::{Order, order};

/// The kind of a file, as in `st_mode`.
const DIRECTORY: u32 = 0o040_000;
const PLAIN: u32 = 0o100_000;
const CHARACTERS: u32 = 0o020_000;

/// The mount points of the agent, and folders that programs expect.
const DIRECTORIES: [&str; 4] = ["dev", "proc", "sys", "tmp"];
/// The devices that must exist before `/dev` is mounted: major and minor number.
const DEVICES: [(&str, [u32; 2]); 2] = [("dev/console", [5, 1]), ("dev/null", [1, 3])];
/// The name that ends an archive.
const TRAILER: &str = "TRAILER!!!";
/// Every header and every file begins at a multiple of this.
const ALIGNMENT: usize = 4;

/// The archive for a guest that runs this agent on this order, with programs beside it. `config`
/// is the configuration of its kernel, for the facts that are only there.
///
/// # Errors
/// `InvalidInput` for an agent of more than 4 GiB; an order always becomes JSON.
pub(crate) fn build(
    agent: &[u8],
    order: &Order,
    programs: &[(String, Vec<u8>)],
    config: Option<&Config<'_>>,
) -> io::Result<Vec<u8>> {
    let mut archive = Archive::default();
    for name in DIRECTORIES {
        archive.put(&Entry::new(name, DIRECTORY | 0o755), &[])?;
    }
    for (name, device) in DEVICES {
        archive.put(&Entry { device, ..Entry::new(name, CHARACTERS | 0o600) }, &[])?;
    }
    archive.put(&Entry::new("init", PLAIN | 0o755), agent)?;
    let order = serde_json::to_vec(order)?;
    let name = order::PATH.trim_start_matches('/');
    archive.put(&Entry::new(name, PLAIN | 0o644), &order)?;
    for folder in folders(programs) {
        archive.put(&Entry::new(folder, DIRECTORY | 0o755), &[])?;
    }
    for (name, program) in programs {
        archive.put(&Entry::new(name, PLAIN | 0o755), program)?;
    }
    if let Some(Config { release, text }) = config {
        let name = format!("boot/config-{release}");
        archive.put(&Entry::new("boot", DIRECTORY | 0o755), &[])?;
        archive.put(&Entry::new(&name, PLAIN | 0o644), text)?;
    }
    archive.finish()
}

/// The folders of these files, each before those in it.
fn folders(files: &[(String, Vec<u8>)]) -> BTreeSet<&str> {
    let names = files.iter().map(|(name, _)| name.as_str());
    names.flat_map(|name| name.match_indices('/').map(|(at, _)| &name[..at])).collect()
}

/// A kernel's configuration.
pub(crate) struct Config<'a> {
    /// The kernel's release, as the file's name has it.
    pub(crate) release: &'a str,
    /// The file.
    pub(crate) text: &'a [u8],
}

/// The properties of a file in an archive, except its length.
struct Entry<'a> {
    name: &'a str,
    mode: u32,
    /// The time of its last change, in seconds since 1970.
    modified: u32,
    /// The major and minor number of a device.
    device: [u32; 2],
}

impl<'a> Entry<'a> {
    fn new(name: &'a str, mode: u32) -> Self {
        Self { name, mode, modified: 0, device: [0, 0] }
    }
}

/// An archive. The kernel unpacks several that follow each other.
#[derive(Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    /// Files so far: the last one's inode number.
    files: u32,
}

impl Archive {
    /// Adds a file, a directory or a link; `mode` is its `st_mode`, `modified` the time of its last
    /// change in seconds since 1970, and the contents of a link are its target. Its directory must be
    /// there already.
    ///
    /// # Errors
    /// `InvalidInput` for more than 4 GiB.
    pub(crate) fn add(
        &mut self,
        name: &str,
        mode: u32,
        modified: u32,
        contents: &[u8],
    ) -> io::Result<()> {
        self.put(&Entry { modified, ..Entry::new(name, mode) }, contents)
    }

    /// The archive's bytes.
    ///
    /// # Errors
    /// None.
    pub(crate) fn finish(mut self) -> io::Result<Vec<u8>> {
        self.put(&Entry::new(TRAILER, 0), &[])?;
        Ok(self.bytes)
    }

    fn put(&mut self, entry: &Entry, contents: &[u8]) -> io::Result<()> {
        self.files += 1;
        let [major, minor] = entry.device;
        let [length, name_length] = [contents.len(), entry.name.len() + 1].map(field);
        let (inode, links) = (self.files, 1);
        let (user, group, checksum) = (0, 0, 0);
        let (disk_major, disk_minor) = (0, 0);
        self.bytes.extend(b"070701");
        for number in [
            inode,
            entry.mode,
            user,
            group,
            links,
            entry.modified,
            length?,
            disk_major,
            disk_minor,
            major,
            minor,
            name_length?,
            checksum,
        ] {
            self.bytes.extend(format!("{number:08x}").as_bytes());
        }
        self.bytes.extend(entry.name.as_bytes());
        self.bytes.push(0);
        self.align();
        self.bytes.extend(contents);
        self.align();
        Ok(())
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
    }
}

/// A length, if it fits eight hexadecimal digits.
fn field(length: usize) -> io::Result<u32> {
    u32::try_from(length).map_err(|_| {
        let text = format!("a file of {length} bytes does not fit an initramfs");
        io::Error::new(io::ErrorKind::InvalidInput, text)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent::Task;
    use std::io::Write;
    use std::process::{Command, Stdio};

    /// Eleven bytes: neither it nor what follows is aligned by chance.
    const AGENT: &[u8] = b"\x7fELF agent.";

    fn order() -> Order {
        Order {
            version: order::VERSION,
            settings: Vec::new(),
            services: Vec::new(),
            environment: Vec::new(),
            background: Vec::new(),
            task: Task::Symbols,
            trace: None,
            answer_bytes_max: 1 << 20,
        }
    }

    fn archive() -> Vec<u8> {
        build(AGENT, &order(), &[], None).unwrap()
    }

    /// Check the whole archive except for the order, byte by byte.
    #[test]
    fn headers_are_these_bytes() {
        const ZEROS: &str = "0000000000000000000000000000000000000000";
        let head = |inode: u32, mode: &str, length: u32, device: &str, name: u32| {
            let (fixed, time_and_disk) = (&ZEROS[..16], &ZEROS[..16]);
            format!(
                "070701{inode:08x}{mode}{fixed}0000000100000000{length:08x}\
                 {time_and_disk}{device}{name:08x}00000000"
            )
        };
        let none = &ZEROS[..16];
        let mut expected = String::new();
        for (inode, directory) in (1..).zip(["dev\0\0\0", "proc\0\0", "sys\0\0\0"]) {
            let length = directory.trim_end_matches('\0').len();
            let name = u32::try_from(length).unwrap() + 1;
            expected += &head(inode, "000041ed", 0, none, name);
            expected += directory;
        }
        expected += &(head(4, "000041ed", 0, none, 4) + "tmp\0\0\0");
        expected +=
            &(head(5, "00002180", 0, "0000000500000001", 12) + "dev/console\0\0\0");
        expected += &(head(6, "00002180", 0, "0000000100000003", 9) + "dev/null\0\0");
        expected += &(head(7, "000081ed", 11, none, 5) + "init\0\0");
        expected += "\x7fELF agent.\0";
        let archive = archive();
        let beginning = &archive[..expected.len()];
        assert_eq!(String::from_utf8_lossy(beginning), expected);
    }

    /// Check that headers and contents begin at multiples of four, to the very end.
    #[test]
    fn everything_is_aligned() {
        let archive = archive();
        let number = |at: usize| {
            let digits = std::str::from_utf8(&archive[at..at + 8]).unwrap();
            usize::from_str_radix(digits, 16).unwrap()
        };
        let (mut at, mut names) = (0, Vec::new());
        while at < archive.len() {
            assert_eq!(&archive[at..at + 6], b"070701", "at {at}");
            let (length, name) = (number(at + 54), number(at + 94));
            let from = at + 110;
            names.push(String::from_utf8_lossy(&archive[from..from + name - 1]));
            at = (from + name).next_multiple_of(ALIGNMENT) + length;
            at = at.next_multiple_of(ALIGNMENT);
        }
        assert_eq!(at, archive.len());
        assert_eq!(names.last().unwrap(), TRAILER);
    }

    /// Check that the same agent and order give the same bytes, and others do not.
    #[test]
    fn bytes_depend_on_agent_and_order() {
        assert_eq!(archive(), archive());
        assert_ne!(archive(), build(b"\x7fELF AGENT.", &order(), &[], None).unwrap());
        let other = Order { answer_bytes_max: 7, ..order() };
        assert_ne!(archive(), build(AGENT, &other, &[], None).unwrap());
    }

    /// Check that cpio itself finds every file, with its kind and its length.
    #[test]
    fn cpio_reads_it() {
        let mut cpio = Command::new("cpio");
        let cpio = cpio.args(["-itv", "--quiet", "--numeric-uid-gid"]);
        let spawned = cpio.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let Ok(mut child) = spawned else {
            println!("skipped: cpio is not installed");
            return;
        };
        child.stdin.take().unwrap().write_all(&archive()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let listed = String::from_utf8(output.stdout).unwrap();
        let words: Vec<Vec<&str>> =
            listed.lines().map(|line| line.split_whitespace().collect()).collect();
        let named = |name: &str| {
            words.iter().find(|words| words.last() == Some(&name)).unwrap().clone()
        };
        assert_eq!(named("dev/console")[0], "crw-------");
        assert_eq!(&named("dev/console")[4..6], ["5,", "1"]);
        assert_eq!((named("init")[0], named("init")[4]), ("-rwxr-xr-x", "11"));
        let order = serde_json::to_vec(&order()).unwrap().len().to_string();
        assert_eq!(named("order.json")[4], order);
        assert_eq!(words.len(), 8);
    }
}
