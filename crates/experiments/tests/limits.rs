//! Limits and baselines: which cells violate them, and which mistakes are refused.
#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use experiments::{Experiment, Limits, Measured, baseline};
use summary::{Metric, ViolatedLimit};

const TABLE: &str = r#"
name = "x"
kernels = ["a", "b"]

[[workload]]
name = "fifo"
noise = { cpu = 0, duration = "1s", fifo = 50 }

[[workload]]
name = "idle"
ticks = { cpu = 0, duration = "1s" }
"#;

fn limits(rows: &str) -> Limits {
    let text = format!("{TABLE}{rows}");
    Experiment::parse(&text, "x.toml").unwrap().limits().clone()
}

fn measured(kernel: &str, cell: &str, metrics: &[(&str, f64)]) -> Measured {
    let about = summary::definitions().next().unwrap();
    let metrics = metrics.iter().map(|&(key, value)| Metric {
        key: key.to_owned(),
        cpu: None,
        value,
        tolerance: 0.0,
        varied: None,
        about,
    });
    let metrics = metrics.collect();
    Measured { kernel: kernel.into(), cell: cell.into(), variations: 1, metrics }
}

/// The measured values of both kernels.
fn cells() -> Vec<Measured> {
    vec![
        measured("a", "fifo", &[("tick_instructions", 2345.0)]),
        measured("a", "idle", &[("idle_timer_hz", 250.0)]),
        measured("b", "fifo", &[("tick_instructions", 2450.0)]),
        measured("b", "idle", &[("idle_timer_hz", 1.5)]),
    ]
}

/// The cells that violate the rows' limits: kernel, cell, metric, number, limit.
fn broken(rows: &str) -> Vec<String> {
    let violated = limits(rows).check(&cells()).unwrap();
    let texts = violated.iter().map(
        |ViolatedLimit { kernel, cell, metric, value, limit, .. }| {
            format!("{kernel} {cell}: {metric} {value} {limit}")
        },
    );
    texts.collect()
}

fn wrong(rows: &str) -> String {
    limits(rows).check(&cells()).unwrap_err().to_string()
}

/// Check each comparison, and its edge.
#[test]
fn comparisons() {
    for (limit, holds) in [
        ("< 2451", true),
        ("< 2450", false),
        ("<= 2450", true),
        ("<=2449.5", false),
        (">= 2345", true),
        (">= 2346", false),
        ("> 2344.9", true),
        ("> 2345", false),
        ("== 2345", false),
        ("> -1", true),
    ] {
        let rows = format!("[limits]\ntick_instructions = \"{limit}\"\n");
        assert_eq!(broken(&rows).is_empty(), holds, "{limit}");
    }
}

/// Check that a limit is for the kernels and cells that it names, else for all that have
/// the metric.
#[test]
fn whom_it_is_for() {
    let all = "[limits]\ntick_instructions = \"<= 2400\"\nidle_timer_hz = \"< 2\"\n";
    let [tick, idle] = broken(all).try_into().unwrap();
    assert_eq!(tick, "b fifo: tick_instructions 2450 <= 2400");
    assert_eq!(idle, "a idle: idle_timer_hz 250 < 2");
    let row = "[[limit]]\nmetrics = { tick_instructions = \"<= 1\" }\n";
    assert_eq!(broken(row).len(), 2);
    assert_eq!(broken(&format!("{row}kernels = [\"a\"]\n")).len(), 1);
    assert_eq!(broken(&format!("{row}kernels = [\"a\"]\ncells = [\"fifo\"]\n")).len(), 1);
}

/// Check that a violated limit has its place, and that equal repeats count once.
#[test]
fn violated_limits() {
    let limits = limits("[limits]\ntick_instructions = \"<= 2400\"\n");
    let twice = [cells(), cells()].concat();
    let [violated] = limits.check(&twice).unwrap().try_into().unwrap();
    assert_eq!(violated.place, "x.toml:13:1");
}

