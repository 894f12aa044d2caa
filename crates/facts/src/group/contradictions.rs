//! Boot parameters that take each other back, and CPUs the kernel did not take.
//!
//! The rules are those of `kernel/sched/isolation.c` (since 4.15): `nohz_full=` and
//! `isolcpus=` with `nohz` must name the same CPUs, else the second is dropped; one CPU
//! must keep the time, so the boot CPU is taken out of a list of all. What came of a list
//! is read from `/sys/devices/system/cpu/{nohz_full,isolated}`.
//!
//! Cannot see what came of `isolcpus=managed_irq`: no file shows it.

use units::CpuSet;

use crate::format::command_line::{CommandLine, Parameter, same_name, truth};
use crate::group::tick;
use crate::parameters;
use crate::parameters::inert::WhyInert;
use crate::sources::Sources;

/// CPUs isolated at boot.
const ISOLATED: &str = "/sys/devices/system/cpu/isolated";

/// Why the parameter at that place of the line does nothing, because of other ones or
/// for some of its CPUs.
pub(crate) fn find(
    at: usize,
    line: &CommandLine,
    sources: &Sources,
) -> Option<(WhyInert, String)> {
    let given = line.parameters().nth(at)?;
    repeated(at, given, line, sources)
        .or_else(|| tick_everywhere(given, line))
        .or_else(|| unlike_lists(at, given, line, sources))
        .map(|text| (WhyInert::Contradictory, text))
        .or_else(|| not_taken(given, line, sources))
        .or_else(|| nobody_lazy(given, line, sources))
}

fn value(parameter: &Parameter) -> &str {
    parameter.value.as_deref().unwrap_or_default()
}

/// A parameter that is given twice with different values.
fn repeated(
    at: usize,
    given: &Parameter,
    line: &CommandLine,
    sources: &Sources,
) -> Option<String> {
    let differs =
        |other: &&Parameter| other.is(&given.name) && other.value != given.value;
    if given.is("nohz_full") {
        let before = line.parameters().take(at).find(differs)?;
        let text = format!("given before as {}; the first one counts", value(before));
        return (sources.at_least(4, 15) == Some(true)).then_some(text);
    }
    if !parameters::LAST_COUNTS.iter().any(|name| same_name(name, &given.name)) {
        return None;
    }
    let counts = |other: &Parameter| {
        other.is(&given.name)
            && parameters::applying(&other.name, value(other), sources).is_none()
    };
    let last = line.parameters().skip(at + 1).filter(|other| counts(other)).last();
    let last = last.filter(differs)?;
    Some(format!("given again as {}; the last one counts", value(last)))
}

/// `nohz_full=` beside `nohz=off`.
fn tick_everywhere(given: &Parameter, line: &CommandLine) -> Option<String> {
    let off = line.value("nohz").and_then(truth) == Some(false);
    let text = "nohz=off keeps the tick on all CPUs; leave it out";
    (given.is("nohz_full") && off).then(|| text.to_owned())
}

/// `nohz_full=` and `isolcpus=nohz,` with different CPUs: the second is dropped.
fn unlike_lists(
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
    let text = "where isolcpus= has nohz, it and nohz_full= must name the same CPUs; \
                the kernel drops the second of the two";
    Some(text.to_owned())
}

/// CPUs that were asked for but, by the kernel's own list, not taken.
fn not_taken(
    given: &Parameter,
    line: &CommandLine,
    sources: &Sources,
) -> Option<(WhyInert, String)> {
    let file = match given {
        given if given.is("nohz_full") => tick::NOHZ_FULL,
        given if given.is("isolcpus") && isolates(value(given)) => ISOLATED,
        _ => return None,
    };
    if line.all(&given.name).count() > 1 {
        return None;
    }
    let asked = cpus(given, sources)?;
    let taken = match file {
        tick::NOHZ_FULL => tick::nohz_full(sources),
        _ => sources.cpus(ISOLATED),
    };
    let missing = asked.without(taken.get()?);
    if missing.is_empty() {
        return None;
    }
    if missing == asked {
        let text = format!("the kernel did not take it: {file} names none of its CPUs");
        return Some((WhyInert::Refused, text));
    }
    let text = format!(
        "does nothing for CPU {missing}: {file} does not name it; at least one CPU, \
         mostly the one the kernel starts on, must stay out"
    );
    Some((WhyInert::Contradictory, text))
}

/// Lazy RCU callbacks where no CPU hands its callbacks to threads.
fn nobody_lazy(
    given: &Parameter,
    line: &CommandLine,
    sources: &Sources,
) -> Option<(WhyInert, String)> {
    if !given.is("rcutree.enable_rcu_lazy") || truth(value(given)) != Some(true) {
        return None;
    }
    let handed_over = line.has("rcu_nocbs")
        || line.asks_nohz_full()
        || sources.is_set("RCU_NOCB_CPU_DEFAULT_ALL") != Some(false);
    let text = "only callbacks of CPUs in rcu_nocbs= or nohz_full= can be lazy, and \
                neither is given";
    (!handed_over).then(|| (WhyInert::Contradictory, text.to_owned()))
}

/// Takes the flags of `isolcpus=` off its list of CPUs.
fn flags(value: &str) -> (Vec<&str>, &str) {
    let mut flags = Vec::new();
    let mut rest = value;
    while rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
        let Some((flag, after)) = rest.split_once(',') else { break };
        flags.push(flag);
        rest = after;
    }
    (flags, rest)
}

/// Whether this `isolcpus=` keeps the scheduler's balancing off its CPUs.
fn isolates(value: &str) -> bool {
    let flags = flags(value).0;
    flags.is_empty() || flags.contains(&"domain")
}

/// The CPUs a parameter names, of those that could ever be there. `all` and `N`, the
/// last one, are the kernel's own words.
fn cpus(parameter: &Parameter, sources: &Sources) -> Option<CpuSet> {
    let list = flags(value(parameter)).1;
    let possible = sources.cpus("/sys/devices/system/cpu/possible");
    let possible = possible.get()?;
    if list == "all" {
        return Some(possible.clone());
    }
    let last = possible.iter().last()?.to_string();
    let named: CpuSet = list.replace('N', &last).parse().ok()?;
    Some(named.and(possible))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that flags are told from CPUs.
    #[test]
    fn flags_of_isolcpus() {
        assert_eq!(flags("nohz,domain,1-3,5"), (vec!["nohz", "domain"], "1-3,5"));
        assert_eq!(flags("1-3"), (vec![], "1-3"));
        assert_eq!(flags("nohz"), (vec![], "nohz"));
        assert!(isolates("2") && isolates("domain,2") && !isolates("managed_irq,2"));
    }
}
