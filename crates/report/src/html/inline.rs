//! Running text in HTML. All text of a page passes through [`plain`] or [`shown`], which show hidden
//! characters as a terminal report does.

use units::{printable, printable_lines};

use crate::chart::svg::escape;
use crate::document::text::{Mark, Text};

/// The text, with its marked parts.
pub(crate) fn inline(text: &Text) -> String {
    let mut html = String::new();
    for part in text.parts() {
        let text = shown(&part.text);
        html.push_str(&match part.mark {
            Mark::Words | Mark::Cpus => text,
            Mark::Number => format!("<span class=\"n\">{text}</span>"),
            Mark::Name | Mark::Command => format!("<code>{text}</code>"),
        });
    }
    html
}

/// The text without marks, as the value of an attribute, or as all of an element.
pub(crate) fn plain(text: &Text) -> String {
    shown(&text.to_string())
}

/// A string in one line.
pub(crate) fn shown(text: &str) -> String {
    escape(&printable(text))
}

/// A string of several lines.
pub(crate) fn lines(text: &str) -> String {
    let lines = printable_lines(text);
    lines.split_inclusive(['\n', '\t']).map(line).collect()
}

fn line(line: &str) -> String {
    let bare = line.strip_suffix(['\n', '\t']).unwrap_or(line);
    escape(bare) + &line[bare.len()..]
}
