//! What all JSON objects begin with.

use recording::FORMAT;
use serde::Serialize;

#[derive(Serialize)]
struct Object<'a, T> {
    format: u32,
    kind: &'a str,
    #[serde(flatten)]
    content: T,
}

/// The content as a JSON object of this kind.
pub(crate) fn object(kind: &str, content: impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&Object { format: FORMAT, kind, content })
}
