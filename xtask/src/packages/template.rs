//! Files of `packaging/` with `@NAME@` for values.

use std::fs;
use std::path::Path;

use super::failed;

/// Reads a template and fills it.
pub(super) fn filled(file: &Path, values: &[(&str, &str)]) -> Result<String, String> {
    let text = fs::read_to_string(file).map_err(|error| failed(file, &error))?;
    fill(&text, values)
        .map_err(|name| format!("{}: no value for @{name}@", file.display()))
}

/// Replaces each name; fails with a name that has no value.
fn fill(text: &str, values: &[(&str, &str)]) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, name, after)) = next(rest) {
        let value = values.iter().find(|(known, _)| *known == name);
        filled += before;
        filled += value.ok_or(name)?.1;
        rest = after;
    }
    Ok(filled + rest)
}

/// The text before the first `@NAME@`, the name, and the text after it.
fn next(text: &str) -> Option<(&str, &str, &str)> {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
    };
    text.match_indices('@').find_map(|(start, _)| {
        let (name, after) = text[start + 1..].split_once('@')?;
        is_name(name).then_some((&text[..start], name, after))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that names are replaced, that addresses are not names, and that each name needs a value.
    #[test]
    fn fills() {
        let values = [("NAME", "noisefloor"), ("SIZE", "7")];
        let text = "me@host.org: @NAME@ (@SIZE@)@SIZE@";
        assert_eq!(fill(text, &values), Ok("me@host.org: noisefloor (7)7".to_owned()));
        assert_eq!(fill("@OTHER_ONE@", &values), Err("OTHER_ONE".to_owned()));
    }
}
