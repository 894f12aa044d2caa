//! The output of the programs of cells.

use recording::{Body, Cell, Ending};

use crate::document::text::{Text, text};
use crate::document::{Content, Document};

/// What the command of each cell wrote, as far as it was stored.
pub fn cell_outputs_document(cells: &[Cell]) -> Document {
    Document::default().add_all(cells.iter().map(output))
}

fn output(cell: &Cell) -> Option<Document> {
    let Ending::Done(answer) = &cell.ending else { return None };
    let Body::Program { series, .. } = &answer.recording.body else { return None };
    let repeat = match cell.repeat {
        1 => String::new(),
        repeat => format!(", repeat {repeat}"),
    };
    let output = match series.output.text.as_str() {
        "" => "  (none)\n".to_owned(),
        text if text.ends_with('\n') => text.to_owned(),
        text => format!("{text}\n"),
    };
    let title = text!("Output on {}{}", Text::name(&cell.kernel), repeat);
    Some(Document::section(title, Content::Verbatim(output)))
}
