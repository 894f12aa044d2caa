//! Instructions by function, of one event or of two compared: tables, with sums, and JSON.

pub(crate) mod folded;
pub(crate) mod phase;
pub(crate) mod titles;

use std::ops::RangeInclusive;

use recording::FORMAT;
use serde::Serialize;
use summary::{Difference, Explanation, Frequency, Typical};
use units::Instructions;

use crate::number;
use crate::text::explain::titles::{cell_on_kernel, comparison, headline, size, title};
use crate::text::layout::fit::fitted;
use crate::text::layout::labels::cut_labels;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table};

/// The maximum number of listed functions; the others are one line.
const LISTED: usize = 40;
/// The minimum and maximum width of a function's name.
const NAMES: RangeInclusive<usize> = 12..=60;

/// The instructions of one tick or call by function, as a table.
pub fn explain_text(typical: &Typical<'_>) -> String {
    let explanation = Explanation::of(&typical.stacks);
    let headline = headline(typical, explanation.total_instructions);
    let table = fitted(NAMES, |name| functions(&explanation, name));
    let words = "In instructions. \"self\": in the function itself; these add up. \"total\": \
                 including all functions that it called.";
    let [cell, headline, words] = [cell_on_kernel(typical), headline, words.to_owned()]
        .map(|words| paragraph("", &words));
    format!("{cell}\n{headline}\n{table}\n{words}")
}

/// A table of functions.
pub(crate) fn functions(explanation: &Explanation, name: usize) -> String {
    let Explanation { total_instructions: all, functions } = explanation;
    let has_totals =
        functions.iter().all(|function| function.total_instructions.is_some());
    let columns: &[&str] = match has_totals {
        true => &["self", "share", "total"],
        false => &["self", "share"],
    };
    let mut table = table(columns);
    let mut row = |own, total: Option<String>, name: String| {
        let share = number::any(explanation.share(own), number::share);
        let total = total.filter(|_| has_totals);
        table.row([count(own), share].into_iter().chain(total).chain([name]));
    };
    let listed = &functions[..functions.len().min(LISTED)];
    let names = cut_labels(listed.iter().map(|function| &function.name), name);
    for (function, name) in listed.iter().zip(names) {
        let total = function.total_instructions.map(count);
        row(function.own_instructions, total, name);
    }
    if functions.len() > LISTED {
        let words = more_functions(functions.len() - LISTED);
        row(explanation.rest(LISTED), Some(String::new()), words);
    }
    row(*all, Some(count(*all)), "all".to_owned());
    table.text()
}

/// The difference of two ticks or calls by function, as a table.
pub fn explain_diff_text(a: &Typical<'_>, b: &Typical<'_>) -> String {
    let difference = Difference::of(&a.stacks, &b.stacks);
    let side = |lead, side: &Typical<'_>, total| {
        let words = format!("{}\n{}", cell_on_kernel(side), size(side, total));
        paragraph(lead, &words)
    };
    let sides = side("  A  ", a, difference.total_instructions_a)
        + &side("  B  ", b, difference.total_instructions_b);
    let headline = paragraph("", &comparison(a, &difference));
    let table = fitted(NAMES, |name| differences(&difference, name));
    let words = "In instructions of the functions themselves, the largest differences first. \
                 Parts and copies of a function made by the compiler count as the function; \
                 \"old → new\" is a function with another name in B.";
    format!("{headline}\n{sides}\n{table}\n{}", paragraph("", words))
}

fn differences(difference: &Difference, name: usize) -> String {
    let functions = &difference.functions;
    let differing = functions.iter().take_while(|function| function.difference != 0);
    let shown = differing.count().min(LISTED);
    let mut table = table(&["A", "B", "difference"]);
    let mut row =
        |a, b, more, name| table.row([count(a), count(b), format_signed(more), name]);
    let names = functions[..shown].iter();
    let names = names.map(|f| format_name(&f.name, f.renamed_from.as_deref()));
    for (f, name) in functions.iter().zip(cut_labels(names, name)) {
        row(f.own_instructions_a, f.own_instructions_b, f.difference, name);
    }
    if functions.len() > shown {
        let rest = difference.rest(shown);
        let (a, b) = (rest.own_instructions_a, rest.own_instructions_b);
        row(a, b, rest.difference, more_functions(functions.len() - shown));
    }
    let (a, b) = (difference.total_instructions_a, difference.total_instructions_b);
    row(a, b, difference.difference, "all, of which".to_owned());
    let Difference { only_a, only_b, both, .. } = difference;
    for (part, words) in [(only_a, "only in A"), (only_b, "only in B"), (both, "in both")]
    {
        let (a, b) = (part.own_instructions_a, part.own_instructions_b);
        let functions = number::count(part.functions);
        let plural = if part.functions == 1 { "" } else { "s" };
        row(a, b, part.difference, format!("  {words}: {functions} function{plural}"));
    }
    table.text()
}

