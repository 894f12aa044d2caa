//! The report of `guests`: the cost of each virtual machine, what the host would save and under which
//! assumptions, and the vCPUs that wake up most often.

use std::collections::BTreeMap;

use recording::GuestsSpec;
use summary::{BestGuest, GuestSummary, GuestsSummary, VcpuSummary};
use units::Ppm;

use crate::document::Document;
use crate::document::table::{Column, Table};
use crate::document::text::{Text, text};
use crate::number;

/// With fewer wake-ups of the best guest, its rate is inexact.
const FEW: u64 = 100;
/// The width of a guest's name.
const NAME: std::ops::RangeInclusive<usize> = 6..=28;
const LEGEND: &str = "\"wakes/s\": wake-ups per second and vCPU; \"in vCPUs\": those of vCPUs' \
    threads; \"each\": CPU time per wake-up; \"saves\": see below.";
/// What the legend does not say.
const MORE: &str = "\"CPU\" is the time of all threads of the guest's process, as a share of one CPU. \
    Wake-ups are voluntary context switches, and \"invol/s\" involuntary ones.";
const ASSUMPTIONS: &str = "The saving assumes that the CPU time of an idle guest is proportional to \
    its wake-ups, and that these cost as much as now. It does not include the time of the host's \
    kernel outside of these processes, nor power.";

pub(crate) fn guests(spec: &GuestsSpec, summary: &GuestsSummary) -> Document {
    let document = Document::from(title(spec, summary));
    if summary.guests.is_empty() {
        return document;
    }
    let top = usize::try_from(spec.top).unwrap_or(usize::MAX);
    let has_several = summary.guests.iter().any(|guest| guest.vcpu_threads.len() > 1);
    let threads = has_several.then(|| {
        let threads = threads(&summary.most_frequent_vcpus(), top);
        Document::section("The threads of vCPUs that wake up most often", threads)
    });
    document
        .add(table(summary, top).legend(legend(summary)))
        .add(saving(spec, summary))
        .add_full(summary.saving_ppm.map(|_| ASSUMPTIONS))
        .add_full(MORE)
        .add_full(threads)
}

fn title(spec: &GuestsSpec, summary: &GuestsSummary) -> Text {
    let time = number::measured(Some(summary.elapsed_ns), spec.duration_ns);
    let count = summary.guests.len();
    if count == 0 {
        return text!("No guest was observed for all of the {}.", time);
    }
    let vcpus = summary.guests.iter().map(|guest| guest.vcpus.map(u64::from));
    let vcpus = vcpus.sum::<Option<u64>>().map(|vcpus| number::counted(vcpus, "vCPU"));
    text!(
        "{} ({}){}, observed for {}: CPU time {} of one CPU, {} wake-ups per second. {} {} idle.",
        number::counted(count as u64, "guest"),
        monitors(summary),
        vcpus.map(|vcpus| text!(" with {}", vcpus)),
        time,
        number::known(summary.cpu_ppm),
        number::known(summary.wakeups_hz),
        summary.idle,
        if summary.idle == 1 { "is" } else { "are" },
    )
}

/// The number of guests by their monitors: `2 QEMU/KVM, 1 Firecracker`.
fn monitors(summary: &GuestsSummary) -> Text {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for guest in &summary.guests {
        let with = |accelerator: &String| format!("{}/{accelerator}", guest.monitor);
        let monitor = guest.accelerator.as_ref().map(with);
        let monitor = monitor.unwrap_or_else(|| guest.monitor.to_string());
        *counts.entry(monitor).or_default() += 1;
    }
    let counts = counts.iter();
    let counts = counts.map(|(name, n)| text!("{} {}", n.to_string(), Text::name(name)));
    Text::join(counts, ", ")
}

fn table(summary: &GuestsSummary, top: usize) -> Table {
    let all = &summary.guests;
    let rate = number::known;
    Table::of(&all[..top.min(all.len())])
        .number("PID", |guest| guest.pid.to_string())
        .column(Column::name("guest", NAME), |guest| Text::name(guest.label()))
        .number("vCPUs", |guest| number::known(guest.vcpus))
        .number("CPU", |guest| number::known(guest.cpu_ppm))
        .number("wakes/s", |guest| rate(guest.wakeups_per_vcpu_hz))
        .number("in vCPUs", |guest| rate(guest.vcpu_wakeups_hz))
        .number("each", |guest| number::any(guest.wakeup_ns_mean))
        .number("invol/s", |guest| rate(guest.involuntary_hz))
        .number("saves", |guest| saves(guest, summary.best.as_ref()))
        .table
        .rest(more(all.len(), top, "guest"))
}

