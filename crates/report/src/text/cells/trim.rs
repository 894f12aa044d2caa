//! The steps of a series: what each changes, alone and together with those before it, and what it
//! costs.

use std::iter;

use stats::{Better, Unit};
use summary::{Trim, TrimKernel, TrimResult, TrimValue};
use units::Ppm;

use crate::cells::Cells;
use crate::number;
use crate::text::cells::grid::{Column, Grid};
use crate::text::cells::lines::section;
use crate::text::cells::markdown::escape;
use crate::text::layout::labels::cut_labels;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, aligned, columns};

/// The maximum width of the name of a step or of a cell.
const NAME: usize = 22;
/// Gains and losses below this are not listed beside the costs of a step.
const LISTED: Ppm = Ppm::new(10_000.0);
/// The name of the base.
const BASE: &str = "(base)";

/// What the numbers are.
const WORDS: &str = "The base's numbers, and the differences to them. Of ticks: median number of \
    kernel instructions; of calls: sum of the medians; of programs: instructions of the guest for a \
    unit of work; \"image\": size of the compressed image. Small differences of a workload with \
    several processes can also come from another order of events.";

/// The sections of all series; empty without one.
pub(crate) fn sections(cells: &Cells<'_>) -> String {
    cells.trims().iter().map(sections_of).collect()
}

fn sections_of(trim: &Trim) -> String {
    let base = &trim.base.kernel;
    let alone = grid(trim, |step| &step.alone);
    let mut text =
        section(&format!("Each step alone, compared with {base}"), &alone, WORDS);
    if trim.steps.len() > 1 {
        let together = grid(trim, |step| &step.cumulated);
        text += &format!("\nEach step with all steps before it\n\n{together}");
    }
    text.extend(calls(trim));
    text += &steps(trim);
    text + &total(trim)
}

fn step_names(trim: &Trim) -> Vec<String> {
    cut_labels(trim.steps.iter().map(|step| &step.name), NAME)
}

/// The headings of the columns: experiment and cell.
fn heads(trim: &Trim) -> Vec<[String; 2]> {
    let cells =
        trim.base.values.iter().map(|base| base.as_ref().map_or("", |it| &it.cell));
    let words = cells.map(|cell| cell.split_once(' ').unwrap_or(("", cell)));
    let (experiments, names): (Vec<&str>, Vec<&str>) = words.unzip();
    let heads = cut_labels(experiments, NAME).into_iter().zip(cut_labels(names, NAME));
    heads.map(|(experiment, name)| [experiment, name]).collect()
}

/// A line for each step, and a column for each cell.
fn grid(trim: &Trim, kernel: Select) -> String {
    let names = step_names(trim);
    let kernels = || trim.steps.iter().map(kernel);
    let cell = |((at, base), head): ((usize, &Option<TrimValue>), [String; 2])| {
        let base = base.as_ref()?;
        let own = kernels().map(|kernel| kernel.values.get(at).and_then(Option::as_ref));
        let values = iter::once(in_unit(base, base.value)).chain(changes(own));
        Some(Column::new(head, values.collect()))
    };
    let image =
        kernels().map(|kernel| number::any(kernel.image_difference_bytes, signed_bytes));
    let base = number::any(trim.base.image_bytes, number::bytes);
    let image = Column::new(
        [String::new(), "image".to_owned()],
        iter::once(base).chain(image).collect(),
    );
    let values = trim.base.values.iter().enumerate().zip(heads(trim)).filter_map(cell);
    let grid = Grid {
        corner: [String::new(), "step".to_owned()],
        names: iter::once(BASE.to_owned()).chain(names).collect(),
        columns: values.chain([image]).collect(),
    };
    grid.text()
}

/// Differences with those in percent, each aligned.
fn changes<'a>(values: impl Iterator<Item = Option<&'a TrimValue>>) -> Vec<String> {
    let pairs: Vec<Option<[String; 2]>> = values.map(|value| value.map(change)).collect();
    let width = |part: usize| {
        pairs.iter().flatten().map(|pair| columns(&pair[part])).max().unwrap_or(0)
    };
    let widths = [width(0), width(1)];
    let line = |pair: &Option<[String; 2]>| {
        number::any(pair.as_ref(), |[difference, percent]| {
            let percent = aligned(percent, widths[1], Side::Right);
            format!("{}  {percent}", aligned(difference, widths[0], Side::Right))
        })
    };
    pairs.iter().map(line).collect()
}

