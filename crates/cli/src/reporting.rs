//! Reports of several recordings or cells: as JSON or text, and in files.

use report::{Document, Medium};

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
    pictures: impl Fn(Medium) -> Document,
) -> Result<(), Failure> {
    if output.json {
        print_json(&json().map_err(Failure::bug)?)?;
    }
    let is_printed = output.has_report && !output.json;
    if !is_printed && files.is_empty() {
        return Ok(());
    }
    let document = document();
    let with_pictures = |medium| document.clone().add(pictures(medium));
    if is_printed && output.view().has_pictures {
        print_document(&with_pictures(Medium::Terminal), output.view())?;
    } else if is_printed {
        print_document(&document, output.view())?;
    }
    match files.is_empty() {
        true => Ok(()),
        false => write(files, &with_pictures(Medium::Page), None),
    }
}

/// No pictures.
pub(crate) fn none(_: Medium) -> Document {
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
