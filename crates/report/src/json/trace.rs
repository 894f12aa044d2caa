//! Gaps or moments, and events, as a trace for Perfetto and Chrome's `about:tracing`.
//!
//! The Trace Event Format: complete events (`ph` is `X`), times in microseconds. Each CPU is a
//! process, with one thread for its gaps or moments and one for each kind of event.

use recording::{
    CpuTrace, Culprit, CulpritKind, Event, MomentKind, Moments, NoiseSeries, Recording,
};
use serde::Serialize;
use serde_json::{Value, json};
use units::{Cpu, Nanos, Span};

#[derive(Serialize)]
struct Slice<'a> {
    name: &'a str,
    cat: &'a str,
    ph: &'static str,
    ts: f64,
    dur: f64,
    pid: u32,
    tid: u32,
}

/// The threads of a CPU, from the top, below that of gaps or moments.
const LINES: [&str; 4] = ["threads", "softirqs", "devices", "interrupts"];

/// The trace as JSON; `None` if the recording has no events. Times are since the start of the loops; if
/// the recording has a limit, they are `CLOCK_MONOTONIC`, and the trace has the time around its moments.
pub fn trace_json(recording: &Recording) -> Option<String> {
    let events: Vec<Value> = match recording.body.trigger().stop_above_ns {
        Some(_) => of_moments(&recording.moments),
        None => of_gaps(recording.body.noise()?)?,
    };
    Some(json!({"traceEvents": events, "displayTimeUnit": "ns"}).to_string())
}

/// All gaps and events.
fn of_gaps(series: &NoiseSeries) -> Option<Vec<Value>> {
    let mut events = Vec::new();
    for cpu in &series.cpus {
        let blamed = cpu.blamed.as_ref()?;
        let trace = blamed.trace.as_ref()?;
        let lines = Lines { cpu: cpu.cpu, began: cpu.began_ns };
        let gaps = cpu.gaps.iter().map(|gap| lines.slice(*gap, "gap", "gap", 0));
        events.extend(lines.names("gaps"));
        events.extend(values(gaps.chain(lines.events(trace, &blamed.culprits))));
    }
    Some(events)
}

/// Moments, and the events around them.
fn of_moments(moments: &Moments) -> Vec<Value> {
    let mut events = Vec::new();
    for CpuTrace { cpu, culprits, events: trace } in &moments.trace {
        let lines = Lines { cpu: *cpu, began: Nanos::ZERO };
        let own = moments.found.iter().filter(|moment| moment.cpu == *cpu);
        let own = own.map(|moment| {
            let span = Span { start: moment.at_ns, length: moment.length_ns };
            lines.slice(span, word(moment.kind), "moment", 0)
        });
        events.extend(lines.names("moments"));
        events.extend(values(own.chain(lines.events(trace, culprits))));
    }
    events
}

fn word(kind: MomentKind) -> &'static str {
    match kind {
        MomentKind::Gap => "gap",
        MomentKind::Wakeup => "late wake-up",
        MomentKind::Loop => "slow loop",
        MomentKind::Interruption | MomentKind::Other => "interruption",
    }
}

fn values<'a>(slices: impl Iterator<Item = Slice<'a>>) -> impl Iterator<Item = Value> {
    slices.filter_map(|slice| serde_json::to_value(slice).ok())
}

/// The lines of a CPU, whose times are relative to the beginning of its loop.
#[derive(Clone, Copy)]
struct Lines {
    cpu: Cpu,
    began: Nanos,
}

impl Lines {
    fn names(self, first: &str) -> Vec<Value> {
        let named = |what: &str, tid: usize, name: String| {
            json!({"name": what, "ph": "M", "pid": self.cpu.get(), "tid": tid,
                "args": {"name": name}})
        };
        let process = named("process_name", 0, format!("CPU {}", self.cpu));
        let lines = [first].into_iter().chain(LINES).enumerate();
        let lines = lines.map(|(tid, line)| named("thread_name", tid, line.to_owned()));
        std::iter::once(process).chain(lines).collect()
    }

    fn events<'a>(
        self,
        trace: &'a [Event],
        culprits: &'a [Culprit],
    ) -> impl Iterator<Item = Slice<'a>> {
        trace.iter().filter_map(move |event| {
            let culprit = culprits.get(event.culprit)?;
            let (line, category) = match culprit.kind {
                CulpritKind::Thread => (1, "thread"),
                CulpritKind::Quota => (1, "quota"),
                CulpritKind::Softirq => (2, "softirq"),
                CulpritKind::Irq => (3, "device"),
                CulpritKind::Timer
                | CulpritKind::Ipi
                | CulpritKind::Nmi
                | CulpritKind::Steal
                | CulpritKind::Firmware
                | CulpritKind::Unexplained => (4, "interrupt"),
            };
            Some(self.slice(event.span, &culprit.name, category, line))
        })
    }

    fn slice<'a>(self, span: Span, name: &'a str, cat: &'a str, tid: u32) -> Slice<'a> {
        let micros = |time: Nanos| time.as_secs_f64() * 1e6;
        let (ts, dur) = (micros(self.began + span.start), micros(span.length));
        Slice { name, cat, ph: "X", ts, dur, pid: self.cpu.get(), tid }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{self, GUEST};

    /// Check that gaps and events have their lines, in microseconds, and that there is no trace
    /// without events.
    #[test]
    fn lines() {
        let mut recording = example::blamed(example::noise(GUEST, 1));
        assert_eq!(trace_json(&recording), None);
        let series = recording.body.noise_mut().unwrap();
        let span = series.cpus[0].gaps[0];
        series.cpus[0].gaps.truncate(1);
        let event = Event { culprit: 1, span };
        series.cpus[0].blamed.as_mut().unwrap().trace = Some(vec![event]);
        let trace: Value =
            serde_json::from_str(&trace_json(&recording).unwrap()).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        assert_eq!(events[0]["args"]["name"], "CPU 0");
        let [gap, event] = &events[events.len() - 2..] else { panic!("{events:?}") };
        assert_eq!((&gap["name"], &gap["tid"]), (&json!("gap"), &json!(0)));
        assert_eq!((&event["name"], &event["tid"]), (&json!("SCHED"), &json!(2)));
        // 20 us after the start of the recording, plus 17 us after the start of the loop.
        assert_eq!((&event["ts"], &event["dur"]), (&json!(37.0), &json!(3.1)));
    }
}