fn change(value: &TrimValue) -> [String; 2] {
    let difference = match value.unit {
        Unit::Instructions | Unit::Count | Unit::Hz => {
            number::count_difference(value.difference)
        }
        Unit::Ns | Unit::Ppm => {
            let size = in_unit(value, value.difference.abs());
            match value.difference.total_cmp(&0.0) {
                std::cmp::Ordering::Less => format!("-{size}"),
                std::cmp::Ordering::Equal => "0".to_owned(),
                std::cmp::Ordering::Greater => format!("+{size}"),
            }
        }
    };
    [difference, number::any(value.difference_ppm, number::change)]
}

fn in_unit(of: &TrimValue, value: f64) -> String {
    match of.unit {
        Unit::Instructions | Unit::Count | Unit::Hz => {
            number::rounded(value, number::count)
        }
        Unit::Ns | Unit::Ppm => number::in_unit(value, of.unit),
    }
}

fn signed_bytes(bytes: i64) -> String {
    let size = number::bytes(bytes.unsigned_abs());
    match bytes {
        0 => "0".to_owned(),
        ..0 => format!("-{size}"),
        1.. => format!("+{size}"),
    }
}

/// The difference of each call, for each step alone; `None` without calls.
fn calls(trim: &Trim) -> Option<String> {
    let of = |kernel: &TrimKernel| {
        let sum = kernel.values.iter().flatten().find(|value| !value.calls.is_empty());
        sum.map(|sum| sum.calls.clone()).unwrap_or_default()
    };
    let base = of(&trim.base);
    let kernels = || trim.steps.iter().map(|step| of(&step.alone));
    let column = |call: &summary::TrimCall| {
        let own = kernels().map(|calls| {
            let own = calls.iter().find(|one| one.name == call.name);
            number::any(own, |own| number::count_difference(own.difference))
        });
        let value = number::rounded(call.value, number::count);
        let (above, name) = match call.name.split_once('_') {
            Some((above, name)) => (format!("{above}_"), name),
            None => (String::new(), call.name.as_str()),
        };
        Column::new([above, name.to_owned()], iter::once(value).chain(own).collect())
    };
    let names = step_names(trim);
    let grid = Grid {
        corner: [String::new(), "step".to_owned()],
        names: iter::once(BASE.to_owned()).chain(names).collect(),
        columns: base.iter().map(column).collect(),
    };
    let title = "Single calls, with each step alone";
    (!base.is_empty()).then(|| format!("\n{title}\n\n{}", grid.text()))
}

/// What each step sets, gains and costs.
fn steps(trim: &Trim) -> String {
    let names = step_names(trim);
    let width = names.iter().map(|name| columns(name)).max().unwrap_or(0);
    let line = |(name, step): (&String, &TrimResult)| {
        let costs = match step.costs.as_str() {
            "" => String::new(),
            costs => format!(" Costs: {costs}"),
        };
        let words = format!("{}. {}{costs}", step.options.join(", "), effect(step));
        paragraph(&format!("  {}  ", aligned(name, width, Side::Left)), &words)
    };
    let lines: String = names.iter().zip(&trim.steps).map(line).collect();
    format!("\nSteps\n\n{lines}")
}

/// The largest gain and loss of a step alone, in words.
pub(crate) fn effect(step: &TrimResult) -> String {
    let listed = |value: &&TrimValue, sign: f64| {
        value.gain_ppm().is_some_and(|gain| gain.get() * sign >= LISTED.get())
    };
    let words = |value: &TrimValue, word: &str| {
        let [difference, percent] = change(value);
        format!("{word}: {} {difference} ({percent}).", value.cell)
    };
    let best = step.best().filter(|value| listed(value, 1.0));
    let worst = step.worst().filter(|value| listed(value, -1.0));
    let found = [
        best.map(|value| words(value, "Largest gain")),
        worst.map(|value| words(value, "Worse")),
    ];
    let found: Vec<String> = found.into_iter().flatten().collect();
    match (found.is_empty(), step.best()) {
        (true, Some(_)) => "No change of 1 % or more.".to_owned(),
        (true, None) => "Not measured.".to_owned(),
        (false, _) => found.join(" "),
    }
}

