//! The JSON object that `lab ablate --json` prints.

use recording::FORMAT;
use serde::Serialize;

use crate::ablated::Ablated;

#[derive(Serialize)]
struct Object<'a> {
    format: u32,
    kind: &'static str,
    #[serde(flatten)]
    ablated: &'a Ablated<'a>,
}

/// The parts of a difference as one JSON object.
///
/// # Errors
/// None that is known: all fields can be written.
pub fn ablation_json(ablated: &Ablated<'_>) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&Object { format: FORMAT, kind: "ablation", ablated })
}
