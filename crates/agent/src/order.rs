//! The order of the lab for the agent: settings, services, background load, the task, the size of the
//! answer. It is JSON in the guest's initramfs.

use recording::{BackgroundLoad, GuestSetting, ServiceSpec, Source, Spec};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the protocol; an agent refuses any other.
pub const VERSION: u32 = 1;

/// The path of the order in the guest.
pub const PATH: &str = "/order.json";

/// The path of the program of [`Task::Program`] in the guest.
pub const PROGRAM: &str = "/program";

/// An order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// The version of the protocol.
    pub version: u32,
    /// Kernel settings to write before anything else, in that order.
    #[serde(default)]
    pub settings: Vec<GuestSetting>,
    /// Services that run beside the task, started after the settings are written, in that order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceSpec>,
    /// The environment of these services: names and values. There are no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<(String, String)>,
    /// The background load.
    #[serde(default)]
    pub background: Vec<BackgroundLoad>,
    /// The task.
    pub task: Task,
    /// The event source during the task; only noise, ticks, calls and latency can be traced.
    #[serde(default, rename = "watch", skip_serializing_if = "Option::is_none")]
    pub trace: Option<Source>,
    /// The limit of the answer, in bytes.
    pub answer_bytes_max: u64,
}

/// A task of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Measure; only with parameters that a guest supports.
    Measure(Spec),
    /// The kernel's own symbols, once for each image.
    Symbols,
    /// Run the program beside the agent, with these arguments: for tests.
    Program(Vec<String>),
}

/// Why an order is invalid.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// It has another version.
    #[error(
        "order of version {0}; this agent supports version {VERSION}: \
         build the agent again (make lab)"
    )]
    Version(u32),
    /// It is not valid JSON of an order.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// It has an unknown field.
    #[error("unknown field `{0}`")]
    Field(String),
}

/// The part of any order that is read first.
#[derive(Deserialize)]
struct Head {
    version: u32,
}

impl Order {
    /// Parses an order.
    ///
    /// # Errors
    /// The unknown version, task or field, by name. Nothing is ignored, as the intent of a newer
    /// lab cannot be guessed.
    pub fn parse(text: &str) -> Result<Self, OrderError> {
        let Head { version } = serde_json::from_str(text)?;
        if version != VERSION {
            return Err(OrderError::Version(version));
        }
        let order: Self = serde_json::from_str(text)?;
        let given: Value = serde_json::from_str(text)?;
        let understood = serde_json::to_value(&order)?;
        match unknown_field(&given, &understood) {
            Some(field) => Err(OrderError::Field(field)),
            None => Ok(order),
        }
    }
}

/// The first field of `given` that is missing in `understood`. The specifications of measurements
/// ignore unknown fields, for the sake of recordings' files.
fn unknown_field(given: &Value, understood: &Value) -> Option<String> {
    let nested = |inner: String, name: &dyn std::fmt::Display| format!("{name}.{inner}");
    match (given, understood) {
        (Value::Object(given), Value::Object(understood)) => {
            given.iter().find_map(|(name, value)| match understood.get(name) {
                Some(known) => unknown_field(value, known).map(|f| nested(f, name)),
                None => Some(name.clone()),
            })
        }
        (Value::Array(given), Value::Array(understood)) => {
            let mut pairs = given.iter().zip(understood).enumerate();
            pairs.find_map(|(place, (value, known))| {
                unknown_field(value, known).map(|field| nested(field, &place))
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOISE: &str = r#"{
        "version": 1, "answer_bytes_max": 1000,
        "settings": [{"path": "/proc/sys/kernel/watchdog", "value": "0"}],
        "background": [{"cpu": 0, "spinners": 3}],
        "watch": "bpf",
        "task": {"measure": {"noise": {
            "cpus": "0", "duration_ns": 5000000, "threshold_ns": null, "fifo": 10
        }}}
    }"#;

    fn refusal(text: &str) -> String {
        Order::parse(text).unwrap_err().to_string()
    }

    /// Check that an order is unchanged after being written and read, and may omit lists.
    #[test]
    fn orders_travel() {
        let order = Order::parse(NOISE).unwrap();
        assert_eq!(order.background[0].spinners, 3);
        assert_eq!(order.trace, Some(Source::Bpf));
        let text = serde_json::to_string(&order).unwrap();
        assert_eq!(Order::parse(&text).unwrap(), order);
        let short = r#"{"version": 1, "task": "symbols", "answer_bytes_max": 9}"#;
        assert_eq!(Order::parse(short).unwrap().task, Task::Symbols);
    }

    /// Check that anything unknown to an agent is refused by name, wherever it is.
    #[test]
    fn refusals_name_what_is_unknown() {
        let newer = refusal(r#"{"version": 7, "task": {"sing": {}}, "mood": "merry"}"#);
        assert!(newer.contains("version 7"), "{newer}");
        for (known, unknown, name) in [
            ("noise", "sing", "`sing`"),
            ("version", "mood\": 1, \"version", "`mood`"),
            ("spinners", "sleepers\": 1, \"spinners", "`sleepers`"),
            ("fifo", "mood\": null, \"fifo", "`task.measure.noise.mood`"),
        ] {
            let text = refusal(&NOISE.replacen(known, unknown, 1));
            assert!(text.contains(name), "{text}");
        }
        assert!(refusal("").contains("EOF"));
    }
}
