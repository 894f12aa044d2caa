//! A fact's value in words. Any JSON value is possible, under a key that ends with the unit; a few
//! keys need an explanation.

use serde_json::Value;
use units::Nanos;

use crate::document::text::{Text, text};
use crate::number;

/// Longer lists are cut; JSON has all items.
const ITEMS_MAX: usize = 16;
/// The mitigation of a vulnerability that the processor does not have.
const NOT_AFFECTED: &str = "Not affected";

/// The fact's name in its group, in words: `rt_runtime_us` is `rt runtime`.
pub(crate) fn label(name: &str) -> String {
    match name {
        "nohz_full" => return name.to_owned(),
        "tsc_hz" => return "tsc rate".to_owned(),
        "base_khz" => return "base frequency".to_owned(),
        "smi_event" => return "SMI event".to_owned(),
        _ => {}
    }
    let bare = ["_ns", "_us", "_ms", "_khz", "_hz"]
        .iter()
        .find_map(|unit| name.strip_suffix(unit));
    bare.unwrap_or(name).replace('_', " ")
}

/// The value in words, in one line.
pub(crate) fn words(key: &str, value: &Value) -> Text {
    Text::join(lines(key, value), "; ")
}

/// The value in words: of a list of sentences a text for each.
pub(crate) fn lines(key: &str, value: &Value) -> Vec<Text> {
    match value.as_array() {
        Some(list) if key == "boot.inert" && !list.is_empty() => {
            shown(list.iter().map(inert))
        }
        _ if key == "security.mitigations" => mitigations(value),
        _ => vec![special(key, value).unwrap_or_else(|| plain(key, value))],
    }
}

/// Values with an explanation.
fn special(key: &str, value: &Value) -> Option<Text> {
    let text = match key {
        "tick.hz" => {
            text!("{} a second (CONFIG_HZ)", Text::number(value.as_u64()?.to_string()))
        }
        "tick.divider" => text!(
            "{}: {}",
            Text::command(format!("divider={}", value.get("asked")?.as_str()?)),
            value.get("text")?.as_str()?
        ),
        "tick.mode" | "preempt.model" | "preempt.chosen" => {
            explained(key, value.as_str()?)?.into()
        }
        "sched.rt_runtime_us" if value.as_i64() == Some(-1) => "no limit".into(),
        "power.dma_latency_us" if value.is_null() => "no limit".into(),
        "cpus.smt" => {
            let is_active = value.get("active")?.as_bool()?;
            let control = Text::name(value.get("control")?.as_str()?);
            text!("{} ({})", if is_active { "active" } else { "not active" }, control)
        }
        "cgroup.quota" => {
            let micros = |key: &str| value.get(key)?.as_u64().map(Nanos::from_micros);
            let cgroup = Text::name(value.get("cgroup")?.as_str()?);
            let burst = micros("burst_us").filter(|burst| !burst.is_zero());
            let burst = burst.map(|burst| text!(", and {} more of unused time", burst));
            let [quota, period] = [micros("quota_us")?, micros("period_us")?];
            text!("{} in each {}{} ({})", quota, period, burst, cgroup)
        }
        "cgroup.throttling" => {
            let count = |key: &str| value.get(key)?.as_u64();
            let [times, periods] = [count("times")?, count("periods")?];
            text!(
                "{} in {} of {} periods",
                Nanos::from_nanos(count("ns")?),
                times,
                periods
            )
        }
        key if key.starts_with("pressure.") => {
            let share =
                |key: &str| Some(percent(value.get(key)?.get("avg10")?.as_f64()?));
            let full = share("full").map(|full| text!(", all tasks {}", full));
            text!("some tasks {}{} of the last 10 s", share("some")?, full)
        }
        "power.idle_states" => items(value.as_array()?.iter().map(idle_state), ", "),
        "boot.parameters" => {
            let all = value.as_array()?.iter().map(|parameter| plain(key, parameter));
            Some(Text::join(all, " ")).filter(|all| !all.is_empty())?
        }
        "settings.values" | "settings.unread" | "settings.options" => "see --json".into(),
        "virt.hypervisor" => match value.as_str() {
            Some(name) => hypervisor(name),
            None => "none (bare metal)".into(),
        },
        "cpus.cores" | "cpus.packages" | "cpus.nodes" | "cpus.memory_nodes"
        | "cpus.caches" => {
            items(value.as_array()?.iter().map(|cpus| plain(key, cpus)), " | ")
        }
        "irq.bound" => items(value.as_array()?.iter().map(bound_irq), "; "),
        _ => return None,
    };
    Some(text)
}

fn percent(value: f64) -> Text {
    Text::number(format!("{value} %"))
}

