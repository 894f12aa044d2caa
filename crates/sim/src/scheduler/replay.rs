//! Stretches of real kernels, from the state of their queue in a guest.

use std::path::Path;

use recording::End;
use serde_json::Value;
use units::{CpuSet, Hz, Nanos};

use super::queue::Owner;
use super::task::State;
use super::timers::{Action, Timer};
use super::*;

#[derive(Default)]
struct Log(Vec<(u64, u64, usize, End)>);

impl Observer for Log {
    fn ran(&mut self, ran: Ran) {
        if let Some(task) = ran.task {
            self.0.push((ran.start_ns.get(), ran.ns.get(), task, ran.end));
        }
    }
    fn woken(&mut self, _: Woken) {}
    fn wants_wakeups(&self) -> bool {
        false
    }
}

/// The beginning of the guest's stretch in virtual time: the queue's clock was read before.
const BEGIN: u64 = 5_000;

fn engine(file: &Value) -> Engine<Log> {
    let mut rules = Rules::named(file["rules"].as_str().unwrap()).unwrap();
    for setting in file["settings"].as_array().into_iter().flatten() {
        let (name, value) = setting.as_str().unwrap().split_once('=').unwrap();
        rules.set(name, value).unwrap();
    }
    let mut machine = Machine::new(1, Hz::new(250));
    machine.costs = Costs::measured(rules.name());
    machine.tick_phase_ns = Nanos::from_nanos(file["tick"].as_u64().unwrap() + BEGIN);
    let tasks = file["tasks"].as_array().unwrap();
    let task = |task: &Value| TaskSpec {
        work: match task["kind"] == "spin" {
            true => Work::Spin,
            false => {
                Work::Sleep { sleep_ns: Nanos::from_millis(1), burst_ns: Nanos::ZERO }
            }
        },
        policy: Policy::Other(0),
        cpus: "0".parse::<CpuSet>().unwrap(),
        slice_ns: None,
    };
    let specs = tasks.iter().map(task).collect();
    let mut engine = Engine::new(&rules, &machine, specs, 1, Log::default()).unwrap();
    let base = tasks.iter().map(|task| task["v"].as_i64().unwrap()).min().unwrap();
    // Take everything out, and put it back as it was.
    let current = usize::try_from(file["current"].as_u64().unwrap()).unwrap();
    let cpu = &mut engine.cpus[0];
    cpu.fair.put_current();
    cpu.fair.min_vruntime = file["min_v"].as_i64().unwrap() - base;
    for (place, state) in tasks.iter().enumerate() {
        let mut entity = cpu.fair.take(Owner::Task(place)).unwrap();
        entity.vruntime = state["v"].as_i64().unwrap() - base;
        entity.deadline = state["deadline"].as_i64().unwrap() - base;
        entity.lag = state["lag"].as_i64().unwrap();
        let task = &mut engine.tasks[place];
        if state["kind"] == "spin" {
            cpu.fair.push(entity);
        } else {
            task.entity = Some(entity);
            (task.state, task.returns) = (State::Sleeping, true);
            let by = state["wake"].as_u64().unwrap() + BEGIN - 400;
            let action = Action::Wake(place);
            cpu.timers.set(Timer { from: by - 50_000, by, action });
        }
    }
    let owner = Owner::Task(current);
    cpu.current = Some(current);
    engine.fair.set_next(&mut cpu.fair, owner, BEGIN - 2_400);
    cpu.switched_at = BEGIN - 2_400;
    cpu.user_since = BEGIN + file["user"].as_u64().unwrap();
    engine.start_slice_timer(0, BEGIN + 200, true);
    engine
}

/// Check that a simulation from the state of a guest's queue has the guest's stretches.
#[test]
fn as_in_guests() {
    let folder = std::env::var("REPLAY").unwrap_or_default();
    for file in std::fs::read_dir(Path::new(&folder)).into_iter().flatten() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|end| end != "json") {
            continue;
        }
        let file: Value =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let mut engine = engine(&file);
        engine.run_until(Nanos::from_millis(500));
        let log = engine.into_observer().0;
        let guest = file["stretches"].as_array().unwrap();
        let same = guest.iter().zip(&log).take_while(|(guest, own)| {
            guest[2].as_u64().unwrap() == own.2 as u64
                && guest[1].as_u64().unwrap().abs_diff(own.1) < 8_000
        });
        let same = same.count();
        println!("{}: {same} of {}", path.display(), guest.len());
        for at in same.saturating_sub(24)..(same + 3).min(guest.len()) {
            println!("   guest {} own {:?}", guest[at], log.get(at));
        }
    }
}
