//! The live table of `ticks`, a line or a few for each interval.
//!
//! Few CPUs have a column each, more have cells side by side, and of very many only those with
//! the most timer interrupts are listed.

use facts::Facts;
use recording::{TickSample, TicksSpec};
use summary::{CpuTicksSummary, TicksSummary};

use crate::measurements::ticks::{busy, head, most_ticking, timer};
use crate::number;
use crate::terminal::{View, terminal_text};

/// Up to this many CPUs have a column each.
const COLUMNS: usize = 4;
/// Cells per line for more CPUs.
const CELLS: usize = 3;
/// The width of the column of times.
const TIME: usize = 8;

/// The lines above the first interval.
pub fn ticks_header(facts: &Facts, spec: &TicksSpec) -> String {
    let title = terminal_text(&head(facts, spec), View::FULL);
    let count = spec.cpus.len();
    if count > COLUMNS {
        let cells = "    CPU    timer    busy".repeat(CELLS.min(count));
        return format!("{title}\n{:>TIME$}{cells}\n", "from");
    }
    let names = spec.cpus.iter().map(|cpu| format!("{:>18}", format!("CPU {cpu}")));
    let names: String = names.collect();
    let words = "     timer    busy".repeat(count);
    format!("{title}\n{:TIME$}{names}\n{:>TIME$}{words}\n", "", "from")
}

/// The lines of one interval.
pub fn ticks_sample(sample: &TickSample) -> String {
    let summary = TicksSummary::of(std::slice::from_ref(sample));
    let time = number::moment(sample.start_ns);
    if summary.cpus.len() <= COLUMNS {
        let cells = summary.cpus.iter().map(|cpu| {
            let [timer, busy] = cell(cpu);
            format!("{timer:>10}{busy:>8}")
        });
        return format!("{time:>TIME$}{}\n", cells.collect::<String>());
    }
    let cpus = most_ticking(&summary.cpus);
    let mut text = String::new();
    for (at, cpus) in cpus.listed.chunks(CELLS).enumerate() {
        let cells = cpus.iter().map(|cpu| {
            let [timer, busy] = cell(cpu);
            format!("    {:>3}{timer:>9}{busy:>8}", cpu.cpu)
        });
        let lead = if at == 0 { time.to_string() } else { String::new() };
        text.push_str(&format!("{lead:>TIME$}{}\n", cells.collect::<String>()));
    }
    if let Some(highest) = cpus.others.first() {
        let count = cpus.others.len();
        let rest = format!("and {count} CPUs with {} or less", timer(highest));
        text.push_str(&format!("{:TIME$}    {rest}\n", ""));
    }
    text
}

fn cell(cpu: &CpuTicksSummary) -> [String; 2] {
    [timer(cpu), busy(cpu)].map(|cell| cell.to_string())
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::{Body, Recording};
    use summary::Summary;

    use super::*;
    use crate::example::{self, GUEST, METAL};
    use crate::measurements::ticks::ticks_close;
    use crate::terminal::full_text;
    use crate::terminal::width::{folded, set_width};

    /// All that is printed, in this order.
    fn live(recording: &Recording) -> String {
        let Body::Ticks { spec, series } = &recording.body else { panic!() };
        let Summary::Ticks(summary) = Summary::of(recording) else { panic!() };
        let rows: String = series.samples.iter().map(ticks_sample).collect();
        let facts = &recording.facts;
        ticks_header(facts, spec)
            + &rows
            + "\n"
            + &full_text(&ticks_close(facts, &summary, &[]))
    }

    /// Check the columns of few CPUs.
    #[test]
    fn columns() {
        assert_snapshot!(live(&example::ticks(GUEST, 2, 3)));
    }

    /// Check the cells of more CPUs, and that of very many those with the most timer interrupts are
    /// listed.
    #[test]
    fn cells() {
        assert_snapshot!("cells", live(&example::ticks(METAL, 8, 2)));
        assert_snapshot!("most", live(&example::ticks(GUEST, 256, 1)));
    }

    /// Check that no line is wider than the terminal.
    #[test]
    fn width() {
        for columns in [80, 40] {
            set_width(columns);
            for count in [1, 2, 5, 12, 101] {
                let text = live(&example::ticks(GUEST, count, 2));
                for line in folded(&text).lines() {
                    assert!(line.chars().count() <= columns, "{line}");
                    assert_eq!(line.trim_end(), line);
                }
            }
        }
    }
}
