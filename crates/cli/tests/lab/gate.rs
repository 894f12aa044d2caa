//! Limits and baselines for kernels, and explanations of their instructions.

use serde_json::Value;

use crate::repeats::{Mixed, PHASES, forwards};
use crate::site::{NEW, OLD, Site, named, text};

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap()
}

/// Runs `lab check` on the mixed experiment with additional limits.
fn check(mixed: &Mixed, file: &str, limits: &str) -> (Option<i32>, String) {
    let file = mixed.site.file(file, &(forwards() + limits));
    let output = mixed.site.output(&["lab", "check", &file]);
    let said = text(&output.stderr);
    // Another test may read the same cells.
    let is_other = |line: &&str| !line.contains("waiting for another process");
    let others = said.lines().filter(is_other).map(|line| line.to_owned() + "\n");
    (output.status.code(), others.collect())
}

/// Check that satisfied limits pass, and that cells that exceed a limit are named.
#[test]
fn limits() {
    let Some(mixed) = Mixed::get() else { return };
    let tick =
        number(&named(&mixed.cells, "other")["summary"]["gap_instructions"]["p50"]);
    let holds = format!("[limits]\ntick_instructions = \"<= {tick}\"\n");
    assert_eq!(check(mixed, "holds.toml", &holds), (Some(0), String::new()));
    let tight = format!("[limits]\ntick_instructions = \"< {tick}\"\n");
    let (code, said) = check(mixed, "tight.toml", &tight);
    assert_eq!(code, Some(1));
    assert!(said.contains("other") && said.contains(&tick.to_string()), "{said}");
    assert!(!said.contains("calls"), "{said}");
}

/// Check that a printed baseline is satisfied, and one that is too low is not. It is that of one cell: each takes
/// the guests of six variations.
#[test]
fn baseline() {
    let Some(mixed) = Mixed::get() else { return };
    let one = ["--set", "workload=other"];
    let print = [&["lab", "check", &mixed.file, "--print-baseline"], &one[..]].concat();
    let output = mixed.site.output(&print);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let baseline = text(&output.stdout);
    assert_eq!(check(mixed, "baseline.toml", &baseline), (Some(0), String::new()));
    // An increase of a tick by ten instructions is detected, and one just below the tolerance
    // is not.
    let row = |line: &&str| line.starts_with("tick_kind_instructions_min = ");
    let kind = baseline.lines().find(row).unwrap();
    let digits = kind.split("value = ").nth(1).unwrap().split('.').next().unwrap();
    let value: u64 = digits.parse().unwrap();
    for (less, code) in [(10, Some(1)), (5, Some(0))] {
        let row = kind.replace(digits, &(value - less).to_string());
        let changed = baseline.replace(kind, &row);
        let (ended, said) = check(mixed, "changed.toml", &changed);
        assert_eq!(ended, code, "{said}");
        assert_eq!(
            said.contains("tick_kind_instructions_min"),
            code == Some(1),
            "{said}"
        );
    }
}

