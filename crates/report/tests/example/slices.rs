//! Recordings of `slices` for the tests of this crate: spinners, and sleepers that wake up a thousand
//! times per second. Synthetic, similar to real schedulers, and reproducible.

use recording::{
    CpuSwitches, End, LooseEnd, Placement, Placements, Policy, Role, SlicesSample,
    SlicesSeries, SlicesSpec, SlicesTask, SlicesTurn, Source, Step, StepSetting, Stretch,
    SwitchedTask, Switches, TaskTime,
};
use units::{Cpu, CpuSet, Nanos};

/// The length of a round.
const ROUND: u64 = 150_000_000;

/// The behaviour of the scheduler in a variant.
#[derive(Clone, Copy)]
struct Scheduler {
    /// Whether a woken task preempts.
    preempts: bool,
    /// The length of a slice that a tick ends.
    slice: u64,
}

/// Pseudo-random numbers (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit.max(1)
    }
}

/// Two CPUs, 16 spinners, two sleepers: slices of a millisecond with unmodified settings, of 3 to
/// 4 ms with `WAKEUP_PREEMPTION=off`.
pub(crate) fn woken() -> (SlicesSpec, SlicesSeries) {
    let woken = Scheduler { preempts: true, slice: 4_000_000 };
    generate(
        2,
        &["WAKEUP_PREEMPTION=off"],
        &[woken, Scheduler { preempts: false, ..woken }],
    )
}

/// More variants, with longer texts, on more CPUs than a picture shows.
pub(crate) fn large() -> (SlicesSpec, SlicesSeries) {
    let woken = Scheduler { preempts: true, slice: 3_000_000 };
    let schedulers =
        [1, 2, 8, 20].map(|times| Scheduler { slice: 1_000_000 * times, ..woken });
    let off = Scheduler { preempts: false, ..woken };
    generate(
        32,
        &[
            "base_slice_ns=1000000, WAKEUP_PREEMPTION=on, RUN_TO_PARITY=off",
            "base_slice_ns=2000000",
            "<&\">",
            "WAKEUP_PREEMPTION=off",
        ],
        &[schedulers[0], schedulers[1], schedulers[2], schedulers[3], off],
    )
}

/// The same as [`woken`], not traced.
pub(crate) fn untraced() -> (SlicesSpec, SlicesSeries) {
    let (spec, mut series) = woken();
    series.switches = None;
    (spec, series)
}

/// The same as [`woken`] with lost events, idle CPUs and another task.
pub(crate) fn holes() -> (SlicesSpec, SlicesSeries) {
    let (spec, mut series) = woken();
    let switches = series.switches.as_mut().unwrap();
    let [idle, other] = [18, 19];
    for cpu in &mut switches.cpus {
        let mut at = 0;
        cpu.stretches.retain(|_| {
            at += 1;
            at % 90 > 5
        });
        for (at, stretch) in cpu.stretches.iter_mut().enumerate() {
            match at % 40 {
                9..12 => stretch.task = idle,
                22 => stretch.task = other,
                _ => {}
            }
        }
        let holes = cpu.stretches.windows(2).filter_map(|pair| {
            let at_ns = pair[1].start_ns;
            (pair[0].start_ns + pair[0].ns != at_ns).then_some(LooseEnd {
                at_ns,
                task: 0,
                end: End::Tick,
            })
        });
        cpu.loose_ends = holes.collect();
        cpu.lost = 1234;
    }
    (spec, series)
}

