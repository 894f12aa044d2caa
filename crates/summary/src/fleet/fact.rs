//! A fact of a node, as a key and one value.

use serde::Serialize;
use serde_json::Value;

/// The longest list of values that are parts of their own.
const PARTS_MAX: usize = 400;

/// A fact that a node has.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetFact {
    /// Its key: `kernel.release`, `label.rack`, `measurement.noise_ns`.
    pub key: String,
    /// Its value, or one of the words of a list.
    pub value: Value,
    /// Whether the value is one of a list of words, of which each can be there or not.
    #[serde(skip)]
    pub(crate) is_part: bool,
}

impl FleetFact {
    /// A fact: each word of a list, and each value of an object, is one of its own.
    pub(crate) fn of(key: &str, value: &Value) -> Vec<Self> {
        let one = |key: String, value: &Value, is_part| Self {
            key,
            value: value.clone(),
            is_part,
        };
        match value {
            Value::Array(list)
                if list.iter().all(Value::is_string) && !list.is_empty() =>
            {
                list.iter()
                    .take(PARTS_MAX)
                    .map(|word| one(key.to_owned(), word, true))
                    .collect()
            }
            Value::Object(map) => map
                .iter()
                .map(|(name, value)| one(format!("{key}.{name}"), value, false))
                .collect(),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_)
            | Value::Array(_) => vec![one(key.to_owned(), value, false)],
        }
    }
}
