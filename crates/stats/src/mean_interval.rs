//! The mean of a few values, and the interval that contains the true one in 95 % of all cases, if the values
//! are independent and about normal (Student: The probable error of a mean. Biometrika 6, 1908).

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The part of each tail.
const TAIL: f64 = 0.025;

/// A mean with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanInterval {
    /// The mean.
    pub mean: f64,
    /// The ends of the interval; `None` for fewer than two values.
    pub interval: Option<[f64; 2]>,
}

impl MeanInterval {
    /// That of these values; `None` without a value.
    pub fn of(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        if values.is_empty() {
            return None;
        }
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let interval = StudentsT::new(0.0, 1.0, count - 1.0).ok().map(|student| {
            let error = (squares / (count - 1.0) / count).sqrt();
            let half = student.inverse_cdf(1.0 - TAIL) * error;
            [mean - half, mean + half]
        });
        Some(Self { mean, interval })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check a known interval (t of 4 degrees of freedom: 2.776), one value, and none.
    #[test]
    fn by_hand() {
        let found = MeanInterval::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        let half = 2.776_445 * (2.5_f64 / 5.0).sqrt();
        let [low, high] = found.interval.unwrap();
        assert_eq!(found.mean, 3.0);
        assert!((low - (3.0 - half)).abs() < 1e-5 && (high - (3.0 + half)).abs() < 1e-5);
        let one = MeanInterval::of(&[7.0]).unwrap();
        assert_eq!((one.mean, one.interval), (7.0, None));
        assert_eq!(MeanInterval::of(&[]), None);
    }
}
