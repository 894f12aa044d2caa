//! The tables of measurements in cells, one for each kind of summary.

use stats::Spread;
use summary::{
    CallCost, CallSummary, CellSummary, CpuIdleCost, CpuLatencySummary, CulpritSummary,
    IdleCost, NoiseSummary, Summary, TickCost, TickKinds, TicksSummary, answer,
};
use units::{Instructions, Ppm};

use crate::number;
use crate::text::cells::calls::{CellCalls, call_section};
use crate::text::cells::grid::MARK;
use crate::text::cells::lines::{Count, Lines, Row};
use crate::text::cells::programs::{CellProgram, program_tables};
use crate::text::cells::tick_kinds::kinds_table;
use crate::text::cells::{idle_stretches, nohz, slices};

/// The lines of all tables, each in the order of the rows.
#[derive(Default)]
pub(crate) struct Tables<'a> {
    tick_costs: Lines<'a, 6>,
    /// Whether one of them is for a busy CPU.
    has_busy_ticks: bool,
    tick_kinds: Vec<(&'a Row<'a>, &'a TickKinds)>,
    idle_costs: Lines<'a, 5>,
    idle_stretches: Lines<'a, 7>,
    call_costs: Vec<CellCalls<'a>>,
    noise: Lines<'a, 5>,
    ticks: Lines<'a, 4>,
    calls: Vec<CellCalls<'a>>,
    latency: Lines<'a, 6>,
    nohz_costs: Lines<'a, 7>,
    nohz_tests: Lines<'a, 4>,
    slices_costs: Lines<'a, 7>,
    slices: Lines<'a, 3>,
    programs: Vec<CellProgram<'a>>,
    /// The causes of gaps, and of work on idle CPUs.
    pub(crate) culprits: Vec<(&'a Row<'a>, &'a [CulpritSummary])>,
}

impl<'a> Tables<'a> {
    pub(crate) fn of(rows: &'a [Row<'a>]) -> Self {
        let mut tables = Self::default();
        rows.iter().for_each(|row| tables.add(row));
        tables
    }

    fn add(&mut self, row: &'a Row<'a>) {
        match &row.summary {
            CellSummary::TickCost(cost) => {
                self.has_busy_ticks = true;
                self.tick_costs.push(row, |count| tick_cost(cost, count));
                self.tick_kinds.extend(cost.kinds.as_ref().map(|kinds| (row, kinds)));
                self.culprits.push((row, &cost.culprits));
            }
            CellSummary::IdleCost(cost) => {
                self.tick_costs.push(row, |count| idle_tick(cost, count));
                self.tick_kinds.push((row, &cost.kinds));
                for cpu in &cost.cpus {
                    self.idle_costs.push(row, |count| idle_cost(cost, cpu, count));
                    if let Some(line) = idle_stretches::line(cpu) {
                        self.idle_stretches.push(row, |_| line.clone());
                    }
                }
                self.culprits.push((row, &cost.culprits));
            }
            CellSummary::CallCosts(costs) => {
                let costs = costs.calls.iter().map(call_cost).collect();
                self.call_costs.push(CellCalls { row, costs });
            }
            CellSummary::NohzCost(cost) => {
                self.nohz_costs.push(row, |count| nohz::cost_line(cost, count));
            }
            CellSummary::SlicesCost(cost) => {
                self.slices_costs.push(row, |count| slices::cost_line(cost, count));
            }
            CellSummary::ProgramCost(cost) => self.programs.push((row, cost)),
            CellSummary::Measured(summary) => self.add_measured(row, summary),
        }
    }

    fn add_measured(&mut self, row: &'a Row<'a>, summary: &'a Summary) {
        match summary {
            Summary::Noise(noise) => {
                self.add_noise(row, noise);
                self.culprits.push((row, &noise.culprits));
            }
            Summary::Ticks(ticks) => self.add_ticks(row, ticks),
            Summary::Check(check) => {
                self.add_noise(row, &check.noise);
                self.add_ticks(row, &check.rest);
            }
            Summary::Calls(calls) => {
                let costs = calls.calls.iter().map(call_time).collect();
                self.calls.push(CellCalls { row, costs });
            }
            Summary::NohzTest(test) => {
                self.nohz_tests.push(row, |_| nohz::test_line(test));
            }
            Summary::Slices(summary) => {
                self.slices.push(row, |_| slices::line(summary));
            }
            Summary::Latency(latency) => {
                for cpu in &latency.cpus {
                    self.latency.push(row, |count| wakeups(cpu, count));
                }
            }
            // Not measured in guests.
            Summary::Run(_)
            | Summary::Program(_)
            | Summary::Wakers(_)
            | Summary::NohzStress(_)
            | Summary::Jitter(_)
            | Summary::Guests(_)
            | Summary::Imported(_) => {}
        }
    }

    fn add_noise(&mut self, row: &'a Row<'a>, noise: &NoiseSummary) {
        for cpu in &noise.cpus {
            let fields = [
                cpu.cpu.to_string(),
                number::known(cpu.noise_ppm, number::share),
                number::known(cpu.gaps_hz, number::bare_rate),
                number::any(cpu.gap_ns.p50, number::duration),
                number::any(cpu.gap_ns.max, number::duration),
            ];
            self.noise.push(row, |_| fields.clone());
        }
    }

    fn add_ticks(&mut self, row: &'a Row<'a>, ticks: &TicksSummary) {
        let host = answer(row.named.cell).and_then(|answer| answer.host);
        let host = host.and_then(|host| Ppm::of(host.cpu_ns, host.wall_ns));
        for cpu in &ticks.cpus {
            let fields = [
                cpu.cpu.to_string(),
                number::known(cpu.timer_hz, number::bare_rate),
                number::known(cpu.busy_ppm, number::share),
                number::any(host, number::share),
            ];
            self.ticks.push(row, |_| fields.clone());
        }
    }

    /// The tables of measurements, each with its title and explanation.
    pub(crate) fn text(&self) -> String {
        let ticks = self.has_busy_ticks.then(|| {
            let costs = tick_costs(&self.tick_costs);
            costs.into_iter().chain(kinds_table(&self.tick_kinds)).collect()
        });
        let tables = [
            ticks,
            idle_costs(&self.idle_costs),
            idle_stretches::table(&self.idle_stretches),
            call_costs(&self.call_costs),
            noise(&self.noise),
            idle_ticks(&self.ticks),
            calls(&self.calls),
            latency(&self.latency),
            nohz::costs(&self.nohz_costs),
            nohz::tests(&self.nohz_tests),
            slices::costs(&self.slices_costs),
            slices::means(&self.slices),
            program_tables(&self.programs),
        ];
        tables.into_iter().flatten().collect()
    }
}

