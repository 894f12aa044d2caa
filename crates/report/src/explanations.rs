//! Instructions by function, of one event or of two compared: tables with sums.

pub(crate) mod phase;
pub(crate) mod titles;

use std::ops::RangeInclusive;

use summary::{CellDifference, Difference, Explanation, Typical};
use units::Instructions;

use crate::document::Document;
use crate::document::table::{Cell, Column, Table, cells};
use crate::document::text::{Text, text};
use crate::explanations::titles::{cell_on_kernel, comparison, headline, size};
use crate::number;

/// The maximum number of listed functions; the others are one line.
const LISTED: usize = 40;
/// The minimum and maximum width of a function's name.
pub(crate) const NAMES: RangeInclusive<usize> = 12..=60;

/// The instructions of one tick or call by function.
pub fn explain_document(typical: &Typical<'_>) -> Document {
    let explanation = Explanation::of(&typical.stacks);
    let mut document = Document::default()
        .add(Text::name(cell_on_kernel(typical)))
        .add(headline(typical, explanation.total_instructions));
    let legend = "In instructions. \"self\": in the function itself; these add up. \"total\": \
                  including all functions that it called.";
    document = document.add(functions(&explanation).legend(legend));
    document
}

/// A table of functions.
pub(crate) fn functions(explanation: &Explanation) -> Table {
    let Explanation { total_instructions: all, functions } = explanation;
    let has_totals =
        functions.iter().all(|function| function.total_instructions.is_some());
    let mut table = match has_totals {
        true => table(&["self", "share", "total"]),
        false => table(&["self", "share"]),
    };
    let mut row = |own, total: Option<Instructions>, name: Cell| {
        let share = number::any(explanation.share(own));
        let total = total.map(Cell::from).unwrap_or_default();
        let total = has_totals.then_some(total);
        let numbers = cells![own, share].into_iter().chain(total);
        table.row(numbers.chain([name]));
    };
    for function in functions.iter().take(LISTED) {
        let name = Text::name(&function.name).into();
        row(function.own_instructions, function.total_instructions, name);
    }
    if functions.len() > LISTED {
        row(explanation.rest(LISTED), None, more_functions(functions.len() - LISTED));
    }
    row(*all, Some(*all), Cell::default().tail("all"));
    table
}

/// The difference of two ticks or calls by function.
pub fn explain_diff_document(a: &Typical<'_>, b: &Typical<'_>) -> Document {
    let difference = Difference::of(&a.stacks, &b.stacks);
    let mut document =
        Document::default().add(comparison(a, &difference)).add(by_variations(a, b));
    let side = |name, side: &Typical<'_>, total| {
        let cell = Text::name(cell_on_kernel(side));
        cells![name, text!("{}: {}", cell, size(side, total))]
    };
    document = document.add(Table::terms([
        side("A", a, difference.total_instructions_a),
        side("B", b, difference.total_instructions_b),
    ]));
    let legend = "In instructions of the functions themselves, the largest differences first. \
                  \"→\": the function has another name in B.";
    document = document.add(differences(&difference).legend(legend));
    let copies =
        "Parts and copies of a function made by the compiler count as the function.";
    document = document.add_full(copies);
    document
}

/// The difference of the means, if the cells have variations.
fn by_variations(a: &Typical<'_>, b: &Typical<'_>) -> Option<Text> {
    let CellDifference { difference, tolerance, none_above_ppm, .. } =
        CellDifference::of_varied(a, b)?;
    Some(match none_above_ppm {
        Some(most) => text!(
            "The means of the variations of both cells have no difference larger than {}.",
            number::share(most)
        ),
        None => text!(
            "The means of the variations of both cells differ by {} ± {}.",
            number::count_difference(difference?),
            number::rounded(tolerance, number::count)
        ),
    })
}

fn differences(difference: &Difference) -> Table {
    let functions = &difference.functions;
    let differing = functions.iter().take_while(|function| function.difference != 0);
    let shown = differing.count().min(LISTED);
    let mut table = table(&["A", "B", "difference"]);
    let mut row = |a, b, more, name: Cell| {
        table.row(cells![a, b, number::exact_difference(more), name]);
    };
    for f in &functions[..shown] {
        let name = Text::name(format_name(&f.name, f.renamed_from.as_deref()));
        row(f.own_instructions_a, f.own_instructions_b, f.difference, name.into());
    }
    if functions.len() > shown {
        let rest = difference.rest(shown);
        let (a, b) = (rest.own_instructions_a, rest.own_instructions_b);
        row(a, b, rest.difference, more_functions(functions.len() - shown));
    }
    let (a, b) = (difference.total_instructions_a, difference.total_instructions_b);
    row(a, b, difference.difference, Cell::default().tail("all, of which"));
    let Difference { only_a, only_b, both, .. } = difference;
    for (part, words) in [(only_a, "only in A"), (only_b, "only in B"), (both, "in both")]
    {
        let (a, b) = (part.own_instructions_a, part.own_instructions_b);
        let functions = number::counted(part.functions, "function");
        let name = Cell::default().tail(format!("{words}: {functions}"));
        row(a, b, part.difference, name.deep(1));
    }
    table
}

