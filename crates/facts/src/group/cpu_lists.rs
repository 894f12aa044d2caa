//! Boot parameters with CPU lists, and what the kernel does with a list that it rejects.
//!
//! | parameter | source | a rejected list |
//! |---|---|---|
//! | `isolcpus=`, `nohz_full=` | `kernel/sched/isolation.c`, since 4.15 | is ignored as a whole |
//! | `rcu_nocbs=` | `kernel/rcu/tree_nocb.h` | offloads all CPUs |
//! | `irqaffinity=` | `kernel/irq/irqdesc.c` | is used up to its first error; the boot CPU is added |
//! | `workqueue.unbound_cpus=` | `kernel/workqueue.c`, since 6.6 | is ignored as a whole |
//!
//! Further lists are those of test modules (`locktorture`). Distributions backport changes of the
//! parser: if the kernel's own list shows that it accepted the CPUs, nothing is reported.

use units::CpuSet;

use crate::format::command_line::{CommandLine, Parameter};
use crate::group::tick;
use crate::parameters::cpu_list::{Grammar, POSSIBLE, Rejected, Why};
use crate::parameters::inert::WhyInert;
use crate::sources::Sources;

/// CPUs isolated at boot.
pub(crate) const ISOLATED: &str = "/sys/devices/system/cpu/isolated";

/// What the kernel does with a list that it rejects, or that names no CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Otherwise {
    Ignores,
    OffloadsAll,
    AddsBootCpu,
}

/// A parameter, the first version to which this applies, and what happens to a rejected list.
const PARAMETERS: &[(&str, (u32, u32), Otherwise)] = &[
    ("isolcpus", (4, 15), Otherwise::Ignores),
    ("nohz_full", (4, 15), Otherwise::Ignores),
    ("rcu_nocbs", (3, 9), Otherwise::OffloadsAll),
    ("irqaffinity", (2, 6), Otherwise::AddsBootCpu),
    ("workqueue.unbound_cpus", (6, 6), Otherwise::Ignores),
];

/// Why the kernel rejects the list of this parameter, and what it does instead.
pub(crate) fn rejected(
    given: &Parameter,
    line: &CommandLine,
    sources: &Sources,
) -> Option<(WhyInert, String)> {
    let (name, (major, minor), otherwise) =
        PARAMETERS.iter().find(|(name, ..)| given.is(name))?;
    if sources.at_least(*major, *minor) != Some(true) || is_accepted(given, line, sources)
    {
        return None;
    }
    let Some(value) = given.value.as_deref() else {
        let is_valid = *name == "rcu_nocbs" && sources.at_least(5, 17)?;
        let text = format!("it has no list: the format is {name}=LIST");
        return (!is_valid).then_some((WhyInert::Refused, text));
    };
    let list = match isolated_list(given, value, sources) {
        Ok((list, _)) => list,
        Err(why) => {
            return Some((
                WhyInert::Refused,
                format!("{why}, so the kernel ignores the parameter"),
            ));
        }
    };
    if otherwise == &Otherwise::OffloadsAll && is_all(list) {
        return None;
    }
    let text = match read(list, *otherwise, sources)? {
        Ok(cpus) if !cpus.is_empty() => return None,
        // RCU can then offload CPUs that nohz_full= names.
        Ok(_) if *otherwise == Otherwise::OffloadsAll => return None,
        Ok(_) => otherwise.text("it names no CPU that can exist", &CpuSet::empty()),
        Err(error) => otherwise.text(&error.why.to_string(), &error.before),
    };
    Some((WhyInert::Refused, text))
}

