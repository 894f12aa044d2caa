//! The intervals of a measurement, in constant memory: when there are too many, each two become one.

use recording::TopSample;

/// The most intervals.
const SAMPLES_MAX: usize = 600;

/// The uses of an interval that are stored by CPU; others are of all CPUs.
const BY_CPU: usize = 256;

/// The intervals.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    stored: Vec<TopSample>,
    /// How many intervals each stored one consists of, as a power of two,
    power: u32,
    /// and the last one so far, if it is not complete.
    filled: u32,
    last: Option<TopSample>,
}

impl Samples {
    /// Adds an interval, and returns it.
    pub(crate) fn push(&mut self, sample: TopSample) -> &TopSample {
        let mut stored = sample.clone();
        stored.add_up(BY_CPU);
        match self.stored.last_mut().filter(|_| self.filled > 0) {
            Some(incomplete) => incomplete.add(stored),
            None => self.stored.push(stored),
        }
        self.filled = (self.filled + 1) % (1 << self.power);
        if self.stored.len() >= SAMPLES_MAX && self.filled == 0 {
            self.halve();
        }
        self.last.insert(sample)
    }

    fn halve(&mut self) {
        let mut halves: Vec<TopSample> = Vec::with_capacity(SAMPLES_MAX);
        for (place, sample) in std::mem::take(&mut self.stored).into_iter().enumerate() {
            match halves.last_mut().filter(|_| place % 2 == 1) {
                Some(first) => first.add(sample),
                None => halves.push(sample),
            }
        }
        self.stored = halves;
        self.power += 1;
    }

    /// All of them.
    pub(crate) fn into_all(self) -> Vec<TopSample> {
        self.stored
    }
}

#[cfg(test)]
mod tests {
    use units::Nanos;

    use super::*;

    /// Check that any number of intervals needs constant memory, and that nothing is lost.
    #[test]
    fn many_intervals() {
        let mut samples = Samples::default();
        let second = Nanos::from_secs(1);
        for at in 1..=10_000_u64 {
            let pushed = samples.push(TopSample {
                at_ns: second.saturating_mul(at),
                elapsed_ns: second,
                cpus: Vec::new(),
                uses: Vec::new(),
                own_ns: Nanos::from_nanos(1),
            });
            assert_eq!(pushed.elapsed_ns, second);
            assert!(samples.stored.len() <= SAMPLES_MAX);
        }
        let all = samples.into_all();
        assert!(all.len() >= SAMPLES_MAX / 2, "{}", all.len());
        let sum = |of: fn(&TopSample) -> Nanos| all.iter().map(of).sum::<Nanos>();
        assert_eq!(sum(|one| one.elapsed_ns), second.saturating_mul(10_000));
        assert_eq!(sum(|one| one.own_ns), Nanos::from_micros(10));
        assert_eq!(all.last().unwrap().at_ns, Nanos::from_secs(10_000));
        let lengths: Vec<Nanos> = all.iter().map(|one| one.elapsed_ns).collect();
        assert!(lengths[..all.len() - 1].iter().all(|one| *one == lengths[0]));
    }
}
