//! The answer of a guest, and how a complete one is distinguished from an incomplete one.
//!
//! ```text
//! "NOISEFLOOR-ANSWER-1\n", then frames: kind u8, length u32, payload, checksum u32
//! ```
//!
//! Numbers are little-endian; the checksum is the CRC-32 of everything else in its frame. The last
//! frame is of kind `End` and empty: without it the answer is truncated.

use std::io;
use std::path::Path;

use flate2::Crc;
use recording::Recording;
use serde::{Deserialize, Serialize};

use crate::{DecodeError, Symbols};

/// A frame's kind and length.
const HEAD: usize = 5;
/// A frame's checksum.
const TAIL: usize = 4;
/// The kind of the frame after the last.
const END: u8 = 0;

/// The output of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Its standard output, then its standard error.
    pub text: String,
}

/// The answer of a guest.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The result of a measurement.
    Recording(Box<Recording>),
    /// The kernel's symbols.
    Symbols(Symbols),
    /// The output of a program.
    Output(Output),
    /// The order is invalid, for this reason.
    Refused(String),
    /// The order is valid, but failed for this reason.
    Failed(String),
}

impl Answer {
    /// The beginning of every answer. It is sent first, as soon as the agent runs.
    pub const GREETING: &'static [u8] = b"NOISEFLOOR-ANSWER-1\n";

    /// The bytes that are sent after the greeting.
    ///
    /// # Errors
    /// If a recording cannot be written as JSON, or is longer than 4 GiB.
    pub fn to_frames(&self) -> io::Result<Vec<u8>> {
        let json;
        let (kind, payload) = match self {
            Self::Recording(recording) => {
                json = recording.to_json()?;
                (b'R', json.as_bytes())
            }
            Self::Symbols(symbols) => (b'S', symbols.deflated()),
            Self::Output(output) => {
                json = serde_json::to_string(output)?;
                (b'O', json.as_bytes())
            }
            Self::Refused(text) => (b'N', text.as_bytes()),
            Self::Failed(text) => (b'F', text.as_bytes()),
        };
        let mut bytes = Vec::new();
        put_frame(&mut bytes, kind, payload)?;
        put_frame(&mut bytes, END, &[])?;
        Ok(bytes)
    }

    /// Decodes the bytes of a guest.
    ///
    /// # Errors
    /// Why they are no answer, and where they are truncated or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.is_empty() {
            return Err(DecodeError::Empty);
        }
        let Some(frames) = bytes.strip_prefix(Self::GREETING) else {
            let begun = Self::GREETING.starts_with(bytes);
            return Err(if begun {
                DecodeError::Truncated(bytes.len())
            } else {
                DecodeError::Foreign
            });
        };
        let mut frames = Frames { left: frames, whole: bytes.len() };
        let answer = frames.next()?;
        let end = frames.next()?;
        if end.kind != END || !end.payload.is_empty() || !frames.left.is_empty() {
            return Err(DecodeError::Damaged(end.at));
        }
        answer.decode()
    }
}

fn put_frame(bytes: &mut Vec<u8>, kind: u8, payload: &[u8]) -> io::Result<()> {
    let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
    let begin = bytes.len();
    bytes.push(kind);
    bytes.extend(length.to_le_bytes());
    bytes.extend(payload);
    let sum = checksum(&bytes[begin..]);
    bytes.extend(sum.to_le_bytes());
    Ok(())
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// A frame with a valid checksum.
struct Frame<'a> {
    kind: u8,
    payload: &'a [u8],
    /// Its offset in the answer.
    at: usize,
}

/// The frames that have not been read yet.
struct Frames<'a> {
    left: &'a [u8],
    whole: usize,
}

impl<'a> Frames<'a> {
    fn next(&mut self) -> Result<Frame<'a>, DecodeError> {
        let cut_off = DecodeError::Truncated(self.whole);
        let at = self.whole - self.left.len();
        let Some((&[kind, a, b, c, d], _)) = self.left.split_first_chunk::<HEAD>() else {
            return Err(cut_off);
        };
        let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).ok();
        let until = length.and_then(|length| length.checked_add(HEAD));
        let Some((summed, rest)) = until.and_then(|end| self.left.split_at_checked(end))
        else {
            return Err(cut_off);
        };
        let Some((&sum, rest)) = rest.split_first_chunk::<TAIL>() else {
            return Err(cut_off);
        };
        if u32::from_le_bytes(sum) != checksum(summed) {
            return Err(DecodeError::Damaged(at));
        }
        self.left = rest;
        Ok(Frame { kind, payload: &summed[HEAD..], at })
    }
}

