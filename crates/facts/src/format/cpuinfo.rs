//! The first processor of `/proc/cpuinfo`: lines of `name : value`; processors are separated by
//! empty lines.
//!
//! Only the first processor is read: the file is long on large machines, and the kernel queries the
//! frequency of each CPU while generating it. On x86, the line `flags` has the CPU features that
//! the kernel uses; other architectures have no such line.

use crate::fact::Unknown;
use crate::tree::root::Root;

/// The file.
pub(crate) const FILE: &str = "/proc/cpuinfo";

/// The text without serial numbers, which some boards include, for recorded trees.
pub(crate) fn redact(text: &str) -> String {
    let serial =
        |line: &&str| line.trim_start().to_ascii_lowercase().starts_with("serial");
    text.split_inclusive('\n').filter(|line| !serial(line)).collect()
}

/// The lines of the first processor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CpuInfo(Vec<(String, String)>);

impl CpuInfo {
    /// Reads the first processor of the file.
    pub(crate) fn read(root: &Root) -> Result<Self, Unknown> {
        Self::parse(&root.head(FILE)?)
    }

    /// Parses the beginning of the file; an incomplete last line is ignored.
    fn parse(text: &str) -> Result<Self, Unknown> {
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let lines = whole.map(str::trim).skip_while(|line| line.is_empty());
        let pairs = lines.take_while(|line| !line.is_empty()).filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.trim().to_owned(), value.trim().to_owned()))
        });
        let pairs: Vec<(String, String)> = pairs.collect();
        if pairs.is_empty() {
            let first = text.lines().next().unwrap_or("");
            return Err(Unknown::garbage(FILE, 1, first, "a processor's description"));
        }
        Ok(Self(pairs))
    }

    /// The value of a line.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let (_, value) = self.0.iter().find(|(own, _)| own == name)?;
        Some(value)
    }

    /// The flags; `None` if the architecture has none (all except x86).
    pub(crate) fn flags(&self) -> Option<impl Iterator<Item = &str>> {
        Some(self.value("flags")?.split_ascii_whitespace())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Check that only the first processor's flags are read.
    #[test]
    fn first_processor_only() {
        let text = "processor\t: 0\nflags\t\t: fpu tsc\npower management:\n\n\
                    processor\t: 1\nflags\t\t: hypervisor\n";
        let info = CpuInfo::parse(text).unwrap();
        assert!(info.flags().unwrap().eq(["fpu", "tsc"]));
    }

    /// Check that an architecture without flags, and an incomplete line, have no flags.
    #[test]
    fn no_flags() {
        let arm = "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd\n\n";
        assert!(CpuInfo::parse(arm).unwrap().flags().is_none());
        let cut = "processor\t: 0\nflags\t\t: fpu ts";
        assert!(CpuInfo::parse(cut).unwrap().flags().is_none());
        assert!(CpuInfo::parse("hello\n").is_err() && CpuInfo::parse("").is_err());
    }

    /// Check that a board's serial number is removed.
    #[test]
    fn removes_serial_numbers() {
        let rest = "processor\t: 0\nFeatures\t: fp\n\nHardware\t: BCM2835\n";
        let text = format!("{rest}Serial\t\t: 00000000deadbeef\nMo");
        assert_eq!(redact(&text), format!("{rest}Mo"));
    }

    proptest! {
        /// Check that parsing never panics.
        #[test]
        fn never_panics(text in "([a-z: \t]|\n){0,60}") {
            let _ = CpuInfo::parse(&text).map(|info| info.flags().map(Iterator::count));
        }
    }
}
