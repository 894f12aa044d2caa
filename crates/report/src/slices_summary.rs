//! From what `slices` recorded to its summary: fields are moved, nothing is worked out here.

use facts::Facts;
use recording::{
    CpuSwitches, End, LooseEnd, SlicesSample, SlicesSeries, SlicesSpec, SlicesTurn, Step,
    Stretch, Switches,
};
use stats::{
    SliceEnd, SlicesInput, SlicesSampleInput, SlicesSummary, SlicesTaskInput,
    SlicesTurnInput, StretchInput, TaskTimeInput, WakersSummary,
};

use crate::slices_tasks;

/// So many of those that woke up are told.
const WAKERS: u32 = 6;

/// The summary of what `slices` saw.
pub fn slices_summary(
    facts: &Facts,
    spec: &SlicesSpec,
    series: &SlicesSeries,
) -> SlicesSummary {
    let switches = series.switches.as_ref();
    let source = switches.map(|switches| switches.source.name().to_owned());
    let names = switches.map(|switches| {
        let places = slices_tasks::measured(spec, series, switches);
        slices_tasks::names(series, switches, &places)
    });
    let names = names.unwrap_or_default();
    let summary = SlicesSummary::of(&SlicesInput {
        tasks: series
            .tasks
            .iter()
            .map(|task| SlicesTaskInput { name: &task.name })
            .collect(),
        spinners: usize::try_from(spec.spinners).unwrap_or(usize::MAX),
        cpus: spec.cpus.len(),
        steps: spec.steps.iter().map(step_words).collect(),
        turns: series.turns.iter().map(turn).collect(),
        stretches: switches.map(|switches| stretches(switches, &names)),
        tick: facts.tick.hz.get().map(|hz| hz.period()),
    });
    let wakers = series.wakers.as_ref().map(|wakers| WakersSummary::of(WAKERS, wakers));
    SlicesSummary { source, wakers, ..summary }
}

/// A step as it is asked for: `WAKEUP_PREEMPTION=off,base_slice_ns=3000000`.
pub(crate) fn step_words(step: &Step) -> String {
    let settings = step.settings.iter();
    let words = settings.map(|setting| format!("{}={}", setting.name, setting.value));
    words.collect::<Vec<String>>().join(",")
}

fn turn(turn: &SlicesTurn) -> SlicesTurnInput {
    let step = usize::try_from(turn.step).unwrap_or(usize::MAX);
    SlicesTurnInput { step, samples: turn.samples.iter().map(sample).collect() }
}

fn sample(sample: &SlicesSample) -> SlicesSampleInput {
    let task = |task: &recording::TaskTime| TaskTimeInput {
        cpu: task.cpu_ns,
        involuntary: task.involuntary,
        voluntary: task.voluntary,
        passes: task.passes,
    };
    SlicesSampleInput {
        start: sample.start_ns,
        wall: sample.wall_ns,
        tasks: sample.tasks.iter().map(task).collect(),
    }
}

fn stretches<'a>(switches: &Switches, names: &'a [String]) -> Vec<Vec<StretchInput<'a>>> {
    let name = |task: u32| {
        let place = usize::try_from(task).unwrap_or(usize::MAX);
        names.get(place).map_or("?", String::as_str)
    };
    let whole = |stretch: &Stretch| StretchInput {
        left: stretch.start_ns + stretch.ns,
        length: Some(stretch.ns),
        task: name(stretch.task),
        end: slice_end(stretch.end),
    };
    let loose = |loose: &LooseEnd| StretchInput {
        left: loose.at_ns,
        length: None,
        task: name(loose.task),
        end: slice_end(loose.end),
    };
    let cpu = |cpu: &CpuSwitches| {
        let loose = cpu.loose_ends.iter().map(loose);
        let mut all: Vec<_> = cpu.stretches.iter().map(whole).chain(loose).collect();
        all.sort_by_key(|stretch| stretch.left);
        all
    };
    switches.cpus.iter().map(cpu).collect()
}

/// Why a stretch ended.
pub(crate) fn slice_end(end: End) -> SliceEnd {
    match end {
        End::Tick => SliceEnd::Tick,
        End::Wakeup => SliceEnd::Wakeup,
        End::Yield => SliceEnd::Yield,
        End::Sleep => SliceEnd::Sleep,
        End::Other => SliceEnd::Other,
    }
}
