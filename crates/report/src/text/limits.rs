//! Limits that were exceeded, in words.

use stats::{Excess, Limits, Summary};

use crate::number;

/// One line for each CPU and limit that it exceeds; none for a measurement that the limits are
/// not about.
pub fn exceeded(summary: &Summary, limits: &Limits) -> Vec<String> {
    limits.exceeded(summary).iter().map(sentence).collect()
}

fn sentence(excess: &Excess) -> String {
    match *excess {
        Excess::Noise { cpu, seen, limit } => {
            let (seen, limit) = (number::share(seen), number::share(limit));
            format!("limit exceeded: CPU {cpu} lost {seen} of its time, at most {limit}")
        }
        Excess::Gap { cpu, seen, limit } => {
            let (seen, limit) = (number::duration(seen), number::duration(limit));
            format!("limit exceeded: CPU {cpu} had a gap of {seen}, at most {limit}")
        }
        Excess::Late { cpu, seen, limit } => {
            let (seen, limit) = (number::duration(seen), number::duration(limit));
            format!(
                "limit exceeded: a thread on CPU {cpu} woke up {seen} late, at most {limit}"
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

    /// Check the sentences, for a measurement with noise in it and one without.
    #[test]
    fn sentences() {
        let least = Some(Nanos::from_nanos(1));
        let limits = Limits { noise: Some(Ppm::new(0.0)), gap: least, late: least };
        let lines = exceeded(&Summary::of(&example::noise(example::MUTE, 1)), &limits);
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("limit exceeded: CPU 0 lost "), "{}", lines[0]);
        assert!(lines[1].ends_with(", at most 1 ns"), "{}", lines[1]);
        let lines =
            exceeded(&Summary::of(&latency_example::latency(example::MUTE, 1)), &limits);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].contains(" woke up 20 ms late, "), "{}", lines[0]);
        assert_eq!(
            exceeded(&Summary::of(&example::ticks(example::MUTE, 1, 1)), &limits),
            [""; 0]
        );
    }
}
