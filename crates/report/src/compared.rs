//! What `noisefloor compare` reports; its serialized form is the JSON contract.

use recording::{Cell, FORMAT};
use serde::{Serialize, Serializer};
use serde_json::Value;
use stats::FALSE_DISCOVERIES;
use summary::{CellsComparison, Comparison, RunSet, RunsDoubt, Variants};
use units::Ppm;

use crate::cell_doubts;

/// Sets of runs, and how each but the first differs from the first.
#[derive(Debug, Clone, Copy)]
pub struct ComparedSets<'a> {
    /// The name of each set, as the user wrote it.
    pub names: &'a [String],
    /// The sets, the base first.
    pub sets: &'a [RunSet],
    /// The comparisons of the other sets with the base.
    pub comparisons: &'a [Comparison],
    /// The smallest relative difference of interest.
    pub smallest: Ppm,
}

/// Cells, and how each but the first differs from the first.
#[derive(Debug, Clone, Copy)]
pub struct ComparedCells<'a> {
    /// The cells, the base first.
    pub cells: &'a [Cell],
    /// The comparisons of the other cells with the base.
    pub comparisons: &'a [CellsComparison],
}

#[derive(Serialize)]
struct SetJson<'a> {
    name: &'a str,
    runs: usize,
    taken: &'a Option<[String; 2]>,
    doubts: &'a [RunsDoubt],
}

#[derive(Serialize)]
struct CellJson<'a> {
    name: &'a str,
    kernel: &'a str,
    params: &'a str,
    identity: &'a str,
    doubts: Vec<recording::Doubt>,
}

impl<'a> SetJson<'a> {
    fn of((name, set): (&'a String, &'a RunSet)) -> Self {
        Self { name, runs: set.runs(), taken: &set.taken, doubts: &set.doubts }
    }
}

impl<'a> CellJson<'a> {
    fn of(cell: &'a Cell) -> Self {
        Self {
            name: &cell.name,
            kernel: &cell.kernel,
            params: &cell.params,
            identity: &cell.identity,
            doubts: cell_doubts(cell),
        }
    }
}

/// A comparison with the place of the other set.
#[derive(Serialize)]
struct With<'a, T> {
    base: usize,
    other: usize,
    #[serde(flatten)]
    comparison: &'a T,
}

#[derive(Serialize)]
pub(crate) struct SetsJson<'a> {
    format: u32,
    kind: &'static str,
    sets: Vec<SetJson<'a>>,
    facts: Differing<'a>,
    parameters: Differing<'a>,
    smallest_ppm: Ppm,
    false_discovery_rate: f64,
    comparisons: Vec<With<'a, Comparison>>,
}

#[derive(Serialize)]
struct CellsJson<'a> {
    format: u32,
    kind: &'static str,
    cells: Vec<CellJson<'a>>,
    comparisons: Vec<With<'a, CellsComparison>>,
}

/// Keys that differ, each with the values of all sets.
struct Differing<'a> {
    keys: Vec<&'a str>,
    sets: Vec<&'a Variants>,
}

impl Serialize for Differing<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let values =
            |key| self.sets.iter().map(|set| set.of(key)).collect::<Vec<&[Value]>>();
        to.collect_map(self.keys.iter().map(|key| (key, values(key))))
    }
}

impl<'a> Differing<'a> {
    fn facts(sets: &'a [RunSet]) -> Self {
        let sets: Vec<&Variants> = sets.iter().map(|set| &set.facts).collect();
        Self { keys: Variants::differing_facts(&sets), sets }
    }

    fn parameters(sets: &'a [RunSet]) -> Self {
        let sets: Vec<&Variants> = sets.iter().map(|set| &set.parameters).collect();
        Self { keys: Variants::differing_parameters(&sets), sets }
    }
}

fn numbered<T>(comparisons: &[T]) -> Vec<With<'_, T>> {
    let numbered = comparisons.iter().zip(1..);
    numbered.map(|(comparison, other)| With { base: 0, other, comparison }).collect()
}

impl<'a> SetsJson<'a> {
    pub(crate) fn of(kind: &'static str, compared: &ComparedSets<'a>) -> Self {
        let ComparedSets { names, sets, comparisons, smallest } = *compared;
        Self {
            format: FORMAT,
            kind,
            sets: names.iter().zip(sets).map(SetJson::of).collect(),
            facts: Differing::facts(sets),
            parameters: Differing::parameters(sets),
            smallest_ppm: smallest,
            false_discovery_rate: FALSE_DISCOVERIES,
            comparisons: numbered(comparisons),
        }
    }
}

/// A comparison of sets as one JSON object.
///
/// # Errors
/// None that is known: all fields can be written.
pub fn compared_sets_json(
    compared: &ComparedSets<'_>,
) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&SetsJson::of("comparison", compared))
}

/// A comparison of cells as one JSON object.
///
/// # Errors
/// None that is known: all fields can be written.
pub fn compared_cells_json(
    compared: &ComparedCells<'_>,
) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&CellsJson {
        format: FORMAT,
        kind: "comparison",
        cells: compared.cells.iter().map(CellJson::of).collect(),
        comparisons: numbered(compared.comparisons),
    })
}
