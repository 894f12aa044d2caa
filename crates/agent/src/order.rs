//! The language that the lab speaks to the agent: what to set, what else to run, what to
//! measure, how much to answer. It travels as JSON in the guest's initramfs.

use recording::{BackgroundLoad, Setting, Source, Spec};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the language; an agent refuses any other.
pub const VERSION: u32 = 1;

/// Where an order lies in the guest.
pub const PATH: &str = "/order.json";

/// Where the program of [`Task::Program`] lies in the guest.
pub const PROGRAM: &str = "/program";

/// An order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// The version of the language that it is written in.
    pub version: u32,
    /// Kernel settings to write before anything else, in that order.
    #[serde(default)]
    pub settings: Vec<Setting>,
    /// What else runs during the measurement.
    #[serde(default)]
    pub background: Vec<BackgroundLoad>,
    /// What to do.
    pub task: Task,
    /// Who is to watch the kernel's events meanwhile; only noise, ticks and calls are
    /// watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<Source>,
    /// The longest answer, in bytes.
    pub answer_bytes_max: u64,
}

/// What an agent can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    /// Measure; only with parameters that a guest supports.
    Measure(Spec),
    /// The kernel's own symbols, once for each image.
    Symbols,
    /// To run the program that lies beside the agent, with these arguments: for tests.
    Program(Vec<String>),
}

/// What in an order is not understood.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// The order is of another version.
    #[error(
        "written in version {0} of the language, and this agent knows version {VERSION}: \
         build the agent again (cargo xtask guest)"
    )]
    Version(u32),
    /// The text is not an order's JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// There is no such field.
    #[error("unknown field `{0}`")]
    Field(String),
}

/// What is read first of any order.
#[derive(Deserialize)]
struct Head {
    version: u32,
}

impl Order {
    /// Reads an order's JSON.
    ///
    /// # Errors
    /// What in it is not understood, by name: a version, a task, a field. Nothing is
    /// passed over, for what a newer lab asks cannot be guessed.
    pub fn parse(text: &str) -> Result<Self, OrderError> {
        let Head { version } = serde_json::from_str(text)?;
        if version != VERSION {
            return Err(OrderError::Version(version));
        }
        let order: Self = serde_json::from_str(text)?;
        let asked: Value = serde_json::from_str(text)?;
        let understood = serde_json::to_value(&order)?;
        match passed_over(&asked, &understood) {
            Some(field) => Err(OrderError::Field(field)),
            None => Ok(order),
        }
    }
}

/// The first field that was asked for and is not among what was understood. The specs of
/// measurements pass over what they do not know, for the sake of recordings' files.
fn passed_over(asked: &Value, understood: &Value) -> Option<String> {
    let nested = |inner: String, name: &dyn std::fmt::Display| format!("{name}.{inner}");
    match (asked, understood) {
        (Value::Object(asked), Value::Object(understood)) => {
            asked.iter().find_map(|(name, value)| match understood.get(name) {
                Some(known) => passed_over(value, known).map(|f| nested(f, name)),
                None => Some(name.clone()),
            })
        }
        (Value::Array(asked), Value::Array(understood)) => {
            let mut pairs = asked.iter().zip(understood).enumerate();
            pairs.find_map(|(place, (value, known))| {
                passed_over(value, known).map(|field| nested(field, &place))
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

    /// Check that an order survives being written and read, and may leave lists out.
    #[test]
    fn orders_travel() {
        let order = Order::parse(NOISE).unwrap();
        assert_eq!(order.background[0].spinners, 3);
        assert_eq!(order.watch, Some(Source::Bpf));
        let text = serde_json::to_string(&order).unwrap();
        assert_eq!(Order::parse(&text).unwrap(), order);
        let short = r#"{"version": 1, "task": "symbols", "answer_bytes_max": 9}"#;
        assert_eq!(Order::parse(short).unwrap().task, Task::Symbols);
    }

    /// Check that what an agent does not know is refused by its name, wherever it is.
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
