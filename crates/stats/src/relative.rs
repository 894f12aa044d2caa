//! Relative differences.

use units::Ppm;

/// The difference of a value from another one, relative to that; `None` if that is zero.
pub fn relative(value: f64, base: f64) -> Option<Ppm> {
    (base != 0.0).then(|| Ppm::new((value - base) / base * 1e6))
}
