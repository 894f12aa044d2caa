//! All of `check` on one page: what the machine is set to, what it takes, what that
//! means and what to type next.

pub(crate) mod findings;
pub(crate) mod verdict;

use facts::{Fact, Facts, Why};
use recording::{CheckSeries, CheckSpec, Recording};
use stats::CheckSummary;
use units::Cpu;

use crate::number;
use crate::text::check::findings::{Action, findings};
use crate::text::check::verdict::{takers, verdict};
use crate::text::facts::value::{hypervisor, preemption};
use crate::text::layout::doubts::doubts;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table, aligned};
use crate::text::noise::worst::{left_out, worst};
use crate::text::ticks::words as tick_words;

/// More CPUs than this are cut to [`WORST`].
const LISTED: usize = 16;
const WORST: usize = 8;

/// All of `check`.
pub(crate) fn check_text(
    recording: &Recording,
    spec: &CheckSpec,
    series: &CheckSeries,
) -> String {
    let summary = CheckSummary::of(series);
    let facts = &recording.facts;
    let mut text = verdict(&summary.verdict);
    text.push('\n');
    text.push_str(&machine(recording));
    text.push('\n');
    text.push_str(&measured(spec, series, &summary));
    text.push_str(&takers(&summary.verdict, &summary.noise));
    text.push_str("\nFindings, and what to type next\n");
    for (at, finding) in findings(facts, &summary).iter().enumerate() {
        let lead = aligned(&format!("{}. ", at + 1), 5, Side::Right);
        text.push_str(&paragraph(&lead, &finding.text));
        if let Some(Action { when, text: what }) = &finding.action {
            text.push_str(&paragraph("     ", &format!("{}: {what}.", when.word())));
        }
        text.push_str(&paragraph("     $ ", &finding.next));
    }
    text.push_str(&doubts(&recording.doubts));
    text
}

fn machine(recording: &Recording) -> String {
    let facts = &recording.facts;
    let line = |name: &str, text: String| {
        paragraph(&aligned(&format!("  {name}"), 14, Side::Left), &text)
    };
    let mut text =
        format!("The machine on {}, seen by {}\n", recording.taken, recording.tool);
    text.push_str(&line("kernel", kernel(facts)));
    text.push_str(&line("tick", tick(facts)));
    text.push_str(&line("CPUs", cpus(facts)));
    let model = &facts.preempt.model;
    text.push_str(&line(
        "preemption",
        known(model, |model| {
            let name = serde_json::to_value(model).ok();
            let words = name.as_ref().and_then(|name| preemption(name.as_str()?));
            words.unwrap_or("not known").to_owned()
        }),
    ));
    text.push_str(&line("clock", known(&facts.clock.source, String::clone)));
    text.push_str(&line(
        "hypervisor",
        known(&facts.virt.hypervisor, |name| match name {
            None => "none: Linux runs on the machine itself".to_owned(),
            Some(name) => {
                let name = hypervisor(name);
                format!("{name}, which {} what time it takes (steal)", steal(facts))
            }
        }),
    ));
    text
}

/// The value in words, or why there is none.
fn known<T>(fact: &Fact<T>, print: impl Fn(&T) -> String) -> String {
    match fact.value() {
        Ok(value) => print(value),
        Err(unknown) => format!("not known: {unknown}"),
    }
}

fn kernel(facts: &Facts) -> String {
    let release = known(&facts.kernel.release, String::clone);
    let also = [facts.kernel.arch.get(), facts.kernel.distribution.get()];
    also.into_iter().flatten().fold(release, |all, part| format!("{all}, {part}"))
}

fn tick(facts: &Facts) -> String {
    let Some(rate) = tick_words::rate(facts) else {
        return known(&facts.tick.hz, |hz| hz.get().to_string());
    };
    let stops = facts.tick.mode.get().map(|mode| tick_words::stops(facts, *mode));
    let stops = stops.map_or(String::new(), |stops| format!(", {stops}"));
    format!("{rate}{stops}")
}

