//! The steps of a session, on this machine: what is refused before anything is done, and what is
//! reported in which order.

use facts::{Facts, Root};
use measure::{Control, Kind, Notice as Of};
use recording::Spec;
use recording::{Body, NoiseSpec, Source, TicksSpec, Trigger};
use session::{Error, Event, Observer, Plan, Silent, Threads, Trace};
use units::{Cpu, CpuSet, Nanos};

fn noise(cpus: CpuSet, duration_ns: Nanos) -> Spec {
    Spec::Noise(NoiseSpec {
        cpus,
        duration_ns,
        threshold_ns: None,
        fifo: None,
        trigger: Trigger::default(),
        phases: None,
        at_scale: None,
    })
}

/// Check that a usage error is reported before a CPU that does not exist, for listed CPUs and for
/// one that is picked, and that CPU if there is no usage error.
#[test]
fn usage_errors_come_first() {
    let absent = Cpu::new(60_000);
    for (duration, is_mistake) in [(Nanos::ZERO, true), (Nanos::from_secs(1), false)] {
        let named = CpuSet::from(absent);
        let chosen = Plan::choose(Some(&named), |cpus, _| noise(cpus, duration));
        let on_cpu = |cpu: Cpu| noise(cpu.into(), duration);
        let picked = Plan::pick(Some(absent), on_cpu);
        for error in [chosen.unwrap_err(), picked.unwrap_err()] {
            if let Error::Measure(why) = error {
                assert!(is_mistake && why.kind() == Kind::Spec);
            } else {
                assert!(!is_mistake && matches!(error, Error::Isolate(_)));
            }
        }
    }
}

/// Check that storing events is refused with a source that has none.
#[test]
fn no_events_to_store() {
    let duration = Nanos::from_millis(1);
    let plan = Plan::choose(None, |cpus, _| noise(cpus, duration)).unwrap();
    let trace = Trace::Events {
        source: Some(Source::Proc),
        threads: Threads::Others,
        stores: true,
    };
    let plan = Plan { trace, ..plan };
    let why = plan.claim(&mut Silent).unwrap().prepare(&mut Silent).err().unwrap();
    assert_eq!(why.to_string(), "events cannot be traced: /proc has totals only");
}

/// Names of events, in order.
#[derive(Default)]
struct Names(Vec<&'static str>);

impl Observer for Names {
    fn event(&mut self, event: Event<'_>) {
        self.0.push(match event {
            Event::Started => "started",
            Event::Measurement(Of::Ticks(_)) => "ticks",
            Event::Finished => "finished",
            Event::Waiting { .. }
            | Event::LeftBehind(_)
            | Event::TraceLeftBehind(_)
            | Event::Refused(_)
            | Event::Measurement(_)
            | Event::Delay(_)
            | Event::Interval(_)
            | Event::Returned(_)
            | Event::NotRestored(_) => "another",
        });
    }
}

/// Check that a measurement is reported from its start to its end, and recorded with its source of
/// events.
#[test]
fn events_of_a_measurement() {
    let facts = Facts::read(&Root::live());
    let spec = Spec::Ticks(TicksSpec {
        cpus: facts.cpus.allowed.get().unwrap().clone(),
        interval_ns: Nanos::from_millis(20),
        count: Some(2),
    });
    let trace = Trace::Events {
        source: Some(Source::Proc),
        threads: Threads::Others,
        stores: false,
    };
    let plan = Plan { trace, ..Plan::new(spec, facts) };
    let mut names = Names::default();
    let claimed = plan.claim(&mut names).unwrap();
    let recording = claimed.run(&Control::new().unwrap(), &mut names).unwrap();
    assert_eq!(names.0, ["started", "ticks", "ticks", "finished"]);
    let Body::Ticks { series, .. } = recording.body else { panic!("requested ticks") };
    assert_eq!((series.samples.len(), series.source), (2, Some(Source::Proc)));
}
