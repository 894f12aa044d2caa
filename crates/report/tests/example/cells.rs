//! Experiments for the tests of this crate, similar to built-in ones.

use recording::{Call, Cell, Ending, Mode};

use crate::cells::labelled::Cells;
use crate::example;
use crate::example::cell::{
    NEW, OLD, call_costs, cell, done, doubt, idle_cost, lost, tick_cost,
};

/// Ticks of busy and idle CPUs on both kernels, and a lost cell.
pub(crate) fn tick_cells() -> Vec<Cell> {
    let other = [vec![2584; 240], vec![2601; 9], vec![10_911]].concat();
    let fifo = [vec![2345; 249], vec![2999]].concat();
    let mut cells = vec![
        cell("other", OLD, tick_cost(&other, &[(2571, 240), (2588, 9)])),
        cell("fifo", OLD, tick_cost(&fifo, &[(2332, 249)])),
        cell("idle", OLD, idle_cost(18, &[(1920, 6), (2204, 2)])),
        cell("other", NEW, tick_cost(&[2812; 250], &[(2799, 250)])),
        cell("fifo", NEW, lost()),
    ];
    cells[1].settings = vec!["kernel.sched_rt_runtime_us=-1".to_owned()];
    cells[2].workload = "ticks on CPU 0 for 2 s".to_owned();
    cells[2].params = "nohz=on".to_owned();
    cells
}

/// Every call on both kernels, unmodified, with mitigations and with `nohz_full`; one call differs
/// from repeat to repeat.
pub(crate) fn call_cells() -> Vec<Cell> {
    let costs = |more: u64| {
        call_costs(&[
            (Call::Getpid, &[(412 + more, 199), (2_996 + more, 1)]),
            (Call::ClockGettime, &[(633 + more, 200)]),
            (Call::Futex, &[(11_873 + more, 200)]),
            (Call::Pipe, &[(5_210 + more, 200)]),
            (Call::Switch, &[(4_101 + more, 200)]),
            (Call::PageFault, &[(1_988 + more, 40 + more), (2_001, 20)]),
            (Call::Fork, &[(88_120 + more, 190), (88_301 + more, 10)]),
            (Call::Timer, &[(13_954 + more, 200)]),
        ])
    };
    let cell_of = |(name, params): (&str, &str), kernel, more| {
        let workload = "every call 200 times on CPU 1".to_owned();
        let params = params.to_owned();
        Cell { params, workload, ..cell(name, kernel, costs(more)) }
    };
    let rows = [
        ("calls", ""),
        ("mitigations=auto calls", "mitigations=auto"),
        ("nohz_full=1 calls", "nohz_full=1 isolcpus=1 rcu_nocbs=1"),
    ];
    let of = |(kernel, more)| rows.map(|row| cell_of(row, kernel, more));
    [(OLD, 0), (NEW, 370)].into_iter().flat_map(of).collect()
}

fn timed(name: &str, ending: Ending) -> Cell {
    let workload = format!("{name} on CPU 0");
    Cell { mode: Mode::Timed, workload, ..cell(name, OLD, ending) }
}

/// Timed cells of three measurements.
pub(crate) fn timed_cells() -> Vec<Cell> {
    let mut noise = example::noise(example::METAL, 2);
    noise.doubts = vec![doubt()];
    let (ticks, calls) =
        (example::ticks(example::MUTE, 1, 2), example::calls(example::MUTE));
    [("noise", noise), ("ticks", ticks), ("calls", calls)]
        .map(|(name, recording)| timed(name, done(recording, None)))
        .to_vec()
}

/// The complete results of an experiment.
pub(crate) fn page<'a>(experiment: &'a str, cells: &'a [Cell]) -> Cells<'a> {
    Cells {
        experiment,
        about: "",
        cells,
        planned: cells.len(),
        made_with: None,
        violations: None,
        guests: 100,
        series: &[],
        beside: &[],
    }
}
