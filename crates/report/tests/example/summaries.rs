//! Tests of the summaries of cells, with the examples of this crate.

use recording::{Answer, Body, Call, Cell, Ending, Episode, Level, Mode, Variation};
use summary::{
    CellSummary, CellVariation, Frequency, Summary, TickCost, Typical, answer,
    episode_stacks, metrics_of,
};
use units::{Instructions, Nanos, Ppm, Span};

use crate::example;
use crate::example::cell::{
    OLD, call_costs, cell, idle_cost, lost, phase, tick_cost, with_profile,
};

fn tick(ending: &Ending) -> TickCost {
    let Some(CellSummary::TickCost(cost)) =
        CellSummary::of(&cell("other", OLD, ending.clone()))
    else {
        panic!("not the cost of a tick")
    };
    cost
}

fn answer_of(ending: &mut Ending) -> &mut Answer {
    let Ending::Done(answer) = ending else { panic!("lost") };
    answer
}

/// Check that a guest with one CPU has gaps, which include one loop iteration, and kernel
/// instructions.
#[test]
fn one_cpu() {
    let cost = tick(&tick_cost(&[2584, 2584, 9_000_123], &[(2571, 2)]));
    let gaps = cost.gap_instructions.unwrap();
    assert_eq!(gaps.p50, Some(Instructions::new(2584)));
    assert_eq!(gaps.max(), Some(Instructions::new(9_000_121)));
    assert_eq!(cost.kernel_instructions.unwrap().p50, Some(Instructions::new(2571)));
}

/// Check that gaps and ticks are summarized by phase, with their spread over phases.
#[test]
fn phases() {
    let mut ending = tick_cost(&[2584, 2584, 2684, 2684], &[(2571, 2)]);
    let answer = answer_of(&mut ending);
    let Body::Noise { series, .. } = &mut answer.recording.body else { panic!() };
    let span =
        |start| Span { start: Nanos::from_millis(start), length: Nanos::from_millis(7) };
    series.cpus[0].phases = vec![span(0), span(8)];
    let phases = &mut answer.counts.as_mut().unwrap().phases;
    phases.push(phase(&[], Level::User, &[(2671, 2)]));
    let cost = tick(&ending);
    for (spread, mean) in
        [(cost.gap_instructions, 2634.0), (cost.kernel_instructions, 2621.0)]
    {
        let spread = spread.unwrap();
        assert_eq!((spread.mean, spread.mean_deviation), (Some(mean), Some(50.0)));
        assert_eq!(spread.p50_deviation, Some(Instructions::new(100)));
        assert_eq!(spread.agreed, None);
    }
}

/// Check that gaps in instructions are omitted with several CPUs, or if the number of CPUs is
/// unknown; and that the counter's number of CPUs is used if the facts have none.
#[test]
fn shared_clock() {
    let mut ending = tick_cost(&[2584], &[(2571, 1)]);
    let gaps = |ending: &Ending| tick(ending).gap_instructions.is_some();
    answer_of(&mut ending).recording.facts = example::facts(example::GUEST);
    assert!(!gaps(&ending));
    assert!(tick(&ending).kernel_instructions.is_some());
    answer_of(&mut ending).recording.facts = example::facts(example::MUTE);
    assert!(gaps(&ending));
    answer_of(&mut ending).counts = None;
    assert!(!gaps(&ending));
    assert_eq!(tick(&ending).kernel_instructions, None);
}

/// Check that cells without counts, or in timed mode, have the measurement's ordinary summary, and
/// that a lost cell has none.
#[test]
fn ordinary() {
    let calls = || call_costs(&[(Call::Getpid, &[(412, 3)])]);
    let mut uncounted = calls();
    answer_of(&mut uncounted).counts = None;
    let mut cells =
        [calls(), uncounted, calls()].map(|ending| cell("calls", OLD, ending));
    cells[2].mode = Mode::Timed;
    let is_exact =
        |cell: &Cell| matches!(CellSummary::of(cell), Some(CellSummary::CallCosts(_)));
    assert_eq!(cells.each_ref().map(is_exact), [true, false, false]);
    assert!(matches!(
        CellSummary::of(&cells[1]),
        Some(CellSummary::Measured(Summary::Calls(_)))
    ));
    assert_eq!(CellSummary::of(&cell("gone", OLD, lost())), None);
}

