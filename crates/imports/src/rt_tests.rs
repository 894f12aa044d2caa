//! The JSON of cyclictest and oslat (rt-tests 2.4 to 2.10, file version 1): `rt_write_json` in
//! `src/lib/rt-utils.c`.

mod cyclictest;
mod oslat;

use std::collections::BTreeMap;

use jiff::fmt::rfc2822;
use recording::{Code, Doubt, Kind};
use serde::Deserialize;
use serde_json::{Value, json};
use units::Nanos;

use crate::import::{Failure, Import, corrupt, of_json};

/// The version of the format that is read.
const FILE_VERSION: u32 = 1;

#[derive(Deserialize)]
struct Head {
    file_version: u32,
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "cmdline:", alias = "cmdline")]
    command: String,
    #[serde(rename = "rt_test_version:", alias = "rt_test_version")]
    version: String,
    start_time: String,
    #[serde(default)]
    return_code: i64,
    sysinfo: SystemInfo,
    /// 1: lengths are in nanoseconds (`cyclictest -N`).
    #[serde(default)]
    resolution_in_ns: u32,
    #[serde(default)]
    thread: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
struct SystemInfo {
    release: String,
    version: String,
    machine: String,
}

pub(crate) fn parse(text: &str) -> Result<Import, Failure> {
    let version = serde_json::from_str::<Head>(text).map_err(of_json)?.file_version;
    if version != FILE_VERSION {
        let text = format!(
            "a file of rt-tests in version {version}, and this noisefloor reads version \
             {FILE_VERSION}"
        );
        return Err((Kind::Newer, text));
    }
    let file: File = serde_json::from_str(text).map_err(of_json)?;
    let program = file.command.split_whitespace().next().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default().to_owned();
    let mut import = match program.as_str() {
        "cyclictest" => cyclictest::parse(&file)?,
        "oslat" => oslat::parse(&file)?,
        _ => {
            let text = format!(
                "a file of '{program}': of rt-tests, cyclictest and oslat can be read"
            );
            return Err((Kind::Foreign, text));
        }
    };
    import.tool = format!("{program} {}", file.version);
    import.taken = rfc2822::parse(&file.start_time).ok().map(|at| at.timestamp());
    import.facts = vec![
        ("kernel.release", json!(file.sysinfo.release)),
        ("kernel.version", json!(file.sysinfo.version)),
        ("kernel.arch", json!(file.sysinfo.machine)),
    ];
    if file.return_code != 0 {
        let text = format!("{program} ended with code {}", file.return_code);
        import.doubts.push(Doubt::new(Code::Interrupted, text));
    }
    import.command = Some(file.command);
    Ok(import)
}

/// The threads in their order.
fn threads<T: for<'de> Deserialize<'de>>(file: &File) -> Result<Vec<T>, Failure> {
    let mut threads: Vec<(u32, T)> = Vec::new();
    for (number, thread) in &file.thread {
        let order = number.parse().map_err(|_| corrupt(format!("thread '{number}'")))?;
        let read = serde_json::from_value(thread.clone());
        let read = read.map_err(|why| corrupt(format!("thread {number}: {why}")))?;
        threads.push((order, read));
    }
    if threads.is_empty() {
        return Err(corrupt("there is no thread in it"));
    }
    threads.sort_by_key(|(number, _)| *number);
    Ok(threads.into_iter().map(|(_, thread)| thread).collect())
}

fn not_a_length(text: impl std::fmt::Display) -> Failure {
    corrupt(format!("'{text}' is not a length"))
}

/// A length of so many nanoseconds; `None` if it cannot be one.
fn nanos(length: f64) -> Option<Nanos> {
    /// The longest: 292 years.
    const MAX: f64 = 9.2e18;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "in range"
    )]
    let rounded = |length: f64| Nanos::from_nanos(length.round() as u64);
    (0.0..MAX).contains(&length).then(|| rounded(length))
}
