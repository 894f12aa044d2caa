//! Random numbers of several distributions, for tests.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

pub(crate) struct Random(pub(crate) Xoshiro256PlusPlus);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Between 0 and 1, neither of them.
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    pub(crate) fn exponential(&mut self) -> f64 {
        -self.uniform().ln()
    }

    pub(crate) fn normal(&mut self) -> f64 {
        (2.0 * self.exponential()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// A tail so long that it has no variance.
    pub(crate) fn pareto(&mut self) -> f64 {
        self.uniform().powf(-1.0 / 1.5)
    }
}
