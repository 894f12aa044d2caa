//! Explanations as JSON objects.

use serde::Serialize;
use summary::{
    Difference, Explanation, Frequency, PhaseExplanation, Typical, WholePhase,
};

use crate::explanations::phase;
use crate::explanations::titles::title;
use crate::json::object;

#[derive(Serialize)]
struct ExplanationJson<'a> {
    title: String,
    frequency: Frequency,
    summary: &'a Explanation,
}

#[derive(Serialize)]
struct DifferenceJson<'a> {
    title: &'static str,
    sides: [String; 2],
    frequency: [Frequency; 2],
    summary: &'a Difference,
}

#[derive(Serialize)]
struct PhaseJson {
    title: String,
    cpus: String,
    summary: PhaseExplanation,
}

/// The instructions of one tick or call by function, as a JSON object.
///
/// # Errors
/// Serialisation does not fail for these types.
pub fn explain_json(typical: &Typical<'_>) -> serde_json::Result<String> {
    object(
        "explain",
        ExplanationJson {
            title: title(typical),
            frequency: typical.frequency,
            summary: &Explanation::of(&typical.stacks),
        },
    )
}

/// The difference of two ticks or calls by function, as a JSON object.
///
/// # Errors
/// Serialisation does not fail for these types.
pub fn explain_diff_json(a: &Typical<'_>, b: &Typical<'_>) -> serde_json::Result<String> {
    object(
        "explain_diff",
        DifferenceJson {
            title: "difference of B from A",
            sides: [a, b].map(title),
            frequency: [a.frequency, b.frequency],
            summary: &Difference::of(&a.stacks, &b.stacks),
        },
    )
}

/// The instructions of a whole phase, as a JSON object.
///
/// # Errors
/// Serialisation does not fail for these types.
pub fn phase_json(phase: &WholePhase<'_>) -> serde_json::Result<String> {
    object(
        "explain_phase",
        PhaseJson {
            title: phase::title(phase),
            cpus: phase.cpus.to_string(),
            summary: phase.explanation(),
        },
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use summary::CallStack;
    use units::Instructions;

    use super::*;
    use crate::example::cell::{OLD, busy_idle, cell, lost, typical};

    /// Check the objects' keys: this is the JSON contract.
    #[test]
    fn contract() {
        let cell = cell("other", OLD, lost());
        let stack = vec![CallStack::new(vec!["a"], Instructions::new(5))];
        let (some, none) = (typical(&cell, stack), typical(&cell, Vec::new()));
        let object: Value = serde_json::from_str(&explain_json(&some).unwrap()).unwrap();
        let title = format!("one tick, other on {OLD}");
        let frequency = json!({"times": 112, "of": 239});
        let functions =
            [json!({"name": "a", "own_instructions": 5, "total_instructions": 5})];
        let summary = json!({"total_instructions": 5, "functions": functions});
        let expected = json!({
            "format": 1, "kind": "explain", "title": title, "frequency": frequency, "summary": summary,
        });
        assert_eq!(object, expected);
        let object = explain_diff_json(&some, &none).unwrap();
        let object: Value = serde_json::from_str(&object).unwrap();
        assert_eq!(object["kind"], "explain_diff");
        assert_eq!(object["sides"], json!([title, title]));
        assert_eq!(object["frequency"], json!([frequency, frequency]));
        assert_eq!(object["summary"]["difference"], -5);
        assert_eq!(object["summary"]["only_a"]["difference"], -5);
        assert_eq!(object["summary"]["functions"][0]["difference"], -5);
    }

    /// Check the keys of a phase: this is the JSON contract.
    #[test]
    fn contract_of_a_phase() {
        let cell = busy_idle();
        let object = phase_json(&WholePhase::of(&cell, None, None).unwrap()).unwrap();
        let object: Value = serde_json::from_str(&object).unwrap();
        assert_eq!(object["kind"], "explain_phase");
        assert_eq!(object["cpus"], "0");
        assert_eq!(object["title"], format!("the whole phase on CPU 0, idle on {OLD}"));
        let first = json!({
            "kind": "thread", "name": "kdamond_fn", "instructions": 42_000,
            "instructions_hz": 21_000.0,
        });
        assert_eq!(object["summary"]["entries"][0], first);
        assert_eq!(object["summary"]["functions"][0]["name"], "kdamond_fn");
    }
}
