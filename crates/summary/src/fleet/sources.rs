//! The sources of noise that take more time of a node than of the rest of its fleet.

use recording::CulpritKind;
use serde::Serialize;
use stats::Unit;
use units::Ppm;

use crate::fleet::interned::Interned;
use crate::fleet::nodes::{self, FleetNode};

/// The most sources of a node, and the least part of its excess.
const SOURCES: usize = 5;
const PART_MIN: f64 = 0.02;

/// A source that takes more of a node's time than of the others'.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourceExcess {
    /// The kind of event.
    pub kind: CulpritKind,
    /// The name of the interrupt, the thread, ...
    pub name: String,
    /// The share of the node's time.
    pub ppm: Ppm,
    /// The median of all nodes.
    pub median_ppm: Ppm,
    /// The difference, as a part of that between the node's noise and the median of all nodes; null if the metric is
    /// no share of time.
    pub part_ppm: Option<Ppm>,
}

/// The median share of each source; nodes whose sources are unknown are not counted. `None` if all are.
pub(crate) fn typical(nodes: &[FleetNode], sources: usize) -> Option<Vec<f64>> {
    let known: Vec<_> = nodes.iter().filter_map(|node| node.sources.as_ref()).collect();
    if known.is_empty() {
        return None;
    }
    let mut shares: Vec<Vec<f64>> = vec![Vec::new(); sources];
    for (id, ppm) in known.iter().flat_map(|own| own.iter()) {
        shares[*id as usize].push(*ppm);
    }
    let of = |mut shares: Vec<f64>| {
        if 2 * shares.len() <= known.len() {
            return 0.0; // most nodes do not have it
        }
        shares.resize(known.len(), 0.0);
        nodes::median(&shares)
    };
    Some(shares.into_iter().map(of).collect())
}

/// The sources of a node that take more than usual, the largest difference first; `None` if they are unknown.
pub(crate) fn excess(
    node: &FleetNode,
    typical: &[f64],
    names: &Interned<(CulpritKind, String)>,
    (unit, all): (Unit, f64),
) -> Option<Vec<SourceExcess>> {
    let more = |(id, ppm): &(u32, f64)| (*id, *ppm, ppm - typical[*id as usize]);
    let mut larger: Vec<_> = node.sources.as_ref()?.iter().map(more).collect();
    larger.sort_by(|a, b| {
        b.2.total_cmp(&a.2).then_with(|| names.get(a.0).cmp(&names.get(b.0)))
    });
    let sum: f64 = larger.iter().map(|(.., more)| more.max(0.0)).sum();
    larger.retain(|(.., more)| *more > PART_MIN * sum);
    let part = |more: f64| Ppm::new((more / all).min(1.0) * 1e6);
    let of = |(id, ppm, more): (u32, f64, f64)| {
        let (kind, name) = names.get(id)?.clone();
        let part_ppm = (unit == Unit::Ppm && all > 0.0).then(|| part(more));
        let median_ppm = Ppm::new(typical[id as usize]);
        Some(SourceExcess { kind, name, ppm: Ppm::new(ppm), median_ppm, part_ppm })
    };
    Some(larger.into_iter().take(SOURCES).filter_map(of).collect())
}
