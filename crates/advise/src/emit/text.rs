//! Comments and quotes of the formats.

/// The length at which comments are folded.
const WIDTH: usize = 100;

/// A comment of lines with `#`, whatever the text contains.
pub(super) fn comment(text: &str) -> String {
    let mut comment = String::new();
    let mut length = 0;
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()) {
        let word_length = word.chars().count();
        if word.is_empty() {
            continue;
        }
        if length == 0 || length + 1 + word_length > WIDTH {
            comment += if length == 0 { "#" } else { "\n#" };
            length = 1;
        }
        comment.push(' ');
        comment += word;
        length += 1 + word_length;
    }
    comment + "\n"
}

/// A word of a shell that has exactly this value.
pub(super) fn shell(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./,:=+@%".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// A string of YAML.
pub(super) fn yaml(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a text is one comment, folded, also if it has line feeds.
    #[test]
    fn comments() {
        assert_eq!(comment("a\nrm -rf /\r b"), "# a rm -rf / b\n");
        let long = comment(&"word ".repeat(50));
        assert!(long.lines().count() == 3, "{long}");
        assert!(long.lines().all(|line| line.starts_with("# ") && line.len() <= 101));
    }

    /// Check words of the shell and strings of YAML.
    #[test]
    fn quotes() {
        assert_eq!(shell("a=1-3,5"), "a=1-3,5");
        assert_eq!(shell("it's $x"), r"'it'\''s $x'");
        assert_eq!(shell(""), "''");
        assert_eq!(yaml("it's: {x}"), "'it''s: {x}'");
    }
}
