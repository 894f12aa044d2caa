//! A program in a guest, with the services that it needs: parameters and measured values.

use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::{Ended, Usage, Words};

/// The parameters of a program's run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramSpec {
    /// The command line that is measured.
    pub command: Words,
    /// Background services, in the order in which they are started, each once the one before it
    /// is ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceSpec>,
    /// The environment of the command and the services: names and values. There are no others.
    pub environment: Vec<(String, String)>,
    /// The working directory of the command and the services.
    pub directory: String,
    /// The exit codes of the command that are no failure.
    pub exit_codes: Vec<u8>,
    /// The longest time that each service may take to become ready, and the command to end.
    pub limit_ns: Nanos,
    /// The work that the command does, if costs are wanted for a unit of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<WorkUnit>,
}

/// A unit of work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkUnit {
    /// Its name: `request`.
    pub name: String,
    /// The number of units that the command does, from 1.
    pub count: u64,
}

/// A background service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceSpec {
    /// Its name in reports.
    pub name: String,
    /// Its command line.
    pub command: Words,
    /// What shows that it is ready; `None`: that it was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Ready>,
}

/// What shows that a service is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ready {
    /// This TCP port of 127.0.0.1 accepts connections.
    Port(u16),
    /// This Unix socket accepts connections: a path.
    Socket(String),
    /// This file exists.
    File(String),
    /// This file, such as one of the kernel's, has this text, without white space around it.
    Text {
        /// Its path.
        file: String,
        /// The text.
        text: String,
    },
}

/// The measured values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgramSeries {
    /// The time from the command's start to its end.
    pub elapsed_ns: Nanos,
    /// The command's end; `None` if it has not ended, or was not started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// Its resource usage (`wait4(2)`), with that of the children that it waited for.
    pub usage: Usage,
    /// What it wrote to standard output and standard error.
    pub output: KeptOutput,
    /// What each service wrote, in the order of the services.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<KeptOutput>,
    /// Why the run is not valid, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// Output of a process, of which the beginning and the end are stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptOutput {
    /// The text that was stored; invalid UTF-8 is replaced.
    pub text: String,
    /// The length of all that was written, in bytes.
    pub bytes: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the keys and the form of every value in files.
    #[test]
    fn contract() {
        let spec = ProgramSpec {
            command: Words::new(["ab".into(), "-n1".into()]),
            services: vec![ServiceSpec {
                name: "nginx".to_owned(),
                command: Words::new(["nginx".into()]),
                ready: Some(Ready::Port(80)),
            }],
            environment: vec![("PATH".to_owned(), "/bin".to_owned())],
            directory: "/".to_owned(),
            exit_codes: vec![0],
            limit_ns: Nanos::from_secs(60),
            unit: Some(WorkUnit { name: "request".to_owned(), count: 1 }),
        };
        let expected = serde_json::json!({
            "command": ["ab", "-n1"],
            "services": [{"name": "nginx", "command": ["nginx"], "ready": {"port": 80}}],
            "environment": [["PATH", "/bin"]], "directory": "/", "exit_codes": [0],
            "limit_ns": 60_000_000_000_u64, "unit": {"name": "request", "count": 1},
        });
        assert_eq!(serde_json::to_value(&spec).unwrap(), expected);
        assert_eq!(serde_json::from_value::<ProgramSpec>(expected).unwrap(), spec);
        let series = ProgramSeries {
            elapsed_ns: Nanos::from_secs(1),
            ended: Some(Ended::Exited(0)),
            usage: Usage::default(),
            output: KeptOutput { text: "hi\n".to_owned(), bytes: 3 },
            services: vec![KeptOutput::default()],
            failure: None,
        };
        let json = serde_json::to_value(&series).unwrap();
        assert_eq!(json["output"], serde_json::json!({"text": "hi\n", "bytes": 3}));
        assert_eq!(json["services"], serde_json::json!([{"text": "", "bytes": 0}]));
        assert_eq!(serde_json::from_value::<ProgramSeries>(json).unwrap(), series);
    }
}