/// `workqueue.unbound_cpus=` with isolated CPUs only, which the kernel ignores: unbound work queues
/// are not for these.
pub(crate) fn unbound_on_isolated(
    given: &Parameter,
    sources: &Sources,
) -> Option<(WhyInert, String)> {
    if !given.is("workqueue.unbound_cpus") {
        return None;
    }
    let full = tick::nohz_full(sources).get().cloned().unwrap_or_default();
    let isolated = sources.cpus(ISOLATED).get().cloned().unwrap_or_default();
    let rest = cpus(given, sources)?.without(&full).without(&isolated);
    let text =
        "all of its CPUs are isolated or nohz_full, and the kernel ignores it then";
    rest.is_empty().then(|| (WhyInert::Contradictory, text.to_owned()))
}

/// The flags of `isolcpus=` that the kernel skips.
pub(crate) fn skipped_flags(
    given: &Parameter,
    sources: &Sources,
) -> Option<(WhyInert, String)> {
    let (_, skipped) = isolated_list(given, given.value.as_deref()?, sources).ok()?;
    let flags = skipped.join(", ");
    let text = format!("the kernel does not know '{flags}', and skips it");
    (!skipped.is_empty()).then_some((WhyInert::Unrecognised, text))
}

/// The CPUs of a parameter, without those that cannot exist; `None` if they are unknown, or if the
/// kernel rejects the list.
pub(crate) fn cpus(given: &Parameter, sources: &Sources) -> Option<CpuSet> {
    let (_, _, otherwise) = PARAMETERS.iter().find(|(name, ..)| given.is(name))?;
    let value = given.value.as_deref()?;
    let list = isolated_list(given, value, sources).ok()?.0;
    read(list, *otherwise, sources)?.ok()
}

/// The kernel's own list of the CPUs of a parameter; `None` if it has no such list.
pub(crate) fn own_list(given: &Parameter) -> Option<&'static str> {
    let value = given.value.as_deref().unwrap_or_default();
    if given.is("nohz_full") {
        return Some(tick::NOHZ_FULL);
    }
    (given.is("isolcpus") && isolates(value)).then_some(ISOLATED)
}

/// Splits the value of `isolcpus=` into flags and the list of CPUs.
pub(crate) fn flags(value: &str) -> (Vec<&str>, &str) {
    let mut flags = Vec::new();
    let mut rest = value;
    while rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
        let Some((flag, after)) = rest.split_once(',') else { break };
        flags.push(flag);
        rest = after;
    }
    (flags, rest)
}

/// Whether this `isolcpus=` excludes its CPUs from load balancing: that is the default without any
/// known flag.
fn isolates(value: &str) -> bool {
    let flags = flags(value).0;
    !flags.iter().any(|flag| ["nohz", "managed_irq"].contains(flag))
        || flags.contains(&"domain")
}

/// The list of a parameter, and the flags that the kernel skips; for `isolcpus=`, the reason if the
/// kernel rejects a flag. Unknown flags are skipped since 5.8, `managed_irq` is known since 5.6.
fn isolated_list<'a>(
    given: &Parameter,
    value: &'a str,
    sources: &Sources,
) -> Result<(&'a str, Vec<&'a str>), String> {
    if !given.is("isolcpus") {
        return Ok((value, Vec::new()));
    }
    let (flags, rest) = flags(value);
    let has_managed = sources.at_least(5, 6) != Some(false);
    let is_known = |flag: &&str| {
        ["nohz", "domain"].contains(flag) || (has_managed && *flag == "managed_irq")
    };
    let skipped: Vec<&str> = flags.into_iter().filter(|flag| !is_known(flag)).collect();
    let is_word =
        |flag: &str| flag.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    let skips = sources.at_least(5, 8) != Some(false);
    if let Some(flag) = skipped.iter().find(|flag| !skips || !is_word(flag)) {
        return Err(format!("'{flag}' is no flag of isolcpus="));
    }
    if rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return Err(format!("'{rest}' is taken for a flag, and no list follows"));
    }
    Ok((rest, skipped))
}

fn is_all(list: &str) -> bool {
    list.eq_ignore_ascii_case("all")
}

