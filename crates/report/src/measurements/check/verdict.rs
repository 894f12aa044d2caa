//! The verdict of `check` in sentences: what is lost, to what, and what that means for programs.

use advise::State;
use summary::{Consequences, Split, TimePart, Verdict};

use crate::document::text::{Text, text};
use crate::number::{self, ShareUnit};

/// The verdict names this many parts of the loss, of those that are at least this share of it.
const PARTS: usize = 3;
const PARTS_FROM: f64 = 0.01;

/// Two sentences, of at most three lines; empty if no CPU was measured.
pub(crate) fn verdict(verdict: &Verdict) -> Text {
    if verdict.cpus == 0 {
        return Text::default();
    }
    let state = match State::of(verdict) {
        Some(State::Busy) => "Busy: ",
        Some(State::Quiet) => "Quiet: ",
        None => "",
    };
    let (cpus, their) = match verdict.cpus {
        1 => ("1 CPU".to_owned(), "its"),
        cpus => (format!("{cpus} CPUs"), "their"),
    };
    let unit = unit(verdict);
    let to = match &verdict.split {
        Some(split) => parts(split, verdict.lost, unit),
        None => verdict
            .threads
            .map(|threads| text!(" ({} to other threads)", unit.known(threads.ppm)))
            .into(),
    };
    text!(
        "{}{} lost {} of {} time{}. {}",
        state,
        cpus,
        unit.known(verdict.lost.ppm),
        their,
        to,
        consequences(&verdict.consequences)
    )
}

/// All shares are parts of the loss, and at most as large.
fn unit(verdict: &Verdict) -> ShareUnit {
    ShareUnit::of([verdict.lost.ppm, verdict.threads.and_then(|part| part.ppm)])
}

/// The largest parts of the loss, as the end of a sentence.
fn parts(split: &Split, lost: TimePart, unit: ShareUnit) -> Text {
    let mut parts = [
        (split.programs, "to other programs"),
        (split.kernel, "to the kernel"),
        (split.quota, "to a CPU quota"),
        (split.hypervisor, "to the hypervisor"),
        (split.firmware, "to firmware"),
        (split.unexplained, "to unknown causes"),
        (split.own, "to noisefloor itself"),
    ];
    parts.sort_by_key(|(part, _)| std::cmp::Reverse(part.ns));
    let least = lost.ns.as_secs_f64() * PARTS_FROM;
    let is_large = |(part, _): &&(TimePart, &str)| {
        !part.ns.is_zero() && part.ns.as_secs_f64() >= least
    };
    let named = parts.iter().filter(is_large).take(PARTS);
    let named = named.map(|(part, to)| text!("{} {}", unit.known(part.ppm), *to));
    let named = Text::join(named, ", ");
    if named.is_empty() { named } else { text!(": {}", named) }
}

/// What that means for a program.
fn consequences(of: &Consequences) -> Text {
    let job = number::duration(of.job_ns);
    let unit = ShareUnit::of([of.job_hit_ppm, of.benchmark_spread_ppm]);
    let hit = match of.job_hit_ppm {
        Some(hit) => text!(
            "A job of {} is interrupted with a probability of {}",
            job,
            unit.print(hit)
        ),
        None => text!(
            "The run was too short to estimate how often a job of {} is interrupted",
            job
        ),
    };
    let benchmark = of.benchmark_spread_ppm.map(|spread| {
        let length = number::duration(of.benchmark_ns);
        let spread = Text::number(format!("±{}", unit.print(spread)));
        text!("; a benchmark of {} varies by {}", length, spread)
    });
    text!("{}{}.", hit, benchmark)
}

/// What neither the verdict nor the sources say; empty if no CPU was measured.
pub(crate) fn details(verdict: &Verdict) -> Text {
    if verdict.cpus == 0 {
        return Text::default();
    }
    let causes = match &verdict.split {
        Some(split) => {
            split.hypervisor_max.filter(|most| !most.ns.is_zero()).map(|most| {
                let [unexplained, most] =
                    [split.unexplained, most].map(|part| unit(verdict).known(part.ppm));
                text!(
                    "Of the {} that is unexplained, at most {} may be the hypervisor.",
                    unexplained,
                    most
                )
            })
        }
        None => Some(text!(
            "{}: tracing them needs root, or CAP_BPF and CAP_PERFMON.",
            match verdict.threads {
                Some(_) =>
                    "The time of other threads is that of /proc. Other causes are unknown",
                None => "The causes are unknown",
            }
        )),
    };
    causes.into()
}