/// A table of these numbers for each function.
fn table(numbers: &[&'static str]) -> Table {
    let numbers = numbers.iter().map(|word| (*word, Side::Right));
    let columns: Vec<_> = numbers.chain([("function", Side::Left)]).collect();
    Table::new(2, &columns)
}

#[derive(Serialize)]
struct ExplanationJson<'a> {
    format: u32,
    kind: &'static str,
    title: String,
    frequency: Frequency,
    summary: &'a Explanation,
}

#[derive(Serialize)]
struct DifferenceJson<'a> {
    format: u32,
    kind: &'static str,
    title: &'static str,
    sides: [String; 2],
    frequency: [Frequency; 2],
    summary: &'a Difference,
}

/// The instructions of one tick or call by function, as a JSON object.
///
/// # Errors
/// Serialisation does not fail for these types.
pub fn explain_json(typical: &Typical<'_>) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&ExplanationJson {
        format: FORMAT,
        kind: "explain",
        title: title(typical),
        frequency: typical.frequency,
        summary: &Explanation::of(&typical.stacks),
    })
}

/// The difference of two ticks or calls by function, as a JSON object.
///
/// # Errors
/// Serialisation does not fail for these types.
pub fn explain_diff_json(
    a: &Typical<'_>,
    b: &Typical<'_>,
) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&DifferenceJson {
        format: FORMAT,
        kind: "explain_diff",
        title: "difference of B from A",
        sides: [a, b].map(title),
        frequency: [a.frequency, b.frequency],
        summary: &Difference::of(&a.stacks, &b.stacks),
    })
}

/// A function's name, after its name on the first side if that is different.
pub(crate) fn format_name(name: &str, old: Option<&str>) -> String {
    old.map_or_else(|| name.to_owned(), |old| format!("{old} → {name}"))
}

pub(crate) fn count(instructions: Instructions) -> String {
    number::count(instructions.get())
}

fn more_functions(functions: usize) -> String {
    let plural = if functions == 1 { "" } else { "s" };
    format!("({functions} more function{plural})")
}