/// A word with an explanation.
fn explained(key: &str, word: &str) -> Option<&'static str> {
    Some(match (key, word) {
        ("tick.mode", "periodic") => "periodic: never stops",
        ("tick.mode", "idle") => "idle: stops on idle CPUs",
        ("tick.mode", "full") => {
            "full: stops on idle CPUs, and on nohz_full CPUs with one task"
        }
        ("preempt.model", "none") => "none: kernel code is not preempted",
        ("preempt.model", "voluntary") => "voluntary: at explicit preemption points",
        ("preempt.model", "lazy") => {
            "lazy: real-time tasks at once, others at the next tick"
        }
        ("preempt.model", "full") => "full: at once, except in critical sections",
        ("preempt.model", "rt") => "rt: at once, even in most critical sections",
        ("preempt.chosen", "static") => "static: fixed at build time",
        ("preempt.chosen", "default") => "default: set by the kernel configuration",
        ("preempt.chosen", "boot") => "boot: preempt= on the command line",
        ("preempt.chosen", "run_time") => "run time: set in debugfs",
        _ => return None,
    })
}

fn plain(key: &str, value: &Value) -> Text {
    match value {
        Value::Null => "none".into(),
        Value::Bool(true) => "yes".into(),
        Value::Bool(false) => "no".into(),
        Value::Number(number) => match number.as_u64() {
            Some(number) => quantity(key, number),
            None => Text::number(number.to_string()),
        },
        Value::String(text) if text.is_empty() => "none".into(),
        Value::String(text) => Text::name(text),
        Value::Array(list) => items(list.iter().map(|item| plain(key, item)), ", "),
        Value::Object(map) => {
            let named = |(name, value): (&String, &Value)| {
                text!("{} {}", Text::name(name), plain(name, value))
            };
            items(map.iter().map(named), ", ")
        }
    }
}

fn quantity(key: &str, number: u64) -> Text {
    match key.rsplit('_').next() {
        Some("ns") => number::duration(Nanos::from_nanos(number)),
        Some("us") => number::duration(Nanos::from_micros(number)),
        Some("ms") => number::duration(Nanos::from_millis(number)),
        Some("khz") => number::frequency(number.saturating_mul(1_000)),
        Some("hz") => number::frequency(number),
        _ => Text::number(number.to_string()),
    }
}

fn idle_state(state: &Value) -> Text {
    let name = state.get("name").and_then(Value::as_str).unwrap_or(number::UNKNOWN);
    let latency = state.get("latency_us").and_then(Value::as_u64);
    let exit = number::known(latency.map(Nanos::from_micros));
    let is_off = state.get("disabled").and_then(Value::as_bool) == Some(true);
    let off = if is_off { ", disabled" } else { "" };
    text!("{} (exit latency {}{})", Text::name(name), exit, off)
}

fn bound_irq(irq: &Value) -> Text {
    let part = |name: &str| plain(name, irq.get(name).unwrap_or(&Value::Null));
    text!("{} {} on CPU {}", part("number"), part("name"), part("cpus"))
}

fn inert(inert: &Value) -> Text {
    let part = |name: &str| inert.get(name).and_then(Value::as_str).unwrap_or_default();
    text!("{}: {}", Text::command(part("parameter")), part("text"))
}

/// The vulnerabilities that the processor has, each in a text, and the others in one.
fn mitigations(value: &Value) -> Vec<Text> {
    let all = value.as_object().into_iter().flatten();
    let (others, affected): (Vec<_>, Vec<_>) =
        all.partition(|(_, text)| text.as_str() == Some(NOT_AFFECTED));
    let mut texts = shown(affected.into_iter().map(|(name, text)| {
        text!("{}: {}", Text::name(name), text.as_str().unwrap_or(number::UNKNOWN))
    }));
    if !others.is_empty() || texts.is_empty() {
        let names = Text::join(others.iter().map(|(name, _)| Text::name(*name)), ", ");
        texts.push(text!(
            "not affected: {}",
            if names.is_empty() { "none".into() } else { names }
        ));
    }
    texts
}

/// The items, with these separators.
fn items(items: impl ExactSizeIterator<Item = Text>, between: &str) -> Text {
    let shown = Text::join(shown(items), between);
    if shown.is_empty() { "none".into() } else { shown }
}

/// The items, of many the first ones and how many are left out.
fn shown(items: impl ExactSizeIterator<Item = Text>) -> Vec<Text> {
    let left_out = items.len().saturating_sub(ITEMS_MAX);
    let more = (left_out > 0).then(|| {
        let left_out = Text::number(left_out.to_string());
        text!("and {} more (see {})", left_out, Text::command("--json"))
    });
    items.take(ITEMS_MAX).chain(more).collect()
}

