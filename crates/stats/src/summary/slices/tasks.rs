//! Which of the tasks that ran are those that were measured.
//!
//! By their numbers: any other task may have one of their names, the threads of another noisefloor
//! among them. By their names where the numbers tell nothing: the scheduler's are those outside of
//! containers, and each phase has processes of its own.

use std::collections::BTreeMap;

use recording::{SlicesSeries, SlicesSpec, SwitchedTask, Switches};

/// Of each task that ran its place among those that were measured; `None` for another one.
pub(super) fn measured(
    spec: &SlicesSpec,
    series: &SlicesSeries,
    seen: &Switches,
) -> Vec<Option<usize>> {
    let own = || series.tasks.iter().enumerate();
    let numbers: BTreeMap<u32, usize> = own().map(|(at, task)| (task.pid, at)).collect();
    let names: BTreeMap<&str, usize> =
        own().map(|(at, task)| (task.name.as_str(), at)).collect();
    let of_name = |task: &SwitchedTask| names.get(task.name.as_str()).copied();
    let of_number = |task: &SwitchedTask| {
        numbers.get(&task.tid).copied().filter(|&at| of_name(task) == Some(at))
    };
    let has_numbers =
        spec.phases.is_none() && seen.tasks.iter().any(|task| of_number(task).is_some());
    let place = |task| if has_numbers { of_number(task) } else { of_name(task) };
    seen.tasks.iter().map(place).collect()
}

/// The names of the tasks that ran; that of a measured one is no other's, which has its number
/// behind it. `places` are those that [`measured`] found.
pub(super) fn names(
    series: &SlicesSeries,
    seen: &Switches,
    places: &[Option<usize>],
) -> Vec<String> {
    let is_taken = |name: &str| series.tasks.iter().any(|task| task.name == name);
    let name = |(task, place): (&SwitchedTask, &Option<usize>)| match place {
        None if is_taken(&task.name) => format!("{} ({})", task.name, task.tid),
        _ => task.name.clone(),
    };
    seen.tasks.iter().zip(places).map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    /// Check that a task with the name of a measured one is another one, unless the numbers are
    /// those of a container, or of processes of another phase.
    #[test]
    fn names_are_not_enough() {
        let (spec, mut series) = example::slices(Vec::new(), None);
        let mut seen = example::switches(&[(1, "spin/0"), (3, "sleep/0")], Vec::new());
        seen.tasks.push(SwitchedTask { tid: 77, name: series.tasks[0].name.clone() });
        let places = |spec: &SlicesSpec, series: &SlicesSeries, seen: &Switches| {
            let places = measured(spec, series, seen);
            (places[0], *places.last().unwrap())
        };
        assert_eq!(places(&spec, &series, &seen), (Some(0), None));
        let named_by = |spec: &SlicesSpec, series: &SlicesSeries, seen: &Switches| {
            names(series, seen, &measured(spec, series, seen))
        };
        let named = format!("{} (77)", series.tasks[0].name);
        assert_eq!(named_by(&spec, &series, &seen).pop(), Some(named));
        let step_ns = units::Nanos::from_millis(1);
        let phases = Some(recording::Phases { count: 2, every_ns: step_ns, step_ns });
        let phased = SlicesSpec { phases, ..spec.clone() };
        assert_eq!(places(&phased, &series, &seen), (Some(0), Some(0)));
        series.tasks.iter_mut().for_each(|task| task.pid += 100_000);
        assert_eq!(places(&spec, &series, &seen), (Some(0), Some(0)));
        seen.tasks.pop();
        assert_eq!(named_by(&spec, &series, &seen)[0], series.tasks[0].name);
    }
}
