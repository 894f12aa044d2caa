//! Known names that are similar to an unknown one.
//!
//! Two names are similar if one contains the other, or if few letters have to change to make one of
//! the other (Levenshtein distance).

use strsim::levenshtein;

/// At most one letter in so many may differ.
const LETTERS_PER_CHANGE: usize = 3;

/// The hint for an unknown name: similar known names, or else all.
pub(crate) fn suggest(name: &str, known: &[&str]) -> String {
    let similar = known.iter().filter(|known| is_similar(name, known));
    let mut similar: Vec<&str> = similar.copied().collect();
    similar.sort_by_key(|known| levenshtein(name, known)); // the nearest first
    match similar.as_slice() {
        [] => format!("there are {}", known.join(", ")),
        [one] => format!("there is {one}"),
        _ => format!("there are {}", similar.join(", ")),
    }
}

fn is_similar(name: &str, known: &str) -> bool {
    known.contains(name)
        || name.contains(known)
        || levenshtein(name, known) * LETTERS_PER_CHANGE <= name.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 3] = ["tick_instructions", "idle_timer_hz", "fork_instructions"];

    /// Check that similar names are suggested, and all if none is similar.
    #[test]
    fn suggestions() {
        assert_eq!(
            suggest("tick_instrutcions", &KNOWN[..2]),
            "there is tick_instructions"
        );
        assert_eq!(suggest("timer_hz", &KNOWN), "there is idle_timer_hz");
        let both = "there are tick_instructions, fork_instructions";
        assert_eq!(suggest("instructions", &KNOWN), both);
        assert_eq!(suggest("x9", &KNOWN), format!("there are {}", KNOWN.join(", ")));
    }
}
