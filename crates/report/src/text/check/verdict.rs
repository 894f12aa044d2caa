//! The verdict of `check`: whether the machine is busy, the causes of lost time, and the effect on
//! programs; and the table of sources, summed up by program and by event.

use summary::{Consequences, Group, Groups, LossCategory, NoiseSummary, Split, Verdict};
use units::Ppm;

use crate::number::{self, ShareUnit};
use crate::text::layout::labels::cut_labels;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table};
use crate::text::noise::culprits::kind_word;
use crate::text::noise::periods::periods;
use crate::text::noise::steal::steal;

/// The verdict names this many programs, of those that used at least this share.
const NAMED: usize = 3;
const NAMED_FROM: Ppm = Ppm::new(1_000.0);
/// The table lists this many groups of each part.
const LISTED: usize = 6;
/// The widest name.
const NAME: usize = 19;

/// The verdict, in two paragraphs; empty if no CPU was measured.
pub(crate) fn verdict(verdict: &Verdict) -> String {
    if verdict.cpus == 0 {
        return String::new();
    }
    let state = match verdict.busy {
        Some(true) => "Busy: ",
        Some(false) => "Quiet: ",
        None => "",
    };
    let cpus = match verdict.cpus {
        1 => "1 CPU lost".to_owned(),
        cpus => format!("{cpus} CPUs lost"),
    };
    // All shares are parts of the first, and at most as large.
    let unit =
        ShareUnit::of([verdict.lost.ppm, verdict.threads.and_then(|part| part.ppm)]);
    let lost = unit.known(verdict.lost.ppm);
    let split = verdict.split.as_ref().map(|parts| split(parts, unit));
    let to = split.unwrap_or_else(|| unsplit(verdict, unit));
    let first = format!("{state}{cpus} {lost} of the time{to}");
    paragraph("", &first) + &paragraph("", &consequences(&verdict.consequences))
}

fn share(ppm: Option<Ppm>) -> String {
    number::known(ppm, number::share)
}

/// The causes of the loss, as the end of a sentence.
fn split(split: &Split, unit: ShareUnit) -> String {
    let programs: Vec<&Group> = split
        .groups
        .iter()
        .filter(|group| group.category == LossCategory::Programs)
        .collect();
    let is_large = |group: &&&Group| group.part.ppm.is_some_and(|ppm| ppm >= NAMED_FROM);
    let named: Vec<_> = programs.iter().filter(is_large).take(NAMED).collect();
    let names = cut_labels(named.iter().map(|group| &group.name), NAME);
    let named = named.iter().zip(names).map(|(group, name)| program(group, &name, unit));
    let mut named: Vec<String> = named.collect();
    if let (false, more @ 1..) = (named.is_empty(), programs.len() - named.len()) {
        named.push(format!("{more} more"));
    }
    let named =
        if named.is_empty() { String::new() } else { format!(" ({})", named.join("; ")) };
    let at_most = split.hypervisor_max.filter(|most| !most.ns.is_zero());
    let at_most = at_most.map_or_else(String::new, |most| {
        let most = unit.known(most.ppm);
        format!(" (of which at most {most} may be the hypervisor, too)")
    });
    let own = match split.own.ns.is_zero() {
        true => String::new(),
        false => format!("; {} was noisefloor itself", unit.known(split.own.ppm)),
    };
    format!(
        ": {} to other programs{named}, {} to the kernel, {} to the hypervisor; {} is \
         unexplained{at_most}{own}.",
        unit.known(split.programs.ppm),
        unit.known(split.kernel.ppm),
        unit.known(split.hypervisor.ppm),
        unit.known(split.unexplained.ppm),
    )
}

/// `rustc, 12 threads: 41.9 %`.
fn program(group: &Group, name: &str, unit: ShareUnit) -> String {
    let share = unit.known(group.part.ppm);
    match group.threads {
        1 => format!("{name}: {share}"),
        threads => format!("{name}, {threads} threads: {share}"),
    }
}

