//! The tables of `guests`: the cost of each virtual machine, and the vCPUs that wake up most often;
//! below them, what the host would save, and under which assumptions.

use std::collections::BTreeMap;

use recording::GuestsSpec;
use summary::{BestGuest, GuestSummary, GuestsSummary, VcpuSummary};
use units::Ppm;

use crate::number;
use crate::text::layout::fit::fitted;
use crate::text::layout::labels::cut_labels;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table, cut};

/// With fewer wake-ups of the best guest, its rate is inexact.
const FEW: u64 = 100;
/// The widest name in a sentence.
const NAME: usize = 40;

pub(crate) fn guests_text(spec: &GuestsSpec, summary: &GuestsSummary) -> String {
    let mut text = paragraph("", &title(spec, summary));
    if summary.guests.is_empty() {
        return text;
    }
    let top = usize::try_from(spec.top).unwrap_or(usize::MAX);
    text.push('\n');
    text.push_str(&fitted(6..=28, |name| guests(summary, top, name)));
    text.push_str(&more(summary.guests.len(), top, "guest"));
    text.push('\n');
    text.push_str(&paragraph("", &legend(summary)));
    if summary.guests.iter().any(|guest| guest.vcpu_threads.len() > 1) {
        let vcpus = summary.most_frequent_vcpus();
        text.push_str("\nThe threads of vCPUs that wake up most often\n\n");
        text.push_str(&fitted(6..=28, |name| threads(&vcpus, top, name)));
        text.push_str(&more(vcpus.len(), top, "thread"));
    }
    text.push('\n');
    text.push_str(&paragraph("", &saving(spec, summary)));
    text
}

fn title(spec: &GuestsSpec, summary: &GuestsSummary) -> String {
    let time = number::measured(Some(summary.elapsed_ns), spec.duration_ns);
    let count = summary.guests.len();
    if count == 0 {
        return format!("No guest was observed for all of the {time}.");
    }
    let vcpus = summary.guests.iter().map(|guest| guest.vcpus.map(u64::from));
    let vcpus = vcpus.sum::<Option<u64>>().map_or_else(String::new, |vcpus| {
        format!(" with {} vCPU{}", number::count(vcpus), plural(vcpus != 1))
    });
    format!(
        "{count} guest{} ({}){vcpus}, observed for {time}: CPU time {} of one CPU, {} wake-ups \
         per second. {} {} idle.",
        plural(count != 1),
        monitors(summary),
        number::known(summary.cpu_ppm, number::share),
        number::known(summary.wakeups_hz, number::bare_rate),
        number::count(summary.idle),
        if summary.idle == 1 { "is" } else { "are" },
    )
}

/// The number of guests by their monitors: `2 QEMU/KVM, 1 Firecracker`.
fn monitors(summary: &GuestsSummary) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for guest in &summary.guests {
        let with = |accelerator: &String| format!("{}/{accelerator}", guest.monitor);
        let monitor = guest.accelerator.as_ref().map(with);
        let monitor = monitor.unwrap_or_else(|| guest.monitor.to_string());
        *counts.entry(monitor).or_default() += 1;
    }
    let counts = counts.values().zip(cut_labels(counts.keys(), 20));
    let counts = counts.map(|(count, monitor)| format!("{count} {monitor}"));
    counts.collect::<Vec<_>>().join(", ")
}

fn plural(is_plural: bool) -> &'static str {
    if is_plural { "s" } else { "" }
}

fn guests(summary: &GuestsSummary, top: usize, name: usize) -> String {
    let columns = [
        ("PID", Side::Right),
        ("guest", Side::Left),
        ("vCPUs", Side::Right),
        ("CPU", Side::Right),
        ("wakes/s", Side::Right),
        ("in vCPUs", Side::Right),
        ("each", Side::Right),
        ("invol/s", Side::Right),
        ("saves", Side::Right),
    ];
    let mut table = Table::new(1, &columns);
    let names =
        cut_labels(summary.guests.iter().take(top).map(GuestSummary::label), name);
    for (guest, name) in summary.guests.iter().zip(names) {
        table.row([
            guest.pid.to_string(),
            name,
            number::known(guest.vcpus, |count| number::count(count.into())),
            number::known(guest.cpu_ppm, number::share),
            number::known(guest.wakeups_per_vcpu_hz, number::bare_rate),
            number::known(guest.vcpu_wakeups_hz, number::bare_rate),
            number::any(guest.wakeup_ns_mean, number::duration),
            number::known(guest.involuntary_hz, number::bare_rate),
            saves(guest, summary.best.as_ref()),
        ]);
    }
    table.text()
}

