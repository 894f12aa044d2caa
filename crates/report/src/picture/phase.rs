//! A whole measured phase as a flame graph.

use summary::{FlameGraph, WholePhase};

use crate::picture::flame;
use crate::text::cells::kernel_label::{full_name, labels};
use crate::text::explain::count;
use crate::text::explain::phase::subject;
use crate::text::explain::titles::{Titles, on_kernel};

/// A whole phase as a flame graph.
pub fn phase_svg(phase: &WholePhase<'_>) -> String {
    let graph = FlameGraph::of(&phase.stacks);
    let label = labels([phase.cell]).concat();
    let subject = subject(phase).replacen("the", "The", 1);
    let title = format!("{subject}, {}", on_kernel(&phase.cell.name, &label));
    let about = format!("{} instructions", count(graph.total()));
    let titles = Titles { title, names: full_name(phase.cell) };
    flame::render(&titles, &about, &graph)
}
