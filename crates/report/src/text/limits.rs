//! Messages about exceeded limits.

use stats::{Excess, Limits, Summary};

use crate::number;

/// One line for each CPU and each limit that it exceeds; none for a kind of measurement without
/// limits.
pub fn exceeded_limits(summary: &Summary, limits: &Limits) -> Vec<String> {
    limits.exceeded(summary).iter().map(message).collect()
}

fn message(excess: &Excess) -> String {
    match *excess {
        Excess::Noise { cpu, seen, limit } => {
            let (seen, limit) = (number::share(seen), number::share(limit));
            format!("limit exceeded: CPU {cpu}: OS noise {seen}, limit {limit}")
        }
        Excess::Gap { cpu, seen, limit } => {
            let (seen, limit) = (number::duration(seen), number::duration(limit));
            format!("limit exceeded: CPU {cpu}: longest gap {seen}, limit {limit}")
        }
        Excess::Late { cpu, seen, limit } => {
            let (seen, limit) = (number::duration(seen), number::duration(limit));
            format!(
                "limit exceeded: CPU {cpu}: latest wake-up {seen} late, limit {limit}"
            )
        }
    }
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
        let least = Some(Nanos::from_nanos(1));
        let limits = Limits { noise: Some(Ppm::new(0.0)), gap: least, late: least };
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
        assert!(lines[0].contains(" latest wake-up 20 ms late, "), "{}", lines[0]);
        assert_eq!(
            exceeded_limits(&Summary::of(&example::ticks(example::MUTE, 1, 1)), &limits),
            [""; 0]
        );
    }
}