/// Check that a baseline is met exactly, or within its tolerance on both sides.
#[test]
fn against_a_baseline() {
    let row = |number: &str, tolerance: &str| {
        let cell = "[[baseline]]\nkernel = \"a\"\ncell = \"fifo\"\n";
        broken(&format!("{cell}{tolerance}metrics.tick_instructions = {number}\n"))
    };
    assert_eq!(row("2345", ""), [""; 0]);
    assert_eq!(row("2344", ""), ["a fifo: tick_instructions 2345 == 2344"]);
    let wide = "tolerance_ppm = 1000\n";
    assert_eq!(row("2343", wide), [""; 0]);
    assert_eq!(row("2347", wide), [""; 0]);
    let low = "a fifo: tick_instructions 2345 within 1000 ppm of 2342";
    assert_eq!(row("2342", wide), [low]);
    assert_eq!(row("2348", wide).len(), 1);
    assert_eq!(row("{ value = 2340.5, tolerance = 4.5 }", wide), [""; 0]);
    let low = "a fifo: tick_instructions 2345 within 4 of 2340.5";
    assert_eq!(row("{ value = 2340.5, tolerance = 4 }", ""), [low]);
}

/// Check that a metric that no cell has is an error that names the existing ones.
#[test]
fn no_such_metric() {
    let message = wrong("[limits]\ntick = \"<= 1\"\n");
    let there = "there are tick_instructions, idle_timer_hz";
    assert_eq!(message, format!("x.toml:13:1: no cell has a metric 'tick': {there}"));
    let row = "[[limit]]\ncells = [\"fifo\", \"idle\"]\n";
    let message = wrong(&format!("{row}metrics.idle_timer_hz = \"< 999\"\n"));
    let why = "cell 'fifo' has no metric 'idle_timer_hz': there are tick_instructions";
    assert_eq!(message, format!("x.toml:14:9: {why}"));
}

/// Check that lost cells and cells that were not run are skipped, but that it is an error if no
/// limit applies to any cell that was run.
#[test]
fn what_was_not_run() {
    let rows =
        "[[limit]]\nkernels = [\"b\"]\nmetrics = { tick_instructions = \"< 1\" }\n";
    let limits = limits(rows);
    let message = limits.check(&cells()[..2]).unwrap_err().to_string();
    let none = "none of the limits (the first: x.toml:14:13) is for a cell that was run";
    let why = "they name kernel b; leave out 'kernels' to hold every kernel to them";
    assert_eq!(message, format!("{none}: {why}"));
    assert_eq!(limits.check(&[measured("b", "fifo", &[])]), Ok(Vec::new()));
    let one_lost = [measured("b", "fifo", &[]), cells()[2].clone()];
    assert_eq!(limits.check(&one_lost).unwrap().len(), 1);
}

/// Check that the error of limits that do not apply names other kernels only if each limit does,
/// and none of them was run.
#[test]
fn for_other_kernels() {
    let row = |kernel: &str| {
        format!("[[baseline]]\ncell = \"fifo\"\n{kernel}metrics.tick_instructions = 1\n")
    };
    let error = |rows: &str, cells: &[Measured]| {
        limits(rows).check(cells).unwrap_err().to_string()
    };
    let here = measured("./bzImage", "fifo", &[("tick_instructions", 1.0)]);
    let idle = measured("./bzImage", "idle", &[("idle_timer_hz", 1.0)]);
    let both = row("kernel = \"b\"\n") + &row("kernel = \"a\"\n");
    let here = [here];
    let message = error(&both, &here);
    let why = "they name kernels b, a; leave out 'kernel' to hold every kernel to them";
    assert!(message.ends_with(why), "{message}");
    let message = error(&row(""), &[idle]);
    assert!(message.ends_with(") is for a cell that was run"), "{message}");
    let other = measured("a", "idle", &[("idle_timer_hz", 1.0)]);
    assert!(!error(&both, &[other]).contains("leave out"));
    assert_eq!(limits(&(both + &row(""))).check(&here), Ok(Vec::new()));
}

