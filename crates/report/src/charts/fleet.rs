//! Heat maps of a fleet: the time that sources take of nodes, and the noise of all nodes.

use stats::Unit;
use summary::{FleetSummary, MapColumn, MapRow, NodeMap, SourceMap};
use units::Ppm;

use crate::document::chart::{Axis, Chart, Mark, Panel, Shape, Tone};
use crate::document::text::{Text, text};
use crate::measurements::noise::culprits::of_kind;
use crate::{metric_names, number};

/// What is drawn as nothing: a share of time of so many ppm.
const LEAST: f64 = 1.0;

/// The charts of a fleet.
pub(crate) fn charts(fleet: &FleetSummary) -> Vec<Chart> {
    let sources = fleet.sources.as_ref().and_then(sources);
    [nodes(fleet), sources].into_iter().flatten().collect()
}

/// A part of the most, on a logarithmic scale.
fn heat(value: f64, [least, most]: [f64; 2]) -> Tone {
    let range = most.ln() - least.ln();
    let part =
        if range > 0.0 { (value.max(least).ln() - least.ln()) / range } else { 1.0 };
    Tone::Heat(part)
}

/// The rows are sources, the columns nodes.
fn sources(map: &SourceMap) -> Option<Chart> {
    let most = map.columns.iter().flat_map(|column| &column.ppm).map(|ppm| ppm.get());
    let most = most.fold(0.0, f64::max);
    if most <= LEAST {
        return None;
    }
    let name = |source: &summary::MapSource| match source.kind {
        Some(kind) => of_kind(kind, Text::name(&source.name)),
        None => Text::from(&*source.name),
    };
    let names: Vec<Text> = map.sources.iter().map(name).collect();
    let cells = map.columns.iter().enumerate().flat_map(|(at, column)| {
        let label = column_name(column);
        column
            .ppm
            .iter()
            .zip(&names)
            .enumerate()
            .filter(|(_, (ppm, _))| ppm.get() > LEAST)
            .map(move |(row, (ppm, name))| {
                let [x, y] = [at, row].map(|place| [place as f64, place as f64 + 1.0]);
                Mark::over(x, y).tone(heat(ppm.get(), [LEAST, most])).says(
                    text!("{}, {}", name.clone(), label.clone()),
                    number::share(*ppm),
                )
            })
    });
    let panel = Panel::new(
        Axis::bands(map.columns.iter().map(column_name)),
        Axis::bands(names.clone()),
    )
    .draw(Shape::Box, Tone::Heat(0.0), "", cells);
    let about = text!(
        "Share of time that each source takes, from the noisiest node to the quietest. Darker: more, on \
         a logarithmic scale up to {}.",
        number::share(Ppm::new(most))
    );
    let chart = Chart::new("fleet-sources", "Sources of noise by node").about(about);
    let together = map.columns.iter().filter(|column| column.nodes > 1).count();
    let chart = match together {
        0 => chart,
        _ => chart.about("Further columns are medians of several nodes each."),
    };
    Some(chart.panel(panel))
}

fn column_name(column: &MapColumn) -> Text {
    match column.nodes {
        1 => Text::name(&column.node),
        more => text!("{} and {} less noisy", Text::name(&column.node), more - 1),
    }
}

/// The rows are groups of nodes, the columns their nodes.
fn nodes(fleet: &FleetSummary) -> Option<Chart> {
    let map = &fleet.map;
    let values = || map.rows.iter().flat_map(|row| &row.cells).map(|cell| cell.value);
    let most = values().fold(0.0, f64::max);
    let least = values().fold(most, f64::min).max(match fleet.unit {
        Unit::Ppm | Unit::Ns | Unit::Instructions | Unit::Count => 1.0,
        Unit::Hz => 0.01,
    });
    if most <= 0.0 || fleet.nodes < 2 {
        return None;
    }
    let cells = map.rows.iter().enumerate().flat_map(|(at, row)| {
        row.cells.iter().enumerate().map(move |(place, cell)| {
            let [x, y] = [place, at].map(|place| [place as f64, place as f64 + 1.0]);
            let name = match cell.nodes {
                1 => Text::name(&cell.node),
                more => text!("{} and {} less noisy", Text::name(&cell.node), more - 1),
            };
            Mark::over(x, y)
                .tone(heat(cell.value, [least, most]))
                .says(name, number::in_unit(cell.value, fleet.unit))
        })
    });
    let width = map.rows.iter().map(|row| row.cells.len()).max().unwrap_or(0);
    let x = Axis {
        title: "nodes, the noisiest first".into(),
        ..Axis::bands((1..=width).map(|place| Text::from(place.to_string())))
    };
    let panel = Panel::new(x, Axis::bands(map.rows.iter().map(|row| row_name(map, row))))
        .draw(Shape::Box, Tone::Heat(0.0), "", cells);
    let metric = metric_names::name(&fleet.metric);
    let chart = Chart::new("fleet-nodes", text!("Nodes: {}", metric)).about(text!(
        "One row for each {}. Darker: more, on a logarithmic scale from {} to {}.",
        row_kind(map),
        number::in_unit(least, fleet.unit),
        number::in_unit(most, fleet.unit)
    ));
    let is_divided =
        map.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.nodes > 1);
    let chart = match is_divided {
        true => chart.about("A cell of several nodes has the value of the noisiest."),
        false => chart,
    };
    let left_out = (map.left_out > 0)
        .then(|| text!("{} rows with a lower median are not drawn.", map.left_out));
    Some(Chart { notes: left_out.into_iter().collect(), ..chart.panel(panel) })
}

fn row_kind(map: &NodeMap) -> Text {
    match &map.label {
        Some(label) => text!("value of the label {}", Text::name(label)),
        None => "group of neighbours by name".into(),
    }
}

fn row_name(map: &NodeMap, row: &MapRow) -> Text {
    match (&map.label, row.nodes) {
        (Some(_), _) | (None, 1) => Text::name(&row.name),
        (None, more) => text!("{} and {} more", Text::name(&row.name), more - 1),
    }
}