fn instructions(value: Option<Instructions>, count: Count) -> String {
    number::any(value, |value| count(value.get()))
}

fn tick_costs(lines: &Lines<'_, 6>) -> Option<String> {
    let head = ["gap", "in kernel", "mean", "±", "ticks", "max"];
    let words = "\"gap\": median gap in the guest's busy loop, one pass of the loop included. \"in \
                 kernel\": median number of kernel instructions from the timer interrupt to its \
                 return; \"mean\": their mean; \"±\": largest difference between the mean of a \
                 single phase of the measurement and that mean; \"max\": the longest gap, or on \
                 idle CPUs the most expensive tick.";
    lines.section("Cost of a tick, in instructions", head, words)
}

fn tick_cost(cost: &TickCost, count: Count) -> [String; 6] {
    let (gap, kernel) =
        (cost.gap_instructions.as_ref(), cost.kernel_instructions.as_ref());
    tick_line(median(gap, count), gap, kernel, count)
}

/// An idle CPU runs no loop, so that a tick there causes no gap.
fn idle_tick(cost: &IdleCost, count: Count) -> [String; 6] {
    let kernel = Some(&cost.tick_kernel_instructions);
    tick_line(number::NONE.to_owned(), None, kernel, count)
}

fn tick_line(
    median_gap: String,
    gap: Option<&Spread>,
    kernel: Option<&Spread>,
    count: Count,
) -> [String; 6] {
    let (first, all) = (kernel.or(gap), gap.or(kernel));
    let rounded = |value: f64| number::rounded(value, count);
    [
        median_gap,
        median(kernel, count),
        number::known(first, |spread| number::any(spread.mean, rounded)),
        number::known(first, |spread| number::any(spread.mean_deviation, rounded)),
        number::known(all, |spread| count(spread.count())),
        number::known(all, |spread| instructions(spread.max(), count)),
    ]
}

