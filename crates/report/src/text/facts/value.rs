//! A fact's value in words. Any JSON value is possible, under a key that ends with the unit; a few
//! keys need an explanation.

use serde_json::Value;
use units::Nanos;

use crate::number;

/// Longer lists are cut; JSON has all items.
const ITEMS_MAX: usize = 16;

/// The fact's name in its group, in words: `rt_runtime_us` is `rt runtime`.
pub(crate) fn label(name: &str) -> String {
    match name {
        "nohz_full" => return name.to_owned(),
        "tsc_hz" => return "tsc rate".to_owned(),
        _ => {}
    }
    let bare =
        ["_ns", "_us", "_ms", "_hz"].iter().find_map(|unit| name.strip_suffix(unit));
    bare.unwrap_or(name).replace('_', " ")
}

/// The value in words.
pub(crate) fn words(key: &str, value: &Value) -> String {
    special(key, value).unwrap_or_else(|| plain(key, value))
}

/// Values with an explanation.
fn special(key: &str, value: &Value) -> Option<String> {
    let text = match key {
        "tick.hz" => format!("{} a second (CONFIG_HZ)", value.as_u64()?),
        "tick.mode" => match value.as_str()? {
            "periodic" => "periodic: never stops".to_owned(),
            "idle" => "idle: stops on idle CPUs".to_owned(),
            "full" => {
                "full: stops on idle CPUs, and on nohz_full CPUs with one task".to_owned()
            }
            _ => return None,
        },
        "tick.divider" => format!(
            "divider={}: {}",
            value.get("asked")?.as_str()?,
            value.get("text")?.as_str()?
        ),
        "preempt.model" => preemption(value.as_str()?)?.to_owned(),
        "preempt.chosen" => match value.as_str()? {
            "static" => "static: fixed at build time".to_owned(),
            "default" => "default: set by the kernel configuration".to_owned(),
            "boot" => "boot: preempt= on the command line".to_owned(),
            "run_time" => "run time: set in debugfs".to_owned(),
            _ => return None,
        },
        "sched.rt_runtime_us" if value.as_i64() == Some(-1) => "no limit".to_owned(),
        "cpus.smt" => {
            let is_active = value.get("active")?.as_bool()?;
            let control = value.get("control")?.as_str()?;
            format!("{} ({control})", if is_active { "active" } else { "not active" })
        }
        "power.idle_states" => items(value.as_array()?.iter().map(idle_state), ", "),
        "boot.inert" => items(value.as_array()?.iter().map(inert), "\n"),
        "boot.parameters" => value
            .as_array()?
            .iter()
            .map(|parameter| plain(key, parameter))
            .reduce(|all, parameter| format!("{all} {parameter}"))?,
        "virt.hypervisor" if value.is_null() => "none (bare metal)".to_owned(),
        "cpus.cores" | "cpus.packages" | "cpus.nodes" => {
            items(value.as_array()?.iter().map(|cpus| plain(key, cpus)), " | ")
        }
        _ => return None,
    };
    Some(text)
}

/// The preemption model, with an explanation.
pub(crate) fn preemption(model: &str) -> Option<&'static str> {
    Some(match model {
        "none" => "none: kernel code is not preempted",
        "voluntary" => "voluntary: at explicit preemption points",
        "lazy" => "lazy: real-time tasks at once, others at the next tick",
        "full" => "full: at once, except in critical sections",
        "rt" => "rt: at once, even in most critical sections",
        _ => return None,
    })
}

fn plain(key: &str, value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Number(number) => match number.as_u64() {
            Some(number) => quantity(key, number),
            None => number.to_string(),
        },
        Value::String(text) if text.is_empty() => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(list) => items(list.iter().map(|item| plain(key, item)), ", "),
        Value::Object(map) => items(
            map.iter().map(|(name, value)| format!("{name} {}", plain(name, value))),
            ", ",
        ),
    }
}

fn quantity(key: &str, number: u64) -> String {
    match key.rsplit('_').next() {
        Some("ns") => number::duration(Nanos::from_nanos(number)),
        Some("us") => number::duration(Nanos::from_micros(number)),
        Some("ms") => number::duration(Nanos::from_millis(number)),
        Some("hz") => number::frequency(number),
        _ => number.to_string(),
    }
}

fn idle_state(state: &Value) -> String {
    let name = state.get("name").and_then(Value::as_str).unwrap_or(number::UNKNOWN);
    let latency = state.get("latency_us").and_then(Value::as_u64);
    let exit = number::known(latency, |us| number::duration(Nanos::from_micros(us)));
    let is_off = state.get("disabled").and_then(Value::as_bool) == Some(true);
    format!("{name} (exit latency {exit}{})", if is_off { ", disabled" } else { "" })
}

fn inert(inert: &Value) -> String {
    let part = |name: &str| inert.get(name).and_then(Value::as_str).unwrap_or_default();
    format!("{}: {}", part("parameter"), part("text"))
}

fn items(items: impl ExactSizeIterator<Item = String>, separator: &str) -> String {
    let left_out = items.len().saturating_sub(ITEMS_MAX);
    let shown: Vec<String> = items.take(ITEMS_MAX).collect();
    let shown = shown.join(separator);
    match left_out {
        0 if shown.is_empty() => "none".to_owned(),
        0 => shown,
        _ => format!("{shown}{separator}and {left_out} more (see --json)"),
    }
}

/// A hypervisor's name in a sentence.
pub(crate) fn hypervisor(name: &str) -> &str {
    if name == "unnamed" { "an unnamed hypervisor" } else { name }
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
            ("sched.rr_timeslice_ms", json!(100), "100 ms"),
            ("sched.fair_server_runtime_ns", json!([50_000_000, 0]), "50 ms, 0 ns"),
            ("clock.tsc_hz", json!(2_596_122_000_u64), "2.60 GHz"),
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
        let text = words("cpus.cores", &json!(cores));
        assert!(text.starts_with("0,128 | 1,129 | "), "{text}");
        assert!(text.ends_with("and 112 more (see --json)"), "{text}");
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
        let smt = json!({"control": "on", "active": true});
        assert_eq!(words("cpus.smt", &smt), "active (on)");
        let divider = json!({"asked": "10", "effective_hz": 100, "text": "1000/10"});
        assert_eq!(words("tick.divider", &divider), "divider=10: 1000/10");
    }
}
