//! Many comparisons at once: of those that are reported as differences, at most a given share is false
//! on average (the false-discovery rate).
//!
//! Y. Benjamini, Y. Hochberg: Controlling the false discovery rate: a practical and powerful approach
//! to multiple testing. Journal of the Royal Statistical Society B 57 (1995). It holds for independent
//! and for positively dependent metrics.

/// Of the differences that are reported, at most this share is false on average.
pub const FALSE_DISCOVERIES: f64 = 0.05;

/// The p-values, each adjusted to the smallest rate at which its hypothesis is rejected.
pub fn adjusted(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_unstable_by(|a, b| p_values[*b].total_cmp(&p_values[*a]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut least: f64 = 1.0;
    for (above, index) in order.into_iter().enumerate() {
        let rank = (p_values.len() - above) as f64;
        least = least.min(p_values[index] * p_values.len() as f64 / rank);
        adjusted[index] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the fifteen p-values of the paper's example: four are rejected at a rate of 0.05.
    #[test]
    fn of_the_paper() {
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459,
            0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000,
        ];
        let adjusted = adjusted(&p);
        assert_eq!(adjusted.iter().filter(|p| **p <= 0.05).count(), 4);
        assert!((adjusted[3] - 0.0095 * 15.0 / 4.0).abs() < 1e-12);
        assert!((adjusted[14] - 1.0).abs() < 1e-12);
        assert!(adjusted.is_sorted());
    }

    /// Check that one p-value stays, and that none is none.
    #[test]
    fn few() {
        assert_eq!(adjusted(&[0.03]), [0.03]);
        assert!(adjusted(&[]).is_empty());
    }
}