/// The last column of the table of guests.
fn saves(guest: &GuestSummary, best: Option<&BestGuest>) -> String {
    if !guest.is_idle {
        return "busy".to_owned();
    }
    if best.is_some_and(|best| best.pid == guest.pid) {
        return "best".to_owned();
    }
    number::known(guest.saving_ppm, number::share)
}

fn threads(all: &[(&GuestSummary, &VcpuSummary)], top: usize, name: usize) -> String {
    let columns = [
        ("TID", Side::Right),
        ("guest", Side::Left),
        ("vCPU", Side::Right),
        ("CPU", Side::Right),
        ("wakes/s", Side::Right),
        ("invol/s", Side::Right),
        ("waits", Side::Right),
    ];
    let mut table = Table::new(1, &columns);
    let names = cut_labels(all.iter().take(top).map(|(guest, _)| guest.label()), name);
    for ((_, vcpu), name) in all.iter().zip(names) {
        table.row([
            vcpu.tid.to_string(),
            name,
            number::known(vcpu.vcpu, |number| number.to_string()),
            number::known(vcpu.cpu_ppm, number::share),
            number::known(vcpu.wakeups_hz, number::bare_rate),
            number::known(vcpu.involuntary_hz, number::bare_rate),
            number::known(vcpu.waited_ppm, number::share),
        ]);
    }
    table.text()
}

/// A line about rows that are not listed.
fn more(count: usize, top: usize, what: &str) -> String {
    match count.saturating_sub(top) {
        0 => String::new(),
        rest => {
            format!(
                " {rest} more {what}{} (-n lists more, --json all)\n",
                plural(rest != 1)
            )
        }
    }
}

fn legend(summary: &GuestsSummary) -> String {
    let is_unknown =
        |guest: &GuestSummary| guest.vcpus.is_none() || guest.vcpu_wakeups_hz.is_none();
    let unknown = match summary.guests.iter().any(is_unknown) {
        true => " \"?\": unknown.",
        false => "",
    };
    format!(
        "\"CPU\": time of all threads of the guest's process, as a share of one CPU. \
         \"wakes/s\": their wake-ups (voluntary context switches) per second and vCPU; \
         \"in vCPUs\": those of the vCPUs' threads only. \"each\": CPU time per wake-up. \
         \"invol/s\": involuntary context switches.{unknown}"
    )
}

/// What the host would save, the assumptions, and the doubts.
fn saving(spec: &GuestsSpec, summary: &GuestsSummary) -> String {
    let busy = busy(spec, summary);
    let Some((saving, best)) = summary.saving_ppm.zip(summary.best.as_ref()) else {
        return format!(
            "The saving is unknown: it needs two idle guests whose number of vCPUs is known.\
             {busy}"
        );
    };
    let rate = number::bare_rate(best.wakeups_per_vcpu_hz);
    let few = match best.wakeups < FEW {
        true => format!(
            " Only {} wake-ups of that guest were counted: a longer measurement (-d) is more \
             exact.",
            number::count(best.wakeups)
        ),
        false => String::new(),
    };
    format!(
        "If each idle guest woke up as rarely as {} ({}), {rate} times per second and vCPU, \
         the host would save {} of one CPU (\"saves\": CPU × (1 - {rate} / wakes/s)). This \
         assumes that the CPU time of an idle guest is proportional to its wake-ups, and that \
         these cost as much as now. It does not include the time of the host's kernel outside \
         of these processes, nor power.{few}{busy}",
        cut(&best.name, NAME),
        best.pid,
        number::share(saving),
    )
}