/// The same without events: `/proc` has the total of other threads.
fn unsplit(verdict: &Verdict, unit: ShareUnit) -> String {
    let threads = verdict.threads.map_or_else(String::new, |threads| {
        format!(": {} to other threads (/proc)", unit.known(threads.ppm))
    });
    format!("{threads}; tracing the causes needs root, or CAP_BPF and CAP_PERFMON.")
}

fn consequences(of: &Consequences) -> String {
    let job = number::duration(of.job_ns);
    let unit = ShareUnit::of([of.job_hit_ppm, of.benchmark_spread_ppm]);
    let hit = match of.job_hit_ppm {
        Some(hit) => {
            format!(
                "A job of {job} is interrupted with a probability of {}",
                unit.print(hit)
            )
        }
        None => {
            format!(
                "The run was too short to estimate how often a job of {job} is interrupted"
            )
        }
    };
    let benchmark = of.benchmark_spread_ppm.map_or_else(String::new, |spread| {
        let length = number::duration(of.benchmark_ns);
        format!(
            "; the run time of a benchmark of {length} varies by ± {}",
            unit.print(spread)
        )
    });
    let step = of.step_ns.map_or_else(String::new, |step| {
        format!(
            "; if {} such CPUs wait for the slowest after each step of {job}, a step takes {}",
            number::count(of.nodes.into()),
            number::duration(step)
        )
    });
    format!("{hit}{benchmark}{step}.")
}

/// The table of the sources of lost time; empty if events were not traced.
pub(crate) fn sources(verdict: &Verdict, noise: &NoiseSummary) -> String {
    let Some(split) = &verdict.split else { return String::new() };
    let columns = [
        ("source", Side::Left),
        ("", Side::Left),
        ("threads", Side::Right),
        ("gaps", Side::Right),
        ("time", Side::Right),
        ("share", Side::Right),
        ("longest", Side::Right),
    ];
    let mut table = Table::new(1, &columns);
    let parts = [
        (LossCategory::Programs, "programs", split.programs),
        (LossCategory::Kernel, "kernel", split.kernel),
        (LossCategory::Hypervisor, "hypervisor", split.hypervisor),
        (LossCategory::Unexplained, "unexplained", split.unexplained),
        (LossCategory::Own, "noisefloor itself", split.own),
    ];
    for (category, name, part) in parts {
        let Groups { groups, threads, gaps, longest } = split.groups_of(category);
        if category == LossCategory::Own && groups.is_empty() {
            continue;
        }
        table.row([
            name.to_owned(),
            String::new(),
            nonzero(threads),
            number::count(gaps),
            number::duration(part.ns),
            share(part.ppm),
            number::any(longest, number::duration),
        ]);
        if matches!(category, LossCategory::Programs | LossCategory::Kernel) {
            list(&mut table, &groups);
        }
    }
    let words = "\"share\": of the time of all CPUs. A gap may have several sources. Threads of one \
                 program, and kernel threads of one kind, are one line; --json and noisefloor noise \
                 list each thread.";
    format!(
        "\nSources of lost time\n\n{}\n{}{}",
        table.text(),
        paragraph("", words),
        steal(noise) + &periods(noise)
    )
}

fn list(table: &mut Table, groups: &[&Group]) {
    let names = cut_labels(groups.iter().take(LISTED).map(|group| &group.name), NAME);
    for (group, name) in groups.iter().zip(names) {
        let kind = match group.category {
            LossCategory::Programs => String::new(),
            LossCategory::Kernel
            | LossCategory::Hypervisor
            | LossCategory::Unexplained
            | LossCategory::Own => {
                format!("  {}", kind_word(group.kind))
            }
        };
        table.row([
            kind,
            name,
            nonzero(group.threads),
            number::count(group.gaps),
            number::duration(group.part.ns),
            share(group.part.ppm),
            number::duration(group.max_ns),
        ]);
    }
    let others = Group::sum(groups.get(LISTED..).unwrap_or_default());
    if let count @ 1.. = groups.len().saturating_sub(LISTED) {
        let rest = format!("{count} more");
        let cells = [String::new(), rest, String::new(), String::new()];
        table.row(cells.into_iter().chain([number::duration(others)]));
    }
}

fn nonzero(count: usize) -> String {
    if count == 0 { String::new() } else { count.to_string() }
}
