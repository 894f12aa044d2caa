//! The JSON object of `advise`.

use advise::Advice;
use facts::Facts;
use recording::Doubt;
use serde::Serialize;
use summary::MainMetric;

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
        #[serde(skip_serializing_if = "Option::is_none")]
        main: Option<&'a MainMetric>,
        summary: &'a Advice,
        doubts: &'a [Doubt],
    }
    let AdvisedMachine { facts, advice, doubts, program, .. } = *machine;
    let main = program.and_then(|program| program.main);
    object("advice", Advised { taken, tool, facts, main, summary: advice, doubts })
}
