//! A fact: a value with its source, or the reason why it is unknown.
//!
//! Unknown values are never `false` or zero. In JSON, each group has the plain values
//! (`facts.tick.hz` is `250`, or `null` if unknown), and two maps beside the groups have the source
//! (`sources`) and the reason (`unknown`) of each key.

use std::collections::BTreeMap;

use serde::de::{DeserializeOwned, Error as _};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

/// Why a fact is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The file does not exist for an unknown reason.
    Absent,
    /// Its file system is not mounted.
    NotMounted,
    /// This kernel is older than the first release with it.
    TooOld,
    /// This kernel is newer than the last release with it.
    TooNew,
    /// The kernel is built without it.
    NotConfigured,
    /// It can be read only by root, or with the capability in the text.
    NeedsRoot,
    /// It cannot be read even by root, for example because of lockdown.
    Lockdown,
    /// The hypervisor does not export it to guests.
    NotExported,
    /// It does not apply to this machine or architecture.
    NotApplicable,
    /// The contents of the file are invalid.
    Garbage,
    /// The recording or tree was made by a version that did not read it.
    NotRecorded,
}

/// The reason why a fact is unknown, for programs (`code`) and users (`text`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{text}")]
pub struct Unknown {
    /// The kind of reason.
    pub code: Why,
    /// The reason: a lowercase fragment.
    pub text: String,
}

impl Unknown {
    /// Constructs a reason from its kind and text.
    pub fn new(code: Why, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// The same reason, with another text if a file does not exist.
    pub(crate) fn if_absent(self, text: impl Into<String>) -> Self {
        let text = if self.code == Why::Absent { text.into() } else { self.text };
        Self { text, ..self }
    }

    /// The reason for invalid contents, with the file, the line (from 1) and its text.
    pub fn garbage(file: &str, line: usize, text: &str, expected: &str) -> Self {
        let text: String = text.trim_end().chars().take(60).collect();
        let text = format!("{file}: line {line}: '{text}' is not {expected}");
        Self::new(Why::Garbage, text)
    }
}

/// A value and its source, or why it is unknown and the source it would have.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact<T> {
    source: String,
    value: Result<T, Unknown>,
}

impl<T> Fact<T> {
    /// A known value, read from `source`.
    pub fn known(value: T, source: impl Into<String>) -> Self {
        Self { source: source.into(), value: Ok(value) }
    }

    /// An unknown value, which `source` would have.
    pub fn unknown(why: Unknown, source: impl Into<String>) -> Self {
        Self { source: source.into(), value: Err(why) }
    }

    /// A known or unknown value.
    pub fn of(value: Result<T, Unknown>, source: impl Into<String>) -> Self {
        Self { source: source.into(), value }
    }

    /// Converts the value if it is known.
    pub(crate) fn map<U>(self, convert: impl FnOnce(T) -> U) -> Fact<U> {
        Fact { source: self.source, value: self.value.map(convert) }
    }

    /// The value if it is known.
    pub fn get(&self) -> Option<&T> {
        self.value.as_ref().ok()
    }

    /// The value, or why it is unknown.
    ///
    /// # Errors
    /// The reason why the value is unknown.
    pub fn value(&self) -> Result<&T, &Unknown> {
        self.value.as_ref()
    }

    /// The source of the value, also of an unknown one.
    pub fn source(&self) -> &str {
        &self.source
    }
}

/// A fact of any type, in its serialized form.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The group and name: `tick.hz`.
    pub key: &'static str,
    /// The value as JSON, or why it is unknown.
    pub value: Result<Value, Unknown>,
    /// The source of the value, also of an unknown one.
    pub source: String,
}

impl Entry {
    /// The first part of the key: the group.
    pub fn group(&self) -> &'static str {
        self.key.split_once('.').map_or(self.key, |(group, _)| group)
    }

    /// The second part of the key: the name in the group.
    pub fn name(&self) -> &'static str {
        self.key.split_once('.').map_or(self.key, |(_, name)| name)
    }
}

/// All facts in the order of output.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page {
    entries: Vec<Entry>,
}

impl Page {
    /// The facts in the order of output.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub(crate) fn into_entries(self) -> Vec<Entry> {
        self.entries
    }

    /// The facts by group, in order.
    pub fn groups(&self) -> impl Iterator<Item = &[Entry]> {
        self.entries.chunk_by(|a, b| a.group() == b.group())
    }

    pub(crate) fn put<T: Serialize>(&mut self, key: &'static str, fact: &Fact<T>) {
        let value = fact.value.as_ref().map_err(Clone::clone).and_then(|value| {
            serde_json::to_value(value)
                .map_err(|error| Unknown::new(Why::Garbage, error.to_string()))
        });
        self.entries.push(Entry { key, value, source: fact.source.clone() });
    }
}