/// The last column of the table of guests.
fn saves(guest: &GuestSummary, best: Option<&BestGuest>) -> Text {
    match best {
        _ if !guest.is_idle => "busy".into(),
        Some(best) if best.pid == guest.pid => "best".into(),
        _ => number::known(guest.saving_ppm),
    }
}

fn threads(all: &[(&GuestSummary, &VcpuSummary)], top: usize) -> Table {
    let rate = number::known;
    Table::of(&all[..top.min(all.len())])
        .number("TID", |(_, vcpu)| vcpu.tid.to_string())
        .column(Column::name("guest", NAME), |(guest, _)| Text::name(guest.label()))
        .number("vCPU", |(_, vcpu)| {
            number::known(vcpu.vcpu.map(|number| number.to_string()))
        })
        .number("CPU", |(_, vcpu)| number::known(vcpu.cpu_ppm))
        .number("wakes/s", |(_, vcpu)| rate(vcpu.wakeups_hz))
        .number("invol/s", |(_, vcpu)| rate(vcpu.involuntary_hz))
        .number("waits", |(_, vcpu)| number::known(vcpu.waited_ppm))
        .table
        .rest(more(all.len(), top, "thread"))
}

/// A sentence about rows that are not listed.
fn more(count: usize, top: usize, what: &str) -> Option<Text> {
    let rest = count.saturating_sub(top);
    let rest = (rest > 0).then(|| number::counted(rest as u64, &format!("more {what}")));
    let (option, json) = (Text::command("-n"), Text::command("--json"));
    rest.map(|rest| text!("{} ({} lists more, {} all)", rest, option, json))
}

fn legend(summary: &GuestsSummary) -> Text {
    let is_unknown =
        |guest: &GuestSummary| guest.vcpus.is_none() || guest.vcpu_wakeups_hz.is_none();
    let unknown = summary.guests.iter().any(is_unknown);
    text!("{}{}", LEGEND, unknown.then_some(" \"?\": unknown."))
}

/// What the host would save, and the doubts.
fn saving(spec: &GuestsSpec, summary: &GuestsSummary) -> Text {
    let busy = busy(spec, summary);
    let Some((saving, best)) = summary.saving_ppm.zip(summary.best.as_ref()) else {
        let why = "it needs two idle guests whose number of vCPUs is known";
        return text!("The saving is unknown: {}.{}", why, busy);
    };
    let rate = number::bare_rate(best.wakeups_per_vcpu_hz);
    let few = (best.wakeups < FEW).then(|| {
        text!(
            " Only {} wake-ups of that guest were counted: a longer measurement ({}) is more exact.",
            best.wakeups,
            Text::command("-d"),
        )
    });
    text!(
        "If each idle guest woke up as rarely as {} ({}), {} times per second and vCPU, the host \
         would save {} of one CPU (\"saves\": CPU × (1 - {} / wakes/s)).{}{}",
        Text::name(&best.name),
        best.pid.to_string(),
        rate.clone(),
        saving,
        rate,
        few,
        busy,
    )
}

/// A sentence about the busy guests.
fn busy(spec: &GuestsSpec, summary: &GuestsSummary) -> Option<Text> {
    let count = summary.guests.iter().filter(|guest| !guest.is_idle).count();
    let text = text!(
        " {}, a thread of which used more than {} of a CPU, {} not compared.",
        number::counted(count as u64, "busy guest"),
        Ppm::new(f64::from(spec.busy_above_ppm)),
        if count == 1 { "is" } else { "are" },
    );
    (count > 0).then_some(text)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::Body;

    use crate::example::{self, GUEST};
    use crate::measurements::text_of;

    /// Check `guests` with idle and busy guests, named and unnamed vCPUs.
    #[test]
    fn guests_of_a_host() {
        assert_snapshot!(text_of(&example::guests(GUEST, 20)));
    }

    /// Check `guests` with more guests than are listed and the widest numbers, and without a guest
    /// that stayed.
    #[test]
    fn guests_wide_and_none() {
        let mut wide = example::wide(example::guests(GUEST, 2));
        assert_snapshot!(text_of(&wide));
        if let Body::Guests { series, .. } = &mut wide.body {
            series.guests.clear();
        }
        assert_snapshot!(text_of(&wide), @"No guest was observed for all of the 10 s.");
    }
}
