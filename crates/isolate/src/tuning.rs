//! A scheduler setting and its requested value: `WAKEUP_PREEMPTION=off`, `base_slice_ns=3000000`,
//! `preempt=full`.
//!
//! Features are upper case and on or off, tunables lower case and integers, as in the kernel
//! (`kernel/sched/features.h`, `debug.c`). Which of them this kernel has is determined in
//! [`crate::tuning::tunables`].

pub(crate) mod lease;
pub(crate) mod tunables;

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Kind};
use crate::settings::setting::{OFF, ON};

/// The only tunable whose value is a word: the preemption model.
pub(crate) const PREEMPT: &str = "preempt";
/// The values of `preempt` in all kernels.
const MODELS: [&str; 5] = ["none", "voluntary", "full", "lazy", "laziest"];

/// A scheduler setting and its requested value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tuning {
    name: String,
    value: String,
    sort: Sort,
}

/// The kind of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    /// On or off.
    Feature,
    /// An integer.
    Tunable,
    /// `preempt`.
    Preempt,
}

impl Tuning {
    /// A feature with `on` or `off`, a tunable with an integer in the kernel's unit (nanoseconds
    /// if its name ends in `_ns`), or `preempt` with one of the kernel's models.
    ///
    /// # Errors
    /// `Kind::Tuning`: no kernel has a setting with such a name, or such a value.
    pub fn parse(name: &str, value: &str) -> Result<Self, Error> {
        let (name, value) = (name.trim(), value.trim());
        let sort = sort(name)?;
        let refuse =
            |what: &str| Err(mistake(format!("{name}={value}: {name} is {what}")));
        let value = match sort {
            Sort::Feature if ![ON, OFF].contains(&value) => return refuse("on or off"),
            Sort::Preempt if !MODELS.contains(&value) => {
                return refuse("none, voluntary, full or lazy");
            }
            Sort::Feature | Sort::Preempt => value.to_owned(),
            // In the kernel's format, for comparison with the current value.
            Sort::Tunable => match value.parse::<i64>() {
                Ok(number) => number.to_string(),
                Err(_) => return refuse("a whole number"),
            },
        };
        Ok(Self { name: name.to_owned(), value, sort })
    }

    /// The kernel's name of the setting.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The requested value, in the kernel's format.
    pub fn value(&self) -> &str {
        &self.value
    }

    pub(crate) fn sort(&self) -> Sort {
        self.sort
    }
}

impl FromStr for Tuning {
    type Err = Error;

    /// Parses `NAME=VALUE`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let Some((name, value)) = text.split_once('=') else {
            let forms = "FEATURE=on, FEATURE=off, TUNABLE=NUMBER or preempt=MODEL";
            return Err(mistake(format!("'{text}' is not {forms}")));
        };
        Self::parse(name, value)
    }
}

impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

fn sort(name: &str) -> Result<Sort, Error> {
    let fits = |first: fn(&char) -> bool| {
        let rest = |c: char| first(&c) || c.is_ascii_digit() || c == '_';
        name.starts_with(|c| first(&c)) && name.chars().all(rest)
    };
    if let Some(plain) = name.strip_prefix("NO_") {
        return Err(mistake(format!("'{name}' is written {plain}=off")));
    }
    match name {
        PREEMPT => Ok(Sort::Preempt),
        _ if fits(char::is_ascii_uppercase) => Ok(Sort::Feature),
        _ if fits(char::is_ascii_lowercase) => Ok(Sort::Tunable),
        _ => {
            let rule = "features are upper case, tunables lower case";
            Err(mistake(format!("'{name}' is not a scheduler setting: {rule}")))
        }
    }
}

pub(crate) fn mistake(text: String) -> Error {
    Error::new(Kind::Tuning, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        let error = text.parse::<Tuning>().unwrap_err();
        assert_eq!(error.kind(), Kind::Tuning, "{text}");
        error.to_string()
    }

    /// Check that kinds are determined by name, and that numbers are normalized.
    #[test]
    fn sorts() {
        for (text, sort, value) in [
            ("WAKEUP_PREEMPTION=off", Sort::Feature, "off"),
            (" NONTASK_CAPACITY = on ", Sort::Feature, "on"),
            ("base_slice_ns=0700000", Sort::Tunable, "700000"),
            ("migration_cost_ns=-1", Sort::Tunable, "-1"),
            ("preempt=lazy", Sort::Preempt, "lazy"),
        ] {
            let tuning: Tuning = text.parse().unwrap();
            assert_eq!((tuning.sort(), tuning.value()), (sort, value), "{text}");
            let again: Tuning = tuning.to_string().parse().unwrap();
            assert_eq!(again, tuning);
        }
    }

    /// Check that invalid settings are rejected with the expected form.
    #[test]
    fn mistakes() {
        for (text, expected) in [
            ("WAKEUP_PREEMPTION", "'WAKEUP_PREEMPTION' is not FEATURE=on"),
            ("WAKEUP_PREEMPTION=1", "WAKEUP_PREEMPTION is on or off"),
            ("NO_HRTICK=on", "'NO_HRTICK' is written HRTICK=off"),
            ("base_slice_ns=3ms", "base_slice_ns is a whole number"),
            ("base_slice_ns=", "base_slice_ns is a whole number"),
            ("preempt=fast", "preempt is none, voluntary, full or lazy"),
            ("=on", "'' is not a scheduler setting"),
            ("Hrtick=on", "'Hrtick' is not a scheduler setting"),
            ("../features=1", "'../features' is not a scheduler setting"),
            ("numa_balancing/scan_size_mb=1", "is not a scheduler setting"),
        ] {
            let error = refused(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
