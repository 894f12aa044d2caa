//! What a guest sends back, and how what arrives whole is told from what does not.
//!
//! ```text
//! "NOISEFLOOR-ANSWER-1\n", then frames: kind u8, length u32, payload, checksum u32
//! ```
//!
//! Numbers are little-endian; the checksum is the CRC-32 of everything else in its frame.
//! The last frame is of kind `End` and empty: without it the answer was cut off.

use std::io;
use std::path::Path;

use flate2::Crc;
use recording::Recording;
use serde::{Deserialize, Serialize};

use crate::{Broken, Symbols};

/// A frame's kind and length.
const HEAD: usize = 5;
/// A frame's checksum.
const TAIL: usize = 4;
/// The kind of the frame after the last.
const END: u8 = 0;

/// What a program did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Its exit code; `None` where a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to its output, then what it wrote to its error output.
    pub text: String,
}

/// What a guest has to say.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// What was measured.
    Recording(Box<Recording>),
    /// The kernel's symbols.
    Symbols(Symbols),
    /// What the program did.
    Output(Output),
    /// The order was not understood, and why.
    Refused(String),
    /// The order was understood and could not be carried out, and why.
    Failed(String),
}

impl Answer {
    /// What every answer begins with. It is sent ahead, as soon as the agent runs.
    pub const GREETING: &'static [u8] = b"NOISEFLOOR-ANSWER-1\n";

    /// The bytes that are sent after the greeting.
    ///
    /// # Errors
    /// Where a recording cannot be written as JSON, or is longer than 4 GiB.
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

    /// Reads what a guest sent.
    ///
    /// # Errors
    /// Why it is no answer, and where it breaks off or is damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Broken> {
        if bytes.is_empty() {
            return Err(Broken::Nothing);
        }
        let Some(frames) = bytes.strip_prefix(Self::GREETING) else {
            let begun = Self::GREETING.starts_with(bytes);
            return Err(if begun {
                Broken::CutOff(bytes.len())
            } else {
                Broken::Foreign
            });
        };
        let mut frames = Frames { left: frames, whole: bytes.len() };
        let answer = frames.next()?;
        let end = frames.next()?;
        if end.kind != END || !end.payload.is_empty() || !frames.left.is_empty() {
            return Err(Broken::Damaged(end.at));
        }
        answer.open()
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

/// A frame whose checksum is right.
struct Frame<'a> {
    kind: u8,
    payload: &'a [u8],
    /// Where in the answer it begins.
    at: usize,
}

/// The frames that have not been read yet.
struct Frames<'a> {
    left: &'a [u8],
    whole: usize,
}

impl<'a> Frames<'a> {
    fn next(&mut self) -> Result<Frame<'a>, Broken> {
        let cut_off = Broken::CutOff(self.whole);
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
            return Err(Broken::Damaged(at));
        }
        self.left = rest;
        Ok(Frame { kind, payload: &summed[HEAD..], at })
    }
}

impl Frame<'_> {
    /// What is in it.
    fn open(&self) -> Result<Answer, Broken> {
        match self.kind {
            b'R' => {
                let json = self.text()?;
                let read = Recording::from_json(&json, Path::new("the guest's answer"));
                let recording =
                    read.map_err(|error| Broken::Strange(units::chain(&error)))?;
                Ok(Answer::Recording(Box::new(recording)))
            }
            b'S' => Ok(Answer::Symbols(Symbols::from_deflated(self.payload.to_vec()))),
            b'O' => {
                let read = serde_json::from_slice(self.payload);
                let output = read.map_err(|error| Broken::Strange(error.to_string()))?;
                Ok(Answer::Output(output))
            }
            b'N' => Ok(Answer::Refused(self.text()?)),
            b'F' => Ok(Answer::Failed(self.text()?)),
            kind => Err(Broken::Strange(format!("a frame of unknown kind {kind}"))),
        }
    }

    fn text(&self) -> Result<String, Broken> {
        let text = std::str::from_utf8(self.payload).map(str::to_owned);
        text.map_err(|error| Broken::Strange(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use recording::{Body, TicksSeries, TicksSpec};
    use units::Nanos;

    fn recorded() -> Answer {
        let spec = TicksSpec {
            cpus: "0-1".parse().unwrap(),
            interval_ns: Nanos::from_secs(1),
            count: Some(3),
        };
        let body = Body::Ticks { spec, series: TicksSeries::default() };
        let recording = Recording {
            taken: "2020-01-01T00:00:00Z".to_owned(),
            tool: Recording::TOOL.to_owned(),
            facts: serde_json::from_str(r#"{"sources": {}, "unknown": {}}"#).unwrap(),
            body,
            doubts: Vec::new(),
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

    fn raw(frames: &[(u8, &[u8])]) -> Result<Answer, Broken> {
        let mut bytes = Answer::GREETING.to_vec();
        for (kind, payload) in frames {
            put_frame(&mut bytes, *kind, payload).unwrap();
        }
        Answer::from_bytes(&bytes)
    }

    /// Check that every kind of answer arrives as it was sent.
    #[test]
    fn answers_arrive() {
        for answer in all() {
            let bytes = whole(&answer);
            assert_eq!(Answer::from_bytes(&bytes), Ok(answer));
        }
    }

    /// Check that an answer that ends early is cut off, wherever that is.
    #[test]
    fn every_cut_is_found() {
        for answer in all() {
            let bytes = whole(&answer);
            for length in 1..bytes.len() {
                let cut = Answer::from_bytes(&bytes[..length]);
                assert_eq!(cut, Err(Broken::CutOff(length)));
            }
        }
        assert_eq!(Answer::from_bytes(&[]), Err(Broken::Nothing));
    }

    /// Check that no bit can change, and no byte be added, unnoticed.
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
            assert_eq!(Answer::from_bytes(&bytes), Err(Broken::Damaged(at)));
        }
    }

    /// Check that each thing that can be wrong is told as what it is.
    #[test]
    fn reasons_are_exact() {
        assert_eq!(Answer::from_bytes(b"[    0.0] Linux"), Err(Broken::Foreign));
        let end: (u8, &[u8]) = (END, &[]);
        assert_eq!(raw(&[(b'F', b"no"), (b'F', b"no")]), Err(Broken::Damaged(31)));
        let strange = |frame| matches!(raw(&[frame, end]), Err(Broken::Strange(_)));
        assert!(strange((b'?', b"")));
        assert!(strange((b'F', b"\xff")));
        assert!(strange((b'R', b"{}")));
    }

    proptest! {
        /// Check that nothing that follows the beginning makes the reader panic.
        #[test]
        fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = Answer::from_bytes(&bytes);
            let _ = Answer::from_bytes(&[Answer::GREETING, &bytes].concat());
        }
    }
}
