//! The output of the programs of cells.

use recording::{Body, Cell, Ending};

use crate::document::text::{Text, text};
use crate::document::{Content, Document};

/// What the command of each cell wrote, as far as it was stored.
pub fn cell_outputs_document(cells: &[Cell]) -> Document {
    let mut outputs = Document::default();
    cells.iter().for_each(|cell| add_output(&mut outputs, cell));
    outputs
}

fn add_output(outputs: &mut Document, cell: &Cell) {
    let Ending::Done(answer) = &cell.ending else { return };
    let Body::Program { series, .. } = &answer.recording.body else { return };
    let repeat = match cell.repeat {
        1 => String::new(),
        repeat => format!(", repeat {repeat}"),
    };
    outputs.heading(text!("Output on {}{}", Text::name(&cell.kernel), repeat));
    outputs.add(Content::Verbatim(match series.output.text.as_str() {
        "" => "  (none)\n".to_owned(),
        text if text.ends_with('\n') => text.to_owned(),
        text => format!("{text}\n"),
    }));
}