fn cpus(facts: &Facts) -> String {
    let set = |fact: &Fact<units::CpuSet>, name: &str| {
        let cpus = match fact.value() {
            Ok(cpus) if cpus.is_empty() => "none".to_owned(),
            Ok(cpus) => cpus.to_string(),
            Err(unknown) => match unknown.code {
                Why::NotConfigured => "not built in".to_owned(),
                Why::TooOld | Why::TooNew => "not in this kernel".to_owned(),
                _ => "not known".to_owned(),
            },
        };
        format!("{name} {cpus}")
    };
    let online = set(&facts.cpus.online, "online");
    let isolated = set(&facts.cpus.isolated, "isolated");
    let full = set(&facts.tick.nohz_full, "nohz_full");
    format!("{online}; {isolated}; {full}")
}

fn steal(facts: &Facts) -> &'static str {
    match facts.virt.steal_clock.get() {
        Some(true) => "tells",
        Some(false) => "does not tell",
        None => "may or may not tell",
    }
}

fn measured(spec: &CheckSpec, series: &CheckSeries, summary: &CheckSummary) -> String {
    let shown = worst(&summary.noise, LISTED, WORST);
    let which = if spec.cpus == spec.rest_cpus {
        "all of them".to_owned()
    } else {
        tick_words::cpus(&spec.cpus)
    };
    let is_spun_on = |cpu: &Cpu| summary.noise.cpus.iter().any(|noise| noise.cpu == *cpu);
    let rested = series.rest.samples.last().map(|last| last.start_ns + last.span_ns);
    let rest = number::measured(rested, spec.idle_ns);
    let title = if shown.is_empty() {
        format!("What each CPU did at rest for {rest}; the loop was not started")
    } else {
        let spun = summary.noise.cpus.iter().map(|cpu| cpu.elapsed_ns).max();
        let spin = number::measured(spun, spec.noise_ns);
        format!(
            "What each CPU did at rest for {rest}, and what it then lost while a loop spun \
             on {which} for {spin}"
        )
    };
    let words = ["CPU", "ticks", "busy", "ticks", "lost", "gap", "gap", "is hit"];
    let mut table = Table::new(1, &words.map(|word| (word, Side::Right)));
    table.above(&["", "at rest", "", "spinning", "", "typical", "longest", "1 ms job"]);
    for cpu in &shown {
        let [ticks, busy] = at_rest(summary, cpu.cpu);
        let length = |length| number::any(length, number::duration);
        let job =
            cpu.risk.iter().find(|risk| risk.job_ns == units::Nanos::from_millis(1));
        table.row([
            cpu.cpu.to_string(),
            ticks,
            busy,
            number::known(cpu.meanwhile.timer_hz, number::rate),
            number::known(cpu.noise_ppm, number::share),
            length(cpu.gap_ns.p50),
            length(cpu.gap_ns.max),
            number::known(job.and_then(|risk| risk.hit_ppm), number::share),
        ]);
    }
    for cpu in spec.rest_cpus.iter().filter(|cpu| !is_spun_on(cpu)).take(LISTED) {
        let [ticks, busy] = at_rest(summary, cpu);
        let not_spun_on = std::iter::repeat_n(number::NONE.to_owned(), 5);
        table.row([cpu.to_string(), ticks, busy].into_iter().chain(not_spun_on));
    }
    if shown.is_empty() {
        return format!("{}\n{}", paragraph("", &title), table.text());
    }
    let legend = format!(
        "Ticks are timer interrupts. A gap is a stretch of more than {} in which the loop \
         did not run; \"lost\" is all gaps together. The last column is the chance that \
         a job of 1 ms, started at a random moment, meets a gap.",
        number::duration(series.noise.threshold_ns)
    );
    let left_out = left_out(&summary.noise, &shown);
    format!(
        "{}\n{}{left_out}\n{}",
        paragraph("", &title),
        table.text(),
        paragraph("", &legend)
    )
}

/// A CPU's ticks and how busy it was, at rest.
fn at_rest(summary: &CheckSummary, cpu: Cpu) -> [String; 2] {
    let rest = summary.rest.cpus.iter().find(|rest| rest.cpu == cpu);
    [
        number::known(rest.and_then(|rest| rest.timer_hz), number::rate),
        number::known(rest.and_then(|rest| rest.busy_ppm), number::share),
    ]
}
