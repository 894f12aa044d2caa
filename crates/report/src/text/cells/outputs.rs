//! The output of the programs of cells.

use recording::{Body, Cell, Ending};

/// What the command of each cell wrote, as far as it was stored: lines that are not filtered.
pub fn cell_outputs_text(cells: &[Cell]) -> String {
    cells.iter().filter_map(output_text).collect()
}

fn output_text(cell: &Cell) -> Option<String> {
    let Ending::Done(answer) = &cell.ending else { return None };
    let Body::Program { series, .. } = &answer.recording.body else { return None };
    let output = &series.output;
    let name = match cell.repeat {
        1 => cell.kernel.clone(),
        repeat => format!("{}, repeat {repeat}", cell.kernel),
    };
    let text = match output.text.as_str() {
        "" => "  (none)\n".to_owned(),
        text if text.ends_with('\n') => text.to_owned(),
        text => format!("{text}\n"),
    };
    Some(format!("\nOutput on {name}\n{text}"))
}
