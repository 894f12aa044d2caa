//! The sentences of `latency` about idle states: which the CPUs could enter, which they were in,
//! and what would change that.

use facts::Facts;
use stats::{IdleStateUse, LatencySummary, NO_WAKE_LIMIT};
use units::Nanos;

use crate::number;

/// States that CPUs were in for less than that are not named.
const SELDOM: f64 = 10_000.0;

/// All that is known of the idle states.
pub(crate) fn idle_states(facts: &Facts, summary: &LatencySummary) -> String {
    let states = summary.idle_states();
    if states.is_empty() {
        let why = match facts.power.idle_states.value() {
            Ok(_) => "they were not recorded".to_owned(),
            Err(why) => why.to_string(),
        };
        return format!("Idle states: not known ({why}).");
    }
    let (can, cannot): (Vec<_>, Vec<_>) =
        states.iter().partition(|state| state.allowed != Some(false));
    let limit = summary.cpus.iter().filter_map(|cpu| cpu.wake_limit_us).min();
    let mut text = format!("Idle states that could be entered: {}", named(&can));
    if !cannot.is_empty() {
        text.push_str(&format!("; not {}", named(&cannot)));
    }
    text.push_str(&format!(". {}{}", limited(limit), used(&states)));
    text.push_str(match (limit, can.iter().any(|state| state.latency_us > 0)) {
        (Some(0), _) => {
            " Without this limit CPUs enter deeper idle states, and samples include the time to \
             wake up from them."
        }
        (_, true) => {
            " Samples include the time to wake up from them. With --dma-latency 0 only the first \
             is allowed, which is cyclictest's default."
        }
        (_, false) => "",
    });
    text
}

fn named(states: &[&IdleStateUse<'_>]) -> String {
    let one = |state: &&IdleStateUse<'_>| {
        let wake = number::duration(Nanos::from_micros(state.latency_us));
        format!("{} ({wake} to wake up)", state.name)
    };
    let names: Vec<String> = states.iter().map(one).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// What is set for how long waking up may take.
fn limited(limit_us: Option<u32>) -> String {
    match limit_us {
        Some(NO_WAKE_LIMIT..) => {
            "No CPU latency limit is set (PM QoS, /dev/cpu_dma_latency).".to_owned()
        }
        Some(limit) => format!(
            "The CPU latency limit is {} (PM QoS, /dev/cpu_dma_latency).",
            number::duration(Nanos::from_micros(limit.into()))
        ),
        None => "The CPU latency limit (PM QoS) is not known: only root can read \
                 /dev/cpu_dma_latency."
            .to_owned(),
    }
}

/// In which the CPUs were, and for how much of the time.
fn used(states: &[IdleStateUse<'_>]) -> String {
    let share = |state: &IdleStateUse<'_>| {
        let share = state.share?;
        (share.get() >= SELDOM)
            .then(|| format!("{} for {} of the time", state.name, number::share(share)))
    };
    let shares: Vec<String> = states.iter().filter_map(share).collect();
    if shares.is_empty() {
        return String::new();
    }
    format!(" The CPUs were in {}.", shares.join(" and in "))
}
