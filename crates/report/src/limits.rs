//! Messages about exceeded limits.

use recording::{MomentKind, Recording};
use summary::{Limit, Metric, Summary};

use crate::number;

/// One line for each metric that exceeds a limit.
pub fn exceeded_limits(summary: &Summary, limits: &[Limit]) -> Vec<String> {
    let message = |(metric, most): (Metric, f64)| {
        let Metric { cpu, value, about, .. } = metric;
        let cpu = cpu.map_or_else(String::new, |cpu| format!("CPU {cpu}: "));
        let [value, most] = number::in_one_unit([value, most], about.unit);
        format!("limit exceeded: {cpu}{} {value}, limit {most}", about.help)
    };
    summary::exceeded(summary, limits).into_iter().map(message).collect()
}

/// The same of the worst moment above the limit of the parameters; `None` if there is none.
pub fn worst_moment(recording: &Recording) -> Option<String> {
    let limit = recording.body.trigger().stop_above_ns?;
    let worst = recording.moments.found.iter().max_by_key(|moment| moment.value_ns)?;
    let what = match worst.kind {
        MomentKind::Gap => "longest gap",
        MomentKind::Wakeup => "longest wake-up latency",
        MomentKind::Loop => "largest jitter of a test",
        MomentKind::Interruption | MomentKind::Other => "longest interruption",
    };
    let [value, most] = [worst.value_ns, limit].map(number::duration);
    Some(format!("limit exceeded: CPU {}: {what} {value}, limit {most}", worst.cpu))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;
    use crate::example::latency as latency_example;
    use units::{Nanos, Ppm};

    /// Check the messages for measurements with and without noise and latency.
    #[test]
    fn messages() {
        let least = Nanos::from_nanos(1);
        let limits = [Limit::noise(Ppm::new(0.0)), Limit::gap(least), Limit::late(least)];
        let lines =
            exceeded_limits(&Summary::of(&example::noise(example::MUTE, 1)), &limits);
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("limit exceeded: CPU 0: OS noise "), "{}", lines[0]);
        assert!(lines[1].ends_with(", limit 1 ns"), "{}", lines[1]);
        let lines = exceeded_limits(
            &Summary::of(&latency_example::latency(example::MUTE, 1)),
            &limits,
        );
        assert_eq!(lines.len(), 1);
        assert!(lines[0].contains(": longest wake-up latency 20 ms, "), "{}", lines[0]);
        assert_eq!(
            exceeded_limits(&Summary::of(&example::ticks(example::MUTE, 1, 1)), &limits),
            [""; 0]
        );
    }
}
