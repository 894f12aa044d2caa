//! A baseline, written from what was measured, to be stored in an experiment's file.

use std::fmt::Write;

use toml::Value;

use crate::limits::Measured;

/// The `[[baseline]]` rows that hold these cells to exactly what they measured now; a
/// repeated cell's first run is taken. Cells without metrics are left out.
pub fn baseline(measured: &[Measured]) -> String {
    let mut rows = String::new();
    let mut seen = Vec::new();
    for cell in measured.iter().filter(|cell| !cell.metrics.is_empty()) {
        let key = (&cell.kernel, &cell.cell);
        if !seen.contains(&key) {
            seen.push(key);
            rows += &row(cell);
        }
    }
    rows
}

fn row(cell: &Measured) -> String {
    let text = |text: &str| Value::from(text).to_string();
    let mut row = format!(
        "\n[[baseline]]\nkernel = {}\ncell = {}\n\n[baseline.metrics]\n",
        text(&cell.kernel),
        text(&cell.cell)
    );
    for (metric, number) in &cell.metrics {
        // A String takes everything.
        let _ = writeln!(row, "{metric} = {number}");
    }
    row
}
