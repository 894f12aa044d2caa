//! The kinds of tick of each cell: their frequency and cost, and how they differ.

use summary::{KindDifference, TickKind, TickKinds};

use crate::number;
use crate::text::cells::lines::Row;
use crate::text::cells::lines::section_by_kernel;
use crate::text::explain::format_signed;
use crate::text::layout::table::{Side, cut};

/// The maximum number of kinds for each cell.
const LISTED: usize = 4;
/// The maximum width of the name of a function.
const FUNCTION: usize = 28;

/// The table; `None` if no kind is known.
pub(crate) fn kinds_table(rows: &[(&Row<'_>, &TickKinds)]) -> Option<String> {
    let head =
        [("ticks", Side::Right), ("each", Side::Right), ("difference", Side::Left)];
    let lines = rows.iter().flat_map(|(row, TickKinds { kinds, .. })| {
        let more = kinds.len().saturating_sub(LISTED);
        let more = (more > 0).then(|| format!("{more} more, in --json"));
        let more = more.map(|more| [String::new(), String::new(), more]);
        row.named.lines(kinds.iter().take(LISTED).map(fields).chain(more))
    });
    let words = "Ticks of one kind executed the same number of instructions in the same \
                 functions. First: the cheapest kind with at least 10 % of the ticks; the others: \
                 the function that differs most from it. noisefloor lab explain shows the first \
                 kind by function, with --kind N the Nth.";
    let title = "Kinds of tick, in kernel instructions";
    section_by_kernel(title, head, &lines.collect::<Vec<_>>(), words)
}

fn fields(kind: &TickKind) -> [String; 3] {
    [
        number::any(kind.share_ppm, number::share),
        number::count(kind.instructions.get()),
        difference(&kind.differs),
    ]
}

/// The function that differs most; `...` stands for others.
fn difference(functions: &[KindDifference]) -> String {
    let Some((first, others)) = functions.split_first() else { return String::new() };
    let more = if others.is_empty() { "" } else { ", ..." };
    let name = cut(&first.name, FUNCTION);
    format!("{} {name}{more}", format_signed(first.difference))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use crate::cells::Cells;
    use crate::example::cell::{NEW, OLD, cell, tick_cost, with_profile};
    use crate::text::cells::cells_text;

    /// Check the table: shares, the cheapest frequent kind first, and differences from it.
    #[test]
    fn page() {
        let ending = || tick_cost(&[2584; 40], &[(2571, 2), (2999, 1)]);
        let cells = [OLD, NEW].map(|kernel| with_profile(cell("fifo", kernel, ending())));
        let page = Cells {
            experiment: "tick-cost",
            about: "",
            cells: &cells,
            planned: 2,
            made_with: None,
            violations: None,
            guests: 100,
            series: &[],
        };
        let text = cells_text(&page);
        let table = text.split_once("Kinds of tick").unwrap().1;
        assert_snapshot!(table.split("Instruction counts").next().unwrap(), @r"
    , in kernel instructions

      kernel, cell   ticks  each  difference
      6.1.0
        fifo        66.7 %  2571
                    33.3 %  2999  +2928 asm_sysvec_apic_timer_inter…, ...
      6.12.117
        fifo        66.7 %  2571
                    33.3 %  2999  +2928 asm_sysvec_apic_timer_inter…, ...

    Ticks of one kind executed the same number of instructions in the same
    functions. First: the cheapest kind with at least 10 % of the ticks; the others:
    the function that differs most from it. noisefloor lab explain shows the first
    kind by function, with --kind N the Nth.
    ");
    }
}