fn explain(mixed: &Mixed, args: &[&str]) -> Value {
    let args = [&["lab", "explain", "--json"], args].concat();
    let output = mixed.site.output(&args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn sum(explained: &Value, key: &str) -> i64 {
    let functions = explained["summary"]["functions"].as_array().unwrap();
    functions.iter().map(|function| number(&function[key])).sum()
}

/// Check that the profile of a phase, by entry and by function, has all counted instructions,
/// of programs and the kernel, for an idle CPU, a spinning one, one of two, and one call.
#[test]
fn whole_phases_add_up() {
    let Some(mixed) = Mixed::get() else { return };
    let calls = named(&mixed.cells, "calls")["summary"]["calls"].as_array().unwrap();
    let pipe = calls.iter().position(|call| call["name"] == "pipe").unwrap();
    for (name, cpu, call, more) in [
        ("idle", 0, None, &[][..]),
        ("other", 0, None, &[]),
        ("two noise", 1, None, &[]),
        ("two noise", 0, None, &["--cpu", "0"]),
        ("calls", 0, Some(pipe), &["--call", "pipe"]),
    ] {
        let cell = format!("{}/{name}@{OLD}", mixed.file);
        let explained = explain(mixed, &[&[&*cell, "--whole"], more].concat());
        let phases = named(&mixed.cells, name)["counts"]["phases"].as_array().unwrap();
        let of_call = |call: usize| &phases[call * PHASES..(call + 1) * PHASES];
        let phases = call.map_or(phases.as_slice(), of_call).iter();
        let on_cpus = phases.flat_map(|phase| phase["cpus"].as_array().unwrap());
        let counted: Vec<&Value> =
            on_cpus.filter(|counts| counts["cpu"] == cpu).collect();
        let all =
            |key: &str| counted.iter().map(|counts| number(&counts[key])).sum::<i64>();
        let summary = &explained["summary"];
        assert_eq!(number(&summary["user_instructions"]), all("user"), "{name}");
        assert_eq!(number(&summary["kernel_instructions"]), all("kernel"), "{name}");
        let entries = summary["entries"].as_array().unwrap().iter();
        let by_entry: i64 = entries.map(|entry| number(&entry["instructions"])).sum();
        let all = number(&summary["total_instructions"]);
        assert_eq!([by_entry, sum(&explained, "own_instructions")], [all, all], "{name}");
    }
}

/// Check that each call can be explained, also if the cost of each repeat differs.
#[test]
fn every_call() {
    let Some(mixed) = Mixed::get() else { return };
    for cell in ["calls", "two company"] {
        let calls = &named(&mixed.cells, cell)["summary"]["calls"];
        let cell = format!("{}/{cell}@{OLD}", mixed.file);
        for call in calls.as_array().unwrap() {
            let name = call["name"].as_str().unwrap();
            let explained = explain(mixed, &[&cell, "--call", name]);
            // It is the median of a phase, the nearest to that of all phases.
            let values = call["instructions"]["values"].as_array().unwrap();
            let total = &explained["summary"]["total_instructions"];
            assert!(values.iter().any(|pair| pair[0] == *total), "{name}: {total}");
            let [near, off] =
                ["p50", "p50_deviation"].map(|key| number(&call["instructions"][key]));
            assert!((number(total) - near).abs() <= off, "{name}: {total} {near} {off}");
        }
    }
}

/// Check that the parts of a tick and of a call add up to the measured number.
#[test]
fn parts_add_up() {
    let Some(mixed) = Mixed::get() else { return };
    let tick = explain(mixed, &[&format!("{}/other@{OLD}", mixed.file)]);
    let measured =
        &named(&mixed.cells, "other")["summary"]["kinds"]["kinds"][0]["instructions"];
    assert_eq!(&tick["summary"]["total_instructions"], measured);
    assert_eq!(sum(&tick, "own_instructions"), number(measured));
    let cell = format!("{}/calls@{OLD}", mixed.file);
    let call = explain(mixed, &[&cell, "--call", "pipe"]);
    let calls = named(&mixed.cells, "calls")["summary"]["calls"].as_array().unwrap();
    let pipe = calls.iter().find(|call| call["name"] == "pipe").unwrap();
    assert_eq!(call["summary"]["total_instructions"], pipe["instructions"]["p50"]);
    assert_eq!(
        sum(&call, "own_instructions"),
        number(&call["summary"]["total_instructions"])
    );
}

/// Check that the differences of two kernels' functions add up to that of their ticks, and that
/// the flame graphs are written.
#[test]
fn differences_add_up() {
    let Some(mixed) = Mixed::get() else { return };
    let one = format!("{}/other@{OLD}", mixed.file);
    let other = format!("@{NEW}");
    let difference = explain(mixed, &[&one, "--diff", &other]);
    let summary = &difference["summary"];
    let (a, b) = ("total_instructions_a", "total_instructions_b");
    assert_eq!(sum(&difference, "own_instructions_a"), number(&summary[a]));
    assert_eq!(sum(&difference, "own_instructions_b"), number(&summary[b]));
    assert_eq!(number(&summary["difference"]), number(&summary[b]) - number(&summary[a]));
    assert_eq!(sum(&difference, "difference"), number(&summary["difference"]));
    let svg = mixed.site.file("tick.svg", "");
    explain(mixed, &[&one, "-o", &svg]);
    assert!(std::fs::read_to_string(&svg).unwrap().contains("</svg>"));
    let page = mixed.site.file("tick.html", "");
    explain(mixed, &[&one, "-o", &page]);
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.contains("<g class=\"frame\"") && page.contains("<figure>"));
    let stacks = mixed.site.file("tick.folded", "");
    explain(mixed, &[&one, "-o", &stacks]);
    let stacks = std::fs::read_to_string(&stacks).unwrap();
    let count = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<i64>().unwrap();
    assert_eq!(stacks.lines().map(count).sum::<i64>(), number(&summary[a]));
}

/// Check that two cells are compared by the metrics of their reports, that a cell does not differ from
/// itself, and that conditions decide the exit code.
#[test]
fn compares() {
    let Some(mixed) = Mixed::get() else { return };
    let one = format!("{}/other@{OLD}", mixed.file);
    let other = format!("@{NEW}");
    let output = mixed.site.output(&["compare", &one, &other, &one, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let old = &named(&mixed.cells, "other")["metrics"];
    let [new, same] =
        [0, 1].map(|at| found["comparisons"][at]["metrics"].as_array().unwrap());
    assert!(new.len() > 3);
    for metric in new {
        let [base, value] = [0, 1].map(|at| metric["values"][at].as_f64().unwrap());
        assert_eq!(Some(base), old[metric["metric"].as_str().unwrap()].as_f64());
        assert_eq!(metric["difference"].as_f64(), Some(value - base));
    }
    assert!(new.iter().any(|metric| metric["difference"] != 0.0));
    assert!(same.iter().all(|metric| metric["difference"] == 0.0));
    let tick = new.iter().find(|metric| metric["metric"] == "tick_instructions").unwrap();
    let difference = tick["difference"].as_f64().unwrap();
    for (bound, code) in [(difference - 1.0, 1), (difference, 0)] {
        let condition = format!("tick_instructions > {bound:+}");
        let output =
            mixed.site.output(&["compare", &one, &other, "--fail-if", &condition]);
        assert_eq!(
            output.status.code(),
            Some(code),
            "{condition}: {}",
            text(&output.stdout)
        );
    }
    let file = mixed.site.file("any.json", "{}");
    let output = mixed.site.output(&["compare", &file, &one]);
    assert_eq!(output.status.code(), Some(2));
}

/// Check that boot parameters are tried in guests: with `nohz_full` no tick is left, both cells are
/// exact, and usage errors come before anything boots.
#[test]
fn boots_are_tried() {
    let Some(site) = Site::new() else { return };
    let tried = ["try", "--boot", "nohz_full=1 isolcpus=1 rcu_nocbs=1", "--kernel", NEW];
    let noise = ["noise", "-c", "1", "-d", "200ms", "--fifo", "50"];
    let args = [&tried[..], &["--json", "--"], &noise].concat();
    let output = site.output(&args);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["cells"][0]["params"], "");
    assert_eq!(found["cells"][1]["params"], tried[2]);
    let metrics = found["comparisons"][0]["metrics"].as_array().unwrap();
    let of = |key: &str| metrics.iter().find(|one| one["metric"] == key).unwrap();
    let tick = &of("tick_kernel_instructions")["values"];
    assert!(tick[0].as_f64().is_some_and(|cost| cost > 500.0), "{found:#}");
    assert!(tick[1].is_null(), "{found:#}");
    assert_eq!(site.output(&args).stdout, output.stdout);
    let shown = site.output(&[&tried[..], &["--"], &noise].concat());
    assert!(text(&shown.stdout).contains("A 50, B 0."), "{}", text(&shown.stdout));
    for (words, expected) in [
        (&["check"][..], "guests measure noise"),
        (&["noise", "-c", "0-1"], "one CPU is measured"),
    ] {
        let refused = site.output(&[&tried[..], &["--"], words].concat());
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains(expected), "{}", text(&refused.stderr));
    }
}