/// The same as [`woken`], with placements as of a simulation: with unmodified settings 49 of 50 tasks that
/// wake up are far enough ahead to preempt, with the variant none.
pub(crate) fn placed() -> (SlicesSpec, SlicesSeries) {
    const MS: i64 = 1_000_000;
    let (spec, mut series) = woken();
    let wakeup = |round: &SlicesTurn, at: u32| {
        let (cpu, running) = (at % 2, at % 16);
        let far = if at % 50 == 0 { 8 * MS } else { (40 + i64::from(at % 10)) * MS };
        let near = i64::from(at % 5) * MS / 4 - MS / 5;
        let ahead_ns = if round.step == 0 { far } else { near };
        let lost = Nanos::from_micros(5_000 + 100 * u64::from(running));
        Placement {
            at_ns: round.samples[0].start_ns + Nanos::from_millis(at.into()),
            cpu: Cpu::new(cpu),
            task: 16 + cpu,
            running,
            ahead_ns,
            ahead_of_average_ns: ahead_ns - MS,
            lost_ns: Some(lost).filter(|_| ahead_ns > 10 * MS),
        }
    };
    let each = u32::try_from(ROUND / 1_000_000).unwrap();
    let turns = series.turns.iter();
    let wakeups = turns.flat_map(|turn| (0..each).map(|at| wakeup(turn, at)));
    let granularity_ns = Some(Nanos::from_millis(10));
    let wakeups = wakeups.collect();
    series.placements = Some(Placements { granularity_ns, wakeups, lost: 0 });
    (spec, series)
}

/// One round of [`woken`], in which each task runs for 10 µs at a time.
pub(crate) fn dense() -> (SlicesSpec, SlicesSeries) {
    let (spec, mut series) = woken();
    series.turns.truncate(1);
    for cpu in &mut series.switches.as_mut().unwrap().cpus {
        let ns = Nanos::from_micros(10);
        let stretch = |at: u64| Stretch {
            start_ns: ns.saturating_mul(at),
            ns,
            task: u32::try_from(at / 7 % 18).unwrap(),
            end: End::Wakeup,
        };
        cpu.stretches = (0..ROUND / ns.get()).map(stretch).collect();
    }
    (spec, series)
}

fn generate(
    cpus: u32,
    texts: &[&str],
    schedulers: &[Scheduler],
) -> (SlicesSpec, SlicesSeries) {
    let spec = spec(cpus, texts);
    let [spinners, sleepers] = [spec.spinners, spec.sleepers];
    let named = |role: &str, at: u32| format!("{role}/{at}");
    let names: Vec<(String, Role)> = (0..spinners)
        .map(|at| (named("spin", at), Role::Spinner))
        .chain((0..sleepers).map(|at| (named("sleep", at), Role::Sleeper)))
        .collect();
    let tasks = names.iter().enumerate().map(|(at, (name, role))| SlicesTask {
        pid: 100 + u32::try_from(at).unwrap(),
        name: name.clone(),
        role: *role,
        cpu: None,
    });
    let tasks: Vec<SlicesTask> = tasks.collect();
    let mut switched: Vec<SwitchedTask> = tasks
        .iter()
        .map(|task| SwitchedTask { tid: task.pid, name: task.name.clone() })
        .collect();
    switched.push(SwitchedTask { tid: 0, name: "swapper/0".into() });
    switched.push(SwitchedTask { tid: 9, name: "<kworker> & \"co\"".into() });
    let order: Vec<usize> = (0..3).flat_map(|_| 0..schedulers.len()).collect();
    let cpu = |cpu: u32| {
        let mut random = Random(88_172_645_463_325_252 + u64::from(cpu));
        let rounds = order.iter().zip(0..);
        let switches = |(step, at): (&usize, u64)| {
            run_tasks(&spec, cpu, schedulers[*step], at * ROUND, &mut random)
        };
        CpuSwitches {
            cpu: Cpu::new(cpu),
            stretches: rounds.flat_map(switches).collect(),
            loose_ends: Vec::new(),
            lost: 0,
        }
    };
    let cpus: Vec<CpuSwitches> = (0..cpus).map(cpu).collect();
    let rounds =
        order.iter().zip(0..).map(|(step, at)| round(&spec, &cpus, *step, at * ROUND));
    let series = SlicesSeries {
        began_ns: Nanos::from_secs(70),
        tasks,
        turns: rounds.collect(),
        switches: Some(Switches {
            source: Source::Bpf,
            tasks: switched,
            cpus: cpus.clone(),
        }),
        wakers: None,
        placements: None,
    };
    (spec, series)
}