/// Check that phases without a recorded interval are ignored, and that with fewer phases than
/// intervals the counts are ignored.
#[test]
fn phases_are_intervals() {
    let mut ending = idle_cost(18, &[(1920, 9)]);
    let phases = &mut answer_of(&mut ending).counts.as_mut().unwrap().phases;
    phases.push(phases[0].clone());
    let Some(CellSummary::IdleCost(cost)) =
        CellSummary::of(&cell("idle", OLD, ending.clone()))
    else {
        panic!("not the cost of idling")
    };
    assert_eq!((cost.intervals, cost.cpus[0].timer_entries), (2, 18));
    answer_of(&mut ending).counts.as_mut().unwrap().phases.truncate(1);
    let summary = CellSummary::of(&cell("idle", OLD, ending));
    assert!(matches!(summary, Some(CellSummary::Measured(Summary::Ticks(_)))));
}

/// Check that the metrics of a cell with variations are their means, with an interval, that one which a
/// variation does not have is left out, and that lost variations do not count.
#[test]
fn variations() {
    let calls = |getpid| call_costs(&[(Call::Getpid, &[(getpid, 3)])]);
    let variation = |number, ending| Variation {
        number,
        identity: String::new(),
        cached: false,
        ending,
    };
    let both = call_costs(&[(Call::Getpid, &[(400, 3)]), (Call::Futex, &[(90, 3)])]);
    let mut one = cell("calls", OLD, both);
    assert!(metrics_of(&one).iter().all(|metric| metric.varied.is_none()));
    one.variations =
        vec![variation(2, calls(410)), variation(3, lost()), variation(4, calls(420))];
    let metrics = metrics_of(&one);
    let keys: Vec<&str> = metrics.iter().map(|metric| metric.key.as_str()).collect();
    assert_eq!(keys, ["getpid_instructions", "getpid_instructions_mean"]);
    let varied = metrics[0].varied.unwrap();
    assert_eq!((metrics[0].value, varied.min, varied.max), (410.0, 400.0, 420.0));
    assert_eq!((varied.variations, metrics[0].tolerance), (3, varied.within));
    let all = CellVariation::of(&one).unwrap();
    assert_eq!((all.variations, all.needed(Ppm::new(500_000.0))), (3, Some(2)));
    one.variations.clear();
    assert_eq!(CellVariation::of(&one), None);
}

/// The index of the typical episode, found by its stacks.
fn place(ending: Ending, call: Option<&str>) -> Option<usize> {
    let cell = with_profile(cell("a cell", OLD, ending));
    let typical = Typical::of(&cell, call)?;
    let profile = answer(&cell)?.profile.as_ref()?;
    let is_it = |episode: &Episode| episode_stacks(profile, episode) == typical.stacks;
    profile.episodes.iter().position(is_it)
}

/// Check that the typical tick of a busy CPU is one that interrupted a program, that of an idle CPU
/// is any tick, that a call has a typical step, and that there is none without episodes.
#[test]
fn typical() {
    assert_eq!(place(tick_cost(&[2584], &[(2571, 2), (2999, 1)]), None), Some(2));
    assert_eq!(place(idle_cost(2, &[(2571, 1)]), None), Some(0));
    let calls = || call_costs(&[(Call::Getpid, &[(412, 9)]), (Call::Pipe, &[(412, 9)])]);
    assert_eq!(place(calls(), Some("getpid")), Some(3));
    assert_eq!(place(calls(), Some("pipe")), None);
    let spread = [(300, 1), (410, 1), (413, 1), (9_000, 1)];
    assert_eq!(place(call_costs(&[(Call::Fork, &spread)]), Some("fork")), Some(3));
    assert_eq!(place(calls(), None), None);
}

/// Check that addresses are resolved to names, that frames without a name are not dropped, and the
/// frequency of the tick.
#[test]
fn names() {
    let ending = tick_cost(&[2584], &[(2571, 2), (2999, 1)]);
    let cell = with_profile(cell("a cell", OLD, ending));
    let Typical { stacks, frequency, .. } = Typical::of(&cell, None).unwrap();
    assert_eq!(stacks[1].frames()[1], "sysvec_apic_timer_interrupt");
    assert_eq!(stacks[2].frames()[2], "[nameless]");
    assert_eq!(stacks.iter().map(|stack| stack.own().get()).sum::<u64>(), 2_571);
    assert_eq!(frequency, Frequency { times: 2, of: 3 });
}
