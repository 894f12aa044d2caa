//! CPU numbers and sets of CPUs, in the kernel's notations.
//!
//! A list has the format of `/sys/devices/system/cpu/online` and `isolcpus=`: `0-3,8`, with
//! strides as `0-63:2/8` (the first 2 of every 8; `lib/bitmap-str.c`). A mask has that of
//! `/proc/irq/*/smp_affinity`: hexadecimal words of 32 bits, the highest first.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Above the `NR_CPUS` of all kernels (x86: 8192); limits the memory that a typing error can use.
const CPUS_MAX: u32 = 65_536;

/// The kernel's number of a CPU.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Cpu(u32);

impl Cpu {
    /// The CPU with this number.
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// The CPU's number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The CPU's number as an index into a mask or a table.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl FromStr for Cpu {
    type Err = CpuListError;

    /// Parses a CPU number, with the same limit as in a list.
    fn from_str(text: &str) -> Result<Self, CpuListError> {
        number(text).map(Self).map_err(|why| CpuListError::new(text, why))
    }
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A set of CPUs, printed and stored as the kernel's list notation.
///
/// ```
/// let cpus: units::CpuSet = "0-3,8".parse()?;
/// assert_eq!(cpus.len(), 5);
/// assert_eq!(cpus.to_string(), "0-3,8");
/// # Ok::<(), units::CpuListError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CpuSet(BTreeSet<Cpu>);

impl CpuSet {
    /// The empty set.
    pub const fn empty() -> Self {
        Self(BTreeSet::new())
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of CPUs in the set.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the CPU is in the set.
    pub fn contains(&self, cpu: Cpu) -> bool {
        self.0.contains(&cpu)
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Cpu> + '_ {
        self.0.iter().copied()
    }

    /// The lowest CPU.
    pub fn first(&self) -> Option<Cpu> {
        self.0.first().copied()
    }

    /// The CPUs that are in this set but not in `other`.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).copied().collect())
    }

    /// The CPUs that are in both sets.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }

    /// Formats a mask with as many words, and as many digits in the first word, as `like`, a mask
    /// that the kernel printed.
    pub fn to_mask(&self, like: &str) -> String {
        let words = like.split(',').rev().enumerate().map(|(word, digits)| {
            let bits = (0..32).filter(|bit| {
                let number = u32::try_from(word * 32).ok().map(|first| first + bit);
                number.is_some_and(|number| self.contains(Cpu(number)))
            });
            let value = bits.fold(0_u32, |value, bit| value | 1 << bit);
            format!("{value:0width$x}", width = digits.len())
        });
        let words: Vec<String> = words.collect();
        words.into_iter().rev().collect::<Vec<_>>().join(",")
    }

    /// The list in the format of the kernel (`bitmap_print_list`), in which two neighbours are a range,
    /// too: `0-1,4`.
    pub fn to_list(&self) -> String {
        self.ranges()
            .map(|[first, last]| match first == last {
                true => first.to_string(),
                false => format!("{first}-{last}"),
            })
            .collect::<Vec<_>>()
            .join(",")
    }

    /// The first and the last of each group of neighbours.
    fn ranges(&self) -> impl Iterator<Item = [u32; 2]> {
        let mut cpus = self.0.iter().map(|cpu| cpu.0).peekable();
        std::iter::from_fn(move || {
            let first = cpus.next()?;
            let mut last = first;
            while let Some(next) = cpus.next_if_eq(&(last + 1)) {
                last = next;
            }
            Some([first, last])
        })
    }

    /// Parses a mask in the format of `/proc/irq/*/smp_affinity`: `ff,00000003`.
    ///
    /// # Errors
    /// A word is not hexadecimal, or longer than eight digits.
    pub fn from_mask(text: &str) -> Result<Self, CpuListError> {
        let refuse = || CpuListError::new(text, "not a CPU mask");
        let mut cpus = BTreeSet::new();
        for (word, digits) in text.trim().rsplit(',').enumerate() {
            if digits.is_empty() || digits.len() > 8 {
                return Err(refuse());
            }
            let bits = u32::from_str_radix(digits, 16).map_err(|_| refuse())?;
            let first = u32::try_from(word * 32).map_err(|_| refuse())?;
            if bits != 0 && first >= CPUS_MAX {
                return Err(CpuListError::new(text, "no machine has that many CPUs"));
            }
            let set = (0..32).filter(|bit| (bits >> bit) & 1 == 1);
            cpus.extend(set.map(|bit| Cpu(first + bit)));
        }
        Ok(Self(cpus))
    }
}

impl From<Cpu> for CpuSet {
    fn from(cpu: Cpu) -> Self {
        Self::from_iter([cpu])
    }
}

impl FromIterator<Cpu> for CpuSet {
    fn from_iter<I: IntoIterator<Item = Cpu>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for [first, last] in self.ranges() {
            match last - first {
                0 => write!(f, "{separator}{first}")?,
                1 => write!(f, "{separator}{first},{last}")?,
                _ => write!(f, "{separator}{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

impl From<CpuSet> for String {
    fn from(cpus: CpuSet) -> Self {
        cpus.to_string()
    }
}

impl TryFrom<String> for CpuSet {
    type Error = CpuListError;

    fn try_from(text: String) -> Result<Self, CpuListError> {
        text.parse()
    }
}

/// The error for text that is not a CPU list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuListError {
    text: String,
    why: &'static str,
}

impl CpuListError {
    fn new(text: &str, why: &'static str) -> Self {
        let text = text.chars().take(80).collect();
        Self { text, why }
    }
}

impl fmt::Display for CpuListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not a CPU list: {}", self.text, self.why)
    }
}

impl std::error::Error for CpuListError {}

impl FromStr for CpuSet {
    type Err = CpuListError;

