//! The canvas: SVG elements, whose texts are escaped.
//!
//! Characters that XML does not allow and characters that are not shown ([`units::is_hidden`]) are
//! replaced, because there is no space for an escape.

use std::fmt::{Display, Write as _};

use units::is_hidden;

use crate::document::text::Text;
use crate::fitting::columns::cut;
use crate::fitting::lines::wrapped;

/// The width of a picture, and the space at its edges.
pub(crate) const WIDTH: f64 = 600.0;
pub(crate) const EDGE: f64 = 16.0;
/// The height of small text, and of a line of it.
pub(crate) const SMALL: f64 = 14.0;
pub(crate) const LINE: f64 = 18.0;
/// The longest text.
const LONGEST: usize = 400;

/// The elements drawn so far.
#[derive(Debug, Default)]
pub(crate) struct Canvas {
    pub(crate) svg: String,
    /// The upper edge of what is drawn next.
    pub(crate) y: f64,
}

impl Canvas {
    /// Draws an SVG element.
    pub(crate) fn draw(&mut self, svg: impl Display) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.svg, "{svg}");
    }

    /// Draws a text, whose line ends or begins at `x` or is around it, as its class says.
    pub(crate) fn text(&mut self, class: &str, x: f64, y: f64, text: impl Display) {
        let text = escape(&cut(&text.to_string(), LONGEST));
        self.draw(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"
        ));
    }

    /// Draws a text in lines, cut after a few; an empty one takes no space.
    pub(crate) fn paragraph(&mut self, class: &str, text: &Text) {
        let (size, line, most) = match class {
            "title" => (19.0, 24.0, 2),
            "panel" => (16.0, 21.0, 2),
            _ => (SMALL, LINE, 5),
        };
        if text.is_empty() {
            return;
        }
        let columns = whole((WIDTH - 2.0 * EDGE) / (0.56 * size));
        let all = wrapped(&text.to_string(), columns);
        for (at, words) in all.iter().enumerate().take(most) {
            let cut = if at + 1 == most && all.len() > most { "…" } else { "" };
            self.y += line;
            self.text(class, EDGE, self.y - line * 0.2, format!("{words}{cut}"));
        }
    }

    /// Draws a path, unless it is empty; without a tool-tip if `title` is empty.
    pub(crate) fn path(&mut self, attributes: &str, path: &str, title: impl Display) {
        let title = escape(&cut(&title.to_string(), LONGEST));
        match (path, title.as_str()) {
            ("", _) => {}
            (_, "") => self.draw(format_args!("<path {attributes} d=\"{path}\"/>")),
            _ => self.draw(format_args!(
                "<path {attributes} d=\"{path}\"><title>{title}</title></path>"
            )),
        }
    }

    /// Draws a straight line.
    pub(crate) fn line(&mut self, class: &str, [x, y]: [f64; 2], [to_x, to_y]: [f64; 2]) {
        self.draw(format_args!(
            "<path class=\"{class}\" d=\"M{x:.1} {y:.1}L{to_x:.1} {to_y:.1}\"/>"
        ));
    }
}

/// The text in XML.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if is_hidden(c) || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                escaped.push(char::REPLACEMENT_CHARACTER);
            }
            c => escaped.push(c),
        }
    }
    escaped
}

/// A number without its fraction; 0 for a negative one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
pub(crate) fn whole(number: f64) -> usize {
    number as usize
}

/// The width of a text in parts of its height, about that of the widest usual fonts.
pub(crate) fn width(text: impl Display) -> f64 {
    let of = |c: char| match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | ' ' | '(' | ')' => 0.36,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.95,
        c if c.is_ascii_uppercase() => 0.72,
        c if c < '\u{2e80}' => 0.62,
        _ => 1.1,
    };
    text.to_string().chars().map(of).sum()
}

#[cfg(test)]
pub(crate) mod checked {
    /// Checks, without an XML parser, that tags are balanced, attributes are quoted, and
    /// special characters are escaped.
    pub(crate) fn check_xml(svg: &str) {
        let mut open: Vec<&str> = Vec::new();
        let mut rest =
            svg.strip_prefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>").unwrap();
        while let Some(at) = rest.find('<') {
            check_text(&rest[..at]);
            if let Some(cdata) = rest[at..].strip_prefix("<![CDATA[") {
                rest = cdata.split_once("]]>").unwrap().1;
                continue;
            }
            let (tag, after) = rest[at + 1..].split_once('>').unwrap();
            rest = after;
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name));
            } else {
                let bare = tag.strip_suffix('/').unwrap_or(tag);
                check_attributes(bare.split_once(' ').map_or("", |(_, rest)| rest));
                if bare == tag {
                    open.push(tag.split(' ').next().unwrap());
                }
            }
        }
        assert_eq!((open, rest), (vec![], "\n"));
    }

    fn check_text(text: &str) {
        assert!(!text.contains('>') && !text.contains('\0'), "{text}");
        for entity in text.split('&').skip(1) {
            let name = entity.split(';').next().unwrap();
            assert!(["amp", "lt", "gt", "quot"].contains(&name), "{text}");
        }
    }

    fn check_attributes(mut text: &str) {
        while let Some((name, rest)) = text.split_once("=\"") {
            let is_name = |c: char| c.is_ascii_alphanumeric() || "-:".contains(c);
            assert!(name.trim_start().chars().all(is_name), "{text}");
            let (value, rest) = rest.split_once('"').unwrap();
            check_text(value);
            text = rest;
        }
        assert_eq!(text.trim(), "");
    }
}
