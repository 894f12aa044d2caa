//! Whether two values are the same setting: CPU lists and masks are compared as sets, switches and numbers by
//! what they mean.

use units::CpuSet;

/// Of `a [b] c` or `a (b) c` what is chosen, else the text without white space around it.
pub(super) fn chosen(text: &str) -> &str {
    let between = |open, close| {
        let (_, rest) = text.split_once(open)?;
        rest.split_once(close).map(|(word, _)| word)
    };
    between('[', ']').or_else(|| between('(', ')')).unwrap_or(text).trim()
}

/// Whether a file has the wanted value.
pub(super) fn same(path: &str, now: &str, wanted: &str) -> bool {
    let wanted = wanted.trim();
    if path.ends_with("/sched/features") {
        return now.split_whitespace().any(|word| word == wanted);
    }
    let now = chosen(now);
    if path.ends_with("/workqueue/cpumask") {
        let masks = CpuSet::from_mask(now).ok().zip(CpuSet::from_mask(wanted).ok());
        return masks.is_some_and(|(now, wanted)| now == wanted);
    }
    if path.ends_with("cpumask") || path.ends_with("_list") {
        return same_cpus(now, wanted);
    }
    let is_switch = path.starts_with("/sys/module/");
    words(now) == words(wanted)
        || (is_switch && switch(now).is_some_and(|it| Some(it) == switch(wanted)))
}

/// Words, with numbers in one form.
fn words(text: &str) -> Vec<String> {
    let word =
        |word: &str| word.parse::<i64>().map_or(word.to_owned(), |it| it.to_string());
    text.split_whitespace().map(word).collect()
}

/// A parameter of type bool (`param_set_bool` in `kernel/params.c`).
fn switch(text: &str) -> Option<bool> {
    match text {
        "Y" | "y" | "1" => Some(true),
        "N" | "n" | "0" => Some(false),
        _ => None,
    }
}

pub(super) fn same_cpus(now: &str, wanted: &str) -> bool {
    let sets = now.parse::<CpuSet>().ok().zip(wanted.parse::<CpuSet>().ok());
    sets.is_some_and(|(now, wanted)| now == wanted)
}

/// Whether a boot parameter has the wanted value: words, and CPUs as a set. `N` is the last CPU, and `all` are all
/// of them (`lib/bitmap.c`).
pub(super) fn same_parameter(now: &str, wanted: &str, online: Option<&CpuSet>) -> bool {
    now == wanted
        || parts(now, online).is_some_and(|now| Some(now) == parts(wanted, online))
}

/// The words, sorted, and the CPUs; `None` if there are no CPUs.
fn parts(value: &str, online: Option<&CpuSet>) -> Option<(Vec<String>, CpuSet)> {
    let last = online.and_then(|online| online.iter().last()).map(units::Cpu::get);
    let (mut words, mut list) = (Vec::new(), Vec::new());
    for part in value.split(',') {
        let part = match last {
            Some(last) if part == "all" => format!("0-{last}"),
            Some(last) => part.replace('N', &last.to_string()),
            None => part.to_owned(),
        };
        match part.starts_with(|c: char| c.is_ascii_digit()) {
            true => list.push(part),
            false => words.push(part),
        }
    }
    words.sort_unstable();
    let cpus: CpuSet = list.join(",").parse().ok()?;
    (!cpus.is_empty()).then_some((words, cpus))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that CPUs are compared as sets, and words in any order.
    #[test]
    fn cpus_are_sets() {
        let online: CpuSet = "0-3".parse().unwrap();
        for (now, wanted, expected) in [
            ("domain,managed_irq,1-3", "managed_irq,domain,1,2,3", true),
            ("domain,1-3", "domain,managed_irq,1-3", false),
            ("1-N", "1-3", true),
            ("all", "0-3", true),
            ("2-3", "1-3", false),
            ("full", "full", true),
            ("full", "none", false),
        ] {
            assert_eq!(same_parameter(now, wanted, Some(&online)), expected, "{now}");
        }
        let mask = "/sys/devices/virtual/workqueue/cpumask";
        assert!(same(mask, "00000000,00000003\n", "3") && !same(mask, "f\n", "3"));
        assert!(same("/proc/sys/kernel/watchdog_cpumask", "0-1\n", "0,1"));
    }

    /// Check choices, switches, numbers and features of the scheduler.
    #[test]
    fn values() {
        assert!(same("/sys/kernel/mm/a", "always [madvise] never\n", "madvise"));
        assert!(same("/sys/kernel/debug/sched/preempt", "none (full)\n", "full"));
        assert!(same("/sys/module/kvm/parameters/a", "Y\n", "1"));
        assert!(!same("/sys/kernel/a", "Y\n", "1"));
        assert!(same("/proc/sys/net/ipv4/tcp_rmem", "1\t2\t3\n", "1 2 3"));
        let features = "/sys/kernel/debug/sched/features";
        assert!(
            same(features, "HRTICK NO_X\n", "NO_X") && !same(features, "A B", "NO_B")
        );
    }
}
