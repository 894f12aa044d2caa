//! How many variations of a cell are run: a number, or a share of the mean that its ± must not exceed.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Visitor};
use units::Ppm;

use crate::error::EntryError;
use crate::table::number::Number;
use crate::variations::Variations;

/// The number of a cell's variations.
type Count = Number<1, 64>;
/// What follows a share.
const PERCENT: char = '%';
/// The largest share, in percent.
const PERCENT_MAX: f64 = 100.0;

impl FromStr for Variations {
    type Err = EntryError;

    /// Reads `6`, or `0.5%`.
    fn from_str(text: &str) -> Result<Self, EntryError> {
        let wrong = || EntryError::Variations(text.to_owned());
        let Some(percent) = text.strip_suffix(PERCENT) else {
            let count: Count = text.parse().map_err(|_| wrong())?;
            return Ok(Self::Exactly(count.get()));
        };
        let percent: Option<f64> = percent.trim_end().parse().ok();
        let percent = percent.filter(|share| *share > 0.0 && *share <= PERCENT_MAX);
        percent.map(|share| Self::Within(Ppm::new(share * 1e4))).ok_or_else(wrong)
    }
}

impl<'de> Deserialize<'de> for Variations {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader)
    }
}

/// Reads a number or a text as [`Variations`].
struct Reader;

impl Visitor<'_> for Reader {
    type Value = Variations;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number from 1 to 64, or a share, as \"1%\"")
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Variations, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Variations, E> {
        text.parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a number and a share are read, and that others are refused.
    #[test]
    fn numbers_and_shares() {
        let read = |text: &str| text.parse::<Variations>().ok();
        assert_eq!(read("6"), Some(Variations::Exactly(6)));
        assert_eq!(read("0.5%"), Some(Variations::Within(Ppm::new(5_000.0))));
        assert_eq!(read("1 %"), Some(Variations::Within(Ppm::new(10_000.0))));
        for wrong in ["", "0", "65", "-1", "0%", "101%", "NaN%", "1.5", "all"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
