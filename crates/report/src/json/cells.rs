//! The JSON object that `lab run --json` prints: all cells of an experiment.

use std::path::Path;

use recording::{Body, Cell, Counts, Doubt, Ending, HostUse, MadeWith, Variation};
use serde::Serialize;
use summary::{
    Added, BesideSimulation, CellSummary, CellVariation, IdleByHz, SleepersCost, Trim,
    ViolatedLimit, answer, metrics_of,
};

use crate::cells::doubts::cell_doubts;
use crate::cells::labelled::Cells;
use crate::json::metrics::Metrics;
use crate::json::object;

#[derive(Serialize)]
struct Experiment<'a> {
    experiment: &'a str,
    planned: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    made_with: Option<&'a MadeWith>,
    #[serde(skip_serializing_if = "Option::is_none")]
    violations: Option<&'a [ViolatedLimit]>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    idle_by_hz: Vec<IdleByHz>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    trim: Vec<Trim>,
    cells: Vec<CellJson<'a>>,
}

#[derive(Serialize)]
struct CellJson<'a> {
    #[serde(flatten)]
    cell: &'a Cell,
    summary: Option<CellSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metrics: Option<Metrics>,
    #[serde(skip_serializing_if = "Option::is_none")]
    means: Option<CellVariation>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    variations: &'a [Variation],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    added: Vec<Added>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sleepers_cost: Option<SleepersCost>,
    #[serde(skip_serializing_if = "Option::is_none")]
    beside: Option<&'a BesideSimulation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<Lost<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<HostUse>,
    #[serde(flatten)]
    raw: Option<Raw<'a>>,
    doubts: Vec<Doubt>,
}

#[derive(Serialize)]
struct Lost<'a> {
    why: &'a str,
    console: &'a Path,
}

#[derive(Serialize)]
struct Raw<'a> {
    #[serde(flatten)]
    body: &'a Body,
    counts: Option<&'a Counts>,
}

/// Cells as one JSON object, with raw series and counts only if requested.
///
/// # Errors
/// If the path of a lost cell's console is not UTF-8.
pub fn cells_json(cells: &Cells<'_>, with_series: bool) -> serde_json::Result<String> {
    object(
        "lab",
        Experiment {
            experiment: cells.experiment,
            planned: cells.planned,
            made_with: cells.made_with,
            violations: cells.violations,
            idle_by_hz: IdleByHz::of_cells(cells.cells, cells.guests),
            trim: cells.trims(),
            cells: cells
                .cells
                .iter()
                .enumerate()
                .map(|(place, cell)| CellJson {
                    beside: cells.beside.get(place),
                    ..cell_json(cell, cells.cells, with_series)
                })
                .collect(),
        },
    )
}

