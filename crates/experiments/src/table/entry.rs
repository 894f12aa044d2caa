//! The single entries of an experiment: names, lengths, parameters, settings.
//!
//! What an entry may be is checked as it is read, so that TOML's reader knows the place
//! of what is wrong, and the command line's changes (`changes`) are held to the same.

use std::fmt;
use std::str::FromStr;

use facts::CommandLine;
use serde::de::{Deserialize, Deserializer};
use units::Nanos;

use crate::from_text::read_from_text;

use kernels::KernelSpec;

/// What the lab itself gives a kernel, and an experiment must not.
const OWNED: [&str; 4] = ["console", "panic", "rdinit", "init"];
/// x86 kernels take 2047 bytes (`COMMAND_LINE_SIZE`); the lab needs some for itself.
const PARAMETERS_MAX: usize = 1024;
const LENGTH_MAX: Nanos = Nanos::from_secs(3600);

/// A row's name, or an experiment's: one word, so that a cell's name can be taken apart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Name(String);

/// A line about the experiment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line(String);

/// What a kernel is asked for by: `debian:6.1-cloud`, a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct KernelName(String);

/// What QEMU's `-cpu` takes: `qemu64,-rdrand`.
#[derive(Debug, Clone)]
pub(crate) struct CpuModel(String);

/// Parameters for the kernel's command line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Parameters(String);

/// A file below `/proc/sys` or `/sys`.
#[derive(Debug, Clone)]
pub(crate) struct SettingPath(String);

/// What is written to such a file.
#[derive(Debug, Clone)]
pub(crate) struct SettingValue(String);

/// What a metric is called: `tick_instructions`.
#[derive(Debug, Clone)]
pub(crate) struct MetricName(String);

/// A length of time: more than nothing, at most an hour.
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
    /// As it was written: `1s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Length {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let nanos: Nanos = text.parse().map_err(|error| format!("{error}"))?;
        if nanos.is_zero() || nanos > LENGTH_MAX {
            return Err(format!("{text} is not a length of more than 0s and at most 1h"));
        }
        Ok(Self { text: text.to_owned(), nanos })
    }
}

impl CpuModel {
    /// Whether it asks for the host's own CPU, which only KVM can give.
    pub(crate) fn is_host(&self) -> bool {
        self.0.split(',').next() == Some("host")
    }
}

impl Parameters {
    /// These and more, behind them.
    pub(crate) fn and(&self, more: &Self) -> Result<Self, String> {
        format!("{} {}", self.0, more.0).trim().parse()
    }
}

fn check_name(text: &str) -> Result<(), String> {
    if text.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(format!("'{}' is not a name: write one word", text.escape_debug()));
    }
    Ok(())
}

fn check_line(text: &str) -> Result<(), String> {
    if text.contains(char::is_control) {
        return Err("one line is expected here".to_owned());
    }
    Ok(())
}

fn check_kernel(text: &str) -> Result<(), String> {
    if text.trim().is_empty() || text.contains(char::is_control) {
        let name = text.escape_debug();
        return Err(format!(
            "'{name}' is not a kernel: write debian:6.1-cloud, a path, or running"
        ));
    }
    KernelSpec::parse(text).map(drop).map_err(|error| error.to_string())
}

fn check_cpu(text: &str) -> Result<(), String> {
    let known = |c: char| c.is_ascii_alphanumeric() || "-_+=.,".contains(c);
    if !text.starts_with(|c: char| c.is_ascii_alphanumeric()) || !text.chars().all(known)
    {
        return Err(format!(
            "'{}' is not a CPU model of QEMU's: write it as in qemu64,-rdrand",
            text.escape_debug()
        ));
    }
    Ok(())
}

fn check_parameters(text: &str) -> Result<(), String> {
    if text.len() > PARAMETERS_MAX {
        return Err(format!("{PARAMETERS_MAX} bytes of parameters are the most"));
    }
    if !text.chars().all(|c| c == ' ' || c.is_ascii_graphic()) {
        return Err("parameters are one line of printable ASCII".to_owned());
    }
    if text.matches('"').count() % 2 == 1 {
        return Err("a double quote is not closed".to_owned());
    }
    if text.split(' ').any(|word| word == "--") {
        return Err("'--' would hide the lab's own parameters from the kernel".to_owned());
    }
    let given = CommandLine::parse(text);
    match OWNED.iter().find(|name| given.has(name)) {
        Some(name) => Err(format!(
            "the lab itself sets {name}=: an experiment must leave {} alone",
            OWNED.join(", ")
        )),
        None => Ok(()),
    }
}

fn check_path(text: &str) -> Result<(), String> {
    let below = text.strip_prefix("/proc/sys/").or_else(|| text.strip_prefix("/sys/"));
    let plain = |part: &str| !matches!(part, "" | "." | "..");
    match below {
        Some(rest) if rest.split('/').all(plain) && !text.contains(char::is_control) => {
            Ok(())
        }
        _ => Err(format!(
            "'{}' is not a setting: its path must be below /proc/sys/ or /sys/, \
             without . and ..",
            text.escape_debug()
        )),
    }
}

fn check_value(text: &str) -> Result<(), String> {
    if text.is_empty() || text.contains(char::is_control) {
        return Err("a setting's value is one line and not empty".to_owned());
    }
    Ok(())
}

fn check_metric(text: &str) -> Result<(), String> {
    let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    if text.is_empty() || !text.chars().all(known) {
        return Err(format!(
            "'{}' is not a metric: write it as in tick_instructions",
            text.escape_debug()
        ));
    }
    Ok(())
}

/// What wraps a checked string.
macro_rules! checked_string {
    ($($name:ident: $check:ident),+ $(,)?) => {
        $(
            impl $name {
                /// The text, as it was written.
                pub(crate) fn as_str(&self) -> &str {
                    &self.0
                }
            }

            impl FromStr for $name {
                type Err = String;

                fn from_str(text: &str) -> Result<Self, String> {
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
    KernelName: check_kernel,
    CpuModel: check_cpu,
    Parameters: check_parameters,
    SettingPath: check_path,
    SettingValue: check_value,
    MetricName: check_metric,
}
read_from_text!(Length);