fn spec(cpus: u32, texts: &[&str]) -> SlicesSpec {
    let setting = |text: &str| {
        let (name, value) = text.split_once('=').unwrap_or((text, "on"));
        StepSetting { name: name.into(), value: value.into() }
    };
    let step = |text: &&str| Step { settings: text.split(", ").map(setting).collect() };
    SlicesSpec {
        spinners: 8 * cpus,
        getrusage_every: None,
        sleepers: cpus,
        sleep_ns: Nanos::from_millis(1),
        burst_ns: Nanos::from_micros(5),
        duration_ns: Nanos::from_nanos(3 * ROUND),
        cpus: (0..cpus).map(Cpu::new).collect::<CpuSet>(),
        pinned: false,
        nice: 0,
        policy: Policy::Other,
        steps: texts.iter().map(step).collect(),
        turns: 3,
        sample_ns: None,
        phases: None,
        simulated: None,
    }
}

/// The switches of a CPU in a round.
fn run_tasks(
    spec: &SlicesSpec,
    cpu: u32,
    scheduler: Scheduler,
    began: u64,
    random: &mut Random,
) -> Vec<Stretch> {
    let each = u32::try_from(spec.cpus.len()).unwrap();
    let mine: Vec<u32> = (0..spec.spinners).filter(|task| task % each == cpu).collect();
    let sleeper = spec.spinners + cpu;
    let (mut now, mut slices, mut stretches) = (began, 0, Vec::new());
    let mut wakes = began + 300_000 + random.below(200_000);
    let mut push = |now: &mut u64, ns: u64, task: u32, end: End| {
        let [start_ns, ns_] = [*now, ns].map(Nanos::from_nanos);
        stretches.push(Stretch { start_ns, ns: ns_, task, end });
        *now += ns;
    };
    while now < began + ROUND {
        let task = mine[slices % mine.len()];
        slices += 1;
        let until_tick =
            scheduler.slice - scheduler.slice / 4 * random.below(2) + random.below(9_000);
        let is_woken = scheduler.preempts && wakes < now + until_tick;
        let until = if is_woken { wakes.max(now + 2_000) } else { now + until_tick };
        let until = until.min(began + ROUND);
        let left = until - now;
        push(&mut now, left, task, if is_woken { End::Wakeup } else { End::Tick });
        if wakes <= now && now + 20_000 < began + ROUND {
            push(&mut now, 5_000 + random.below(4_000), sleeper, End::Sleep);
            wakes = now + 1_000_000 + random.below(60_000);
        }
    }
    stretches
}

/// The sample of a round, with the CPU times and switches of all tasks.
fn round(spec: &SlicesSpec, cpus: &[CpuSwitches], step: usize, began: u64) -> SlicesTurn {
    let (began, end) = (Nanos::from_nanos(began), Nanos::from_nanos(began + ROUND));
    let mut tasks = vec![TaskTime::default(); (spec.spinners + spec.sleepers) as usize];
    for stretch in cpus.iter().flat_map(|cpu| &cpu.stretches) {
        if stretch.start_ns >= began && stretch.start_ns < end {
            let time = &mut tasks[stretch.task as usize];
            time.cpu_ns = time.cpu_ns + stretch.ns;
            // A loop iteration of a spinner takes three nanoseconds; a sleeper wakes up once.
            if stretch.end == End::Sleep {
                (time.voluntary, time.passes) = (time.voluntary + 1, time.passes + 1);
            } else {
                time.involuntary += 1;
                time.passes += stretch.ns.get() / 3;
            }
        }
    }
    let sample = SlicesSample {
        start_ns: began,
        wall_ns: Nanos::from_nanos(ROUND),
        reading_ns: Nanos::from_micros(200),
        tasks,
    };
    SlicesTurn { step: u32::try_from(step).unwrap(), samples: vec![sample] }
}