/// A table of these numbers for each function.
fn table(numbers: &[&'static str]) -> Table {
    let numbers = numbers.iter().map(|head| Column::number(*head));
    Table::new(numbers.chain([Column::name("function", NAMES)]))
}

/// A function's name, after its name on the first side if that is different.
pub(crate) fn format_name(name: &str, old: Option<&str>) -> String {
    old.map_or_else(|| name.to_owned(), |old| format!("{old} → {name}"))
}

fn more_functions(functions: usize) -> Cell {
    let functions = number::counted(functions as u64, "more function");
    Cell::default().tail(format!("({functions})"))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;
    use summary::CallStack;

    use super::*;
    use crate::example::cell::{NEW, OLD, cell, lost, new_tick, old_tick, typical};
    use crate::fitting::columns::columns;
    use crate::terminal::full_text;

    /// Check the table of one tick with more functions than are listed.
    #[test]
    fn tick() {
        let cell = cell("other", OLD, lost());
        assert_snapshot!(full_text(&explain_document(&typical(&cell, old_tick()))));
    }

    /// Check the difference between the ticks of two kernels.
    #[test]
    fn tick_on_two_kernels() {
        let cells = [OLD, NEW].map(|kernel| cell("other", kernel, lost()));
        let (a, b) = (typical(&cells[0], old_tick()), typical(&cells[1], new_tick()));
        assert_snapshot!(full_text(&explain_diff_document(&a, &b)));
    }

    /// Check the tables of an event without instructions, and of its comparison with itself.
    #[test]
    fn nothing() {
        let cell = cell("other", OLD, lost());
        let nothing = typical(&cell, Vec::new());
        let text = full_text(&explain_document(&nothing));
        assert!(text.contains("\n    0      -      0  all\n"), "{text}");
        let same = full_text(&explain_diff_document(&nothing, &nothing));
        assert!(same.contains("\n 0  0           0  all, of which\n"), "{same}");
    }

    /// Check the heading of a cell with an unknown kernel.
    #[test]
    fn no_kernel() {
        let cell = cell("5e1f0c", "", lost());
        let text = full_text(&explain_document(&typical(&cell, old_tick())));
        assert!(text.starts_with("5e1f0c\n\nOne tick in the kernel: 2652 "), "{text}");
    }

    /// The numbers of a table's column, from the line below the heading to the sum; and those
    /// of the sum's parts, in reverse order so that the sum is the last.
    fn column(text: &str, place: usize) -> [Vec<i64>; 2] {
        let lines = text.lines().skip_while(|line| !line.ends_with(" function"));
        let lines: Vec<&str> =
            lines.skip(1).take_while(|line| !line.is_empty()).collect();
        let is_sum =
            |line: &&str| line.ends_with("  all") || line.ends_with("  all, of which");
        let sum = lines.iter().position(is_sum).unwrap();
        let parts: Vec<&str> = lines[sum..].iter().rev().copied().collect();
        [numbers(&lines[..=sum], place), numbers(&parts, place)]
    }

    fn numbers(lines: &[&str], place: usize) -> Vec<i64> {
        lines
            .iter()
            .map(|line| {
                line.split_whitespace().nth(place).unwrap().replace([',', '+'], "")
            })
            .map(|number| number.parse().unwrap())
            .collect()
    }

    fn adds_up(numbers: &[i64]) -> bool {
        let (sum, parts) = numbers.split_last().unwrap();
        parts.iter().sum::<i64>() == *sum
    }

    proptest! {
        /// Check that printed columns add up to the printed sum, and fit the terminal.
        #[test]
        fn columns_add_up(
            a in prop::collection::vec(("[a-z_.]{1,70}", 0u64..99_999_999), 0..60),
            b in prop::collection::vec((0usize..60, 0u64..99_999_999), 0..60),
        ) {
            let stack = |name, own| CallStack::new(vec![name], Instructions::new(own));
            let name = |at: usize| a.get(at).map_or("other", |(name, _)| name.as_str());
            let before: Vec<_> = a.iter().map(|(name, own)| stack(name, *own)).collect();
            let after: Vec<_> = b.iter().map(|&(at, own)| stack(name(at), own)).collect();
            let cell = cell("other", OLD, lost());
            let (before, after) = (typical(&cell, before), typical(&cell, after));
            let text = full_text(&explain_document(&before));
            prop_assert!(adds_up(&column(&text, 0)[0]), "{}", text);
            let diff = full_text(&explain_diff_document(&before, &after));
            for place in 0..3 {
                let [functions, parts] = column(&diff, place);
                prop_assert!(adds_up(&functions) && adds_up(&parts), "{}", diff);
            }
            let lines = || text.lines().chain(diff.lines());
            prop_assert!(lines().all(|line| columns(line) <= 80 && line.trim_end() == line));
        }
    }
}
