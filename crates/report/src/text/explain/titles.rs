//! What explanations and pictures are called: which tick or call, of which cell, on which
//! kernel; and of two, what differs between them.

use stats::{Difference, Typical};
use units::Instructions;

use crate::number;
use crate::text::cells::kernel_label::{full_name, labels};
use crate::text::explain::signed;

/// A picture's title, and in the line below it what its short names stand for.
pub(crate) struct Titles {
    pub(crate) title: String,
    pub(crate) names: String,
}

/// What it is one of: `one tick`, `one getpid`.
fn what(typical: &Typical<'_>) -> String {
    format!("one {}", typical.call.unwrap_or("tick"))
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// The cell's name, and its kernel where it is known.
pub(crate) fn on(name: &str, kernel: &str) -> String {
    if kernel.is_empty() { name.to_owned() } else { format!("{name} on {kernel}") }
}

/// The cell on its kernel, in full: `other on 6.1.0-56-cloud-amd64 (6.1.192-2)`.
pub(crate) fn cell_on_kernel(typical: &Typical<'_>) -> String {
    on(&typical.cell.name, &full_name(typical.cell))
}

/// All in one: `one tick, other on 6.1.0-56-cloud-amd64 (6.1.192-2)`.
pub(crate) fn title(typical: &Typical<'_>) -> String {
    format!("{}, {}", what(typical), cell_on_kernel(typical))
}

/// Where it ran: of an interruption only the kernel's instructions are counted.
pub(crate) fn headline(typical: &Typical<'_>, total: Instructions) -> String {
    let place = if typical.call.is_some() { "program and kernel" } else { "the kernel" };
    format!("{} in {place}: {}.", capital(&what(typical)), size(typical, total))
}

/// How large it is, and how typical that is.
pub(crate) fn size(typical: &Typical<'_>, total: Instructions) -> String {
    let [size, times, of] =
        [total.get(), typical.seen.times, typical.seen.of].map(number::count);
    if times == of {
        return format!("{size} instructions, every one of {of}");
    }
    let rank = match typical.median {
        None if typical.place == 0 => {
            return format!("{size} instructions, as {times} of {of} ticks");
        }
        None => {
            let number = typical.place + 1;
            return format!("{size} instructions, kind {number}: {times} of {of} ticks");
        }
        Some(median) if median == total => "the median".to_owned(),
        Some(median) => {
            format!(
                "the nearest that was kept to {}, the median",
                number::count(median.get())
            )
        }
    };
    format!("{size} instructions, {rank} of {of} ({times} times)")
}

/// How the second differs from the first, in a sentence.
pub(crate) fn comparison(a: &Typical<'_>, difference: &Difference) -> String {
    let what = capital(&what(a));
    let size = signed(difference.difference);
    let than = match difference.difference.signum() {
        0 => return format!("{what} of B takes as many instructions as one of A."),
        1 => "more",
        _ => "fewer",
    };
    let (sign, size) = size.split_at(1);
    let s = if size == "1" { "" } else { "s" };
    let share = difference.share().map(number::ratio);
    let share = share.map_or_else(String::new, |share| format!(" ({sign}{share})"));
    format!("{what} of B takes {size} instruction{s} {than} than one of A{share}.")
}

/// The titles of a picture of one.
pub(crate) fn titles(typical: &Typical<'_>) -> Titles {
    let label = labels([typical.cell]).concat();
    let title =
        format!("{}, {}", capital(&what(typical)), on(&typical.cell.name, &label));
    Titles { title, names: full_name(typical.cell) }
}

/// The titles of a picture of how the second differs from the first: what differs, in the
/// fewest words.
pub(crate) fn compared(a: &Typical<'_>, b: &Typical<'_>) -> Titles {
    let what = capital(&what(b));
    let labels = labels([a.cell, b.cell]);
    let (first, second) = (&labels[..1].concat(), &labels[1..].concat());
    let (name, other) = (&b.cell.name, &a.cell.name);
    let title = match (name == other, first == second) {
        (true, _) => format!("{what}, {name}: {second} against {first}"),
        (false, true) => format!("{}: {name} against {other}", on(&what, first)),
        (false, false) => {
            format!("{what}: {} against {}", on(name, second), on(other, first))
        }
    };
    let (before, after) = (full_name(a.cell), full_name(b.cell));
    let names = if before == after { after } else { format!("{after} against {before}") };
    Titles { title, names }
}

#[cfg(test)]
mod tests {
    use recording::Cell;
    use stats::CallStack;

    use super::*;
    use crate::example::cell::{NEW, OLD, cell, lost, typical};

    fn comparisons(a: u64, b: u64) -> String {
        let cell = cell("other", OLD, lost());
        let stack = |own| vec![CallStack::new(vec!["f"], Instructions::new(own))];
        let difference = Difference::of(&stack(a), &stack(b));
        comparison(&typical(&cell, stack(a)), &difference)
    }

    /// Check the sentence: more, fewer, as many, of nothing, and by little.
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
            assert_eq!(comparisons(a, b), format!("One tick of B takes {words}"));
        }
    }

    /// Check that one number out of many is told from one that is the only one.
    #[test]
    fn sizes() {
        let cell = cell("other", OLD, lost());
        let mut one = typical(&cell, Vec::new());
        let told = |one: &Typical<'_>| headline(one, Instructions::new(2336));
        let words = "One tick in the kernel: 2336 instructions, as 112 of 239 ticks.";
        assert_eq!(told(&one), words);
        one.place = 2;
        let words =
            "One tick in the kernel: 2336 instructions, kind 3: 112 of 239 ticks.";
        assert_eq!(told(&one), words);
        one.call = Some("pipe");
        one.median = Some(Instructions::new(2336));
        let words = "One pipe in program and kernel: 2336 instructions, the median of 239 \
                     (112 times).";
        assert_eq!(told(&one), words);
        one.median = Some(Instructions::new(2340));
        let words = "One pipe in program and kernel: 2336 instructions, the nearest that was \
                     kept to 2340, the median of 239 (112 times).";
        assert_eq!(told(&one), words);
        one.seen.times = 239;
        let words =
            "One pipe in program and kernel: 2336 instructions, every one of 239.";
        assert_eq!(told(&one), words);
    }

    /// Check that a picture of two names what differs, cell, kernel, or both, in short,
    /// and the kernels in full below.
    #[test]
    fn two() {
        let of = |name: &str, asked: &str, kernel: &str| Cell {
            asked: asked.to_owned(),
            ..cell(name, kernel, lost())
        };
        let told = |a: &Cell, b: &Cell| {
            let found = compared(&typical(a, Vec::new()), &typical(b, Vec::new()));
            (found.title, found.names)
        };
        let old = of("other", "", OLD);
        let (title, names) = told(&old, &of("other", "", NEW));
        assert_eq!(title, "One tick, other: 6.12.117 against 6.1.0");
        assert_eq!(names, format!("{NEW} against {OLD}"));
        let (title, names) = told(&old, &of("fifo", "", OLD));
        assert_eq!(
            (title, names.as_str()),
            ("One tick on 6.1.0: fifo against other".to_owned(), OLD)
        );
        let (title, _) = told(&old, &of("fifo", "", NEW));
        assert_eq!(title, "One tick: fifo on 6.12.117 against other on 6.1.0");
        let builds =
            ["./a/bzImage", "./b/bzImage"].map(|asked| of("other", asked, "6.1.9"));
        let (title, names) = told(&builds[0], &builds[1]);
        assert_eq!(title, "One tick, other: b/bzImage against a/bzImage");
        assert_eq!(names, "./b/bzImage: 6.1.9 against ./a/bzImage: 6.1.9");
    }
}