/// Check that a limit may be for a kernel of the command line's, and that one for an unknown kernel
/// is refused with the known ones.
#[test]
fn kernels_of_the_command_line() {
    let row = "[[baseline]]\nkernel = \"./bzImage\"\ncell = \"fifo\"\nmetrics.x = 1\n";
    let limit = "[[limit]]\nkernels = [\"b\", \"./bzImage\"]\nmetrics.x = \"< 1\"\n";
    for (rows, place) in [(row, "13:10"), (limit, "13:17")] {
        let experiment = Experiment::parse(&format!("{TABLE}{rows}"), "x.toml").unwrap();
        let with = |kernel: &str| {
            experiment.clone().with_kernels(&[kernel.to_owned()]).map(drop)
        };
        assert_eq!(with("./bzImage"), Ok(()));
        let message = with("a").unwrap_err().to_string();
        let why = "no kernel './bzImage': there are 'a', 'b'";
        assert_eq!(message, format!("x.toml:{place}: {why}"));
        assert!(with("c").unwrap_err().to_string().ends_with("'a', 'b', 'c'"));
    }
}

/// Check that a mistyped metric is found before anything is run, with similar ones.
#[test]
fn unknown_metrics() {
    let known = ["tick_instructions", "idle_timer_hz"].map(str::to_owned);
    let unknown = |rows: &str| limits(rows).refuse_unknown(&known);
    assert_eq!(unknown(""), Ok(()));
    assert_eq!(unknown("[limits]\nidle_timer_hz = \"< 1\"\n"), Ok(()));
    let rows = "[[baseline]]\ncell = \"fifo\"\nmetrics.tick_instuctions = 1\n";
    let message = unknown(rows).unwrap_err().to_string();
    let why = "no cell has a metric 'tick_instuctions': there is tick_instructions";
    assert_eq!(message, format!("x.toml:14:9: {why}"));
}

/// Check that a baseline of one kernel is for every kernel, names the measured one, and that it
/// applies to other kernels.
#[test]
fn baseline_of_one_kernel() {
    let measured = &cells()[..2];
    let text = baseline(measured);
    assert!(text.starts_with("# measured on a; for every kernel\n[[baseline]]\ncell = "));
    assert!(!text.contains("kernel ="), "{text}");
    assert_eq!(broken(&text).len(), 2, "b is another kernel");
    let lost = [measured, &[self::measured("b", "fifo", &[])]].concat();
    assert!(baseline(&lost).starts_with("[[baseline]]\nkernel = \"a\"\n"));
    assert_eq!(baseline(&[]), "");
}

/// Check that a generated baseline can be parsed, and that its own cells meet it.
#[test]
fn baseline_round_trip() {
    let twice = [cells(), cells(), vec![measured("a", "lost", &[])]].concat();
    let text = baseline(&twice);
    assert_eq!(text.matches("[[baseline]]").count(), 4);
    assert!(text.starts_with("[[baseline]]\nkernel = \"a\"\n"), "{text}");
    assert_eq!(broken(&text), [""; 0]);
    let mut other = cells();
    other[3].metrics[0].value = 1.25;
    let violated = limits(&text).check(&other).unwrap();
    assert_eq!(violated[0].limit, "within 0.001 of 1.5");
}

/// Check that a metric with a spread is written with a tolerance that covers it, and the rounding.
#[test]
fn baseline_with_a_tolerance() {
    let with = |value| {
        let mut cells = vec![measured("a", "fifo", &[("tick_instructions_mean", value)])];
        cells[0].metrics[0].tolerance = 10.0 / 3.0;
        cells
    };
    let text = baseline(&with(2_345.0 + 2.0 / 3.0));
    let number = "tick_instructions_mean = { value = 2345.667, tolerance = 3.334 }";
    assert!(text.ends_with(&format!("{number}\n")), "{text}");
    let violated = |value| limits(&text).check(&with(value)).unwrap().len();
    assert_eq!([2_342.334, 2_349.0, 2_342.3, 2_349.1].map(violated), [0, 0, 1, 1]);
}
