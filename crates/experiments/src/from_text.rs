//! TOML strings that are parsed and checked while they are read.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::Visitor;

/// Deserialises TOML strings by parsing them.
macro_rules! read_from_text {
    ($name:ty) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_str(crate::from_text::Text::new())
            }
        }
    };
}
pub(crate) use read_from_text;

/// Reads a string as a `T`. The check happens inside of TOML's reader (a `try_from` would
/// come after it, and lose the place).
pub(crate) struct Text<T>(PhantomData<T>);

impl<T> Text<T> {
    pub(crate) fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}