/// A sentence about the busy guests.
fn busy(spec: &GuestsSpec, summary: &GuestsSummary) -> String {
    let count = summary.guests.iter().filter(|guest| !guest.is_idle).count();
    if count == 0 {
        return String::new();
    }
    format!(
        " {count} busy guest{}, a thread of which used more than {} of a CPU, {} not compared.",
        plural(count != 1),
        number::share(Ppm::new(f64::from(spec.busy_above_ppm))),
        if count == 1 { "is" } else { "are" },
    )
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::Body;

    use crate::example::{self, GUEST};
    use crate::text::text_of;

    /// Check `guests` with idle and busy guests, named and unnamed vCPUs.
    #[test]
    fn guests_of_a_host() {
        assert_snapshot!(text_of(&example::guests(GUEST, 20)), @r#"
    4 guests (1 Firecracker, 1 QEMU, 2 QEMU/KVM) with 5 vCPUs, observed for 10 s:
    CPU time 110 % of one CPU, 2687 wake-ups per second. 3 are idle.

      PID  guest       vCPUs       CPU  wakes/s  in vCPUs     each  invol/s    saves
     2978  build           1     103 %      403      93.0  2.55 ms     8.00     busy
     1301  web-1           2    6.08 %     1008      1000  30.1 µs     40.3   6.05 %
     2210  qemu-syst…      1   0.640 %      263         ?  24.3 µs     5.20  0.627 %
     4711  vm-0b9f2c…      1  0.0610 %     5.10      4.80   120 µs        0     best

    "CPU": time of all threads of the guest's process, as a share of one CPU.
    "wakes/s": their wake-ups (voluntary context switches) per second and vCPU; "in
    vCPUs": those of the vCPUs' threads only. "each": CPU time per wake-up.
    "invol/s": involuntary context switches. "?": unknown.

    The threads of vCPUs that wake up most often

      TID  guest               vCPU       CPU  wakes/s  invol/s     waits
     1305  web-1                  0    3.01 %     1000     20.0   0.752 %
     1306  web-1                  1    2.87 %     1000     20.0   0.717 %
     2982  build                  0    98.7 %     93.0     1.80    24.7 %
     4715  vm-0b9f2c5e-lambda     0  0.0540 %     4.80        0  0.0135 %

    If each idle guest woke up as rarely as vm-0b9f2c5e-lambda (4711), 5.10 times
    per second and vCPU, the host would save 6.67 % of one CPU ("saves": CPU × (1 -
    5.10 / wakes/s)). This assumes that the CPU time of an idle guest is
    proportional to its wake-ups, and that these cost as much as now. It does not
    include the time of the host's kernel outside of these processes, nor power.
    Only 51 wake-ups of that guest were counted: a longer measurement (-d) is more
    exact. 1 busy guest, a thread of which used more than 10 % of a CPU, is not
    compared.
    "#);
    }

    /// Check `guests` with more guests than are listed and the widest numbers, and without a guest
    /// that stayed.
    #[test]
    fn guests_wide_and_none() {
        let mut wide = example::wide(example::guests(GUEST, 2));
        assert_snapshot!(text_of(&wide), @r#"
    4 guests (1 Firecracker, 1 QEMU, 2 QEMU/KVM) with 4096 vCPUs, observed for 10 s:
    CPU time 4976 % of one CPU, 498,615,842 wake-ups per second. 4 are idle.

         PID  guest      vCPUs     CPU  wakes/s  in vCPUs    each    invol/s   saves
     4191301  instance…   1024  1254 %  122,938      2411  100 ns  2,517,763  24.6 %
     4192978  instance…   1024  1244 %  121,732      1205  100 ns  2,493,079  12.3 %
     2 more guests (-n lists more, --json all)

    "CPU": time of all threads of the guest's process, as a share of one CPU.
    "wakes/s": their wake-ups (voluntary context switches) per second and vCPU; "in
    vCPUs": those of the vCPUs' threads only. "each": CPU time per wake-up.
    "invol/s": involuntary context switches. "?": unknown.

    The threads of vCPUs that wake up most often

         TID  guest                         vCPU     CPU    wakes/s  invol/s   waits
     4194303  instance-00000a3f-of-a-tena…  1023  9.87 %  1,234,198   24,684  2.47 %
     4194303  instance-00000a3f-of-a-tena…  1023  9.87 %  1,234,198   24,684  2.47 %
     2 more threads (-n lists more, --json all)

    If each idle guest woke up as rarely as instance-00000a3f-of-a-tenant (4192210),
    120,527 times per second and vCPU, the host would save 49.2 % of one
    CPU ("saves": CPU × (1 - 120,527 / wakes/s)). This assumes that the CPU time of
    an idle guest is proportional to its wake-ups, and that these cost as much as
    now. It does not include the time of the host's kernel outside of these
    processes, nor power.
    "#);
        if let Body::Guests { series, .. } = &mut wide.body {
            series.guests.clear();
        }
        assert_snapshot!(text_of(&wide), @"No guest was observed for all of the 10 s.");
    }
}