/// The possible CPUs of a list; `None` if the kernel's parser is unknown.
fn read(
    list: &str,
    otherwise: Otherwise,
    sources: &Sources,
) -> Option<Result<CpuSet, Rejected>> {
    let possible = sources.cpus(POSSIBLE);
    let possible = possible.get()?;
    // Before `all` was part of the parser, rcu_nocbs= knew it.
    if otherwise == Otherwise::OffloadsAll && is_all(list) {
        return Some(Ok(possible.clone()));
    }
    let grammar = Grammar::of(sources)?;
    let parsed = grammar.parse(list);
    // Until 5.17, isolcpus= and nohz_full= checked the last CPU of the list, too.
    if let (Ok(cpus), Otherwise::Ignores, Some(false)) =
        (&parsed, otherwise, sources.at_least(5, 18))
    {
        let last = possible.iter().last()?;
        if let Some(beyond) = cpus.iter().last().filter(|cpu| *cpu > last) {
            let why = Why::Beyond { number: beyond.to_string(), last: last.get() };
            return Some(Err(Rejected { before: CpuSet::empty(), why }));
        }
    }
    Some(parsed.map(|cpus| cpus.and(possible)))
}

/// Whether the kernel's own list is not empty, and can be due to this parameter only.
fn is_accepted(given: &Parameter, line: &CommandLine, sources: &Sources) -> bool {
    let Some(file) = own_list(given) else { return false };
    let others = line.parameters().filter(|other| {
        let stops_tick =
            || flags(other.value.as_deref().unwrap_or_default()).0.contains(&"nohz");
        other.is(&given.name)
            || (file == tick::NOHZ_FULL && other.is("isolcpus") && stops_tick())
    });
    let accepted = match file {
        tick::NOHZ_FULL => tick::nohz_full(sources),
        _ => sources.cpus(file),
    };
    others.count() == 1 && accepted.get().is_some_and(|cpus| !cpus.is_empty())
}

