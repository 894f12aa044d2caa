//! The kernel's messages, from `/dev/kmsg` (readable since 3.5).
//!
//! One record per line: `level,sequence,time,flags;message`; continuation lines start with a space.
//! Only records of the kernel's facility are used: any process with write access can add others.
//!
//! Messages that were overwritten by newer ones are missing. Requires root if
//! `kernel.dmesg_restrict` is 1.
//!
//! Reports of support tools have the output of `dmesg(1)` instead, which does not tell who wrote a message.

use crate::fact::{Unknown, Why};
use crate::format::command_line::{CommandLine, Parameter};
use crate::format::release::Release;
use crate::tree::root::Root;

/// The file.
pub(crate) const FILE: &str = "/dev/kmsg";

/// Where reports have the output of `dmesg`: those of sos, and nodes of a must-gather.
const PRINTED: [&str; 2] = ["/sos_commands/kernel/dmesg", NODE_PRINTED];
/// Its path in the files of a node.
pub(crate) const NODE_PRINTED: &str = "/dmesg";

/// The first message of a boot, but for some of the processor's microcode; the release follows.
const FIRST: &str = "Linux version ";
/// So many messages can be before it.
const FIRST_MAX: usize = 10;

/// The beginning of the message that lists parameters that the kernel does not know.
pub(crate) const UNKNOWN_PARAMETERS: &str = "Unknown kernel command line parameters \"";

/// The kernel's messages, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KernelLog {
    messages: Vec<String>,
    from_boot: bool,
}

impl KernelLog {
    /// Reads the messages, up to a size that includes all messages of the boot.
    pub(crate) fn read(root: &Root, release: Option<&Release>) -> Result<Self, Unknown> {
        match root.kernel_log(FILE) {
            Ok(bytes) => Self::parse(&String::from_utf8_lossy(&bytes)),
            Err(unknown) => match Self::of_report(root) {
                Some(log) => Ok(log),
                None => Err(why(unknown, release)),
            },
        }
    }

    /// The output of `dmesg` in a report.
    fn of_report(root: &Root) -> Option<Self> {
        let mut printed = PRINTED.iter().filter(|_| !root.is_live());
        printed.find_map(|path| root.text(path).ok()).map(|text| Self::printed(&text))
    }

    /// Parses the text of `/dev/kmsg`.
    pub(crate) fn parse(text: &str) -> Result<Self, Unknown> {
        let mut log = Self { messages: Vec::new(), from_boot: false };
        for (number, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with(' ') {
                continue;
            }
            let Some(record) = record(line) else {
                let expected = "a record of the kernel's log";
                return Err(Unknown::garbage(FILE, number + 1, line, expected));
            };
            log.from_boot |= record.sequence == 0;
            if record.level <= LEVEL_MAX {
                log.messages.push(record.message.to_owned());
            }
        }
        Ok(log)
    }

    /// Parses the output of `dmesg`: `[    0.000000] message`.
    pub(crate) fn printed(text: &str) -> Self {
        let messages: Vec<String> =
            text.lines().map(message).map(str::to_owned).collect();
        let from_boot =
            messages.iter().take(FIRST_MAX).any(|message| message.starts_with(FIRST));
        Self { messages, from_boot }
    }

    /// The first message that contains a text.
    pub(crate) fn find<'a>(&'a self, needle: &'a str) -> Option<&'a str> {
        self.all(needle).next()
    }

    /// The messages that contain a text, the oldest first.
    pub(crate) fn all<'a>(&'a self, needle: &'a str) -> impl Iterator<Item = &'a str> {
        self.messages.iter().map(String::as_str).filter(move |m| m.contains(needle))
    }

    /// The parameters that the kernel does not know (logged since 5.15; names with a `.` belong to
    /// modules that may be loaded later, and are not logged), and whether the list is truncated.
    pub(crate) fn unknown_parameters(&self) -> (Vec<Parameter>, bool) {
        let Some(message) = self.find(UNKNOWN_PARAMETERS) else {
            return (Vec::new(), false);
        };
        let list = message.strip_prefix(UNKNOWN_PARAMETERS).unwrap_or_default();
        let whole = list.rsplit_once("\", will be passed");
        // A message that is too long is truncated within a parameter.
        let known = match whole {
            Some((list, _)) => list,
            None => list.rsplit_once(' ').map_or("", |(list, _)| list),
        };
        let parameters = CommandLine::parse(known).parameters().cloned().collect();
        (parameters, whole.is_none())
    }

    /// Whether the kernel's first message is included, and so all messages since boot.
    #[expect(clippy::wrong_self_convention, reason = "not a constructor")]
    pub(crate) fn from_boot(&self) -> bool {
        self.from_boot
    }
}

