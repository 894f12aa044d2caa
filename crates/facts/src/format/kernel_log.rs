//! The kernel's messages, from `/dev/kmsg` (readable since 3.5).
//!
//! One record a line: `level,sequence,time,flags;message`, with what belongs to it on
//! lines that begin with a space. Only the kernel's own records count: whoever may
//! write there can add others, and those carry another facility in `level`.
//!
//! Cannot see messages that newer ones have overwritten. Needs root where
//! `kernel.dmesg_restrict` is 1.

use crate::fact::{Unknown, Why};
use crate::format::command_line::{CommandLine, Parameter};
use crate::format::release::Release;
use crate::tree::root::Root;

/// The file.
pub(crate) const FILE: &str = "/dev/kmsg";

/// How the kernel lists the parameters it does not know.
pub(crate) const DISOWNED: &str = "Unknown kernel command line parameters \"";

/// The kernel's messages, oldest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KernelLog {
    messages: Vec<String>,
    from_boot: bool,
}

impl KernelLog {
    /// Reads the messages that are there, up to a size that holds every boot's.
    pub(crate) fn read(root: &Root, release: Option<&Release>) -> Result<Self, Unknown> {
        match root.kernel_log(FILE) {
            Ok(bytes) => Self::parse(&String::from_utf8_lossy(&bytes)),
            Err(_) if release.is_some_and(|release| !release.at_least(3, 5)) => {
                let text = "kernels before 3.5 do not show their messages in /dev/kmsg";
                Err(Unknown::new(Why::TooOld, text))
            }
            Err(unknown) if unknown.code == Why::NeedsRoot => {
                let text = "the kernel's messages may be read by root only \
                            (kernel.dmesg_restrict)";
                Err(Unknown::new(Why::NeedsRoot, text))
            }
            Err(unknown) => Err(unknown),
        }
    }

    /// Reads the text of `/dev/kmsg`.
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

    /// The first message that contains the text.
    pub(crate) fn find<'a>(&'a self, needle: &'a str) -> Option<&'a str> {
        self.all(needle).next()
    }

    /// The messages that contain the text, oldest first.
    pub(crate) fn all<'a>(&'a self, needle: &'a str) -> impl Iterator<Item = &'a str> {
        self.messages.iter().map(String::as_str).filter(move |m| m.contains(needle))
    }

    /// The parameters the kernel said it does not know (since 5.15; those with a `.`
    /// belong to modules that may be loaded later and are not listed), and whether its
    /// list was cut off.
    pub(crate) fn disowned(&self) -> (Vec<Parameter>, bool) {
        let Some(message) = self.find(DISOWNED) else { return (Vec::new(), false) };
        let list = message.strip_prefix(DISOWNED).unwrap_or_default();
        let whole = list.rsplit_once("\", will be passed");
        // A message that was too long ends in the middle of a parameter.
        let known = match whole {
            Some((list, _)) => list,
            None => list.rsplit_once(' ').map_or("", |(list, _)| list),
        };
        let parameters = CommandLine::parse(known).parameters().cloned().collect();
        (parameters, whole.is_none())
    }

    /// Whether the kernel's first message is still there, and with it all since.
    #[expect(clippy::wrong_self_convention, reason = "messages from boot on, no maker")]
    pub(crate) fn from_boot(&self) -> bool {
        self.from_boot
    }
}

/// The highest level of facility 0, the kernel itself.
const LEVEL_MAX: u32 = 7;

/// One record of the log.
pub(crate) struct Record<'a> {
    /// Facility and level.
    pub(crate) level: u32,
    /// Counted from 0 at boot.
    pub(crate) sequence: u64,
    /// What was said.
    pub(crate) message: &'a str,
}

/// Takes a record's first line apart.
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

    /// Check that records are found by what they say, and forged ones are not.
    #[test]
    fn finds_messages() {
        let log = KernelLog::parse(TEXT).unwrap();
        assert_eq!(log.find("Detected"), Some("tsc: Detected 2596 MHz"));
        assert_eq!(log.find("a;"), Some("a;b"));
        assert_eq!(log.find("Dynamic Preempt"), None);
        assert_eq!(log.find("SUBSYSTEM"), None);
    }

    /// Check that a log whose beginning was overwritten says so.
    #[test]
    fn knows_its_beginning() {
        assert!(KernelLog::parse(TEXT).unwrap().from_boot());
        assert!(!KernelLog::parse("6,100,12,-;x\n").unwrap().from_boot());
        assert!(!KernelLog::parse("").unwrap().from_boot());
    }

    /// Check that a line that is no record is named.
    #[test]
    fn names_garbage() {
        let error = KernelLog::parse("5,0,0,-;x\nhello\n").unwrap_err();
        assert!(error.text.starts_with("/dev/kmsg: line 2: 'hello'"), "{error}");
        assert!(KernelLog::parse("5,0;x\n").is_err());
    }

    proptest! {
        /// Check that no text makes the reader panic.
        #[test]
        fn never_panics(text in "[0-9,; a-z\n-]{0,60}") {
            let _ = KernelLog::parse(&text);
        }
    }

    /// Check that the kernel's list of parameters it does not know is read, and its last
    /// word dropped where the message was cut off.
    #[test]
    fn disowned_parameters() {
        let disowned = |message: &str| {
            let log = KernelLog::parse(&format!("5,0,0,-;{message}\n")).unwrap();
            let (parameters, cut_off) = log.disowned();
            let names = parameters.into_iter().map(|parameter| parameter.name);
            (names.collect::<Vec<_>>().join(" "), cut_off)
        };
        let whole = "Unknown kernel command line parameters \"splash BOOT_IMAGE=/a \
                     divider=10\", will be passed to user space.";
        assert_eq!(disowned(whole), ("splash BOOT_IMAGE divider".to_owned(), false));
        let cut = "Unknown kernel command line parameters \"splash a=1 noh";
        assert_eq!(disowned(cut), ("splash a".to_owned(), true));
        assert_eq!(disowned("hello"), (String::new(), false));
    }
}
