//! The JSON object of `advise`.

use advise::Advice;
use facts::Facts;
use recording::Doubt;
use serde::Serialize;

use crate::advice::AdvisedMachine;
use crate::json::object;

/// The advice as one JSON object; `taken` and `tool` are those of a recording made now.
///
/// # Errors
/// Serialisation does not fail for these types.
pub fn advice_json(
    machine: &AdvisedMachine<'_>,
    taken: &str,
    tool: &str,
) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Advised<'a> {
        taken: &'a str,
        tool: &'a str,
        facts: &'a Facts,
        summary: &'a Advice,
        doubts: &'a [Doubt],
    }
    let AdvisedMachine { facts, advice, doubts, .. } = *machine;
    object("advice", Advised { taken, tool, facts, summary: advice, doubts })
}
