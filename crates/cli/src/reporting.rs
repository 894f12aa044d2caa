//! Reports of several recordings or cells: as JSON or text, and in files.

use report::Document;

use crate::args::Output;
use crate::destination::Destination;
use crate::outcome::Failure;
use crate::printing::{print_document, print_json};

/// Prints a report to standard output, and writes it to the files.
pub(crate) fn show(
    output: Output,
    files: &[Destination<'_>],
    json: impl FnOnce() -> serde_json::Result<String>,
    document: impl FnOnce() -> Document,
    pictures: impl FnOnce() -> Document,
) -> Result<(), Failure> {
    if output.json {
        print_json(&json().map_err(Failure::bug)?)?;
    }
    let is_printed = output.has_report && !output.json;
    if !is_printed && files.is_empty() {
        return Ok(());
    }
    let has_pictures = !files.is_empty() || output.view().has_pictures;
    let document = document().add(has_pictures.then(pictures));
    if is_printed {
        print_document(&document, output.view())?;
    }
    write(files, &document, None)
}

/// No pictures.
pub(crate) fn none() -> Document {
    Document::default()
}

/// Writes a report to the files; of its pictures the named one, or the first.
pub(crate) fn write(
    files: &[Destination<'_>],
    document: &Document,
    picture: Option<&str>,
) -> Result<(), Failure> {
    let mut forms = files.iter().filter_map(|to| Some((to, to.form()?)));
    forms.try_for_each(|(to, form)| to.write_report(form, document, picture))
}