struct Group<'a>(&'a [Entry]);

impl Serialize for Group<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let values = self.0.iter().map(|entry| (entry.name(), entry.value.as_ref().ok()));
        serializer.collect_map(values)
    }
}

impl Serialize for Page {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for group in self.groups() {
            let name = group.first().map_or("", Entry::group);
            map.serialize_entry(name, &Group(group))?;
        }
        let sources = self.entries.iter().map(|entry| (entry.key, entry.source.as_str()));
        map.serialize_entry("sources", &sources.collect::<BTreeMap<_, _>>())?;
        let unknown = self.entries.iter().filter_map(|entry| {
            entry.value.as_ref().err().map(|unknown| (entry.key, unknown))
        });
        map.serialize_entry("unknown", &unknown.collect::<BTreeMap<_, _>>())?;
        map.end()
    }
}

/// The serialized form of a page: groups of values, and the two maps.
#[derive(Debug, Deserialize)]
pub(crate) struct SerializedPage {
    sources: BTreeMap<String, String>,
    unknown: BTreeMap<String, Unknown>,
    #[serde(flatten)]
    groups: BTreeMap<String, BTreeMap<String, Value>>,
}

impl SerializedPage {
    /// Removes one fact. A key that does not exist was not read by the version that wrote the
    /// page.
    pub(crate) fn take<T: DeserializeOwned>(
        &mut self,
        key: &'static str,
    ) -> Result<Fact<T>, serde_json::Error> {
        let source = self.sources.remove(key).unwrap_or_default();
        if let Some(unknown) = self.unknown.remove(key) {
            return Ok(Fact::unknown(unknown, source));
        }
        let (group, name) = key.split_once('.').unwrap_or((key, ""));
        let Some(value) = self.groups.get_mut(group).and_then(|group| group.remove(name))
        else {
            let text = "not read by the version that wrote this recording";
            return Ok(Fact::unknown(Unknown::new(Why::NotRecorded, text), source));
        };
        let value = serde_json::from_value(value)
            .map_err(|why| serde_json::Error::custom(format_args!("{key}: {why}")))?;
        Ok(Fact::known(value, source))
    }
}

/// Declares a group of facts: a struct of [`Fact`]s with keys `group.field`.
macro_rules! group {
    (
        $(#[$meta:meta])*
        $group:literal $name:ident {
            $($(#[$doc:meta])* $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $($(#[$doc])* pub $field: $crate::fact::Fact<$type>,)*
        }

        impl $name {
            pub(crate) fn put(&self, page: &mut $crate::fact::Page) {
                $(page.put(concat!($group, ".", stringify!($field)), &self.$field);)*
            }

            pub(crate) fn take(
                page: &mut $crate::fact::SerializedPage,
            ) -> Result<Self, serde_json::Error> {
                Ok(Self {
                    $($field: page.take(concat!($group, ".", stringify!($field)))?,)*
                })
            }
        }
    };
}
pub(crate) use group;

#[cfg(test)]
#[allow(unreachable_pub, reason = "the macro declares groups for other crates")]
mod tests {
    use super::*;

    group! {
        /// A group for the test.
        "sky" Sky {
            /// A known one.
            blue: bool,
            /// An unknown one.
            height: u64,
        }
    }

    fn page() -> (Sky, Page) {
        let height = Unknown::new(Why::NeedsRoot, "only root may look up");
        let sky = Sky {
            blue: Fact::known(false, "/sky/blue"),
            height: Fact::unknown(height, "/sky/height"),
        };
        let mut page = Page::default();
        sky.put(&mut page);
        (sky, page)
    }

    /// Check the serialized form: plain values, null for unknown ones, sources and reasons.
    #[test]
    fn written_form() {
        let expected = serde_json::json!({
            "sky": {"blue": false, "height": null},
            "sources": {"sky.blue": "/sky/blue", "sky.height": "/sky/height"},
            "unknown": {"sky.height": {
                "code": "needs_root", "text": "only root may look up"}},
        });
        assert_eq!(serde_json::to_value(page().1).unwrap(), expected);
    }

    /// Check that a page is deserialized unchanged.
    #[test]
    fn reads_back() {
        let (sky, page) = page();
        let text = serde_json::to_string(&page).unwrap();
        let mut written: SerializedPage = serde_json::from_str(&text).unwrap();
        assert_eq!(Sky::take(&mut written).unwrap(), sky);
    }

    /// Check that a missing key is unknown, and not false or zero.
    #[test]
    fn missing_keys_are_unknown() {
        let text = r#"{"sources": {}, "unknown": {}}"#;
        let mut written: SerializedPage = serde_json::from_str(text).unwrap();
        let sky = Sky::take(&mut written).unwrap();
        assert_eq!(sky.blue.value().unwrap_err().code, Why::NotRecorded);
    }
}
