//! The sentences of `latency` about idle states: those that the CPUs were allowed to enter, those
//! that they were in, and the limit that determines this.

use facts::Facts;
use summary::{IdleStateUse, LatencySummary, NO_WAKE_LIMIT};
use units::Nanos;

use crate::document::text::{Text, text};
use crate::number::{self, ShareUnit};

/// A state with a smaller share of the time is not listed, in parts per million.
const RARE_PPM: f64 = 10_000.0;

pub(crate) fn idle_states(facts: &Facts, summary: &LatencySummary) -> Text {
    let states = summary.idle_states();
    if states.is_empty() {
        let why = match facts.power.idle_states.value() {
            Ok(_) => "not recorded".to_owned(),
            Err(why) => why.to_string(),
        };
        return text!("Idle states: unknown ({}).", why);
    }
    let (allowed, others): (Vec<_>, Vec<_>) =
        states.iter().partition(|state| state.allowed != Some(false));
    let limit = summary.cpus.iter().filter_map(|cpu| cpu.wake_limit_us).min();
    let mut all = text!("Allowed idle states: {}", list(&allowed));
    if !others.is_empty() {
        all.push(text!("; not allowed: {}", list(&others)));
    }
    all.push(text!(". {}{}", limit_text(limit), shares(&states)));
    all.push(match (limit, allowed.iter().any(|state| state.latency_us > 0)) {
        (Some(0), _) => {
            " Without this limit CPUs enter deeper idle states, and samples include their exit \
             latency."
        }
        (_, true) => {
            " Samples include the exit latency. With --dma-latency 0 only the first state is \
             allowed, as by default with cyclictest."
        }
        (_, false) => "",
    });
    all
}

fn list(states: &[&IdleStateUse<'_>]) -> Text {
    if states.is_empty() {
        return "none".into();
    }
    let one = |state: &&IdleStateUse<'_>| {
        let latency = number::duration(Nanos::from_micros(state.latency_us));
        text!("{} (exit latency {})", Text::name(state.name), latency)
    };
    Text::join(states.iter().map(one), ", ")
}

fn limit_text(limit_us: Option<u32>) -> Text {
    match limit_us {
        Some(NO_WAKE_LIMIT..) => {
            "No CPU latency limit is set (PM QoS, /dev/cpu_dma_latency).".into()
        }
        Some(limit) => text!(
            "The CPU latency limit is {} (PM QoS, /dev/cpu_dma_latency).",
            Nanos::from_micros(limit.into())
        ),
        None => "The CPU latency limit (PM QoS) is unknown: only root can read \
                 /dev/cpu_dma_latency."
            .into(),
    }
}

/// The idle states that the CPUs were in, with their shares of the time.
fn shares(states: &[IdleStateUse<'_>]) -> Text {
    let unit = ShareUnit::of(states.iter().map(|state| state.share));
    let share = |state: &IdleStateUse<'_>| {
        let share = state.share.filter(|share| share.get() >= RARE_PPM)?;
        Some(text!("{} for {} of the time", Text::name(state.name), unit.print(share)))
    };
    let shares = Text::join(states.iter().filter_map(share), " and in ");
    if shares.is_empty() { shares } else { text!(" The CPUs were in {}.", shares) }
}