/// Why there are no messages.
fn why(unknown: Unknown, release: Option<&Release>) -> Unknown {
    if release.is_some_and(|release| !release.at_least(3, 5)) {
        let text = "kernels before 3.5 do not show their messages in /dev/kmsg";
        return Unknown::new(Why::TooOld, text);
    }
    if unknown.code == Why::NeedsRoot {
        let text = "the kernel's messages may be read by root only \
                    (kernel.dmesg_restrict)";
        return Unknown::new(Why::NeedsRoot, text);
    }
    unknown
}

/// The kernel's release in the output of `dmesg`.
pub(crate) fn printed_release(text: &str) -> Option<&str> {
    let mut messages = text.lines().take(FIRST_MAX).map(message);
    messages.find_map(|message| message.strip_prefix(FIRST)?.split_whitespace().next())
}

/// A line of the output of `dmesg` without its time.
fn message(line: &str) -> &str {
    let rest = line.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    rest.map_or(line, |(_, message)| message)
}

/// The highest level with facility 0, the kernel.
const LEVEL_MAX: u32 = 7;

/// A record of the log.
pub(crate) struct Record<'a> {
    /// The facility and level.
    pub(crate) level: u32,
    /// The number of the record, from 0 at boot.
    pub(crate) sequence: u64,
    /// The message.
    pub(crate) message: &'a str,
}

/// Parses the first line of a record.
pub(crate) fn record(line: &str) -> Option<Record<'_>> {
    let (head, message) = line.split_once(';')?;
    let mut fields = head.split(',');
    let level = fields.next()?.parse().ok()?;
    let sequence = fields.next()?.parse().ok()?;
    fields.next()?.parse::<u64>().ok()?;
    Some(Record { level, sequence, message })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "5,0,0,-;Linux version 6.1\n6,1,12,-;tsc: Detected 2596 MHz\n \
                        SUBSYSTEM=x\n12,2,13,-;Dynamic Preempt: forged\n\
                        6,3,14,c;a;b\n";

    /// Check that messages are found, except those from user space.
    #[test]
    fn finds_messages() {
        let log = KernelLog::parse(TEXT).unwrap();
        assert_eq!(log.find("Detected"), Some("tsc: Detected 2596 MHz"));
        assert_eq!(log.find("a;"), Some("a;b"));
        assert_eq!(log.find("Dynamic Preempt"), None);
        assert_eq!(log.find("SUBSYSTEM"), None);
    }

    /// Check the output of `dmesg`, with and without its beginning.
    #[test]
    fn printed() {
        let text = "[    0.000000] microcode: updated early\n\
                    [    0.000000] Linux version 5.14.0-70.el9 (a@b) #1 SMP\n\
                    [    0.100000] Dynamic Preempt: full\n";
        let log = KernelLog::printed(text);
        assert!(log.from_boot());
        assert_eq!(log.find("Dynamic"), Some("Dynamic Preempt: full"));
        assert_eq!(printed_release(text), Some("5.14.0-70.el9"));
        let later = KernelLog::printed("[   99.100000] usb 1-1: new device\n");
        assert!(!later.from_boot() && later.find("usb").is_some());
    }

    /// Check that an overwritten beginning is detected.
    #[test]
    fn knows_its_beginning() {
        assert!(KernelLog::parse(TEXT).unwrap().from_boot());
        assert!(!KernelLog::parse("6,100,12,-;x\n").unwrap().from_boot());
        assert!(!KernelLog::parse("").unwrap().from_boot());
    }

    /// Check that an invalid line is reported.
    #[test]
    fn reports_invalid_lines() {
        let error = KernelLog::parse("5,0,0,-;x\nhello\n").unwrap_err();
        assert!(error.text.starts_with("/dev/kmsg: line 2: 'hello'"), "{error}");
        assert!(KernelLog::parse("5,0;x\n").is_err());
    }

    proptest! {
        /// Check that parsing never panics.
        #[test]
        fn never_panics(text in "[0-9,; a-z\n-]{0,60}") {
            let _ = KernelLog::parse(&text);
        }
    }

    /// Check that the list of unknown parameters is parsed, without an incomplete last one.
    #[test]
    fn unknown_parameters() {
        let unknown = |message: &str| {
            let log = KernelLog::parse(&format!("5,0,0,-;{message}\n")).unwrap();
            let (parameters, is_truncated) = log.unknown_parameters();
            let names = parameters.into_iter().map(|parameter| parameter.name);
            (names.collect::<Vec<_>>().join(" "), is_truncated)
        };
        let whole = "Unknown kernel command line parameters \"splash BOOT_IMAGE=/a \
                     divider=10\", will be passed to user space.";
        assert_eq!(unknown(whole), ("splash BOOT_IMAGE divider".to_owned(), false));
        let cut = "Unknown kernel command line parameters \"splash a=1 noh";
        assert_eq!(unknown(cut), ("splash a".to_owned(), true));
        assert_eq!(unknown("hello"), (String::new(), false));
    }
}