fn median(spread: Option<&Spread>, count: Count) -> String {
    number::known(spread, |spread| instructions(spread.p50, count))
}

fn idle_costs(lines: &Lines<'_, 5>) -> Option<String> {
    let head = ["CPU", "instructions/s", "ticks/s", "counted/s", "one tick"];
    let words = "\"ticks/s\": timer interrupts in /proc/interrupts; \"counted/s\": the \
                 same, counted by the lab. \"one tick\": median number of kernel instructions of \
                 a tick.";
    lines.section("Instructions of idle CPUs", head, words)
}

fn idle_cost(cost: &IdleCost, cpu: &CpuIdleCost, count: Count) -> [String; 5] {
    [
        cpu.cpu.to_string(),
        number::known(cpu.instructions_hz, number::bare_rate),
        number::known(cpu.timer_hz, number::bare_rate),
        number::known(cpu.timer_entries_hz, number::bare_rate),
        instructions(cost.tick_kernel_instructions.p50, count),
    ]
}

fn call_costs(cells: &[CellCalls<'_>]) -> Option<String> {
    let mut costs = cells.iter().flat_map(|cell| &cell.costs);
    let asterisk = match costs.any(|(_, cost)| cost.ends_with(MARK)) {
        true => " \"*\": fewer than 90 % of the repeats executed exactly that number.",
        false => "",
    };
    let words = format!(
        "Median number of instructions from the start of one repeat to the start of the next, in \
         the program and the kernel.{asterisk}"
    );
    call_section("Cost of requests to the kernel, in instructions", cells, &words)
}

fn call_cost(call: &CallCost) -> (String, String) {
    let number = instructions(call.instructions.p50, number::count);
    let mark = call.instructions.agreed.is_none().then_some(MARK);
    (call.name.clone(), number.chars().chain(mark).collect())
}

fn noise(lines: &Lines<'_, 5>) -> Option<String> {
    let head = ["CPU", "noise", "gaps/s", "median", "longest"];
    let words = "\"noise\": share of time in which the busy loop did not run; \"median\", \
                 \"longest\": of the gaps.";
    lines.section("OS noise of busy CPUs", head, words)
}

fn idle_ticks(lines: &Lines<'_, 4>) -> Option<String> {
    let words = "\"ticks/s\": timer interrupts in /proc/interrupts; \"busy\": time not idle; \
                 \"host\": CPU time of the guest's process on the host, as a share of one CPU, while \
                 the agent prepared and measured.";
    let head = ["CPU", "ticks/s", "busy", "host"];
    lines.section("Timer interrupts on idle CPUs", head, words)
}

fn calls(cells: &[CellCalls<'_>]) -> Option<String> {
    let words = "Median time from the start of one repeat to the start of the next.";
    call_section("Duration of requests to the kernel", cells, words)
}

fn call_time(call: &CallSummary) -> (String, String) {
    (call.name.clone(), number::any(call.step_ns.p50, number::duration))
}

fn latency(lines: &Lines<'_, 6>) -> Option<String> {
    let head = ["CPU", "samples", "median", "mean", "p99", "max"];
    let words = "Time from a timer's expiry until the sleeping thread has read the clock after it. \
                 An ordinary thread's timer may also be late by its slack of 50 µs; a SCHED_FIFO \
                 thread has none.";
    lines.section("Wake-up latency of sleeping threads", head, words)
}

fn wakeups(cpu: &CpuLatencySummary, count: Count) -> [String; 6] {
    let late = cpu.late_ns;
    let [median, mean, p99, max] = [late.p50, late.mean, late.p99, late.max]
        .map(|late| number::any(late, number::duration));
    [cpu.cpu.to_string(), count(cpu.samples), median, mean, p99, max]
}
