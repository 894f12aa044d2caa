//! The recording's file: one JSON object, format 1, described in `docs/format.md`.
//!
//! A file whose first keys are `format` and `kind`, as it is written, is read once. Any other, also one
//! with an error, is read in two steps, so that the error fits: first only `format` and `kind`, then the
//! whole as that kind. `input` has the files that are read, `output` those that are written.
//!
//! All streams are read through one type, because the code that reads all kinds is large and is
//! compiled for each type of stream.

use std::fmt;
use std::io::{BufReader, Read};
use std::path::Path;

use facts::Facts;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer as _, Serialize, Serializer};
use serde_json::Deserializer;
use serde_json::de::IoRead;
use serde_json::error::Category;

use crate::{
    Body, CpuTrace, Doubt, Error, HardwareCounts, Kind, Moment, Moments, Recording,
    Repeat, kinds,
};

/// The version of the format noisefloor writes, and the newest that it reads.
pub const FORMAT: u32 = 1;

/// A recording's text that is being read.
pub(crate) type Json<'a> = Deserializer<IoRead<BufReader<&'a mut dyn Read>>>;

/// A deserializer of that stream.
pub(crate) fn json(stream: &mut dyn Read) -> Json<'_> {
    Deserializer::from_reader(BufReader::new(stream))
}

/// The part of a file that is read first.
#[derive(Deserialize)]
pub(crate) struct Head {
    format: Option<u32>,
    kind: Option<String>,
    #[serde(default)]
    series: Option<serde::de::IgnoredAny>,
}

#[derive(Serialize)]
struct Writing<'a> {
    format: u32,
    kind: &'static str,
    taken: &'a str,
    tool: &'a str,
    facts: &'a Facts,
    #[serde(flatten)]
    body: &'a Body,
    doubts: &'a [Doubt],
    #[serde(flatten)]
    moments: &'a Moments,
    #[serde(skip_serializing_if = "Option::is_none")]
    hardware: &'a Option<HardwareCounts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeat: &'a Option<Repeat>,
}

#[derive(Deserialize)]
struct Reading<Spec, Series> {
    taken: String,
    tool: String,
    facts: Facts,
    spec: Spec,
    series: Series,
    doubts: Vec<Doubt>,
    #[serde(default)]
    moments: Vec<Moment>,
    #[serde(default)]
    trace: Vec<CpuTrace>,
    #[serde(default)]
    hardware: Option<HardwareCounts>,
    #[serde(default)]
    repeat: Option<Repeat>,
}

impl Serialize for Recording {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let whole = Writing {
            format: FORMAT,
            kind: self.body.kind(),
            taken: &self.taken,
            tool: &self.tool,
            facts: &self.facts,
            body: &self.body,
            doubts: &self.doubts,
            moments: &self.moments,
            hardware: &self.hardware,
            repeat: &self.repeat,
        };
        whole.serialize(to)
    }
}

impl Recording {
    /// The recording as the text of its file: one line of JSON.
    ///
    /// # Errors
    /// Never for a recording that was measured; serialisation can fail in principle.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(self)
    }

    /// Reads the text of a file; `file` is named in messages only.
    ///
    /// # Errors
    /// `Kind::Truncated`, `Foreign`, `Newer`, `NoSeries` or `Corrupt`, with the place.
    pub fn from_json(text: &str, file: &Path) -> Result<Self, Error> {
        if let Some(read) = Self::in_order(json(&mut text.as_bytes())) {
            return Ok(read);
        }
        let head = Head::read(json(&mut text.as_bytes()), file)?;
        head.body(json(&mut text.as_bytes()), file)
    }

    /// Reads a file once to its end, if `format` and `kind` are its first keys; `None` also if it has an
    /// error.
    pub(crate) fn in_order(mut json: Json<'_>) -> Option<Self> {
        let read = json.deserialize_map(Whole { kind: None }).ok()?;
        json.end().ok().map(|()| read)
    }
}

