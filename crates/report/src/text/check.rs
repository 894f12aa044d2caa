//! The report of `check`: the verdict, kernel settings, OS noise, its sources, and findings with
//! the next command to run.

pub(crate) mod findings;
pub(crate) mod verdict;

use facts::{Fact, Facts, Unknown, Why};
use recording::{CheckSeries, CheckSpec, Recording};
use summary::{CheckSummary, CpuNoiseSummary};
use units::{Cpu, CpuSet, Nanos};

use crate::number;
use crate::text::check::findings::findings;
use crate::text::check::verdict::{sources, verdict};
use crate::text::facts::value::{hypervisor, preemption};
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table, aligned};
use crate::text::noise::worst::{left_out, worst};
use crate::text::ticks::{power, words as tick_words};

/// More CPUs than this are cut to [`WORST`].
const LISTED: usize = 16;
const WORST: usize = 8;

/// The report of `check`.
pub(crate) fn check_text(
    recording: &Recording,
    spec: &CheckSpec,
    series: &CheckSeries,
    summary: &CheckSummary,
) -> String {
    let facts = &recording.facts;
    let mut text = verdict(&summary.verdict);
    text.push('\n');
    text.push_str(&machine(recording));
    if let Some(power) = summary.rest.power.as_ref().and_then(power) {
        let power = format!("{power}, while noisefloor was idle");
        text.push_str(&paragraph(&aligned("  power", 14, Side::Left), &power));
    }
    text.push('\n');
    text.push_str(&measured(spec, series, summary));
    text.push_str(&sources(&summary.verdict, &summary.noise));
    text.push_str("\nFindings, each with the next command to run\n");
    for (at, finding) in findings(facts, summary).iter().enumerate() {
        let lead = aligned(&format!("{}. ", at + 1), 5, Side::Right);
        text.push_str(&paragraph(&lead, &finding.text));
        if let Some(action) = &finding.action {
            text.push_str(&paragraph("     ", &action.sentence()));
        }
        text.push_str(&paragraph("     $ ", &finding.next));
    }
    text
}

fn machine(recording: &Recording) -> String {
    let facts = &recording.facts;
    let line = |name: &str, text: String| {
        paragraph(&aligned(&format!("  {name}"), 14, Side::Left), &text)
    };
    let mut text =
        format!("Machine, recorded at {} by {}\n", recording.taken, recording.tool);
    text.push_str(&line("kernel", kernel(facts)));
    text.push_str(&line("tick", tick(facts)));
    text.push_str(&line("CPUs", cpus(facts)));
    let model = &facts.preempt.model;
    text.push_str(&line(
        "preemption",
        known(model, |model| {
            let name = serde_json::to_value(model).ok();
            let words = name.as_ref().and_then(|name| preemption(name.as_str()?));
            words.unwrap_or("unknown").to_owned()
        }),
    ));
    text.push_str(&line("clock", known(&facts.clock.source, String::clone)));
    text.push_str(&line(
        "hypervisor",
        known(&facts.virt.hypervisor, |name| match name {
            None => "none (bare metal)".to_owned(),
            Some(name) => format!("{}, {}", hypervisor(name), steal(facts)),
        }),
    ));
    text
}

/// The value in words, or the reason why it is unknown.
fn known<T>(fact: &Fact<T>, print: impl Fn(&T) -> String) -> String {
    match fact.value() {
        Ok(value) => print(value),
        Err(unknown) => format!("unknown: {unknown}"),
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
    let set = |fact: &Fact<CpuSet>, name: &str| {
        let cpus = match fact.value() {
            Ok(cpus) if cpus.is_empty() => "none".to_owned(),
            Ok(cpus) => cpus.to_string(),
            Err(Unknown { code: Why::NotConfigured, .. }) => "not configured".to_owned(),
            Err(Unknown { code: Why::TooOld | Why::TooNew, .. }) => {
                "not in this kernel".to_owned()
            }
            Err(_) => "unknown".to_owned(),
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
        Some(true) => "which reports steal time",
        Some(false) => "which does not report steal time",
        None => "which may report steal time (unknown)",
    }
}

fn measured(spec: &CheckSpec, series: &CheckSeries, summary: &CheckSummary) -> String {
    let shown = worst(&summary.noise, LISTED, WORST);
    let text = paragraph("", &title(spec, series, summary))
        + "\n"
        + &rows(spec, summary, &shown);
    if shown.is_empty() {
        return text;
    }
    let legend = format!(
        "\"ticks\": timer interrupts. A gap is a period of more than {} in which the loop did \
         not run; \"lost\": the sum of all gaps. \"risk\": the probability that a job of 1 ms, \
         started at a random moment, meets a gap.",
        number::duration(series.noise.threshold_ns)
    );
    let left_out = left_out(&summary.noise, &shown);
    format!("{text}{left_out}\n{}", paragraph("", &legend))
}

fn title(spec: &CheckSpec, series: &CheckSeries, summary: &CheckSummary) -> String {
    let idle = series.rest.samples.last().map(|last| last.start_ns + last.span_ns);
    let idle = number::measured(idle, spec.idle_ns);
    let Some(busy) = summary.noise.cpus.iter().map(|cpu| cpu.elapsed_ns).max() else {
        return format!("Each CPU while idle ({idle}); the busy loop was not started");
    };
    let busy = number::measured(Some(busy), spec.noise_ns);
    let cpus = match spec.cpus == spec.rest_cpus {
        true => "all of them".to_owned(),
        false => tick_words::cpus(&spec.cpus),
    };
    format!("Each CPU while idle ({idle}), and while a busy loop ran on {cpus} ({busy})")
}

fn rows(spec: &CheckSpec, summary: &CheckSummary, shown: &[&CpuNoiseSummary]) -> String {
    let words = ["CPU", "ticks", "busy", "ticks", "lost", "gap", "gap", "risk"];
    let mut table = Table::new(1, &words.map(|word| (word, Side::Right)));
    table.above(&["", "idle", "", "busy loop", "", "median", "longest", "1 ms job"]);
    for cpu in shown {
        let [ticks, busy] = while_idle(summary, cpu.cpu);
        let length = |length| number::any(length, number::duration);
        let job = cpu.risk.iter().find(|risk| risk.job_ns == Nanos::from_millis(1));
        table.row([
            cpu.cpu.to_string(),
            ticks,
            busy,
            number::known(cpu.proc.timer_hz, number::rate),
            number::known(cpu.noise_ppm, number::share),
            length(cpu.gap_ns.p50),
            length(cpu.gap_ns.max),
            number::known(job.and_then(|risk| risk.hit_ppm), number::share),
        ]);
    }
    let is_measured =
        |cpu: &Cpu| summary.noise.cpus.iter().any(|noise| noise.cpu == *cpu);
    for cpu in spec.rest_cpus.iter().filter(|cpu| !is_measured(cpu)).take(LISTED) {
        let [ticks, busy] = while_idle(summary, cpu);
        let not_measured = std::iter::repeat_n(number::NONE.to_owned(), 5);
        table.row([cpu.to_string(), ticks, busy].into_iter().chain(not_measured));
    }
    table.text()
}

/// The ticks and load of a CPU while noisefloor slept.
fn while_idle(summary: &CheckSummary, cpu: Cpu) -> [String; 2] {
    let rest = summary.rest.cpus.iter().find(|rest| rest.cpu == cpu);
    [
        number::known(rest.and_then(|rest| rest.timer_hz), number::rate),
        number::known(rest.and_then(|rest| rest.busy_ppm), number::share),
    ]
}
