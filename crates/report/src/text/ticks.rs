//! The live table of `ticks`, and the text below it.
//!
//! Few CPUs have a column each, more have cells side by side, and of very many only those with
//! the most timer interrupts are listed.

pub(crate) mod words;

use std::iter;

use facts::{Facts, Why};
use recording::{Doubt, TickSample, TicksSeries, TicksSpec};
use summary::{
    CpuTicksSummary, PowerSummary, TickVerdict, TicksSummary, ZonePower, tick_verdicts,
};

use crate::number;
use crate::text::layout::doubts::doubts;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, aligned};
use crate::text::ticks::words as tick_words;

/// Up to this many CPUs have a column each.
const COLUMNS: usize = 4;
/// Cells per line for more CPUs.
const CELLS: usize = 3;
/// Of more CPUs than this, the [`SHOWN`] with the most timer interrupts are listed.
const LISTED: usize = 8 * CELLS;
const SHOWN: usize = 4 * CELLS;
/// The width of the column of times.
const TIME: usize = 8;

/// The lines above the first interval.
pub fn ticks_header(facts: &Facts, spec: &TicksSpec) -> String {
    let title = format!(
        "Timer interrupts a second and busy time of each CPU, every {}",
        number::duration(spec.interval_ns)
    );
    let mut text = paragraph("", &title);
    text.push_str(&paragraph("", &reference(facts)));
    text.push('\n');
    let count = spec.cpus.len();
    let from = aligned("from", TIME, Side::Right);
    if count > COLUMNS {
        let cells = "    CPU    timer    busy".repeat(CELLS.min(count));
        text.push_str(&format!("{from}{cells}\n"));
        return text;
    }
    let names = spec.cpus.iter().map(|cpu| format!("CPU {cpu}"));
    let names: String = names.map(|name| aligned(&name, 18, Side::Right)).collect();
    let words = "     timer    busy".repeat(count);
    text.push_str(&format!("{:TIME$}{names}\n{from}{words}\n", ""));
    text
}

fn reference(facts: &Facts) -> String {
    let Some(rate) = tick_words::rate(facts) else {
        return "The tick rate (CONFIG_HZ) is unknown".to_owned();
    };
    let stops =
        facts.tick.mode.get().map_or(String::new(), |mode| {
            format!("; {}", tick_words::stops(facts, *mode))
        });
    format!("Tick: {rate}{stops}")
}

/// The lines of one interval.
pub fn ticks_sample(sample: &TickSample) -> String {
    let summary = TicksSummary::of(std::slice::from_ref(sample));
    let time = aligned(&number::moment(sample.start_ns), TIME, Side::Right);
    if summary.cpus.len() <= COLUMNS {
        let cells = summary.cpus.iter().map(|cpu| {
            let (timer, busy) = cell(cpu);
            format!("{timer:>10}{busy:>8}")
        });
        return format!("{time}{}\n", cells.collect::<String>());
    }
    let (shown, rest) = most_ticking(summary.cpus);
    let mut text = String::new();
    for (at, cpus) in shown.chunks(CELLS).enumerate() {
        let cells = cpus.iter().map(|cpu| {
            let (timer, busy) = cell(cpu);
            format!("    {:>3}{timer:>9}{busy:>8}", cpu.cpu)
        });
        let lead = if at == 0 { time.clone() } else { " ".repeat(TIME) };
        text.push_str(&format!("{lead}{}\n", cells.collect::<String>()));
    }
    if let Some(highest) = rest.first() {
        let highest = number::known(highest.timer_hz, number::rate);
        let count = rest.len();
        text.push_str(&format!(
            "{:TIME$}    and {count} CPUs with {highest} or less\n",
            ""
        ));
    }
    text
}

fn cell(cpu: &CpuTicksSummary) -> (String, String) {
    let timer = number::known(cpu.timer_hz, number::rate);
    (timer, number::known(cpu.busy_ppm, number::share))
}

/// The CPUs to list, in ascending order, and the others in descending order of their rates.
fn most_ticking(
    mut cpus: Vec<CpuTicksSummary>,
) -> (Vec<CpuTicksSummary>, Vec<CpuTicksSummary>) {
    if cpus.len() <= LISTED {
        return (cpus, Vec::new());
    }
    let rate = |cpu: &CpuTicksSummary| cpu.timer_hz.map_or(-1.0, |rate| rate.get());
    cpus.sort_by(|a, b| rate(b).total_cmp(&rate(a)).then(a.cpu.cmp(&b.cpu)));
    let rest = cpus.split_off(SHOWN);
    cpus.sort_by_key(|cpu| cpu.cpu);
    (cpus, rest)
}

/// The lines below the last interval: what the rates mean, and the doubts.
pub fn ticks_close(facts: &Facts, summary: &TicksSummary, reasons: &[Doubt]) -> String {
    close(facts, summary) + &doubts(reasons)
}

fn close(facts: &Facts, summary: &TicksSummary) -> String {
    let verdicts = tick_verdicts(facts, &summary.cpus);
    let sentences =
        verdicts.iter().map(|verdict| paragraph("", &sentence(facts, verdict)));
    let power = summary.power.as_ref().and_then(power);
    let power = power.map(|power| paragraph("", &format!("Power: {power}.")));
    iter::once("\n".to_owned()).chain(sentences).chain(power).collect()
}

/// The power of the processors, or why it is unknown; `None` if the machine has no counters.
pub(crate) fn power(power: &PowerSummary) -> Option<String> {
    if let Some(unknown) = &power.unknown {
        return (unknown.code != Why::Absent).then(|| format!("unknown: {unknown}"));
    }
    let zone = |zone: &ZonePower| {
        let watts = number::any(zone.power_w, |watts| format!("{watts:.2} W"));
        format!("{} {watts}", zone.zone)
    };
    let zones: Vec<String> = power.zones.iter().map(zone).collect();
    Some(format!("{} (mean, by RAPL, all programs together)", zones.join(", ")))
}

/// One verdict as a sentence.
pub(crate) fn sentence(facts: &Facts, verdict: &TickVerdict) -> String {
    let busy = tick_words::busy(verdict)
        .map_or(String::new(), |busy| format!(", busy {busy} of the time"));
    let (cpus, rates) = (tick_words::cpus(&verdict.cpus), tick_words::rates(verdict));
    format!("{cpus}: {rates}{busy}. {}.", tick_words::words(verdict, facts))
}

/// All of `ticks` at once, the same text as live.
pub(crate) fn ticks_text(
    facts: &Facts,
    spec: &TicksSpec,
    series: &TicksSeries,
    summary: &TicksSummary,
) -> String {
    let rows: String = series.samples.iter().map(ticks_sample).collect();
    ticks_header(facts, spec) + &rows + &close(facts, summary)
}
