//! Settings that were written in a guest, as settings of rules.
//!
//! Features: `/sys/kernel/debug/sched/features`, before 5.13 `/sys/kernel/debug/sched_features`; tunables:
//! the other files of that folder, before 5.13 `/proc/sys/kernel/sched_*`.

use crate::scheduler::{Error, Kind, Rules};

const FEATURES: [&str; 2] =
    ["/sys/kernel/debug/sched/features", "/sys/kernel/debug/sched_features"];
const TUNABLES: [&str; 2] = ["/sys/kernel/debug/sched/", "/proc/sys/kernel/sched_"];

/// Changes the rules by the settings of a cell (`FILE=VALUE`), in their order.
///
/// # Errors
/// `Kind::Setting` if the rules do not have one of them.
pub(crate) fn apply(settings: &[String], rules: &mut Rules) -> Result<(), Error> {
    settings.iter().try_for_each(|setting| apply_one(setting, rules))
}

fn apply_one(setting: &str, rules: &mut Rules) -> Result<(), Error> {
    let (path, value) = setting.split_once('=').unwrap_or((setting, ""));
    let value = value.trim();
    if FEATURES.contains(&path) {
        return match value.strip_prefix("NO_") {
            Some(name) => set(rules, name, "off"),
            None => set(rules, value, "on"),
        };
    }
    match TUNABLES.iter().find_map(|folder| path.strip_prefix(folder)) {
        Some(name) => set(rules, name, value),
        None => Err(Error::new(Kind::Setting, format!("there is no rule for {path}"))),
    }
}

/// As `Rules::set`, without the list of all settings in its error.
fn set(rules: &mut Rules, name: &str, value: &str) -> Result<(), Error> {
    let upper = name.to_ascii_uppercase();
    if !rules.settings().iter().any(|own| *own == name || *own == upper) {
        let why = format!("the rules {} have no setting {name}", rules.name());
        return Err(Error::new(Kind::Setting, why));
    }
    rules.set(name, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules after these settings, or the error.
    fn applied(rules: &str, settings: &[&str]) -> Result<Rules, String> {
        let mut rules = Rules::named(rules).unwrap();
        let settings: Vec<String> =
            settings.iter().map(|setting| (*setting).to_owned()).collect();
        apply(&settings, &mut rules).map(|()| rules).map_err(|error| error.to_string())
    }

    fn set(rules: &str, name: &str, value: &str) -> Rules {
        let mut rules = Rules::named(rules).unwrap();
        rules.set(name, value).unwrap();
        rules
    }

    /// Check that features and tunables of old and new kernels are settings of the rules.
    #[test]
    fn known() {
        let file = "/sys/kernel/debug/sched/features";
        let off = format!("{file}=NO_RUN_TO_PARITY");
        let on = format!("{file}=RUN_TO_PARITY");
        assert_eq!(applied("6.12", &[&off]), Ok(set("6.12", "RUN_TO_PARITY", "off")));
        assert_eq!(applied("6.12", &[&off, &on]), Ok(Rules::named("6.12").unwrap()));
        let slice = "/sys/kernel/debug/sched/base_slice_ns=3000000";
        assert_eq!(applied("7.2", &[slice]), Ok(set("7.2", "base_slice_ns", "3000000")));
        let features = "/sys/kernel/debug/sched_features=NO_GENTLE_FAIR_SLEEPERS\n";
        let gentle = set("5.10", "GENTLE_FAIR_SLEEPERS", "off");
        assert_eq!(applied("5.10", &[features]), Ok(gentle));
        let latency = "/proc/sys/kernel/sched_latency_ns=12000000";
        let set = set("5.10", "latency_ns", "12000000");
        assert_eq!(applied("5.10", &[latency]), Ok(set));
    }

    /// Check that a setting without a rule, and an invalid value, are errors that name it.
    #[test]
    fn unknown() {
        let why = applied("6.1", &["/sys/kernel/debug/sched/features=NO_RUN_TO_PARITY"]);
        assert_eq!(why, Err("the rules 6.1 have no setting RUN_TO_PARITY".to_owned()));
        let why = applied("6.12", &["/proc/sys/vm/swappiness=0"]);
        assert_eq!(why, Err("there is no rule for /proc/sys/vm/swappiness".to_owned()));
        let why = applied("6.12", &["/sys/kernel/debug/sched/base_slice_ns=long"]);
        assert!(why.unwrap_err().starts_with("base_slice_ns is a number of nanoseconds"));
    }
}
