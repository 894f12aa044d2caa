//! Escapes for text in pictures and pages. Characters that XML does not allow and characters that
//! are not shown ([`units::is_hidden`]) are replaced, because there is no space for an escape.

use units::is_hidden;

/// The text in XML, with U+FFFD for characters that are not shown.
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