/// A difference: `+228`, `-5`, `0`.
pub(crate) fn format_signed(difference: i128) -> String {
    let size = u64::try_from(difference.unsigned_abs()).unwrap_or(u64::MAX);
    let sign = match difference.signum() {
        1 => "+",
        -1 => "-",
        _ => "",
    };
    format!("{sign}{}", number::count(size))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use summary::CallStack;

    use super::*;
    use crate::example::cell::{NEW, OLD, cell, lost, new_tick, old_tick, typical};
    use crate::text::layout::table::columns;

    /// Check the table of one tick with more functions than are listed.
    #[test]
    fn tick() {
        let cell = cell("other", OLD, lost());
        assert_snapshot!(explain_text(&typical(&cell, old_tick())), @r#"
    other on 6.1.0-56-cloud-amd64 (6.1.192-2)

    One tick in the kernel: 2652 instructions in 112 of 239 ticks.

      self    share  total  function
       223   8.41 %    223  timekeeping_advance
       132   4.98 %   1847  __hrtimer_run_queues
       121   4.56 %    133  rcu_sched_clock_irq
       118   4.45 %   2213  hrtimer_interrupt
       102   3.85 %    140  update_curr
        89   3.36 %     89  __update_load_avg_se
        87   3.28 %    599  scheduler_tick
        77   2.90 %     77  __update_load_avg_cfs_rq
        74   2.79 %    203  __do_softirq
        71   2.68 %    309  tick_do_update_jiffies64
        61   2.30 %   2652  asm_sysvec_apic_timer_interrupt
        61   2.30 %     78  ktime_get_update_offsets_now
        60   2.26 %    426  task_tick_fair
        58   2.19 %     58  __run_timers.part.0
        53   2.00 %    137  account_user_time
        51   1.92 %     63  clockevents_program_event
        49   1.85 %     49  ktime_get
        48   1.81 %   1541  tick_sched_timer
        44   1.66 %     44  __acct_update_integrals
        44   1.66 %     44  __hrtimer_next_event_base
        44   1.66 %     44  rcu_core
        44   1.66 %     44  update_load_avg
        43   1.62 %     81  timerqueue_del
        42   1.58 %   1077  update_process_times
        41   1.55 %     41  update_rq_clock.part.0
        38   1.43 %    241  irq_exit_rcu
        38   1.43 %     38  rb_erase
        38   1.43 %     38  run_posix_cpu_timers
        37   1.40 %     37  hrtimer_forward
        35   1.32 %     99  run_local_timers
        34   1.28 %   2532  sysvec_apic_timer_interrupt
        33   1.24 %     77  __hrtimer_get_next_event
        33   1.24 %     33  hrtimer_run_queues
        31   1.17 %     42  timerqueue_add
        31   1.17 %     31  raise_softirq
        29   1.09 %    166  account_process_tick
        28   1.06 %     40  error_entry
        27   1.02 %    108  __remove_hrtimer
        27   1.02 %     85  run_timer_softirq
        24  0.905 %     66  enqueue_hrtimer
       332   12.5 %         (21 more functions)
      2652    100 %   2652  all

    In instructions. "self": in the function itself; these add up. "total":
    including all functions that it called.
    "#);
    }

    /// Check the difference between the ticks of two kernels.
    #[test]
    fn tick_on_two_kernels() {
        let cells = [OLD, NEW].map(|kernel| cell("other", kernel, lost()));
        let (a, b) = (typical(&cells[0], old_tick()), typical(&cells[1], new_tick()));
        assert_snapshot!(explain_diff_text(&a, &b), @r#"
    One tick of B has 213 instructions more than one of A (+8.03 %).

      A  other on 6.1.0-56-cloud-amd64 (6.1.192-2)
         2652 instructions in 112 of 239 ticks
      B  other on 6.12.117+deb12-cloud-amd64 (6.12.117-1~bpo12+1)
         2865 instructions in 112 of 239 ticks

         A     B  difference  function
         0    93         +93  update_curr_dl_se
         0    58         +58  dl_server_update
         0    37         +37  update_curr_se
        35     0         -35  run_local_timers
        31     0         -31  raise_softirq
         0    29         +29  update_deadline
        21     0         -21  __cgroup_account_cputime
        21     0         -21  tick_sched_handle
        19     0         -19  cpuacct_account_field
         0    19         +19  timer_expire_remote
       102   121         +19  update_curr
        48    66         +18  tick_sched_timer → tick_nohz_handler
        16     0         -16  hrtimer_active
       223   236         +13  timekeeping_advance
       121   133         +12  rcu_sched_clock_irq
        12     0         -12  rcu_segcblist_ready_cbs
        41    52         +11  update_rq_clock
        87    96          +9  scheduler_tick → sched_tick
        42    51          +9  update_process_times
        74    81          +7  __do_softirq → handle_softirqs
        38    44          +6  irq_exit_rcu
        60    66          +6  task_tick_fair
       132   127          -5  __hrtimer_run_queues
        58    63          +5  __run_timers
        34    39          +5  sysvec_apic_timer_interrupt
        44    49          +5  update_load_avg
        77    81          +4  __update_load_avg_cfs_rq
        89    92          +3  __update_load_avg_se
       118   121          +3  hrtimer_interrupt
        61    58          -3  ktime_get_update_offsets_now
        33    35          +2  hrtimer_run_queues
        27    29          +2  run_timer_softirq
        24    26          +2  trigger_load_balance → sched_balance_trigger
        71    69          -2  tick_do_update_jiffies64
        44    45          +1  rcu_core
       849   849           0  (31 more functions)
      2652  2865        +213  all, of which
       155     0        -155    only in A: 7 functions
         0   236        +236    only in B: 5 functions
      2497  2629        +132    in both: 54 functions

    In instructions of the functions themselves, the largest differences first.
    Parts and copies of a function made by the compiler count as the function; "old
    → new" is a function with another name in B.
    "#);
    }

    /// Check the objects' keys: this is the JSON contract.
    #[test]
    fn contract() {
        let cell = cell("other", OLD, lost());
        let stack = vec![CallStack::new(vec!["a"], Instructions::new(5))];
        let (some, none) = (typical(&cell, stack), typical(&cell, Vec::new()));
        let object: Value = serde_json::from_str(&explain_json(&some).unwrap()).unwrap();
        let title = format!("one tick, other on {OLD}");
        let frequency = json!({"times": 112, "of": 239});
        let functions =
            [json!({"name": "a", "own_instructions": 5, "total_instructions": 5})];
        let summary = json!({"total_instructions": 5, "functions": functions});
        let expected = json!({
            "format": 1, "kind": "explain", "title": title, "frequency": frequency, "summary": summary,
        });
        assert_eq!(object, expected);
        let object = explain_diff_json(&some, &none).unwrap();
        let object: Value = serde_json::from_str(&object).unwrap();
        assert_eq!(object["kind"], "explain_diff");
        assert_eq!(object["sides"], json!([title, title]));
        assert_eq!(object["frequency"], json!([frequency, frequency]));
        assert_eq!(object["summary"]["difference"], -5);
        assert_eq!(object["summary"]["only_a"]["difference"], -5);
        assert_eq!(object["summary"]["functions"][0]["difference"], -5);
    }

    /// Check the tables of an event without instructions, and of its comparison with itself.
    #[test]
    fn nothing() {
        let cell = cell("other", OLD, lost());
        let nothing = typical(&cell, Vec::new());
        let text = explain_text(&nothing);
        assert!(text.contains("\n     0      -      0  all\n"), "{text}");
        let same = explain_diff_text(&nothing, &nothing);
        assert!(same.contains("\n  0  0           0  all, of which\n"), "{same}");
    }

    /// Check the heading of a cell with an unknown kernel.
    #[test]
    fn no_kernel() {
        let cell = cell("5e1f0c", "", lost());
        let text = explain_text(&typical(&cell, old_tick()));
        assert!(text.starts_with("5e1f0c\n\nOne tick in the kernel: 2652 "), "{text}");
    }

    /// The numbers of a table's column, from the line below the heading to the sum; and those
    /// of the sum's parts, in reverse order so that the sum is the last.
    fn column(text: &str, place: usize) -> [Vec<i64>; 2] {
        let lines = text.lines().skip_while(|line| !line.ends_with(" function"));
        let lines: Vec<&str> =
            lines.skip(1).take_while(|line| !line.is_empty()).collect();
        let is_sum =
            |line: &&str| line.ends_with("  all") || line.ends_with("  all, of which");
        let sum = lines.iter().position(is_sum).unwrap();
        let parts: Vec<&str> = lines[sum..].iter().rev().copied().collect();
        [numbers(&lines[..=sum], place), numbers(&parts, place)]
    }

    fn numbers(lines: &[&str], place: usize) -> Vec<i64> {
        lines
            .iter()
            .map(|line| {
                line.split_whitespace().nth(place).unwrap().replace([',', '+'], "")
            })
            .map(|number| number.parse().unwrap())
            .collect()
    }

    fn adds_up(numbers: &[i64]) -> bool {
        let (sum, parts) = numbers.split_last().unwrap();
        parts.iter().sum::<i64>() == *sum
    }

    proptest! {
        /// Check that printed columns add up to the printed sum, and fit the terminal.
        #[test]
        fn columns_add_up(
            a in prop::collection::vec(("[a-z_.]{1,70}", 0u64..99_999_999), 0..60),
            b in prop::collection::vec((0usize..60, 0u64..99_999_999), 0..60),
        ) {
            let stack = |name, own| CallStack::new(vec![name], Instructions::new(own));
            let name = |at: usize| a.get(at).map_or("other", |(name, _)| name.as_str());
            let before: Vec<_> = a.iter().map(|(name, own)| stack(name, *own)).collect();
            let after: Vec<_> = b.iter().map(|&(at, own)| stack(name(at), own)).collect();
            let cell = cell("other", OLD, lost());
            let (before, after) = (typical(&cell, before), typical(&cell, after));
            let text = explain_text(&before);
            prop_assert!(adds_up(&column(&text, 0)[0]), "{}", text);
            let diff = explain_diff_text(&before, &after);
            for place in 0..3 {
                let [functions, parts] = column(&diff, place);
                prop_assert!(adds_up(&functions) && adds_up(&parts), "{}", diff);
            }
            let lines = || text.lines().chain(diff.lines());
            prop_assert!(lines().all(|line| columns(line) <= 80 && line.trim_end() == line));
        }
    }
}
