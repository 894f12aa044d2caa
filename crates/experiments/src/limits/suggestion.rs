//! Which of the names that there are was meant by one that there is not.
//!
//! Two names are alike where one holds the other, or where few letters have to be changed
//! to make one of the other (Levenshtein's distance).

/// As many letters, as a share of the name's, may be wrong.
const WRONG: usize = 3;

/// What to say of a name that there is not: those like it, or else all.
pub(crate) fn suggest(name: &str, known: &[&str]) -> String {
    let like = known.iter().filter(|there| is_like(name, there));
    let like: Vec<&str> = like.copied().collect();
    match like.as_slice() {
        [] => format!("there are {}", known.join(", ")),
        [one] => format!("there is {one}"),
        _ => format!("there are {}", like.join(", ")),
    }
}

fn is_like(name: &str, there: &str) -> bool {
    there.contains(name)
        || name.contains(there)
        || distance(name, there) * WRONG <= name.len()
}

/// How many letters to add, drop or change to make one name of the other.
fn distance(one: &str, other: &str) -> usize {
    let other = other.as_bytes();
    let mut above: Vec<usize> = (0..=other.len()).collect();
    for (row, letter) in one.bytes().enumerate() {
        let mut here = vec![row + 1];
        for (column, facing) in other.iter().enumerate() {
            let changed = above[column] + usize::from(letter != *facing);
            here.push(changed.min(above[column + 1] + 1).min(here[column] + 1));
        }
        above = here;
    }
    above[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 3] = ["tick_instructions", "idle_timer_hz", "fork_instructions"];

    /// Check the distance of names that differ in each way, and at both ends.
    #[test]
    fn distances() {
        for (one, other, letters) in [
            ("tick", "tick", 0),
            ("", "tick", 4),
            ("tick", "", 4),
            ("tock", "tick", 1),
            ("ick", "tick", 1),
            ("ticks", "tick", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(one, other), letters, "{one} {other}");
        }
    }

    /// Check that names like it are named, and all where none is.
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
