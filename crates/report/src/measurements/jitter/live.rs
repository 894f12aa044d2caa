//! The progress of `jitter`: rows, or a line on a terminal.

use recording::JitterSoFar;
use summary::JitterProgress;
use units::{LengthUnit, TscHz};

use crate::measurements::jitter::{length, unit_text};
use crate::number;

/// The table head above the rows of [`jitter_row`].
pub fn jitter_rows_header(unit: LengthUnit) -> String {
    let heads = row(["test", "jitter", "max", "min", "mean"].map(str::to_owned));
    format!("Jitter in {}\n{heads}", unit_text(unit))
}

/// The progress of a run, as a table row.
pub fn jitter_row(unit: LengthUnit, so_far: &JitterSoFar, hz: TscHz) -> String {
    let JitterProgress { test, jitter, max, min, mean } =
        JitterProgress::of(so_far, unit, hz);
    row([test, jitter, max, min, mean].map(|number| number.to_string()))
}

/// The progress of a run, as text of one line.
pub fn jitter_so_far(unit: LengthUnit, so_far: &JitterSoFar, hz: TscHz) -> String {
    let JitterProgress { test, jitter, max, min, mean } =
        JitterProgress::of(so_far, unit, hz);
    let [jitter, max, min, mean] = [jitter, max, min, mean].map(|it| length(unit, it));
    let test = number::count(test);
    format!("test {test}: jitter {jitter}, max {max}, min {min}, mean {mean}")
}

/// A row; its columns are wide enough for times above one second in nanoseconds.
fn row(cells: [String; 5]) -> String {
    cells.map(|cell| format!("{cell:>13}")).join(" ") + "\n"
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use units::TscDelta;

    use super::*;

    /// Check the rows of a run in both units, and the line on a terminal.
    #[test]
    fn progress() {
        let [last, max, min, sum] =
            [3_000, 4_000_000_000, 2_000, 5_000_000_000].map(TscDelta::from_ticks);
        let so_far = JitterSoFar { tests: 3, last, min, max, sum };
        let hz = TscHz::new(2_000_000_000).unwrap();
        let rows = jitter_rows_header(LengthUnit::Ns)
            + &jitter_row(LengthUnit::Ns, &so_far, hz)
            + &jitter_row(LengthUnit::Ticks, &so_far, hz)
            + &jitter_so_far(LengthUnit::Ns, &so_far, hz);
        assert_snapshot!(rows, @r#"
    Jitter in nanoseconds
             test        jitter           max           min          mean
                3          1500    2000000000          1000     833333334
                3          3000    4000000000          2000    1666666667
    test 3: jitter 1.5 µs, max 2 s, min 1 µs, mean 833 ms
    "#);
    }
}
