//! Metrics by name: whether there is one, and the built-in experiment that measures it.

use summary::definitions;

use crate::error::Error;
use crate::experiment::Experiment;
use crate::limits::suggestion::suggest;

/// What is measured, and the built-in experiment for it.
const EXPERIMENTS: [(&str, &str); 5] = [
    ("noise", "tick-cost"),
    ("ticks", "idle-cost"),
    ("calls", "syscalls"),
    ("nohz", "nohz-entry"),
    ("slices", "slices"),
];
/// Stands for the name of a call in the table of metrics.
const CALL: &str = "CALL";

/// Refuses a name that no metric of a cell has; `known` are all.
///
/// # Errors
/// `Error::UnknownMetric`, with similar names.
pub fn check_metric(name: &str, known: &[String]) -> Result<(), Error> {
    if known.iter().any(|known| known == name) {
        return Ok(());
    }
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    Err(Error::UnknownMetric(name.to_owned(), suggest(name, &known)))
}

impl Experiment {
    /// The built-in experiment that measures a metric.
    ///
    /// # Errors
    /// `Error::NoExperiment` if none does.
    pub fn of_metric(name: &str) -> Result<Self, Error> {
        let is_it = |key: &str| {
            let end = key.strip_prefix(CALL).filter(|end| name.ends_with(end));
            key == name || end.is_some()
        };
        // The name of a call has lower priority: `tick_instructions` is no call.
        let mut found: Vec<_> =
            definitions().filter(|definition| is_it(definition.key)).collect();
        found.sort_by_key(|definition| definition.key != name);
        let first = found.first().and_then(|definition| definition.of.split(", ").next());
        let known = EXPERIMENTS.into_iter().find(|(of, _)| Some(*of) == first);
        match known {
            Some((_, experiment)) => Self::builtin(experiment),
            None => Err(Error::NoExperiment(name.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the experiment of metrics, and that a program has none.
    #[test]
    fn experiments() {
        for (metric, expected) in [
            ("tick_instructions", "tick-cost"),
            ("tick_kernel_instructions", "tick-cost"),
            ("idle_timer_hz", "idle-cost"),
            ("getpid_instructions", "syscalls"),
            ("slice_ns_mean", "slices"),
        ] {
            assert_eq!(Experiment::of_metric(metric).unwrap().name(), expected);
        }
        assert!(Experiment::of_metric("unit_instructions").is_err());
    }

    /// Check that an unknown metric is refused with similar names.
    #[test]
    fn unknown() {
        let known = ["tick_instructions".to_owned(), "idle_timer_hz".to_owned()];
        assert!(check_metric("idle_timer_hz", &known).is_ok());
        let error = check_metric("tick_instrutions", &known).unwrap_err().to_string();
        assert_eq!(error, "no metric 'tick_instrutions': there is tick_instructions");
    }
}
