//! The machine of a `check`: its kernel, tick, CPUs and hypervisor, and the power it used.

use facts::{Entry, Facts, Page, Unknown, Why};
use recording::Recording;
use summary::CheckSummary;

use crate::document::Document;
use crate::document::table::Table;
use crate::document::text::{Text, text};
use crate::kernel_facts::value::words;
use crate::measurements::ticks::power;
use crate::measurements::ticks::words::reference;

pub(crate) fn machine(recording: &Recording, summary: &CheckSummary) -> Document {
    let (facts, page) = (&recording.facts, recording.facts.page());
    let fact = |key| known(&page, key);
    let also = [&facts.kernel.arch, &facts.kernel.distribution].map(|fact| fact.get());
    let also = also.into_iter().flatten().map(Text::name);
    let kernel = Text::join([fact("kernel.release")].into_iter().chain(also), ", ");
    let power = summary.rest.power.as_ref().and_then(power);
    let power = power.map(|power| text!("{}, while noisefloor was idle", power));
    let lines = [
        ("kernel", Some(kernel)),
        ("tick", Some(reference(facts))),
        ("CPUs", Some(cpus(&page))),
        ("preemption", Some(fact("preempt.model"))),
        ("clock", Some(fact("clock.source"))),
        ("hypervisor", Some(text!("{}{}", fact("virt.hypervisor"), steal(facts)))),
        ("power", power),
    ];
    let lines = lines.into_iter().filter_map(|(name, text)| Some([name.into(), text?]));
    let (taken, tool) = (recording.taken.as_str(), recording.tool.as_str());
    let title = text!("Machine, recorded at {} by {}", taken, tool);
    Document::section(title, Table::terms::<Text>(lines))
}

fn entry<'a>(page: &'a Page, key: &str) -> Option<&'a Entry> {
    page.entries().iter().find(|entry| entry.key == key)
}

/// The value in words, or the reason why it is unknown.
fn known(page: &Page, key: &str) -> Text {
    match entry(page, key).map(|entry| &entry.value) {
        Some(Ok(value)) => words(key, value),
        Some(Err(unknown)) => text!("unknown: {}", unknown.to_string()),
        None => "unknown".into(),
    }
}

fn cpus(page: &Page) -> Text {
    let keys = ["cpus.online", "cpus.isolated", "tick.nohz_full"];
    let set = |entry: &Entry| {
        let cpus = match &entry.value {
            Ok(cpus) => words(entry.key, cpus),
            Err(Unknown { code: Why::NotConfigured, .. }) => "not configured".into(),
            Err(Unknown { code: Why::TooOld | Why::TooNew, .. }) => {
                "not in this kernel".into()
            }
            Err(_) => "unknown".into(),
        };
        text!("{} {}", entry.name(), cpus)
    };
    Text::join(keys.iter().filter_map(|key| entry(page, key)).map(set), "; ")
}

/// Whether a hypervisor reports steal time; nothing on bare metal.
fn steal(facts: &Facts) -> Option<&'static str> {
    facts.virt.hypervisor.get().and_then(Option::as_ref)?;
    Some(match facts.virt.steal_clock.get() {
        Some(true) => ", which reports steal time",
        Some(false) => ", which does not report steal time",
        None => ", which may report steal time (unknown)",
    })
}