impl Frame<'_> {
    /// Decodes its payload.
    fn decode(&self) -> Result<Answer, DecodeError> {
        match self.kind {
            b'R' => {
                let json = self.text()?;
                let read = Recording::from_json(&json, Path::new("the guest's answer"));
                let recording =
                    read.map_err(|error| DecodeError::Invalid(units::chain(&error)))?;
                Ok(Answer::Recording(Box::new(recording)))
            }
            b'S' => Ok(Answer::Symbols(Symbols::from_deflated(self.payload.to_vec()))),
            b'O' => {
                let read = serde_json::from_slice(self.payload);
                let output =
                    read.map_err(|error| DecodeError::Invalid(error.to_string()))?;
                Ok(Answer::Output(output))
            }
            b'N' => Ok(Answer::Refused(self.text()?)),
            b'F' => Ok(Answer::Failed(self.text()?)),
            kind => Err(DecodeError::Invalid(format!("a frame of unknown kind {kind}"))),
        }
    }

    fn text(&self) -> Result<String, DecodeError> {
        let text = std::str::from_utf8(self.payload).map(str::to_owned);
        text.map_err(|error| DecodeError::Invalid(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use recording::{Body, Moments, TicksSeries, TicksSpec};
    use units::Nanos;

    fn recorded() -> Answer {
        let spec = TicksSpec {
            cpus: "0-1".parse().unwrap(),
            interval_ns: Nanos::from_secs(1),
            count: Some(3),
        };
        let body = Body::Ticks { spec, series: TicksSeries::default() };
        let recording = Recording {
            hardware: None,
            taken: "2020-01-01T00:00:00Z".to_owned(),
            tool: Recording::TOOL.to_owned(),
            facts: serde_json::from_str(r#"{"sources": {}, "unknown": {}}"#).unwrap(),
            body,
            doubts: Vec::new(),
            moments: Moments::default(),
            repeat: None,
        };
        Answer::Recording(Box::new(recording))
    }

    fn all() -> [Answer; 5] {
        [
            recorded(),
            Answer::Output(Output { code: Some(101), text: "one\ntwo\n".to_owned() }),
            Answer::Symbols(Symbols::from_deflated(vec![0, 255, b'\n'])),
            Answer::Refused("unknown field `mood`".to_owned()),
            Answer::Failed(String::new()),
        ]
    }

    fn whole(answer: &Answer) -> Vec<u8> {
        [Answer::GREETING, &answer.to_frames().unwrap()].concat()
    }

    fn raw(frames: &[(u8, &[u8])]) -> Result<Answer, DecodeError> {
        let mut bytes = Answer::GREETING.to_vec();
        for (kind, payload) in frames {
            put_frame(&mut bytes, *kind, payload).unwrap();
        }
        Answer::from_bytes(&bytes)
    }

    /// Check that every kind of answer is unchanged after encoding and decoding.
    #[test]
    fn answers_arrive() {
        for answer in all() {
            let bytes = whole(&answer);
            assert_eq!(Answer::from_bytes(&bytes), Ok(answer));
        }
    }

    /// Check that an answer that ends early is reported as truncated, at any length.
    #[test]
    fn every_cut_is_found() {
        for answer in all() {
            let bytes = whole(&answer);
            for length in 1..bytes.len() {
                let cut = Answer::from_bytes(&bytes[..length]);
                assert_eq!(cut, Err(DecodeError::Truncated(length)));
            }
        }
        assert_eq!(Answer::from_bytes(&[]), Err(DecodeError::Empty));
    }

    /// Check that no bit can change, and no byte be added, without an error.
    #[test]
    fn every_flipped_bit_is_found() {
        for answer in all() {
            let mut bytes = whole(&answer);
            for bit in 0..bytes.len() * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8);
                assert!(Answer::from_bytes(&bytes).is_err(), "bit {bit}");
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            bytes.push(0);
            let at = bytes.len() - 1 - HEAD - TAIL;
            assert_eq!(Answer::from_bytes(&bytes), Err(DecodeError::Damaged(at)));
        }
    }

    /// Check that each kind of damage has its own error.
    #[test]
    fn reasons_are_exact() {
        assert_eq!(Answer::from_bytes(b"[    0.0] Linux"), Err(DecodeError::Foreign));
        let end: (u8, &[u8]) = (END, &[]);
        assert_eq!(raw(&[(b'F', b"no"), (b'F', b"no")]), Err(DecodeError::Damaged(31)));
        let strange = |frame| matches!(raw(&[frame, end]), Err(DecodeError::Invalid(_)));
        assert!(strange((b'?', b"")));
        assert!(strange((b'F', b"\xff")));
        assert!(strange((b'R', b"{}")));
    }

    proptest! {
        /// Check that no bytes after the greeting cause a panic.
        #[test]
        fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = Answer::from_bytes(&bytes);
            let _ = Answer::from_bytes(&[Answer::GREETING, &bytes].concat());
        }
    }
}
