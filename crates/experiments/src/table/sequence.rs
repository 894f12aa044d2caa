//! Arrays and tables of an experiment that retain their order and the place of each entry, and that
//! are not empty: an empty one is mostly a mistake.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use toml::Spanned;

/// The entries of a TOML array; at least one.
#[derive(Debug, Clone)]
pub(crate) struct List<T>(Vec<Spanned<T>>);

impl<T> List<T> {
    /// The entries, as long as there is one.
    pub(crate) fn new(entries: Vec<Spanned<T>>) -> Option<Self> {
        (!entries.is_empty()).then_some(Self(entries))
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Spanned<T>> {
        self.0.iter()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(ListReader(PhantomData))
    }
}

/// Reads a TOML array as a [`List`].
struct ListReader<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListReader<T> {
    type Value = List<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array with an entry")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<List<T>, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = array.next_element()? {
            entries.push(entry);
        }
        List::new(entries).ok_or_else(|| A::Error::invalid_length(0, &self))
    }
}

/// The pairs of a TOML table in the order in which they are written, which the `toml` crate itself
/// does not keep; at least one, except for the default.
#[derive(Debug, Clone)]
pub(crate) struct Pairs<K, V>(Vec<(Spanned<K>, V)>);

impl<K, V> Default for Pairs<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K, V> Pairs<K, V> {
    /// These pairs; there may be none.
    pub(crate) fn new(pairs: Vec<(Spanned<K>, V)>) -> Self {
        Self(pairs)
    }

    pub(crate) fn iter(&self) -> std::slice::Iter<'_, (Spanned<K>, V)> {
        self.0.iter()
    }
}

impl<'de, K: Deserialize<'de>, V: Deserialize<'de>> Deserialize<'de> for Pairs<K, V> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(PairsReader(PhantomData))
    }
}

/// Reads a TOML table as [`Pairs`].
struct PairsReader<K, V>(PhantomData<(K, V)>);

impl<'de, K, V> Visitor<'de> for PairsReader<K, V>
where
    K: Deserialize<'de>,
    V: Deserialize<'de>,
{
    type Value = Pairs<K, V>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table with an entry")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry::<Spanned<K>, V>()? {
            pairs.push(pair);
        }
        if pairs.is_empty() {
            return Err(A::Error::invalid_length(0, &self));
        }
        pairs.sort_by_key(|(key, _)| key.span().start);
        Ok(Pairs(pairs))
    }
}
