//! What squeue and scontrol print.
//!
//! Source: squeue(1). Job states that are not named here are those of tasks that wait for something.

use std::collections::BTreeMap;

/// The columns of a task: the job, the index, the state, and why it waits.
pub(crate) const FORMAT: &str = "--format=%F %K %T %r";

/// The states of a task that has ended.
const ENDED: [&str; 12] = [
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "LAUNCH_FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "RECONFIG_FAIL",
    "REVOKED",
    "TIMEOUT",
];
/// Those of a task that is on a node.
const RUNNING: [&str; 4] = ["RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED"];
/// That of a task that someone has cancelled.
const CANCELLED: &str = "CANCELLED";

/// A task of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ArrayTask {
    /// The number of the array's job.
    pub(crate) job: u64,
    /// Its index in the array.
    pub(crate) index: usize,
    /// Its state, as squeue prints it.
    pub(crate) state: String,
    /// Why it waits: `Resources`.
    pub(crate) reason: String,
}

impl ArrayTask {
    /// Whether it waits or runs.
    pub(crate) fn is_live(&self) -> bool {
        !ENDED.contains(&self.state.as_str())
    }

    /// Whether it is on a node.
    pub(crate) fn is_running(&self) -> bool {
        RUNNING.contains(&self.state.as_str())
    }

    /// Whether someone has cancelled it.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.state == CANCELLED
    }
}

/// The states of an array's tasks, by their indices.
pub(crate) fn states(tasks: Vec<ArrayTask>, job: u64) -> BTreeMap<usize, ArrayTask> {
    let own = tasks.into_iter().filter(|task| task.job == job);
    own.map(|task| (task.index, task)).collect()
}

/// The tasks in what squeue prints with [`FORMAT`]; lines of jobs that are no arrays are left out.
pub(crate) fn parse(text: &str) -> Vec<ArrayTask> {
    let task = |line: &str| {
        let mut words = line.trim().splitn(4, ' ');
        Some(ArrayTask {
            job: words.next()?.parse().ok()?,
            index: words.next()?.parse().ok()?,
            state: words.next()?.to_owned(),
            reason: words.next().unwrap_or_default().to_owned(),
        })
    };
    text.lines().filter_map(task).collect()
}

/// The most tasks of an array, in what `scontrol show config` prints.
pub(crate) fn tasks_max(config: &str) -> Option<usize> {
    let mut lines = config.lines().filter_map(|line| line.split_once('='));
    let (_, value) = lines.find(|(name, _)| name.trim() == "MaxArraySize")?;
    value.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that squeue's lines are parsed, and that tasks which wait, run and have ended are
    /// distinguished.
    #[test]
    fn tasks() {
        let text = "12 0 RUNNING None\n12 1 PENDING BeginTime\n12 2 NODE_FAIL None\n\
                    13 N/A PENDING Resources\n12 3 COMPLETING launch failed requeued held\n";
        let tasks = parse(text);
        let seen =
            tasks.iter().map(|task| (task.index, task.is_live(), task.is_running()));
        let expected =
            [(0, true, true), (1, true, false), (2, false, false), (3, true, true)];
        assert_eq!(seen.collect::<Vec<_>>(), expected);
        assert_eq!(tasks[3].reason, "launch failed requeued held");
        assert_eq!(states(tasks, 13).len(), 0);
    }

    /// Check that the size of arrays is read from Slurm's configuration.
    #[test]
    fn sizes() {
        let text = "MaxArraySize            = 1001\nMaxDBDMsgs              = 20012\n";
        assert_eq!(
            tasks_max(&format!("Configuration data as of now\n{text}")),
            Some(1001)
        );
        assert_eq!(tasks_max("no answer"), None);
    }
}
