//! What real kernels did, from the state of their run queue in a guest.
//!
//! Each file in `replay/` is of an exact guest with Debian's kernel (16 spinners and one or two sleepers, or
//! 4 and one; read by a QEMU plugin at the scheduler's functions): the tasks as `[kind, vruntime, deadline,
//! lag, wake-up]` at the beginning of a stretch, the following stretches as `[run time, task, end]`, until
//! a kernel thread ran. Times in nanoseconds. From the same state, a simulation must have the same
//! stretches.

use recording::End;
use serde_json::Value;
use units::{CpuSet, Hz, Nanos};

use super::task::Until;
use super::timers::{Action, Timer};
use super::*;

/// The beginning of the guest's first stretch in virtual time, and how long before it the queue's clock
/// was read.
const BEGIN: u64 = 5_000;
const CLOCK: u64 = 2_400;
/// From the interrupt to the wake-up.
const WAKE: u64 = 400;
/// A guest's kernel takes some hundred instructions more or less each time.
const NEAR: u64 = 10_000;

#[derive(Default)]
struct Log(Vec<(u64, usize, End)>);

impl Observer for Log {
    fn ran(&mut self, ran: Ran) {
        if let Some(task) = ran.task {
            self.0.push((ran.ns.get(), task, ran.end));
        }
    }
    fn woken(&mut self, _: Woken) {}
    fn wants_wakeups(&self) -> bool {
        false
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn place(value: &Value) -> usize {
    usize::try_from(number(value)).unwrap()
}

fn rules(file: &Value) -> Rules {
    let mut rules = Rules::named(file["rules"].as_str().unwrap()).unwrap();
    for setting in file["settings"].as_array().unwrap() {
        let (name, value) = setting.as_str().unwrap().split_once('=').unwrap();
        rules.set(name, value).unwrap();
    }
    rules
}

fn engine(file: &Value) -> Engine<Log> {
    let rules = rules(file);
    let machine = Machine {
        costs: Costs::measured(&rules),
        tick_phase_ns: Nanos::from_nanos(number(&file["tick_ns"]) + BEGIN),
        ..Machine::new(1, Hz::new(250))
    };
    let tasks = file["tasks"].as_array().unwrap();
    let spec = |task: &Value| TaskSpec {
        work: match task[0] == "spin" {
            true => Work::Spin,
            false => {
                Work::Sleep { sleep_ns: Nanos::from_millis(1), burst_ns: Nanos::ZERO }
            }
        },
        policy: Policy::Other(0),
        cpus: "0".parse::<CpuSet>().unwrap(),
        slice_ns: None,
        group: None,
    };
    let specs = tasks.iter().map(spec).collect();
    let mut engine = Engine::new(&rules, &machine, specs, 1, Log::default()).unwrap();
    engine.cpus[0].fair.put_current();
    engine.cpus[0].fair.top().min_vruntime = file["min_vruntime"].as_i64().unwrap();
    for (place, state) in tasks.iter().enumerate() {
        set(&mut engine, place, state);
    }
    let current = place(&file["current"]);
    let cpu = &mut engine.cpus[0];
    cpu.current = Some(current);
    cpu.fair.set_next(None, current, BEGIN - CLOCK);
    cpu.switched_at = BEGIN - CLOCK;
    cpu.user_since = BEGIN + number(&file["user_ns"]);
    if engine.has_slice_timer {
        engine.cpus[0].start_slice_timer(BEGIN);
    }
    engine
}

/// Gives a task the state that it had in the guest.
fn set(engine: &mut Engine<Log>, place: usize, state: &Value) {
    let cpu = &mut engine.cpus[0];
    let mut entity = cpu.fair.top().take(place).unwrap();
    let signed = |at: usize| state[at].as_i64().unwrap();
    (entity.vruntime, entity.deadline, entity.lag) = (signed(1), signed(2), signed(3));
    if state[0] == "spin" {
        cpu.fair.top().push(entity);
        return;
    }
    let task = &mut engine.tasks[place];
    (task.entity, task.until) = (Some(entity), Until::Return);
    let by = number(&state[4]) + BEGIN - WAKE;
    let slack = engine.machine.timer_slack_ns.get();
    cpu.timers.set(Timer { from: by - slack, by, action: Action::Wake(place) });
}

/// Whether a stretch ended for the guest's reason. Several can come together.
fn ends_alike(guest: &str, own: End) -> bool {
    match own {
        End::Sleep => guest == "sleep",
        End::Tick => guest.contains("tick") || guest == "wake",
        End::Wakeup => guest.contains("wake"),
        End::Yield | End::Other => false,
    }
}

fn check(name: &str, text: &str) {
    let file: Value = serde_json::from_str(text).unwrap();
    let mut engine = engine(&file);
    engine.run_until(Nanos::from_millis(400));
    let own = engine.into_observer().0;
    let guest = file["stretches"].as_array().unwrap();
    assert!(own.len() >= guest.len() && guest.len() > 70, "{name}: {}", own.len());
    for (at, (guest, own)) in guest.iter().zip(&own).enumerate() {
        let is_same = place(&guest[1]) == own.1
            && number(&guest[0]).abs_diff(own.0) < NEAR
            && ends_alike(guest[2].as_str().unwrap(), own.2);
        assert!(is_same, "{name}, stretch {at}: {guest}, simulated {own:?}");
    }
}

/// Check that from the state of a guest's queue, each of the following stretches is that of the guest:
/// the task, its run time to 10 us, and why it ended.
#[test]
fn as_real_kernels() {
    check("5.10", include_str!("replay/5.10.json"));
    check("6.1", include_str!("replay/6.1.json"));
    check("6.12", include_str!("replay/6.12.json"));
    check("6.12-parity", include_str!("replay/6.12-parity.json"));
    check("6.18", include_str!("replay/6.18.json"));
    check("7.2", include_str!("replay/7.2.json"));
}
