//! The measured tasks among those that ran.
//!
//! They are identified by their IDs, because other tasks can have the same names, such as threads of
//! another noisefloor. In containers the IDs of the trace are others than those of the recording, and
//! each phase has its own processes: then names identify them.

use std::collections::BTreeMap;

use recording::{SlicesSeries, SlicesSpec, SwitchedTask, Switches};

/// The index of each task among the measured ones; `None` for other tasks.
pub(super) fn measured(
    spec: &SlicesSpec,
    series: &SlicesSeries,
    switches: &Switches,
) -> Vec<Option<usize>> {
    let own = || series.tasks.iter().enumerate();
    let ids: BTreeMap<u32, usize> = own().map(|(at, task)| (task.pid, at)).collect();
    let names: BTreeMap<&str, usize> =
        own().map(|(at, task)| (task.name.as_str(), at)).collect();
    let of_name = |task: &SwitchedTask| names.get(task.name.as_str()).copied();
    let of_id = |task: &SwitchedTask| {
        ids.get(&task.tid).copied().filter(|&at| of_name(task) == Some(at))
    };
    let has_ids =
        spec.phases.is_none() && switches.tasks.iter().any(|task| of_id(task).is_some());
    let place = |task| if has_ids { of_id(task) } else { of_name(task) };
    switches.tasks.iter().map(place).collect()
}

/// The names of the tasks. Another task with the name of a measured one has its ID appended. `places`
/// is the result of [`measured`].
pub(super) fn names(
    series: &SlicesSeries,
    switches: &Switches,
    places: &[Option<usize>],
) -> Vec<String> {
    let is_taken = |name: &str| series.tasks.iter().any(|task| task.name == name);
    let name = |(task, place): (&SwitchedTask, &Option<usize>)| match place {
        None if is_taken(&task.name) => format!("{} ({})", task.name, task.tid),
        _ => task.name.clone(),
    };
    switches.tasks.iter().zip(places).map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    /// Check that a task with the name of a measured one is another one, unless its IDs are those of a
    /// container, or of processes of another phase.
    #[test]
    fn names_are_not_enough() {
        let (spec, mut series) = example::slices(Vec::new(), None);
        let mut switches =
            example::switches(&[(1, "spin/0"), (3, "sleep/0")], Vec::new());
        switches.tasks.push(SwitchedTask { tid: 77, name: series.tasks[0].name.clone() });
        let places = |spec: &SlicesSpec, series: &SlicesSeries, switches: &Switches| {
            let places = measured(spec, series, switches);
            (places[0], *places.last().unwrap())
        };
        assert_eq!(places(&spec, &series, &switches), (Some(0), None));
        let named_by = |spec: &SlicesSpec, series: &SlicesSeries, switches: &Switches| {
            names(series, switches, &measured(spec, series, switches))
        };
        let named = format!("{} (77)", series.tasks[0].name);
        assert_eq!(named_by(&spec, &series, &switches).pop(), Some(named));
        let step_ns = units::Nanos::from_millis(1);
        let phases = Some(recording::Phases { count: 2, every_ns: step_ns, step_ns });
        let phased = SlicesSpec { phases, ..spec.clone() };
        assert_eq!(places(&phased, &series, &switches), (Some(0), Some(0)));
        series.tasks.iter_mut().for_each(|task| task.pid += 100_000);
        assert_eq!(places(&spec, &series, &switches), (Some(0), Some(0)));
        switches.tasks.pop();
        assert_eq!(named_by(&spec, &series, &switches)[0], series.tasks[0].name);
    }
}