/// A hypervisor's name in a sentence.
pub(crate) fn hypervisor(name: &str) -> Text {
    Text::name(if name == "unnamed" { "an unnamed hypervisor" } else { name })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Check values with the unit in their key.
    #[test]
    fn units_come_from_the_key() {
        for (key, value, text) in [
            ("sched.base_slice_ns", json!(2_800_000), "2.8 ms"),
            ("sched.rt_runtime_us", json!(950_000), "950 ms"),
            ("sched.rt_runtime_us", json!(-1), "no limit"),
            ("power.dma_latency_us", json!(20), "20 µs"),
            ("power.dma_latency_us", json!(null), "no limit"),
            ("sched.rr_timeslice_ms", json!(100), "100 ms"),
            ("sched.fair_server_runtime_ns", json!([50_000_000, 0]), "50 ms, 0 ns"),
            ("clock.tsc_hz", json!(2_596_122_000_u64), "2.60 GHz"),
            ("hardware.base_khz", json!(2_600_000), "2.6 GHz"),
            ("security.uid", json!(1000), "1000"),
        ] {
            assert_eq!(words(key, &value), text, "{key}");
        }
    }

    /// Check that an empty list, set or option is "none", and a boolean "yes" or "no".
    #[test]
    fn empty_is_none() {
        for value in [json!([]), json!(""), json!(null)] {
            assert_eq!(words("cpus.isolated", &value), "none");
        }
        assert_eq!(words("irq.threaded", &json!(false)), "no");
    }

    /// Check that long lists are cut, with a remark.
    #[test]
    fn long_lists_are_cut() {
        let cores: Vec<String> = (0..128).map(|n| format!("{n},{}", n + 128)).collect();
        let text = words("cpus.cores", &json!(cores)).to_string();
        assert!(text.starts_with("0,128 | 1,129 | "), "{text}");
        assert!(text.ends_with("and 112 more (see --json)"), "{text}");
    }

    /// Check that each vulnerability that the processor has is in a line of its own.
    #[test]
    fn vulnerabilities() {
        let texts = json!({
            "l1tf": "Not affected", "mds": "Vulnerable; SMT vulnerable",
            "meltdown": "Mitigation: PTI", "srbds": "Not affected",
        });
        let expected = "mds: Vulnerable; SMT vulnerable; meltdown: Mitigation: PTI; \
                        not affected: l1tf, srbds";
        assert_eq!(words("security.mitigations", &texts), expected);
        assert_eq!(lines("security.mitigations", &texts).len(), 3);
    }

    /// Check the values that are structures.
    #[test]
    fn structures() {
        let states = json!([
            {"name": "C1", "latency_us": 2, "disabled": false},
            {"name": "C6", "latency_us": 133, "disabled": true},
        ]);
        let text = "C1 (exit latency 2 µs), C6 (exit latency 133 µs, disabled)";
        assert_eq!(words("power.idle_states", &states), text);
        let bound = json!([{"number": 36, "name": "nvme0q2", "cpus": "1"}]);
        assert_eq!(words("irq.bound", &bound), "36 nvme0q2 on CPU 1");
        let quota = json!({
            "cgroup": "/sys/fs/cgroup/a", "quota_us": 20_000, "period_us": 100_000,
            "burst_us": 0,
        });
        assert_eq!(
            words("cgroup.quota", &quota),
            "20 ms in each 100 ms (/sys/fs/cgroup/a)"
        );
        let mut burst = quota;
        burst["burst_us"] = json!(5_000);
        let text =
            "20 ms in each 100 ms, and 5 ms more of unused time (/sys/fs/cgroup/a)";
        assert_eq!(words("cgroup.quota", &burst), text);
        let throttling = json!({"periods": 34, "times": 31, "ns": 1_970_000_000_u64});
        assert_eq!(words("cgroup.throttling", &throttling), "1.97 s in 31 of 34 periods");
        let stall =
            |avg10| json!({"avg10": avg10, "avg60": 0, "avg300": 0, "total_us": 1});
        let pressure = json!({"some": stall(99.04), "full": stall(0.0)});
        let text = "some tasks 99.04 %, all tasks 0 % of the last 10 s";
        assert_eq!(words("pressure.cpu", &pressure), text);
        let smt = json!({"control": "on", "active": true});
        assert_eq!(words("cpus.smt", &smt), "active (on)");
        let divider = json!({"asked": "10", "effective_hz": 100, "text": "1000/10"});
        assert_eq!(words("tick.divider", &divider), "divider=10: 1000/10");
    }
}
