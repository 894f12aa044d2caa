//! The JSON object that `lab ablate --json` prints.

use crate::cells::ablated::Ablated;
use crate::json::object::object;

/// The parts of a difference as one JSON object.
///
/// # Errors
/// None that is known: all fields can be written.
pub fn ablation_json(ablated: &Ablated<'_>) -> serde_json::Result<String> {
    object("ablation", ablated)
}
