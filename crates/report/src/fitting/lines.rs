//! Text in lines of a width.

use crate::fitting::columns::columns;

/// Units, which stay on the line of their number.
const UNITS: [&str; 12] =
    ["ns", "µs", "ms", "s", "min", "h", "d", "Hz", "MHz", "GHz", "%", "ppm"];

/// The text in lines of at most `width` columns, broken at spaces, but not between a
/// number and its unit; a word that is longer than a line is broken after a comma or
/// slash, or else anywhere. Never empty.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> =
        text.lines().flat_map(|line| wrapped_line(line, width)).collect();
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

fn wrapped_line(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in glued(text).iter().flat_map(|word| broken(word, width)) {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(&word),
            Some(line) if columns(line) + 1 + columns(&word) <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}

/// The words, those that must stay in one line joined by their space.
fn glued(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let bare = word.trim_end_matches(['.', ',', ';', ':', ')']);
        match words.last_mut() {
            Some(last)
                if last.ends_with("CPU")
                    || (UNITS.contains(&bare)
                        && last.ends_with(|c: char| c.is_ascii_digit())) =>
            {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

fn broken(word: &str, width: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest: Vec<char> = word.chars().collect();
    while rest.len() > width {
        let is_break = |c: &char| matches!(c, ',' | '/');
        let at = rest.iter().take(width).rposition(is_break).map_or(width, |at| at + 1);
        let after = rest.split_off(at);
        parts.push(rest.into_iter().collect());
        rest = after;
    }
    parts.push(rest.into_iter().collect());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a long CPU list is broken after a comma, and nothing gets lost.
    #[test]
    fn breaks_long_words() {
        let list: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        let lines = wrapped(&list.join(","), 20);
        assert!(lines.iter().all(|line| line.len() <= 20));
        assert!(lines[0].ends_with(','));
        assert_eq!(lines.concat(), list.join(","));
        assert_eq!(wrapped("aaaa", 3), ["aaa", "a"]);
        assert_eq!(wrapped("", 3), [""]);
        assert_eq!(wrapped("a b\nc", 9), ["a b", "c"]);
    }

    /// Check that a number keeps its unit, and a CPU its number.
    #[test]
    fn glues() {
        assert_eq!(wrapped("it was 4.5 µs.", 10), ["it was", "4.5 µs."]);
        assert_eq!(wrapped("took CPU 1 ms", 9), ["took", "CPU 1 ms"]);
        assert_eq!(wrapped("the ms", 5), ["the", "ms"]);
    }
}
