//! Gaps and events as a trace for Perfetto and Chrome's `about:tracing`.
//!
//! The Trace Event Format: complete events (`ph` is `X`), times in microseconds. Each CPU is a
//! process, with one thread for its gaps and one for each kind of event.

use recording::{Blamed, CpuNoise, CulpritKind, NoiseSeries};
use serde::Serialize;
use serde_json::{Value, json};
use units::{Cpu, Span};

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

/// The threads of a CPU, from the top.
const LINES: [&str; 5] = ["gaps", "threads", "softirqs", "devices", "interrupts"];

/// The trace as JSON; `None` if the recording has no events.
pub fn trace_json(series: &NoiseSeries) -> Option<String> {
    let mut events: Vec<Value> = Vec::new();
    for cpu in &series.cpus {
        let blamed = cpu.blamed.as_ref()?;
        blamed.trace.as_ref()?;
        events.extend(names(cpu.cpu));
        let slices = gap_slices(cpu).chain(event_slices(cpu, blamed));
        events.extend(slices.filter_map(|slice| serde_json::to_value(slice).ok()));
    }
    Some(json!({"traceEvents": events, "displayTimeUnit": "ns"}).to_string())
}

fn names(cpu: Cpu) -> impl Iterator<Item = Value> {
    let named = move |what: &str, tid: usize, name: String| {
        json!({"name": what, "ph": "M", "pid": cpu.get(), "tid": tid,
            "args": {"name": name}})
    };
    let process = named("process_name", 0, format!("CPU {cpu}"));
    let lines = LINES.iter().enumerate();
    let lines =
        lines.map(move |(tid, line)| named("thread_name", tid, (*line).to_owned()));
    std::iter::once(process).chain(lines)
}

fn gap_slices(cpu: &CpuNoise) -> impl Iterator<Item = Slice<'_>> {
    cpu.gaps.iter().map(|gap| slice(cpu, *gap, "gap", "gap", 0))
}

fn event_slices<'a>(
    cpu: &'a CpuNoise,
    blamed: &'a Blamed,
) -> impl Iterator<Item = Slice<'a>> {
    blamed.trace.iter().flatten().filter_map(move |event| {
        let culprit = blamed.culprits.get(event.culprit)?;
        let (line, category) = match culprit.kind {
            CulpritKind::Thread => (1, "thread"),
            CulpritKind::Softirq => (2, "softirq"),
            CulpritKind::Irq => (3, "device"),
            CulpritKind::Timer
            | CulpritKind::Ipi
            | CulpritKind::Nmi
            | CulpritKind::Steal
            | CulpritKind::Unexplained => (4, "interrupt"),
        };
        Some(slice(cpu, event.span, &culprit.name, category, line))
    })
}

/// Times are since the start of the recording, which is the same for all CPUs.
fn slice<'a>(
    cpu: &CpuNoise,
    span: Span,
    name: &'a str,
    cat: &'a str,
    tid: u32,
) -> Slice<'a> {
    let micros = |time: units::Nanos| time.as_secs_f64() * 1e6;
    let ts = micros(cpu.began_ns + span.start);
    Slice { name, cat, ph: "X", ts, dur: micros(span.length), pid: cpu.cpu.get(), tid }
}

#[cfg(test)]
mod tests {
    use recording::Event;

    use super::*;
    use crate::example::{self, GUEST};

    /// Check that gaps and events have their lines, in microseconds, and that there is no trace
    /// without events.
    #[test]
    fn lines() {
        let mut recording = example::blamed(example::noise(GUEST, 1));
        let series = recording.body.noise_mut().unwrap();
        assert_eq!(trace_json(series), None);
        let span = series.cpus[0].gaps[0];
        series.cpus[0].gaps.truncate(1);
        let event = Event { culprit: 1, span };
        series.cpus[0].blamed.as_mut().unwrap().trace = Some(vec![event]);
        let trace: Value = serde_json::from_str(&trace_json(series).unwrap()).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        assert_eq!(events[0]["args"]["name"], "CPU 0");
        let [gap, event] = &events[events.len() - 2..] else { panic!("{events:?}") };
        assert_eq!((&gap["name"], &gap["tid"]), (&json!("gap"), &json!(0)));
        assert_eq!((&event["name"], &event["tid"]), (&json!("SCHED"), &json!(2)));
        // 20 us after the start of the recording, plus 17 us after the start of the loop.
        assert_eq!((&event["ts"], &event["dur"]), (&json!(37.0), &json!(3.1)));
    }
}
