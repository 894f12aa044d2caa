//! The workloads of `jitter`, and their text form: `tif`, `memory:8M`, `exec:./mine.so`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The default size of the memory workload: more than most second-level caches.
const MEMORY_BYTES: u64 = 8 << 20;
const SUFFIXES: [(char, u32); 3] = [('G', 30), ('M', 20), ('K', 10)];

/// A workload. Each run executes the same number of steps, so that only the time varies.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Workload {
    /// Random reads and writes in an array of 1 KB.
    #[default]
    Tif,
    /// Pointer chasing in memory of that many bytes.
    Memory(u64),
    /// Arithmetic in registers.
    Compute,
    /// Cheap system calls.
    Syscall,
    /// The function of a shared library: `nf_workload()`, or one with a name of Intel's TIF.
    Exec(PathBuf),
}

/// Why a text is not a workload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkloadError {
    /// The size of the memory is invalid.
    #[error("'{0}' is not a size: write a number of bytes, or 64K, 8M, 1G")]
    Size(String),
    /// There is no workload of that name.
    #[error(
        "'{0}' is no workload: there are tif, memory, memory:SIZE, compute, syscall and \
         exec:LIBRARY.so"
    )]
    Name(String),
}

impl FromStr for Workload {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<Self, WorkloadError> {
        let (name, rest) = match text.split_once(':') {
            Some((name, rest)) => (name, Some(rest)),
            None => (text, None),
        };
        match (name, rest) {
            ("tif", None) => Ok(Self::Tif),
            ("compute", None) => Ok(Self::Compute),
            ("syscall", None) => Ok(Self::Syscall),
            ("memory", None) => Ok(Self::Memory(MEMORY_BYTES)),
            ("memory", Some(size)) => bytes(size)
                .map(Self::Memory)
                .ok_or_else(|| WorkloadError::Size(size.to_owned())),
            ("exec", Some(library)) if !library.is_empty() => {
                Ok(Self::Exec(library.into()))
            }
            _ => Err(WorkloadError::Name(text.to_owned())),
        }
    }
}

fn bytes(text: &str) -> Option<u64> {
    let unit = |&(suffix, shift): &(char, u32)| Some((text.strip_suffix(suffix)?, shift));
    let (number, shift) = SUFFIXES.iter().find_map(unit).unwrap_or((text, 0));
    let is_number = number.bytes().all(|digit| digit.is_ascii_digit());
    number.parse::<u64>().ok().filter(|_| is_number)?.checked_mul(1 << shift)
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tif => f.write_str("tif"),
            Self::Memory(bytes) => {
                let fits = |(_, shift): &&(char, u32)| bytes.trailing_zeros() >= *shift;
                match SUFFIXES.iter().find(fits).filter(|_| *bytes > 0) {
                    Some((suffix, shift)) => {
                        write!(f, "memory:{}{suffix}", bytes >> shift)
                    }
                    None => write!(f, "memory:{bytes}"),
                }
            }
            Self::Compute => f.write_str("compute"),
            Self::Syscall => f.write_str("syscall"),
            Self::Exec(library) => write!(f, "exec:{}", library.display()),
        }
    }
}

impl TryFrom<String> for Workload {
    type Error = WorkloadError;

    fn try_from(text: String) -> Result<Self, WorkloadError> {
        text.parse()
    }
}

impl From<Workload> for String {
    fn from(workload: Workload) -> Self {
        workload.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that workloads are read, and written as they are read.
    #[test]
    fn read_and_written() {
        for (text, workload) in [
            ("tif", Workload::Tif),
            ("memory:8M", Workload::Memory(8 << 20)),
            ("memory:1536K", Workload::Memory(1536 << 10)),
            ("memory:100", Workload::Memory(100)),
            ("memory:0", Workload::Memory(0)),
            ("memory:2G", Workload::Memory(2 << 30)),
            ("compute", Workload::Compute),
            ("syscall", Workload::Syscall),
            ("exec:./a:b.so", Workload::Exec("./a:b.so".into())),
        ] {
            assert_eq!(text.parse(), Ok(workload.clone()));
            assert_eq!(serde_json::to_value(&workload).unwrap(), text);
        }
        assert_eq!("memory".parse(), Ok(Workload::Memory(MEMORY_BYTES)));
    }

    /// Check that what is no workload, and what is no size, is refused with what there is.
    #[test]
    fn refused() {
        for text in ["", "tiff", "tif:1", "exec", "exec:", "compute:", "Memory"] {
            let refused = text.parse::<Workload>().unwrap_err().to_string();
            assert!(refused.contains("exec:LIBRARY.so"), "{refused}");
        }
        for text in
            ["memory:", "memory:M", "memory:-1", "memory:+1", "memory:99999999999G"]
        {
            let refused = text.parse::<Workload>().unwrap_err().to_string();
            assert!(refused.contains("is not a size"), "{refused}");
        }
    }
}