    /// Parses a list in the kernel's format: `0-3,8,16-31:1/4`. Leading and trailing white space
    /// is ignored; empty text is the empty set.
    fn from_str(text: &str) -> Result<Self, CpuListError> {
        let mut cpus = BTreeSet::new();
        let list = text.trim();
        if list.is_empty() {
            return Ok(Self(cpus));
        }
        for part in list.split(',') {
            add_part(&mut cpus, part).map_err(|why| CpuListError::new(text, why))?;
        }
        Ok(Self(cpus))
    }
}

/// Adds one part of a list: `N`, `N-M` or `N-M:used/group`.
fn add_part(cpus: &mut BTreeSet<Cpu>, part: &str) -> Result<(), &'static str> {
    let (range, stride) = match part.split_once(':') {
        Some((range, stride)) => (range, Some(stride)),
        None => (part, None),
    };
    let (first, last) = match range.split_once('-') {
        Some((first, last)) => (number(first)?, number(last)?),
        None => (number(range)?, number(range)?),
    };
    if first > last {
        return Err("a range runs backwards");
    }
    let (used, group) = match stride.map(|stride| stride.split_once('/')) {
        None => (1, 1),
        Some(Some((used, group))) => (number(used)?, number(group)?),
        Some(None) => return Err("a stride is written N-M:used/group"),
    };
    if used == 0 || group == 0 || used > group {
        return Err("a stride uses at least one CPU of each group and at most all");
    }
    let chosen = (first..=last).filter(|cpu| (cpu - first) % group < used);
    cpus.extend(chosen.map(Cpu));
    Ok(())
}

fn number(text: &str) -> Result<u32, &'static str> {
    if text.is_empty() {
        return Err("a number is missing");
    }
    if !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err("numbers, '-' and ',' are expected, as in 0-3,8");
    }
    match text.parse::<u32>() {
        Ok(number) if number < CPUS_MAX => Ok(number),
        _ => Err("no machine has that many CPUs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(numbers: &[u32]) -> CpuSet {
        numbers.iter().map(|&number| Cpu(number)).collect()
    }

    /// Check the kernel's notations, including strides.
    #[test]
    fn reads_lists() {
        assert_eq!("0-3,8".parse(), Ok(set(&[0, 1, 2, 3, 8])));
        assert_eq!("0-7:2/4".parse(), Ok(set(&[0, 1, 4, 5])));
        assert_eq!("3,1\n".parse(), Ok(set(&[1, 3])));
        assert_eq!("".parse(), Ok(CpuSet::empty()));
    }

    /// Check that lists that the kernel rejects are rejected, with the reason.
    #[test]
    fn rejects_invalid_lists() {
        for (text, why) in [
            ("3-1", "backwards"),
            ("1,,2", "missing"),
            ("1-", "missing"),
            ("a", "expected"),
            ("-1", "missing"),
            ("0-7:4", "stride"),
            ("0-7:0/4", "at least one"),
            ("0-7:5/4", "at most all"),
            ("99999999999", "that many"),
        ] {
            let error = text.parse::<CpuSet>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    /// Check that masks are parsed from the right, across words.
    #[test]
    fn reads_masks() {
        assert_eq!(CpuSet::from_mask("5\n"), Ok(set(&[0, 2])));
        assert_eq!(CpuSet::from_mask("1,80000000"), Ok(set(&[31, 32])));
        assert_eq!(set(&[0, 1, 4, 6, 7, 8]).to_list(), "0-1,4,6-8");
        assert_eq!(set(&[0, 2]).to_mask("f"), "5");
        assert_eq!(set(&[0, 31, 32]).to_mask("ff,ffffffff"), "01,80000001");
        assert!(CpuSet::from_mask("xyz").is_err());
        assert!(CpuSet::from_mask("").is_err());
        let far = format!("1{}", ",00000000".repeat(2_048));
        assert!(CpuSet::from_mask(&far).is_err());
    }

    proptest! {
        /// Check that printing and reading a set are inverses.
        #[test]
        fn print_then_read(numbers in prop::collection::btree_set(0u32..300, 0..40)) {
            let cpus: CpuSet = numbers.into_iter().map(Cpu).collect();
            prop_assert_eq!(cpus.to_string().parse(), Ok(cpus));
        }

        /// Check that lists of the kernel are read, too.
        #[test]
        fn list_then_read(numbers in prop::collection::btree_set(0u32..300, 0..40)) {
            let cpus: CpuSet = numbers.into_iter().map(Cpu).collect();
            prop_assert_eq!(cpus.to_list().parse(), Ok(cpus));
        }

        /// Check that parsing never panics.
        #[test]
        fn never_panics(text in "[0-9,:/-]{0,20}") {
            let _ = text.parse::<CpuSet>();
            let _ = CpuSet::from_mask(&text);
        }
    }
}