impl Otherwise {
    fn text(self, why: &str, before: &CpuSet) -> String {
        let instead = match self {
            Self::Ignores => "ignores the whole parameter".to_owned(),
            Self::OffloadsAll => "offloads the RCU callbacks of all CPUs".to_owned(),
            Self::AddsBootCpu if before.is_empty() => {
                "sends interrupts to the boot CPU by default".to_owned()
            }
            Self::AddsBootCpu => {
                format!("sends interrupts to CPU {before} and the boot CPU by default")
            }
        };
        format!("{why}, so the kernel {instead}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::tree;

    /// The reason on a kernel with two CPUs and masks of `NR_CPUS=64` bits; on Debian's, which has
    /// `CPUMASK_OFFSTACK`, of two bits.
    fn reason(release: &str, line: &str) -> Option<String> {
        let config = format!("/boot/config-{release}");
        let options = match release.contains("cloud") {
            true => "CONFIG_NR_CPUS=8192\nCONFIG_CPUMASK_OFFSTACK=y\n",
            false => "CONFIG_NR_CPUS=64\n# CONFIG_CPUMASK_OFFSTACK is not set\n",
        };
        let tree = tree(&[
            ("/proc/sys/kernel/osrelease", release),
            ("/proc/cmdline", line),
            (&config, options),
            (POSSIBLE, "0-1\n"),
            (ISOLATED, "\n"),
            (tick::NOHZ_FULL, "(null)\n"),
        ]);
        let line = CommandLine::parse(line);
        let given = line.parameters().next().unwrap();
        let sources = tree.sources();
        let found = rejected(given, &line, &sources);
        found.or_else(|| skipped_flags(given, &sources)).map(|(_, text)| text)
    }

    const IGNORED: &str = "so the kernel ignores the whole parameter";
    const OFFLOADED: &str = "so the kernel offloads the RCU callbacks of all CPUs";
    const BEYOND: &str = "the last one is CPU 1";

    fn check(cases: &[(&str, &str, String)]) {
        for (release, line, expected) in cases {
            let found = reason(release, line);
            assert_eq!(found.as_ref(), Some(expected), "{release} {line}");
        }
    }

    /// Check what kernels do with lists that they reject, by version.
    #[test]
    fn rejected_lists() {
        let none = format!("it names no CPU that can exist, {IGNORED}");
        let two = format!("there is no CPU 2: {BEYOND}, {IGNORED}");
        let five = format!("there is no CPU 5: {BEYOND}, {IGNORED}");
        let boot = "so the kernel sends interrupts to the boot CPU by default";
        let both = "so the kernel sends interrupts to CPU 1 and the boot CPU by default";
        let last = "'N' has N for the last CPU, which is known since 5.13, and this kernel is \
                    older";
        check(&[
            ("6.12.0", "isolcpus=4-3", format!("'4-3' begins after its end, {IGNORED}")),
            ("6.12.0", "isolcpus=", none),
            ("6.12.0", "nohz_full=2-5", two.clone()),
            ("5.10.0", "nohz_full=1-5", five),
            ("6.12.0", "workqueue.unbound-cpus=2", two),
            ("5.10.0", "rcu_nocbs=N", format!("{last}, {OFFLOADED}")),
            (
                "6.1.0",
                "rcu_nocbs=1-0",
                format!("'1-0' begins after its end, {OFFLOADED}"),
            ),
            ("6.12.0", "irqaffinity=9", format!("there is no CPU 9: {BEYOND}, {boot}")),
            ("6.12.0", "irqaffinity=1,9", format!("there is no CPU 9: {BEYOND}, {both}")),
        ]);
    }

    /// Check the flags of `isolcpus=`, and parameters without a list.
    #[test]
    fn rejected_flags() {
        let flag = |flag| {
            format!(
                "'{flag}' is no flag of isolcpus=, so the kernel ignores the parameter"
            )
        };
        let all = "'all' is taken for a flag, and no list follows, so the kernel ignores the \
                   parameter";
        let lacks = |name| format!("it has no list: the format is {name}=LIST");
        check(&[
            (
                "6.12.0",
                "isolcpus=1,nohz",
                format!("'nohz' is no number of a CPU, {IGNORED}"),
            ),
            ("6.12.0", "isolcpus=all", all.to_owned()),
            ("6.12.0", "isolcpus=managed-irq,1", flag("managed-irq")),
            ("5.4.0", "isolcpus=managed_irq,1", flag("managed_irq")),
            (
                "6.12.0",
                "isolcpus=x,1",
                "the kernel does not know 'x', and skips it".into(),
            ),
            ("6.12.0", "nohz_full", lacks("nohz_full")),
            ("5.15.0", "rcu_nocbs", lacks("rcu_nocbs")),
        ]);
    }

    /// Check the verdicts of Debian's kernels in guests with two CPUs, by their messages and by
    /// `isolated`, `nohz_full` and `default_smp_affinity`.
    #[test]
    fn verdicts_of_kernels() {
        const NEW: &str = "6.12.117+deb12-cloud-amd64";
        const OLD: &str = "5.10.0-43-cloud-amd64";
        for (release, line, is_accepted) in [
            (NEW, "isolcpus=4-3", false),
            (NEW, "isolcpus=1,nohz", false),
            (NEW, "isolcpus=all", false),
            (NEW, "isolcpus=domain,,1", true),
            (NEW, "nohz_full=2-5", false),
            (NEW, "nohz_full=", false),
            (NEW, "nohz_full=ALL", true),
            (NEW, "nohz_full=0-N:1/2", true),
            (NEW, "nohz_full", false),
            (NEW, "rcu_nocbs=1-0", false),
            (NEW, "rcu_nocbs=2", false),
            (NEW, "rcu_nocbs=N", true),
            (NEW, "rcu_nocbs=1,,0,", true),
            (NEW, "irqaffinity=9", false),
            (NEW, "irqaffinity=1,9", false),
            (NEW, "irqaffinity=n", false),
            (NEW, "irqaffinity=0x1", false),
            (NEW, "irqaffinity=", false),
            (NEW, "workqueue.unbound_cpus=5", false),
            (OLD, "isolcpus=1,nohz", false),
            (OLD, "isolcpus=managed-irq,1", false),
            (OLD, "isolcpus=", false),
            (OLD, "nohz_full=1-N", false),
            (OLD, "irqaffinity=1,9", false),
            (OLD, "irqaffinity=,1,", true),
            (OLD, "irqaffinity=0-1:1/2", true),
        ] {
            assert_eq!(reason(release, line).is_none(), is_accepted, "{release} {line}");
        }
    }

    /// Check that a list of isolated CPUs is not one for unbound work queues, as on Debian's 6.12.
    #[test]
    fn unbound_cpus_that_are_isolated() {
        let tree = tree(&[
            ("/proc/sys/kernel/osrelease", "6.12.0"),
            (POSSIBLE, "0-2\n"),
            (ISOLATED, "1\n"),
            (tick::NOHZ_FULL, "1-2\n"),
        ]);
        let is_ignored = |line: &str| {
            let line = CommandLine::parse(line);
            let given = line.parameters().next().unwrap();
            unbound_on_isolated(given, &tree.sources()).is_some()
        };
        assert!(is_ignored("workqueue.unbound_cpus=1-2"));
        assert!(!is_ignored("workqueue.unbound_cpus=0-1"));
        assert!(!is_ignored("irqaffinity=1"));
    }

    /// Check that nothing is reported for accepted lists, and for kernels with other parsers.
    #[test]
    fn accepted_lists() {
        for (release, line) in [
            ("6.12.0", "isolcpus=1"),
            ("6.12.0", "isolcpus=nohz,domain,managed_irq,1"),
            ("6.12.0", "nohz_full=1-N"),
            ("6.12.0", "nohz_full=ALL"),
            ("5.10.0", "rcu_nocbs=All"),
            ("5.10.0", "rcu_nocbs=1-5"),
            ("5.17.0", "rcu_nocbs"),
            ("6.12.0", "rcu_nocbs="),
            ("6.12.0", "irqaffinity=,0,"),
            ("4.14.0", "isolcpus=9"),
            ("6.5.0", "workqueue.unbound_cpus=9"),
            ("6.12.0", "other=9"),
        ] {
            assert_eq!(reason(release, line), None, "{release} {line}");
        }
    }

    /// Check that a list is not said to be rejected if the kernel's own list shows its CPUs.
    #[test]
    fn accepted_by_a_backport() {
        let of = |line: &str| {
            let tree = tree(&[
                ("/proc/sys/kernel/osrelease", "5.10.0"),
                ("/proc/cmdline", line),
                ("/boot/config-5.10.0", "CONFIG_CPUMASK_OFFSTACK=y\n"),
                (POSSIBLE, "0-1\n"),
                (tick::NOHZ_FULL, "1\n"),
            ]);
            let line = CommandLine::parse(line);
            let given = line.parameters().next().unwrap();
            rejected(given, &line, &tree.sources()).is_some()
        };
        assert!(!of("nohz_full=1-N"));
        assert!(of("nohz_full=1-N isolcpus=nohz,1"));
    }

    /// Check that flags and CPUs are separated.
    #[test]
    fn flags_of_isolcpus() {
        assert_eq!(flags("nohz,domain,1-3,5"), (vec!["nohz", "domain"], "1-3,5"));
        assert_eq!(flags("1-3"), (vec![], "1-3"));
        assert_eq!(flags("nohz"), (vec![], "nohz"));
        assert!(isolates("2") && isolates("domain,2") && isolates("x,2"));
        assert!(!isolates("managed_irq,2") && isolates("managed_irq,domain,2"));
    }
}
