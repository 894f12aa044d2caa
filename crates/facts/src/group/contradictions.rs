//! Contradictory boot parameters, and CPUs that the kernel did not accept.
//!
//! The rules are those of `kernel/sched/isolation.c` (since 4.15): `nohz_full=` and `isolcpus=`
//! with `nohz` must have the same CPUs, otherwise the second one is ignored; one CPU must do the
//! timekeeping, so the boot CPU is removed from a list of all CPUs. The resulting lists are in
//! `/sys/devices/system/cpu/{nohz_full,isolated}`.
//!
//! The result of `isolcpus=managed_irq` is not in any file.

use crate::format::command_line::{CommandLine, Parameter, parse_bool, same_name};
use crate::group::cpu_lists::{self, cpus, flags};
use crate::group::tick;
use crate::parameters;
use crate::parameters::inert::WhyInert;
use crate::sources::Sources;

/// Why the parameter with this index has no effect, or not for some of its CPUs, because of other
/// parameters.
pub(crate) fn find(
    at: usize,
    line: &CommandLine,
    sources: &Sources,
) -> Option<(WhyInert, String)> {
    let given = line.parameters().nth(at)?;
    let contradictory = || {
        repeated(at, given, line, sources)
            .or_else(|| nohz_off(given, line))
            .or_else(|| different_lists(at, given, line, sources))
            .map(|text| (WhyInert::Contradictory, text))
    };
    cpu_lists::rejected(given, line, sources)
        .or_else(contradictory)
        .or_else(|| not_accepted(given, line, sources))
        .or_else(|| cpu_lists::unbound_on_isolated(given, sources))
        .or_else(|| cpu_lists::skipped_flags(given, sources))
        .or_else(|| no_lazy_callbacks(given, line, sources))
}

fn value(parameter: &Parameter) -> &str {
    parameter.value.as_deref().unwrap_or_default()
}

/// A parameter that is repeated with another value.
fn repeated(
    at: usize,
    given: &Parameter,
    line: &CommandLine,
    sources: &Sources,
) -> Option<String> {
    let differs =
        |other: &&Parameter| other.is(&given.name) && other.value != given.value;
    let is_rejected =
        |other: &Parameter| cpu_lists::rejected(other, line, sources).is_some();
    if given.is("nohz_full") {
        let before = line
            .parameters()
            .take(at)
            .find(|other| differs(other) && !is_rejected(other))?;
        let text = format!("given before as {}; the first one counts", value(before));
        return (sources.at_least(4, 15) == Some(true)).then_some(text);
    }
    if !parameters::LAST_COUNTS.iter().any(|name| same_name(name, &given.name)) {
        return None;
    }
    let counts = |other: &Parameter| {
        other.is(&given.name)
            && parameters::find_rule(&other.name, value(other), sources).is_none()
    };
    let last = line.parameters().skip(at + 1).filter(|other| counts(other)).last();
    let last = last.filter(differs)?;
    Some(format!("given again as {}; the last one counts", value(last)))
}

/// `nohz_full=` with `nohz=off`.
fn nohz_off(given: &Parameter, line: &CommandLine) -> Option<String> {
    let off = line.value("nohz").and_then(parse_bool) == Some(false);
    let text = "nohz=off keeps the tick on all CPUs; leave it out";
    (given.is("nohz_full") && off).then(|| text.to_owned())
}

/// `nohz_full=` and `isolcpus=nohz,` with different CPUs: the second one is ignored.
fn different_lists(
    at: usize,
    given: &Parameter,
    line: &CommandLine,
    sources: &Sources,
) -> Option<String> {
    let other = match given {
        given if given.is("nohz_full") => "isolcpus",
        given if given.is("isolcpus") => "nohz_full",
        _ => return None,
    };
    let earlier = line.parameters().take(at).find(|before| before.is(other))?;
    let isolcpus = if given.is("isolcpus") { given } else { earlier };
    let stops_tick = flags(value(isolcpus)).0.contains(&"nohz");
    let (one, two) = (cpus(given, sources)?, cpus(earlier, sources)?);
    if !stops_tick || one == two || sources.at_least(4, 15) != Some(true) {
        return None;
    }
    let text = "if isolcpus= has nohz, it and nohz_full= must have the same CPUs; the \
                kernel ignores the second of the two";
    Some(text.to_owned())
}

/// Requested CPUs that are missing in the kernel's list.
fn not_accepted(
    given: &Parameter,
    line: &CommandLine,
    sources: &Sources,
) -> Option<(WhyInert, String)> {
    let file = cpu_lists::own_list(given)?;
    if line.all(&given.name).count() > 1 {
        return None;
    }
    let requested = cpus(given, sources)?;
    let accepted = match file {
        tick::NOHZ_FULL => tick::nohz_full(sources),
        _ => sources.cpus(file),
    };
    let missing = requested.without(accepted.get()?);
    if missing.is_empty() {
        return None;
    }
    if missing == requested {
        let text = format!("the kernel ignored it: none of its CPUs are in {file}");
        return Some((WhyInert::Refused, text));
    }
    let text = format!(
        "does nothing for CPU {missing}: not in {file}; at least one CPU, usually the boot \
         CPU, must be left out"
    );
    Some((WhyInert::Contradictory, text))
}

/// Lazy RCU callbacks if no CPU has offloaded callbacks.
fn no_lazy_callbacks(
    given: &Parameter,
    line: &CommandLine,
    sources: &Sources,
) -> Option<(WhyInert, String)> {
    if !given.is("rcutree.enable_rcu_lazy") || parse_bool(value(given)) != Some(true) {
        return None;
    }
    let is_offloaded = line.has("rcu_nocbs")
        || line.requests_nohz_full()
        || sources.is_set("RCU_NOCB_CPU_DEFAULT_ALL") != Some(false);
    let text = "only callbacks of CPUs in rcu_nocbs= or nohz_full= can be lazy, and \
                neither is given";
    (!is_offloaded).then(|| (WhyInert::Contradictory, text.to_owned()))
}