/// What all steps change together, beside the claim of an old post; `None` for a single step.
pub(crate) fn verdict(trim: &Trim) -> Option<String> {
    let [_, .., last] = trim.steps.as_slice() else { return None };
    let last = &last.cumulated;
    let words = |value: &TrimValue| {
        let percent = number::any(value.difference_ppm, number::change);
        let throughput = value.throughput_ppm.map(|gain| {
            let claim = number::ratio(trim.old_claim_ppm);
            format!(
                ", throughput {} (an old blog post claims up to {claim} more)",
                number::change(gain)
            )
        });
        let kind = match value.better {
            Better::Less | Better::Neither => "",
            Better::More => " (more is better)",
        };
        format!("{} {percent}{kind}{}", value.cell, throughput.unwrap_or_default())
    };
    let found: Vec<String> = last.values.iter().flatten().map(words).collect();
    (!found.is_empty()).then(|| format!("All steps together: {}.", found.join("; ")))
}

fn total(trim: &Trim) -> String {
    verdict(trim).map_or_else(String::new, |words| format!("\n{}", paragraph("", &words)))
}

/// The same as Markdown.
pub(crate) fn markdown(cells: &Cells<'_>) -> String {
    cells.trims().iter().map(markdown_of).collect()
}

fn markdown_of(trim: &Trim) -> String {
    let cells: Vec<&TrimValue> = trim.base.values.iter().flatten().collect();
    let heads: String =
        cells.iter().map(|value| format!(" {} |", escape(&value.cell))).collect();
    let rule = "--:|".repeat(cells.len() + 1);
    let mut text = format!("\n## Steps, compared with {}\n", trim.base.kernel);
    for (title, kernel) in kernels_of_tables() {
        let rows: String =
            trim.steps.iter().map(|step| row(&step.name, kernel(step))).collect();
        text += &format!(
            "\n| {title} |{heads} image |\n|---|{rule}\n{}{rows}",
            base_row(trim)
        );
    }
    text += "\n| step | options | effect alone | costs |\n|---|---|---|---|\n";
    for step in &trim.steps {
        let options = step.options.join(", ");
        let [name, options, costs] =
            [&step.name, &options, &step.costs].map(|text| escape(text));
        let effect = escape(&effect(step));
        text += &format!("| {name} | {options} | {effect} | {costs} |\n");
    }
    text.extend(verdict(trim).map(|words| format!("\n{words}\n")));
    text
}

/// Selects a kernel of a step.
type Select = fn(&TrimResult) -> &TrimKernel;

