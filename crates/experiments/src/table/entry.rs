//! The single entries of an experiment: names, lengths, parameters, settings.
//!
//! An entry is checked as it is read, so that TOML's parser knows the place of a mistake, and the
//! command line's changes (`changes`) are checked equally.

use std::fmt;
use std::str::FromStr;

use facts::CommandLine;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use units::Nanos;

use crate::error::EntryError;
use crate::from_text::read_from_text;
use crate::table::kernel_build::KernelBuild;

/// The parameters that the lab itself sets, and an experiment must not.
const OWNED: [&str; 4] = ["console", "panic", "rdinit", "init"];
/// x86 kernels take 2047 bytes (`COMMAND_LINE_SIZE`); the lab needs some for itself.
const PARAMETERS_MAX: usize = 1024;
const LENGTH_MAX: Nanos = Nanos::from_secs(3600);

/// A row's name, or an experiment's: one word, so that a cell's name can be split.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Name(String);

/// A line about the experiment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line(String);

/// The name of a kernel: `debian:6.1-cloud`, a path, a kernel to build.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct KernelName(String);

/// A value of QEMU's `-cpu`: `qemu64,-rdrand`.
#[derive(Debug, Clone)]
pub(crate) struct CpuModel(String);

/// Parameters for the kernel's command line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Parameters(String);

/// A file below `/proc/sys` or `/sys`.
#[derive(Debug, Clone)]
pub(crate) struct SettingPath(String);

/// The value of such a file.
#[derive(Debug, Clone)]
pub(crate) struct SettingValue(String);

/// The name of a metric: `tick_instructions`.
#[derive(Debug, Clone)]
pub(crate) struct MetricName(String);

/// A duration: greater than 0, at most an hour.
#[derive(Debug, Clone)]
pub(crate) struct Length {
    text: String,
    nanos: Nanos,
}

impl Length {
    /// The length.
    pub(crate) fn nanos(&self) -> Nanos {
        self.nanos
    }
}

impl fmt::Display for Length {
    /// The text: `1s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Length {
    type Err = EntryError;

    fn from_str(text: &str) -> Result<Self, EntryError> {
        let nanos: Nanos = text.parse()?;
        if nanos.is_zero() || nanos > LENGTH_MAX {
            return Err(EntryError::LengthRange(text.to_owned()));
        }
        Ok(Self { text: text.to_owned(), nanos })
    }
}

impl CpuModel {
    /// Whether it is the host's own CPU, which only KVM supports.
    pub(crate) fn is_host(&self) -> bool {
        self.0.split(',').next() == Some("host")
    }
}

impl Parameters {
    /// These with more appended.
    pub(crate) fn and(&self, more: &Self) -> Result<Self, EntryError> {
        format!("{} {}", self.0, more.0).trim().parse()
    }
}

fn check_name(text: &str) -> Result<(), EntryError> {
    if text.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(EntryError::Name(text.to_owned()));
    }
    Ok(())
}

fn check_line(text: &str) -> Result<(), EntryError> {
    if text.contains(char::is_control) {
        return Err(EntryError::Line);
    }
    Ok(())
}

fn check_kernel(text: &str) -> Result<(), EntryError> {
    if text.trim().is_empty() || text.contains(char::is_control) {
        return Err(EntryError::Kernel(text.to_owned()));
    }
    Ok(kernels::check_name(text)?)
}

fn check_cpu(text: &str) -> Result<(), EntryError> {
    let known = |c: char| c.is_ascii_alphanumeric() || "-_+=.,".contains(c);
    if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) || !text.chars().all(known)
    {
        return Err(EntryError::CpuModel(text.to_owned()));
    }
    Ok(())
}

fn check_parameters(text: &str) -> Result<(), EntryError> {
    if text.len() > PARAMETERS_MAX {
        return Err(EntryError::ParametersTooLong(PARAMETERS_MAX));
    }
    if !text.chars().all(|c| c == ' ' || c.is_ascii_graphic()) {
        return Err(EntryError::ParametersNotAscii);
    }
    if text.matches('"').count() % 2 == 1 {
        return Err(EntryError::OpenQuote);
    }
    if text.split(' ').any(|word| word == "--") {
        return Err(EntryError::DoubleDash);
    }
    let given = CommandLine::parse(text);
    match OWNED.into_iter().find(|name| given.has(name)) {
        Some(name) => Err(EntryError::OwnedParameter(name, OWNED.join(", "))),
        None => Ok(()),
    }
}

fn check_path(text: &str) -> Result<(), EntryError> {
    let below = text.strip_prefix("/proc/sys/").or_else(|| text.strip_prefix("/sys/"));
    let plain = |part: &str| !matches!(part, "" | "." | "..");
    match below {
        Some(rest) if rest.split('/').all(plain) && !text.contains(char::is_control) => {
            Ok(())
        }
        _ => Err(EntryError::SettingPath(text.to_owned())),
    }
}

fn check_value(text: &str) -> Result<(), EntryError> {
    if text.is_empty() || text.contains(char::is_control) {
        return Err(EntryError::SettingValue);
    }
    Ok(())
}

fn check_metric(text: &str) -> Result<(), EntryError> {
    let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if text.is_empty() || !text.chars().all(known) {
        return Err(EntryError::Metric(text.to_owned()));
    }
    Ok(())
}

/// The methods of a checked string.
macro_rules! checked_string {
    ($($name:ident: $check:ident),+ $(,)?) => {
        $(
            impl $name {
                /// The text.
                pub(crate) fn as_str(&self) -> &str {
                    &self.0
                }
            }

            impl FromStr for $name {
                type Err = EntryError;

                fn from_str(text: &str) -> Result<Self, EntryError> {
                    $check(text).map(|()| Self(text.to_owned()))
                }
            }

            read_from_text!($name);
        )+
    };
}

checked_string! {
    Name: check_name,
    Line: check_line,
    CpuModel: check_cpu,
    Parameters: check_parameters,
    SettingPath: check_path,
    SettingValue: check_value,
    MetricName: check_metric,
}
read_from_text!(Length);

impl KernelName {
    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for KernelName {
    type Err = EntryError;

    fn from_str(text: &str) -> Result<Self, EntryError> {
        check_kernel(text).map(|()| Self(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for KernelName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(KernelReader)
    }
}

/// Reads a kernel's name, or a kernel to build as a table.
struct KernelReader;

impl<'de> Visitor<'de> for KernelReader {
    type Value = KernelName;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, or a table with a source")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<KernelName, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<KernelName, A::Error> {
        let build = KernelBuild::deserialize(MapAccessDeserializer::new(map))?;
        let name = build.name().map_err(A::Error::custom)?;
        name.parse().map_err(A::Error::custom)
    }
}
