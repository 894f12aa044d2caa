//! The conditions of rules: `SUBJECT OP VALUE`.
//!
//! A comparison with a subject that does not exist is false, also `!=`. If a subject is unknown, so is the
//! condition.

use std::fmt;

use serde::Deserialize;

use crate::rule::kernels;

/// What is known of a subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Its value.
    Is(String),
    /// It exists, and its value is not known.
    Exists,
    /// It does not exist.
    Absent,
    /// Neither is known.
    Unknown,
}

/// A condition.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Condition {
    /// What it is about.
    pub subject: String,
    test: Test,
    text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    Exists,
    Absent,
    /// One of these values.
    OneOf(Vec<String>),
    NoneOf(Vec<String>),
    /// A list with one of these words.
    Has(Vec<String>),
    Lacks(Vec<String>),
    /// A number, or for the kernel a version.
    Compare(Order, String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Condition {
    /// Whether it holds; `None` if that is unknown.
    pub(crate) fn holds(&self, answer: &Answer) -> Option<bool> {
        let value = match answer {
            Answer::Unknown => return None,
            Answer::Absent => return Some(self.test == Test::Absent),
            Answer::Exists => {
                let is_known = matches!(self.test, Test::Exists | Test::Absent);
                return is_known.then_some(self.test == Test::Exists);
            }
            Answer::Is(value) => value,
        };
        let has = |words: &[String]| {
            let mut given = value.split([',', ' ', '\t']);
            given.any(|given| words.iter().any(|word| word == given))
        };
        Some(match &self.test {
            Test::Exists => true,
            Test::Absent => false,
            Test::OneOf(values) => values.contains(value),
            Test::NoneOf(values) => !values.contains(value),
            Test::Has(words) => has(words),
            Test::Lacks(words) => !has(words),
            Test::Compare(order, bound) => self.compare(value, *order, bound),
        })
    }

    fn compare(&self, value: &str, order: Order, bound: &str) -> bool {
        let ordering = if self.subject == "kernel" {
            kernels::version(value).partial_cmp(&kernels::version(bound))
        } else {
            let numbers = value.parse::<f64>().ok().zip(bound.parse::<f64>().ok());
            numbers.and_then(|(value, bound)| value.partial_cmp(&bound))
        };
        ordering.is_some_and(|found| match order {
            Order::Less => found.is_lt(),
            Order::AtMost => found.is_le(),
            Order::Greater => found.is_gt(),
            Order::AtLeast => found.is_ge(),
        })
    }
}

impl TryFrom<String> for Condition {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut words = text.splitn(3, ' ');
        let expected = || format!("'{text}' is not SUBJECT OP VALUE");
        let (subject, op) = words.next().zip(words.next()).ok_or_else(expected)?;
        let value = words.next().map(str::trim);
        let list = || {
            let values = value.ok_or_else(expected)?;
            Ok::<_, String>(
                values.split('|').map(|word| word.trim().to_owned()).collect(),
            )
        };
        let bound = || value.map(str::to_owned).ok_or_else(expected);
        let test = match op {
            "exists" => Test::Exists,
            "absent" => Test::Absent,
            "=" => Test::OneOf(list()?),
            "!=" => Test::NoneOf(list()?),
            "has" => Test::Has(list()?),
            "lacks" => Test::Lacks(list()?),
            "<" => Test::Compare(Order::Less, bound()?),
            "<=" => Test::Compare(Order::AtMost, bound()?),
            ">" => Test::Compare(Order::Greater, bound()?),
            ">=" => Test::Compare(Order::AtLeast, bound()?),
            _ => return Err(expected()),
        };
        Ok(Self { subject: subject.to_owned(), test, text })
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(text: &str, answer: Answer) -> Option<bool> {
        Condition::try_from(text.to_owned()).unwrap().holds(&answer)
    }

    fn is(text: &str, value: &str) -> bool {
        holds(text, Answer::Is(value.to_owned())).unwrap()
    }

    /// Check each comparison.
    #[test]
    fn comparisons() {
        assert!(is("boot.idle = poll|halt", "halt") && !is("boot.idle = poll", "halt"));
        assert!(is("boot.idle != poll", "halt") && !is("boot.idle != poll", "poll"));
        assert!(is("boot.isolcpus has nohz", "nohz,domain,1-3"));
        assert!(is("boot.isolcpus lacks domain", "nohz,1-3"));
        assert!(is("cpus > 9", "10") && !is("cpus > 9", "9") && is("cpus >= 9", "9"));
        assert!(!is("cpus < 9", "many"));
        assert!(is("kernel < 6.12", "6.1.0-1-amd64") && !is("kernel < 6.12", "6.12.1"));
        assert!(is("boot.quiet exists", "") && !is("boot.quiet absent", ""));
    }

    /// Check that what does not exist fulfils only `absent`, and that what is unknown fulfils nothing.
    #[test]
    fn missing() {
        for (text, expected) in
            [("a absent", true), ("a exists", false), ("a = 1", false), ("a != 1", false)]
        {
            assert_eq!(holds(text, Answer::Absent), Some(expected), "{text}");
            assert_eq!(holds(text, Answer::Unknown), None, "{text}");
        }
        assert_eq!(holds("a exists", Answer::Exists), Some(true));
        assert_eq!(holds("a absent", Answer::Exists), Some(false));
        assert_eq!(holds("a = 1", Answer::Exists), None);
        assert!(Condition::try_from("a ~ 1".to_owned()).is_err());
        assert!(Condition::try_from("a =".to_owned()).is_err());
    }
}