/// The kernels of the two tables, with the heading of their first column.
fn kernels_of_tables() -> [(&'static str, Select); 2] {
    [
        ("step alone", |step| &step.alone),
        ("with all steps before it", |step| &step.cumulated),
    ]
}

fn base_row(trim: &Trim) -> String {
    let values =
        trim.base.values.iter().flatten().map(|value| in_unit(value, value.value));
    let image = number::any(trim.base.image_bytes, number::bytes);
    let fields: Vec<String> = values.chain([image]).collect();
    format!("| {BASE} | {} |\n", fields.join(" | "))
}

fn row(name: &str, kernel: &TrimKernel) -> String {
    let values = kernel.values.iter().map(|value| {
        number::any(value.as_ref(), |value| {
            let [difference, percent] = change(value);
            format!("{difference} ({percent})")
        })
    });
    let image = number::any(kernel.image_difference_bytes, signed_bytes);
    let fields: Vec<String> = values.chain([image]).collect();
    format!("| {} | {} |\n", escape(name), fields.join(" | "))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::{Call, Cell};
    use summary::{TrimSeries, TrimStep};

    use super::*;
    use crate::example::cell::{OLD, call_costs, cell, lost, tick_cost};
    use crate::json::cells::cells_json;
    use crate::text::cells::cells_text;

    const BUILD: &str = "build:debian:6.1,debian";

    fn series() -> [TrimSeries; 1] {
        let step = |name: &str, options: &[&str], costs: &str, all: &str| TrimStep {
            name: name.to_owned(),
            options: options.iter().map(|&option| option.to_owned()).collect(),
            costs: costs.to_owned(),
            alone: format!("{BUILD},name={name}"),
            cumulated: format!("{BUILD},name={all}"),
        };
        let steps = vec![
            step("no-audit", &["AUDIT=n"], "no audit log.", "no-audit"),
            step("no-highres", &["HIGH_RES_TIMERS=n"], "late wake-ups.", "to-no-highres"),
            step("no-lsm", &["SECURITY=n"], "", "to-no-lsm"),
        ];
        [TrimSeries { base: BUILD.to_owned(), steps }]
    }

    /// A tick and two calls on each kernel; one cell is lost, and one kernel has no cell.
    fn cells() -> Vec<Cell> {
        let kernels = [
            ("", 0, 0),
            (",name=no-audit", 40, 3),
            (",name=no-highres", 0, 900),
            (",name=to-no-highres", 40, 903),
            (",name=no-lsm", 600, 0),
        ];
        let of = |(label, less, more): (&str, u64, u64)| {
            let asked = format!("{BUILD}{label}");
            let image_bytes = Some(9_306_624 - 1_000 * less);
            let own = |name: &str, ending| Cell {
                asked: asked.clone(),
                image_bytes,
                ..cell(name, OLD, ending)
            };
            let tick = tick_cost(&[2584 + more; 9], &[(2571 + more, 9)]);
            let calls = call_costs(&[
                (Call::Getpid, &[(412 - less / 2, 200)]),
                (Call::ClockGettime, &[(633, 200)]),
            ]);
            let tick = if less == 600 { lost() } else { tick };
            [own("tick-cost other", tick), own("syscalls calls", calls)]
        };
        kernels.into_iter().flat_map(of).collect()
    }

    fn page<'a>(cells: &'a [Cell], series: &'a [TrimSeries]) -> Cells<'a> {
        Cells {
            experiment: "trim",
            about: "what each step gains",
            cells,
            planned: 10,
            made_with: None,
            violations: None,
            guests: 100,
            series,
        }
    }

    /// Check the tables, single calls, and the words for gains, losses, lost and missing cells.
    #[test]
    fn text() {
        let (cells, series) = (cells(), series());
        let text = cells_text(&page(&cells, &series));
        assert!(text.lines().all(|line| columns(line) <= 80), "{text}");
        assert_snapshot!(text, @r#"
    trim: what each step gains

    Kernels
      debian  build:debian:6.1,debian: 6.1.0-56-cloud-amd64 (6.1.192-2)

    Machine   pc, 1 CPU of qemu64,-rdrand, 256 MiB
    Workload  noise on CPU 0 for 1 s

    Cells              debian
      tick-cost other  271b3c2ff0eb  unmodified kernel
      syscalls calls   488f4ab566fe  unmodified kernel

    Each step alone, compared with build:debian:6.1,debian

                      tick-cost       syscalls
      step                other          calls    image
      (base)               2571           1045  9.31 MB
      no-audit      +3  +0.12 %   -20  -1.91 %   -40 kB
      no-highres  +900  +35.0 %     0      0 %        0
      no-lsm                  -  -300  -28.7 %  -600 kB

    The base's numbers, and the differences to them. Of ticks: median number of
    kernel instructions; of calls: sum of the medians; of programs: instructions of
    the guest for a unit of work; "image": size of the compressed image. Small
    differences of a workload with several processes can also come from another
    order of events.

    Each step with all steps before it

                      tick-cost      syscalls
      step                other         calls    image
      (base)               2571          1045  9.31 MB
      no-audit      +3  +0.12 %  -20  -1.91 %   -40 kB
      no-highres  +903  +35.1 %  -20  -1.91 %   -40 kB
      no-lsm                  -             -        -

    Single calls, with each step alone

                           clock_
      step        getpid  gettime
      (base)         412      633
      no-audit       -20        0
      no-highres       0        0
      no-lsm        -300        0

    Steps

      no-audit    AUDIT=n. Largest gain: syscalls calls -20 (-1.91 %). Costs: no
                  audit log.
      no-highres  HIGH_RES_TIMERS=n. Worse: tick-cost other +900 (+35.0 %). Costs:
                  late wake-ups.
      no-lsm      SECURITY=n. Largest gain: syscalls calls -300 (-28.7 %).

    Instruction counts are exact: the same inputs give the same numbers on every
    machine. Instructions are not time: the cost of caches, branch prediction and
    memory is not included.

    Lost cells
      - tick-cost other on no-lsm: the kernel panicked: VFS: Unable to mount root fs
        on unknown-block(0,0)
        console: /home/me/.cache/noisefloor/lost/5e1f0c.console
    "#);
    }

    /// Check the same as Markdown.
    #[test]
    fn as_markdown() {
        let (cells, series) = (cells(), series());
        assert_snapshot!(markdown(&page(&cells, &series)), @r#"

    ## Steps, compared with build:debian:6.1,debian

    | step alone | tick-cost other | syscalls calls | image |
    |---|--:|--:|--:|
    | (base) | 2571 | 1045 | 9.31 MB |
    | no-audit | +3 (+0.12 %) | -20 (-1.91 %) | -40 kB |
    | no-highres | +900 (+35.0 %) | 0 (0 %) | 0 |
    | no-lsm | - | -300 (-28.7 %) | -600 kB |

    | with all steps before it | tick-cost other | syscalls calls | image |
    |---|--:|--:|--:|
    | (base) | 2571 | 1045 | 9.31 MB |
    | no-audit | +3 (+0.12 %) | -20 (-1.91 %) | -40 kB |
    | no-highres | +903 (+35.1 %) | -20 (-1.91 %) | -40 kB |
    | no-lsm | - | - | - |

    | step | options | effect alone | costs |
    |---|---|---|---|
    | no-audit | AUDIT=n | Largest gain: syscalls calls -20 (-1.91 %). | no audit log. |
    | no-highres | HIGH_RES_TIMERS=n | Worse: tick-cost other +900 (+35.0 %). | late wake-ups. |
    | no-lsm | SECURITY=n | Largest gain: syscalls calls -300 (-28.7 %). |  |
    "#);
        assert_eq!(markdown(&page(&cells, &[])), "");
    }

    /// Check the keys of the JSON object, and that it has none without steps.
    #[test]
    fn json() {
        let (cells, series) = (cells(), series());
        let text = cells_json(&page(&cells, &series), false).unwrap();
        let object: serde_json::Value = serde_json::from_str(&text).unwrap();
        let expected = serde_json::json!({
            "kernel": format!("{BUILD},name=no-audit"),
            "image_bytes": 9_266_624, "image_difference_bytes": -40_000,
            "values": [
                {
                    "cell": "tick-cost other", "metric": "tick_kernel_instructions",
                    "value": 2574.0, "difference": 3.0, "difference_ppm": 3.0 / 2571.0 * 1e6,
                    "throughput_ppm": null,
                },
                {
                    "cell": "syscalls calls", "metric": "calls_instructions", "value": 1025.0,
                    "difference": -20.0, "difference_ppm": -20.0 / 1045.0 * 1e6,
                    "throughput_ppm": null, "calls": [
                        {"name": "getpid", "value": 392.0, "difference": -20.0},
                        {"name": "clock_gettime", "value": 633.0, "difference": 0.0},
                    ],
                },
            ],
        });
        let step = &object["trim"][0]["steps"][0];
        assert_eq!(step["alone"], expected);
        assert_eq!(step["options"], serde_json::json!(["AUDIT=n"]));
        let missing = &object["trim"][0]["steps"][2]["cumulated"]["values"];
        assert_eq!(*missing, serde_json::json!([null, null]));
        let without = cells_json(&page(&cells, &[]), false).unwrap();
        let without: serde_json::Value = serde_json::from_str(&without).unwrap();
        assert!(without.get("trim").is_none());
    }
}
