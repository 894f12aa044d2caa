//! Numbers below 1 without a unit, such as those of benchmarks.

/// More decimals are written as a power of ten.
const DECIMALS_MAX: usize = 12;

/// Three significant digits, however small the number is: `0.0123`, `1.20e-15`.
pub(super) fn significant(value: f64) -> String {
    let size = value.abs();
    let is_near = |shown: f64| (shown - size).abs() <= size * 0.005;
    let shown =
        |decimals: &usize| format!("{size:.decimals$}").parse().is_ok_and(is_near);
    match (3..=DECIMALS_MAX).find(shown) {
        Some(decimals) => {
            let text = format!("{value:.decimals$}");
            let is_exact = text.parse() == Ok(value);
            if is_exact { text.trim_end_matches('0').to_owned() } else { text }
        }
        None => format!("{value:.2e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check numbers of all sizes, with signs, and those that are exact.
    #[test]
    fn sizes() {
        for (value, text) in [
            (0.5, "0.5"),
            (-0.123_456, "-0.123"),
            (0.001_23, "0.00123"),
            (0.000_123_456, "0.000123"),
            (1.2e-15, "1.20e-15"),
        ] {
            assert_eq!(significant(value), text);
        }
    }
}
