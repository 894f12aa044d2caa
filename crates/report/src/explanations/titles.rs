//! Titles of explanations and pictures: the tick or call, the cell and the kernel; and for two,
//! the difference between them.

use summary::{Difference, Frequency, Typical};
use units::Instructions;

use crate::document::text::{Text, text};
use crate::kernel_label::{full_name, labels};
use crate::number;

/// The title of a picture, and the line below it with full names.
pub(crate) struct Titles {
    pub(crate) title: String,
    pub(crate) names: String,
}

/// The event in words: `one tick`, `one getpid`.
fn subject(typical: &Typical<'_>) -> String {
    format!("one {}", typical.call.unwrap_or("tick"))
}

fn capitalize(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// The cell's name, and its kernel if that is known.
pub(crate) fn on_kernel(name: &str, kernel: &str) -> String {
    if kernel.is_empty() { name.to_owned() } else { format!("{name} on {kernel}") }
}

/// The cell and its kernel's full name: `other on 6.1.0-56-cloud-amd64 (6.1.192-2)`.
pub(crate) fn cell_on_kernel(typical: &Typical<'_>) -> String {
    on_kernel(&typical.cell.name, &full_name(typical.cell))
}

/// Event, cell and kernel: `one tick, other on 6.1.0-56-cloud-amd64 (6.1.192-2)`.
pub(crate) fn title(typical: &Typical<'_>) -> String {
    format!("{}, {}", subject(typical), cell_on_kernel(typical))
}

/// A sentence with the size. Of an interrupt only the kernel's instructions are counted.
pub(crate) fn headline(typical: &Typical<'_>, total: Instructions) -> Text {
    let place = if typical.call.is_some() { "program and kernel" } else { "the kernel" };
    text!("{} in {}: {}.", capitalize(&subject(typical)), place, size(typical, total))
}

/// The number of instructions, and how many of the events have it.
pub(crate) fn size(typical: &Typical<'_>, total: Instructions) -> Text {
    let Frequency { times, of } = typical.frequency;
    let size = text!("{} instructions", total);
    if times == of {
        return text!("{} in each of {}", size, of);
    }
    let (times, of) = (times, of);
    let rank = match typical.median {
        None => {
            let kind = match typical.place {
                0 => String::new(),
                place => format!(", kind {}", place + 1),
            };
            return text!("{} in {} of {} ticks{}", size, times, of, kind);
        }
        Some(median) if median == total => "the median".into(),
        Some(median) => {
            text!("the nearest recorded to {}, the median", median)
        }
    };
    text!("{}, {} of {} ({} times)", size, rank, of, times)
}

/// The difference of the second from the first, in a sentence.
pub(crate) fn comparison(a: &Typical<'_>, difference: &Difference) -> Text {
    let what = capitalize(&subject(a));
    let sign = difference.difference.signum();
    if sign == 0 {
        return text!("{} of B has as many instructions as one of A.", what);
    }
    let size = u64::try_from(difference.difference.unsigned_abs()).unwrap_or(u64::MAX);
    let share = difference.share().map(number::ratio);
    text!(
        "{} of B has {} {} than one of A{}.",
        what,
        number::counted(size, "instruction"),
        if sign > 0 { "more" } else { "fewer" },
        share.map(|share| text!(" ({})", number::signed(sign as f64, share)))
    )
}

/// The titles of a picture of one event.
pub(crate) fn titles(typical: &Typical<'_>) -> Titles {
    let label = labels([typical.cell]).concat();
    let title = format!(
        "{}, {}",
        capitalize(&subject(typical)),
        on_kernel(&typical.cell.name, &label)
    );
    Titles { title, names: full_name(typical.cell) }
}

/// The titles of a picture of the difference of the second from the first. The title has only
/// what differs, to be short.
pub(crate) fn diff_titles(a: &Typical<'_>, b: &Typical<'_>) -> Titles {
    let what = capitalize(&subject(b));
    let labels = labels([a.cell, b.cell]);
    let (first, second) = (&labels[..1].concat(), &labels[1..].concat());
    let (name, other) = (&b.cell.name, &a.cell.name);
    let title = match (name == other, first == second) {
        (true, _) => format!("{what}, {name}: {second} compared with {first}"),
        (false, true) => {
            format!("{}: {name} compared with {other}", on_kernel(&what, first))
        }
        (false, false) => {
            format!(
                "{what}: {} compared with {}",
                on_kernel(name, second),
                on_kernel(other, first)
            )
        }
    };
    let (before, after) = (full_name(a.cell), full_name(b.cell));
    let names =
        if before == after { after } else { format!("{after} compared with {before}") };
    Titles { title, names }
}

#[cfg(test)]
mod tests {
    use recording::Cell;
    use summary::CallStack;

    use super::*;
    use crate::example::cell::{NEW, OLD, cell, lost, typical};

    fn comparisons(a: u64, b: u64) -> String {
        let cell = cell("other", OLD, lost());
        let stack = |own| vec![CallStack::new(vec!["f"], Instructions::new(own))];
        let difference = Difference::of(&stack(a), &stack(b));
        comparison(&typical(&cell, stack(a)), &difference).to_string()
    }

    /// Check the sentences for more, fewer, as many, and few instructions of many.
    #[test]
    fn sentences() {
        for (a, b, words) in [
            (2336, 2428, "92 instructions more than one of A (+3.94 %)."),
            (100, 1, "99 instructions fewer than one of A (-99 %)."),
            (7, 7, "as many instructions as one of A."),
            (0, 7, "7 instructions more than one of A."),
            (1, 12_346, "12,345 instructions more than one of A (+1,234,500 %)."),
            (1_000_000, 1_000_001, "1 instruction more than one of A (+1 ppm)."),
        ] {
            assert_eq!(comparisons(a, b), format!("One tick of B has {words}"));
        }
    }

    /// Check the words for one of several sizes, a kind, a median, and a single size.
    #[test]
    fn sizes() {
        let cell = cell("other", OLD, lost());
        let mut one = typical(&cell, Vec::new());
        let sentence = |one: &Typical<'_>| headline(one, Instructions::new(2336));
        let words = "One tick in the kernel: 2336 instructions in 112 of 239 ticks.";
        assert_eq!(sentence(&one), words);
        one.place = 2;
        let words =
            "One tick in the kernel: 2336 instructions in 112 of 239 ticks, kind 3.";
        assert_eq!(sentence(&one), words);
        one.call = Some("pipe");
        one.median = Some(Instructions::new(2336));
        let words = "One pipe in program and kernel: 2336 instructions, the median of 239 \
                     (112 times).";
        assert_eq!(sentence(&one), words);
        one.median = Some(Instructions::new(2340));
        let words = "One pipe in program and kernel: 2336 instructions, the nearest recorded \
                     to 2340, the median of 239 (112 times).";
        assert_eq!(sentence(&one), words);
        one.frequency.times = 239;
        let words = "One pipe in program and kernel: 2336 instructions in each of 239.";
        assert_eq!(sentence(&one), words);
    }

    /// Check that the title of a comparison has what differs (cell, kernel, or both), and the
    /// line below it the full names.
    #[test]
    fn two() {
        let of = |name: &str, asked: &str, kernel: &str| Cell {
            asked: asked.to_owned(),
            ..cell(name, kernel, lost())
        };
        let titles = |a: &Cell, b: &Cell| {
            let found = diff_titles(&typical(a, Vec::new()), &typical(b, Vec::new()));
            (found.title, found.names)
        };
        let old = of("other", "", OLD);
        let (title, names) = titles(&old, &of("other", "", NEW));
        assert_eq!(title, "One tick, other: 6.12.117 compared with 6.1.0");
        assert_eq!(names, format!("{NEW} compared with {OLD}"));
        let (title, names) = titles(&old, &of("fifo", "", OLD));
        assert_eq!(
            (title, names.as_str()),
            ("One tick on 6.1.0: fifo compared with other".to_owned(), OLD)
        );
        let (title, _) = titles(&old, &of("fifo", "", NEW));
        assert_eq!(title, "One tick: fifo on 6.12.117 compared with other on 6.1.0");
        let builds =
            ["./a/bzImage", "./b/bzImage"].map(|asked| of("other", asked, "6.1.9"));
        let (title, names) = titles(&builds[0], &builds[1]);
        assert_eq!(title, "One tick, other: b/bzImage compared with a/bzImage");
        assert_eq!(names, "./b/bzImage: 6.1.9 compared with ./a/bzImage: 6.1.9");
    }
}
