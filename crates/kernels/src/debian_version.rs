//! Which of two versions of a Debian package is the newer: deb-version(7), the same order
//! that `dpkg --compare-versions` has.

use std::cmp::Ordering;

/// Compares two versions, `[EPOCH:]UPSTREAM[-REVISION]`.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    let (epoch_a, upstream_a, revision_a) = split(a);
    let (epoch_b, upstream_b, revision_b) = split(b);
    compare_part(epoch_a, epoch_b)
        .then_with(|| compare_part(upstream_a, upstream_b))
        .then_with(|| compare_part(revision_a, revision_b))
}

/// Epoch, upstream version and revision, empty where there is none.
fn split(version: &str) -> (&str, &str, &str) {
    let (epoch, rest) = version.split_once(':').unwrap_or(("", version));
    let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, ""));
    (epoch, upstream, revision)
}

/// Compares texts and numbers in turns.
fn compare_part(mut a: &str, mut b: &str) -> Ordering {
    while !a.is_empty() || !b.is_empty() {
        let (text_a, rest_a) = cut(a, |c| !c.is_ascii_digit());
        let (text_b, rest_b) = cut(b, |c| !c.is_ascii_digit());
        let (number_a, after_a) = cut(rest_a, |c| c.is_ascii_digit());
        let (number_b, after_b) = cut(rest_b, |c| c.is_ascii_digit());
        let order = compare_texts(text_a, text_b)
            .then_with(|| compare_numbers(number_a, number_b));
        if order != Ordering::Equal {
            return order;
        }
        (a, b) = (after_a, after_b);
    }
    Ordering::Equal
}

/// The beginning whose characters all belong, and the rest.
fn cut(text: &str, belongs: fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !belongs(c)).unwrap_or(text.len()))
}

/// `~` comes before the end of a text, and letters before everything else.
fn compare_texts(a: &str, b: &str) -> Ordering {
    let rank = |c: Option<char>| match c {
        Some('~') => (0, None),
        None => (1, None),
        Some(c) if c.is_ascii_alphabetic() => (2, Some(c)),
        Some(c) => (3, Some(c)),
    };
    let longer = a.chars().count().max(b.chars().count());
    let ranks = |text: &str| {
        let padded = text.chars().map(Some).chain(std::iter::repeat(None));
        padded.take(longer).map(rank).collect::<Vec<_>>()
    };
    ranks(a).cmp(&ranks(b))
}

/// Numbers of any length.
fn compare_numbers(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs, the older first; `dpkg --compare-versions` says the same of each.
    const ORDERED: &[(&str, &str)] = &[
        ("6.1.192-2", "6.1.192-10"),
        ("6.1.99-1", "6.1.192-1"),
        ("6.12.117-1~deb12u1", "6.12.117-1"),
        ("6.12.117-1~bpo12+1", "6.12.117-1~deb12u1"),
        ("6.12.9-1", "6.12.9-1+b1"),
        ("6.19~rc8-1~exp1", "6.19-1"),
        ("7.3.4-1~bpo13+1", "7.3.4-1"),
        ("9.9-1", "1:0.1-1"),
        ("1.0~~a", "1.0~"),
        ("1.0", "1.0a"),
        ("1.0a", "1.0+"),
        ("1.0", "1.0-1"),
        ("2-1-9", "2-2-1"),
    ];

    /// Check that the order is the package manager's, in both directions.
    #[test]
    fn orders_versions() {
        for (older, newer) in ORDERED {
            assert_eq!(compare(older, newer), Ordering::Less, "{older} {newer}");
            assert_eq!(compare(newer, older), Ordering::Greater, "{newer} {older}");
        }
    }

    /// Check that the same version written differently is the same.
    #[test]
    fn knows_equal_versions() {
        for (a, b) in [("6.1.0-1", "6.01.0-1"), ("0:1-1", "1-1"), ("1", "1-0"), ("", "")]
        {
            assert_eq!(compare(a, b), Ordering::Equal, "{a} {b}");
        }
    }
}