fn cell_json<'a>(cell: &'a Cell, all: &[Cell], with_series: bool) -> CellJson<'a> {
    let (lost, raw) = match &cell.ending {
        Ending::Done(answer) => {
            let body = &answer.recording.body;
            (None, with_series.then_some(Raw { body, counts: answer.counts.as_ref() }))
        }
        Ending::Lost { why, console } => (Some(Lost { why, console }), None),
    };
    let summary = CellSummary::of(cell);
    CellJson {
        cell,
        metrics: summary.is_some().then(|| Metrics(metrics_of(cell))),
        summary,
        means: CellVariation::of(cell),
        variations: &cell.variations,
        added: Added::of_cell(cell, all),
        sleepers_cost: SleepersCost::of_cell(cell, all),
        beside: None,
        lost,
        host: answer(cell).and_then(|answer| answer.host),
        raw,
        doubts: cell_doubts(cell),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use recording::Source;

    use super::*;
    use crate::example::cell::{OLD, cell, identity, lost, tick_cost};

    fn cells() -> Vec<Cell> {
        let done = tick_cost(&[2584, 2584, 2601], &[(2571, 3)]);
        vec![cell("other", OLD, done), cell("fifo", OLD, lost())]
    }

    fn parsed(
        cells: &[Cell],
        violations: Option<&[ViolatedLimit]>,
        with_series: bool,
    ) -> Value {
        let experiment = "tick-cost";
        let cells = Cells {
            experiment,
            about: "",
            cells,
            planned: 6,
            made_with: None,
            violations,
            guests: 100,
            series: &[],
            beside: &[],
        };
        serde_json::from_str(&cells_json(&cells, with_series).unwrap()).unwrap()
    }

    /// Check the whole object, with a traced cell and a lost cell: this is the JSON contract.
    #[test]
    fn contract() {
        let about = |name: &str| {
            json!({
                "name": name, "asked": "debian:6.1-cloud", "kernel": OLD, "machine":
                "pc, 1 CPU of qemu64,-rdrand, 256 MiB", "params": "", "settings": [],
                "workload": "noise on CPU 0 for 1 s", "trace": "bpf", "mode": "exact", "repeat": 1,
                "cached": false, "identity": identity(name, OLD), "doubts": [],
            })
        };
        let mut expected = json!({
            "format": 1, "kind": "lab", "experiment": "tick-cost", "planned": 6,
            "cells": [about("other"), about("fifo")],
        });
        expected["cells"][0]["summary"] = json!({
            "gap_instructions": {
                "agreed": null, "mean": 7769.0 / 3.0, "mean_deviation": null, "p50": 2584,
                "p50_deviation": null, "p99": 2601, "values": [[2584, 2], [2601, 1]],
            },
            "kernel_instructions": {
                "agreed": 2571, "mean": 2571.0, "mean_deviation": null, "p50": 2571,
                "p50_deviation": null, "p99": 2571, "values": [[2571, 3]],
            },
            "kinds": null,
        });
        expected["cells"][0]["metrics"] = json!({
            "tick_instructions": 2584, "tick_instructions_mean": 7769.0 / 3.0,
            "tick_kernel_instructions": 2571, "tick_kernel_instructions_mean": 2571,
        });
        expected["cells"][1]["summary"] = Value::Null;
        expected["cells"][1]["lost"] = json!({
            "why": "the kernel panicked: VFS: Unable to mount root fs on unknown-block(0,0)",
            "console": "/home/me/.cache/noisefloor/lost/5e1f0c.console",
        });
        let mut cells = cells();
        for cell in &mut cells {
            cell.asked = "debian:6.1-cloud".to_owned();
            cell.watch = Some(Source::Bpf);
        }
        assert_eq!(parsed(&cells, None, false), expected);
    }

    /// Check that `violations` is there if cells were compared with limits, violated or not.
    #[test]
    fn violations() {
        let violation = ViolatedLimit {
            kernel: "debian:6.1-cloud".to_owned(),
            cell: "other".to_owned(),
            metric: "tick_instructions".to_owned(),
            value: 2584.0,
            within: None,
            limit: "<= 2500".to_owned(),
            place: "tick.toml:12:1".to_owned(),
        };
        let object = parsed(&[], Some(&[violation]), false);
        let expected = json!({
            "kernel": "debian:6.1-cloud", "cell": "other", "metric": "tick_instructions",
            "value": 2584.0, "limit": "<= 2500", "place": "tick.toml:12:1",
        });
        assert_eq!(object["violations"], json!([expected]));
        assert_eq!(parsed(&[], Some(&[]), false)["violations"], json!([]));
        assert!(parsed(&[], None, false).get("violations").is_none());
    }

    /// Check that specification, series and counts are there if requested, but not for a lost
    /// cell.
    #[test]
    fn with_series() {
        let object = parsed(&cells(), None, true);
        let [done, lost] = [&object["cells"][0], &object["cells"][1]];
        assert_eq!(done["series"]["cpus"][0]["loop_ns"], 13);
        assert_eq!(done["spec"]["duration_ns"], 10_000_000_000_u64);
        let counted = &done["counts"]["phases"][0]["cpus"][0]["interruptions"][1];
        assert_eq!(counted["kernel"], json!([[2571, 3]]));
        for key in ["spec", "series", "counts"] {
            assert!(lost.get(key).is_none(), "{lost}");
        }
    }
}