impl Head {
    /// Reads a file to its end, and returns its head.
    pub(crate) fn read(mut json: Json<'_>, file: &Path) -> Result<Self, Error> {
        let head = Self::deserialize(&mut json);
        head.and_then(|head| json.end().map(|()| head)).map_err(|e| no_head(e, file))
    }

    /// Reads the same file again, as the kind in its head.
    pub(crate) fn body(
        self,
        mut json: Json<'_>,
        file: &Path,
    ) -> Result<Recording, Error> {
        let kind = self.kind_to_read(file)?;
        if !Body::KINDS.contains(&kind.as_str()) {
            let text = format!("a recording of unknown kind '{kind}'");
            return Err(Error::new(Kind::Corrupt, file, text));
        }
        json.deserialize_map(Whole { kind: Some(kind) }).map_err(|error| {
            let kind = if error.is_io() { Kind::Read } else { Kind::Corrupt };
            Error::new(kind, file, error)
        })
    }

    /// The kind, if the file is a recording of a known format with a series.
    fn kind_to_read(self, file: &Path) -> Result<String, Error> {
        let (Some(format), Some(kind)) = (self.format, self.kind) else {
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
        if self.series.is_none() {
            let text = "has no \"series\", so its numbers cannot be worked out again: save \
                        recordings with -o FILE, or with --json --series";
            return Err(Error::new(Kind::NoSeries, file, text));
        }
        Ok(kind)
    }
}

/// Reads the object of a file as that kind, or as the one that its first keys name.
struct Whole {
    kind: Option<String>,
}

impl<'de> Visitor<'de> for Whole {
    type Value = Recording;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a recording")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Recording, A::Error> {
        let kind = match self.kind {
            Some(kind) => kind,
            None => first_keys(&mut map)?,
        };
        macro_rules! read {
            ($($(#[$_about:meta])* $kind:ident $name:literal $($_type:ident)*;)*) => {
                match kind.as_str() {
                    $($name => read_as(map, |spec, series| Body::$kind { spec, series }),)*
                    _ => Err(A::Error::custom("unknown kind")),
                }
            };
        }
        kinds!(read)
    }
}

/// The kind, if `format` and `kind` are the first keys, and the format is known.
fn first_keys<'de, A: MapAccess<'de>>(map: &mut A) -> Result<String, A::Error> {
    let format = map.next_entry::<String, u32>()?;
    let kind = map.next_entry::<String, String>()?;
    match (format, kind) {
        (Some((first, format)), Some((second, kind)))
            if first == "format" && format <= FORMAT && second == "kind" =>
        {
            Ok(kind)
        }
        _ => Err(A::Error::custom("another order of keys")),
    }
}

fn read_as<'de, Spec: DeserializeOwned, Series: DeserializeOwned, A: MapAccess<'de>>(
    map: A,
    body: impl FnOnce(Spec, Series) -> Body,
) -> Result<Recording, A::Error> {
    let read = Reading::<Spec, Series>::deserialize(MapAccessDeserializer::new(map))?;
    Ok(Recording {
        taken: read.taken,
        tool: read.tool,
        facts: read.facts,
        body: body(read.spec, read.series),
        doubts: read.doubts,
        moments: Moments { found: read.moments, trace: read.trace },
        hardware: read.hardware,
        repeat: read.repeat,
    })
}

fn no_head(error: serde_json::Error, file: &Path) -> Error {
    let place = format!("line {} column {}", error.line(), error.column());
    match error.classify() {
        Category::Eof => {
            let text = format!("ends in the middle, at {place}: truncated");
            Error::new(Kind::Truncated, file, text)
        }
        Category::Data => Error::new(Kind::Corrupt, file, error),
        Category::Syntax => {
            let text = format!("not a noisefloor recording: {error}");
            Error::new(Kind::Foreign, file, text)
        }
        Category::Io => Error::new(Kind::Read, file, error),
    }
}
