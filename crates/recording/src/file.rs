//! The recording's file: one JSON object, format 1, described in `docs/format.md`.
//!
//! It is read in two steps, so that the message fits what is wrong: first only `format`
//! and `kind`, then the whole as that kind. It is written to a temporary file beside the
//! target and renamed, so that a file is there whole or not at all.

use std::fs;
use std::io::Write;
use std::path::Path;

use facts::Facts;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::error::Category;

use crate::{Body, Doubt, Error, Kind, Recording};

/// The version of the format this tool writes, and the newest it reads.
pub const FORMAT: u32 = 1;

/// What is read first of any file.
#[derive(Deserialize)]
struct Head {
    format: Option<u32>,
    kind: Option<String>,
    #[serde(default)]
    series: Option<serde::de::IgnoredAny>,
}

#[derive(Serialize)]
struct Writing<'a, Spec, Series> {
    format: u32,
    kind: &'static str,
    taken: &'a str,
    tool: &'a str,
    facts: &'a Facts,
    spec: &'a Spec,
    series: &'a Series,
    doubts: &'a [Doubt],
}

#[derive(Deserialize)]
struct Reading<Spec, Series> {
    taken: String,
    tool: String,
    facts: Facts,
    spec: Spec,
    series: Series,
    doubts: Vec<Doubt>,
}

impl Recording {
    /// The recording as the text of its file: one line of JSON.
    ///
    /// # Errors
    /// Never for a recording that was measured; serialisation can fail in principle.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        match &self.body {
            Body::Noise { spec, series } => self.write_as(spec, series),
            Body::Ticks { spec, series } => self.write_as(spec, series),
            Body::Check { spec, series } => self.write_as(spec, series),
            Body::Calls { spec, series } => self.write_as(spec, series),
            Body::Latency { spec, series } => self.write_as(spec, series),
            Body::Run { spec, series } => self.write_as(spec, series),
            Body::Wakers { spec, series } => self.write_as(spec, series),
            Body::NohzTest { spec, series } | Body::NohzStress { spec, series } => {
                self.write_as(spec, series)
            }
            Body::Jitter { spec, series } => self.write_as(spec, series),
            Body::Slices { spec, series } => self.write_as(spec, series),
        }
    }

    fn write_as<Spec: Serialize, Series: Serialize>(
        &self,
        spec: &Spec,
        series: &Series,
    ) -> Result<String, serde_json::Error> {
        serde_json::to_string(&Writing {
            format: FORMAT,
            kind: self.body.kind(),
            taken: &self.taken,
            tool: &self.tool,
            facts: &self.facts,
            spec,
            series,
            doubts: &self.doubts,
        })
    }

    /// Reads the text of a file; `file` is named in messages only.
    ///
    /// # Errors
    /// `Kind::Truncated`, `Foreign`, `Newer`, `NoSeries` or `Corrupt`, with the place.
    pub fn from_json(text: &str, file: &Path) -> Result<Self, Error> {
        let head: Head = serde_json::from_str(text).map_err(|e| no_head(&e, file))?;
        let (Some(format), Some(kind)) = (head.format, head.kind) else {
            let text = "not a noisefloor recording: it has no \"format\" and \"kind\"";
            return Err(Error::new(Kind::Foreign, file, text));
        };
        if format > FORMAT {
            let text = format!(
                "written in format {format}, and this noisefloor reads up to {FORMAT}: \
                 use a newer noisefloor"
            );
            return Err(Error::new(Kind::Newer, file, text));
        }
        if head.series.is_none() {
            let text = "has no \"series\", so its numbers cannot be worked out again: save \
                        recordings with -o FILE, or with --json --series";
            return Err(Error::new(Kind::NoSeries, file, text));
        }
        match kind.as_str() {
            "noise" => read_as(text, file, |spec, series| Body::Noise { spec, series }),
            "ticks" => read_as(text, file, |spec, series| Body::Ticks { spec, series }),
            "check" => read_as(text, file, |spec, series| Body::Check { spec, series }),
            "calls" => read_as(text, file, |spec, series| Body::Calls { spec, series }),
            "latency" => {
                read_as(text, file, |spec, series| Body::Latency { spec, series })
            }
            "run" => read_as(text, file, |spec, series| Body::Run { spec, series }),
            "wakers" => read_as(text, file, |spec, series| Body::Wakers { spec, series }),
            "nohz_test" => {
                read_as(text, file, |spec, series| Body::NohzTest { spec, series })
            }
            "nohz_stress" => {
                read_as(text, file, |spec, series| Body::NohzStress { spec, series })
            }
            "jitter" => read_as(text, file, |spec, series| Body::Jitter { spec, series }),
            "slices" => read_as(text, file, |spec, series| Body::Slices { spec, series }),
            _ => {
                let text = format!("a recording of unknown kind '{kind}'");
                Err(Error::new(Kind::Corrupt, file, text))
            }
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// As [`Recording::from_json`], and `Kind::Io`.
    pub fn load(file: &Path) -> Result<Self, Error> {
        let bytes =
            fs::read(file).map_err(|e| Error::new(Kind::Io, file, e.to_string()))?;
        let text = std::str::from_utf8(&bytes).map_err(|error| {
            let at = error.valid_up_to();
            let text = format!("not a noisefloor recording: byte {at} is not UTF-8");
            Error::new(Kind::Foreign, file, text)
        })?;
        Self::from_json(text, file)
    }

    /// Writes a file, whole or not at all.
    ///
    /// # Errors
    /// `Kind::Io` where the directory cannot be written.
    pub fn save(&self, file: &Path) -> Result<(), Error> {
        let failed = |text: String| Error::new(Kind::Io, file, text);
        let text = self.to_json().map_err(|error| failed(error.to_string()))?;
        let mut temporary = tempfile::Builder::new()
            .prefix(".noisefloor-")
            .permissions(readable())
            .tempfile_in(folder(file))
            .map_err(|error| failed(error.to_string()))?;
        writeln!(temporary, "{text}").map_err(|error| failed(error.to_string()))?;
        temporary.persist(file).map_err(|error| failed(error.error.to_string()))?;
        Ok(())
    }
}

/// The folder that a file is, or would be, in.
pub fn folder(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// What a file made by `>` would be: the process's umask takes its share.
fn readable() -> fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o666)
}

fn read_as<Spec: DeserializeOwned, Series: DeserializeOwned>(
    text: &str,
    file: &Path,
    body: impl FnOnce(Spec, Series) -> Body,
) -> Result<Recording, Error> {
    let read: Reading<Spec, Series> = serde_json::from_str(text)
        .map_err(|error| Error::new(Kind::Corrupt, file, error.to_string()))?;
    Ok(Recording {
        taken: read.taken,
        tool: read.tool,
        facts: read.facts,
        body: body(read.spec, read.series),
        doubts: read.doubts,
    })
}

fn no_head(error: &serde_json::Error, file: &Path) -> Error {
    let place = format!("line {} column {}", error.line(), error.column());
    match error.classify() {
        Category::Eof => {
            let text = format!("ends in the middle, at {place}: truncated");
            Error::new(Kind::Truncated, file, text)
        }
        Category::Data => Error::new(Kind::Corrupt, file, error.to_string()),
        Category::Syntax | Category::Io => {
            let text = format!("not a noisefloor recording: {error}");
            Error::new(Kind::Foreign, file, text)
        }
    }
}
