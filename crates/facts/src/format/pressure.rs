//! Pressure stall information (PSI): how much of the time tasks wait for CPU time, memory or IO.
//!
//! Since 4.20, with `CONFIG_PSI`: `/proc/pressure/{cpu,memory,io}` of the machine, and in a cgroup of v2
//! `cpu.pressure` and so on. One line for each of `some` (at least one task waited) and `full` (all did;
//! of CPU time in cgroups since 5.13), as in
//! `some avg10=0.31 avg60=0.55 avg300=0.92 total=2271108450`: percentages over 10 s, 60 s and 300 s, and
//! microseconds in total. See `Documentation/accounting/psi.rst`.
//!
//! Of a machine with `psi=0`, or built with `PSI_DEFAULT_DISABLED` and without `psi=1`, the files cannot
//! be read.

use serde::{Deserialize, Serialize};

use crate::fact::Unknown;

/// How much of the time tasks waited for a resource.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stalls {
    /// At least one task waited.
    pub some: Stall,
    /// All tasks that were not idle waited; `None` if the kernel does not report it.
    pub full: Option<Stall>,
}

/// A share of the time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// The percentage of the last 10 s.
    pub avg10: f64,
    /// The percentage of the last minute.
    pub avg60: f64,
    /// The percentage of the last five minutes.
    pub avg300: f64,
    /// The time since boot, or since the cgroup was created, in microseconds.
    pub total_us: u64,
}

impl Stalls {
    /// The contents of a file.
    ///
    /// # Errors
    /// The contents are not as expected.
    pub(crate) fn parse(text: &str, file: &str) -> Result<Self, Unknown> {
        let (mut some, mut full) = (None, None);
        for (number, line) in (1..).zip(text.lines()) {
            let expected = "the share of the time in which tasks wait";
            let garbage = || Unknown::garbage(file, number, line, expected);
            match line.split_once(' ') {
                Some(("some", rest)) => some = Some(stall(rest).ok_or_else(garbage)?),
                Some(("full", rest)) => full = Some(stall(rest).ok_or_else(garbage)?),
                Some(_) | None => return Err(garbage()),
            }
        }
        let missing = || Unknown::garbage(file, 1, "", "a line with 'some'");
        Ok(Self { some: some.ok_or_else(missing)?, full })
    }
}

fn stall(fields: &str) -> Option<Stall> {
    let field = |name: &str| {
        let mut fields = fields.split(' ').filter_map(|field| field.split_once('='));
        fields.find(|(key, _)| *key == name).map(|(_, value)| value)
    };
    let percent = |name| {
        let value: f64 = field(name)?.parse().ok()?;
        (0.0..=100.0).contains(&value).then_some(value)
    };
    Some(Stall {
        avg10: percent("avg10")?,
        avg60: percent("avg60")?,
        avg300: percent("avg300")?,
        total_us: field("total")?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Why;

    /// Check both lines, a kernel without `full`, and invalid contents.
    #[test]
    fn lines() {
        let line = "avg10=99.04 avg60=0.00 avg300=1.50 total=7\n";
        let stall = Stall { avg10: 99.04, avg60: 0.0, avg300: 1.5, total_us: 7 };
        let parse = |text: &str| Stalls::parse(text, "/f");
        let both = parse(&format!("some {line}full {line}"));
        assert_eq!(both, Ok(Stalls { some: stall, full: Some(stall) }));
        let old = parse(&format!("some {line}"));
        assert_eq!(old, Ok(Stalls { some: stall, full: None }));
        for invalid in [
            "",
            "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
            "some avg10=NaN avg60=0.00 avg300=0.00 total=0\n",
            "some avg10=0.00 avg60=0.00 total=0\n",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=-1\n",
            "some\n",
        ] {
            assert_eq!(parse(invalid).unwrap_err().code, Why::Garbage, "{invalid}");
        }
    }
}
