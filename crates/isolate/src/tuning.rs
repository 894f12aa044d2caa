//! A setting of the scheduler and what it is to be, as it is asked for: `WAKEUP_PREEMPTION=off`,
//! `base_slice_ns=3000000`, `preempt=full`.
//!
//! Features are upper case and on or off, tunables lower case and whole numbers, as the kernel
//! names and shows them (`kernel/sched/features.h`, `debug.c`).
//!
//! Cannot see which of them a kernel has: that is [`crate::tuning::tunables`]'s.

pub(crate) mod tunables;
pub(crate) mod tuned;

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Kind};
use crate::settings::setting::{OFF, ON};

/// The tunable that is a word: which kernel code can be preempted.
pub(crate) const PREEMPT: &str = "preempt";
/// What `preempt` can be, in all kernels together.
const MODELS: [&str; 5] = ["none", "voluntary", "full", "lazy", "laziest"];

/// A setting of the scheduler, and what it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tuning {
    name: String,
    value: String,
    sort: Sort,
}

/// Which sort of setting it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sort {
    /// On or off.
    Feature,
    /// A number.
    Tunable,
    /// `preempt`.
    Preempt,
}

impl Tuning {
    /// A feature and `on` or `off`, a tunable and a whole number in the kernel's own unit
    /// (nanoseconds where its name ends in `_ns`), or `preempt` and one of the kernel's words.
    ///
    /// # Errors
    /// `Kind::Tuning`: no kernel has a setting of that form, or it cannot be that.
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
            // As the kernel shows it: what is there is compared with it.
            Sort::Tunable => match value.parse::<i64>() {
                Ok(number) => number.to_string(),
                Err(_) => return refuse("a whole number"),
            },
        };
        Ok(Self { name: name.to_owned(), value, sort })
    }

    /// The kernel's name of it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is to be, as the kernel shows that.
    pub fn value(&self) -> &str {
        &self.value
    }

    pub(crate) fn sort(&self) -> Sort {
        self.sort
    }
}

impl FromStr for Tuning {
    type Err = Error;

    /// Reads `NAME=VALUE`.
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
            Err(mistake(format!("'{name}' is no setting of the scheduler: {rule}")))
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

    /// Check that each sort is known by its name, and that numbers are as kernels show them.
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

    /// Check that what is no setting is refused with what it should be.
    #[test]
    fn mistakes() {
        for (text, says) in [
            ("WAKEUP_PREEMPTION", "'WAKEUP_PREEMPTION' is not FEATURE=on"),
            ("WAKEUP_PREEMPTION=1", "WAKEUP_PREEMPTION is on or off"),
            ("NO_HRTICK=on", "'NO_HRTICK' is written HRTICK=off"),
            ("base_slice_ns=3ms", "base_slice_ns is a whole number"),
            ("base_slice_ns=", "base_slice_ns is a whole number"),
            ("preempt=fast", "preempt is none, voluntary, full or lazy"),
            ("=on", "'' is no setting"),
            ("Hrtick=on", "'Hrtick' is no setting"),
            ("../features=1", "'../features' is no setting"),
            ("numa_balancing/scan_size_mb=1", "is no setting"),
        ] {
            let told = refused(text);
            assert!(told.contains(says), "{text}: {told}");
        }
    }
}
