//! The machine of a `check`: its kernel, tick, CPUs and hypervisor, and the power it used.

use facts::{Fact, Facts, Unknown, Why};
use recording::Recording;
use summary::CheckSummary;
use units::CpuSet;

use crate::document::Document;
use crate::document::table::{Table, cells};
use crate::document::text::{Text, text};
use crate::kernel_facts::value::{hypervisor, preemption};
use crate::measurements::ticks::{power, words as tick_words};

pub(crate) fn machine(recording: &Recording, summary: &CheckSummary) -> Document {
    let facts = &recording.facts;
    let name = |name: &String| Text::name(name.as_str());
    let model = known(&facts.preempt.model, |model| {
        let name = serde_json::to_value(model).ok();
        let words = name.as_ref().and_then(|name| preemption(name.as_str()?));
        words.unwrap_or("unknown").into()
    });
    let hypervisor = known(&facts.virt.hypervisor, |name| match name {
        None => "none (bare metal)".into(),
        Some(name) => text!("{}, {}", Text::name(hypervisor(name)), steal(facts)),
    });
    let power = summary.rest.power.as_ref().and_then(power);
    let power = power.map(|power| text!("{}, while noisefloor was idle", power));
    let lines = [
        ("kernel", Some(kernel(facts))),
        ("tick", Some(tick(facts))),
        ("CPUs", Some(cpus(facts))),
        ("preemption", Some(model)),
        ("clock", Some(known(&facts.clock.source, name))),
        ("hypervisor", Some(hypervisor)),
        ("power", power),
    ];
    let lines = lines.into_iter().filter_map(|(name, text)| Some(cells![name, text?]));
    let table = Table::terms(lines);
    let (taken, tool) = (recording.taken.as_str(), recording.tool.as_str());
    Document::section(text!("Machine, recorded at {} by {}", taken, tool), table)
}

/// The value in words, or the reason why it is unknown.
fn known<T>(fact: &Fact<T>, print: impl Fn(&T) -> Text) -> Text {
    match fact.value() {
        Ok(value) => print(value),
        Err(unknown) => text!("unknown: {}", unknown.to_string()),
    }
}

fn kernel(facts: &Facts) -> Text {
    let release = known(&facts.kernel.release, |release| Text::name(release.as_str()));
    let also = [facts.kernel.arch.get(), facts.kernel.distribution.get()];
    let also = also.into_iter().flatten().map(|part| Text::name(part.as_str()));
    Text::join(std::iter::once(release).chain(also), ", ")
}

fn tick(facts: &Facts) -> Text {
    let Some(rate) = tick_words::rate(facts) else {
        return known(&facts.tick.hz, |hz| hz.get().to_string().into());
    };
    let stops = facts.tick.mode.get().map(|mode| tick_words::stops(facts, *mode));
    text!("{}{}", rate, stops.map(|stops| text!(", {}", stops)))
}

fn cpus(facts: &Facts) -> Text {
    let set = |fact: &Fact<CpuSet>, name: &str| {
        let cpus: Text = match fact.value() {
            Ok(cpus) if cpus.is_empty() => "none".into(),
            Ok(cpus) => cpus.into(),
            Err(Unknown { code: Why::NotConfigured, .. }) => "not configured".into(),
            Err(Unknown { code: Why::TooOld | Why::TooNew, .. }) => {
                "not in this kernel".into()
            }
            Err(_) => "unknown".into(),
        };
        text!("{} {}", name, cpus)
    };
    text!(
        "{}; {}; {}",
        set(&facts.cpus.online, "online"),
        set(&facts.cpus.isolated, "isolated"),
        set(&facts.tick.nohz_full, "nohz_full")
    )
}

fn steal(facts: &Facts) -> &'static str {
    match facts.virt.steal_clock.get() {
        Some(true) => "which reports steal time",
        Some(false) => "which does not report steal time",
        None => "which may report steal time (unknown)",
    }
}
