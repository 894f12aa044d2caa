//! The scheduler settings of this kernel, and whether this process may change them.
//!
//! From debugfs, `sched/` since 5.13 (`kernel/sched/debug.c`). Before that, the features were in
//! `sched_features`, and tunables were sysctls with the prefix `sched_` (`kernel/sysctl.c`). Files
//! that exist take precedence over the kernel's release. Lockdown blocks every writable file of
//! debugfs, also for reading (`debugfs_locked_down` in `fs/debugfs/file.c`): then the names of
//! tunables are visible, but not those of features.
//!
//! Which numbers the kernel accepts is known only when they are written.

use std::io::{self, ErrorKind};
use std::path::PathBuf;

use facts::{Facts, Root, Unknown, Why};

use crate::error::{Error, Kind};
use crate::settings::change::Change;
use crate::settings::setting::{Setting, choices, features};
use crate::tuning::machine::Machine;
use crate::tuning::{Group, PREEMPT, Sort, Tuning, mistake};

const DEBUGFS: &str = "/sys/kernel/debug/sched";
/// The features, since 5.13 and before.
const FEATURES: [&str; 2] =
    ["/sys/kernel/debug/sched/features", "/sys/kernel/debug/sched_features"];
/// Files of that directory that are not numbers.
const OTHERS: [&str; 4] = ["debug", "features", PREEMPT, "verbose"];
/// The tunables before 5.13, and the prefix of their files.
const SYSCTLS: [&str; 6] = [
    "latency_ns",
    "min_granularity_ns",
    "wakeup_granularity_ns",
    "migration_cost_ns",
    "nr_migrate",
    "tunable_scaling",
];
const SYSCTL: &str = "/proc/sys/kernel/sched_";

/// The path that a scheduler setting below `/sys/kernel/debug/sched/` has in kernels before 5.13;
/// `None` if they do not have it elsewhere.
pub fn path_before_5_13(path: &str) -> Option<String> {
    let [features, before] = FEATURES;
    if path == features {
        return Some(before.to_owned());
    }
    let name = path.strip_prefix(DEBUGFS)?.strip_prefix('/')?;
    SYSCTLS.contains(&name).then(|| format!("{SYSCTL}{name}"))
}

/// Checks whether this kernel has all of these settings, and this process may change them; nothing
/// is changed.
///
/// # Errors
/// `Kind::NoSetting` with the existing ones, `Kind::Privilege` (including lockdown), `Kind::Unsafe`
/// if the value would crash the kernel, `Kind::Tuning` if a setting is named twice, `Kind::System`
/// for any other error.
pub fn may_tune(tunings: &[Tuning], facts: &Facts) -> Result<(), Error> {
    requests(tunings, facts).map(drop)
}

/// The changes that a requested value takes.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) changes: Vec<Change>,
    /// Whether the kernel may refuse some of them: interrupts that cannot be moved.
    pub(crate) may_be_partial: bool,
}

impl Request {
    /// Whether a cgroup is created.
    pub(crate) fn makes_group(&self) -> bool {
        self.changes.iter().any(|change| matches!(change.setting, Setting::Group(_)))
    }
}

/// The changes of the tunings.
///
/// # Errors
/// Those of [`may_tune`].
pub(crate) fn requests(tunings: &[Tuning], facts: &Facts) -> Result<Vec<Request>, Error> {
    let kernel = Kernel { root: &Root::live(), facts };
    let mut found: Vec<Setting> = Vec::new();
    let mut requests = Vec::new();
    for tuning in tunings {
        let request = kernel.request(tuning)?;
        for Change { setting, .. } in &request.changes {
            if found.contains(setting) {
                let text = format!("{tuning}: {setting} is named twice");
                return Err(mistake(text));
            }
            found.push(setting.clone());
        }
        kernel.may_change(tuning, &request)?;
        requests.push(request);
    }
    Ok(requests)
}

/// Whether the kernel divides by the setting, whose file has no lower bound (Linux 5.13 to 6.5).
fn divides(change: &Change) -> bool {
    let Setting::File(path) = &change.setting else { return false };
    path.file_name().is_some_and(|name| name == "min_granularity_ns")
}

/// A kernel and its facts.
struct Kernel<'a> {
    root: &'a Root,
    facts: &'a Facts,
}

impl Kernel<'_> {
    fn request(&self, tuning: &Tuning) -> Result<Request, Error> {
        let machine = Machine { root: self.root, facts: self.facts };
        let change = |setting| vec![Change::new(setting, tuning.value())];
        let changes = match tuning.sort() {
            Sort::Feature => self.feature(tuning).map(change),
            Sort::Tunable => self.tunable(tuning).map(change),
            Sort::Preempt => self.preempt(tuning).map(change),
            Sort::File(path) => machine.of_file(tuning, path).map(|change| vec![change]),
            Sort::Group(group) => machine.of_group(tuning, *group),
        };
        let (changes, sort) = (changes?, tuning.sort());
        if is_zero(tuning) && changes.iter().any(divides) {
            let why = "the kernel divides by it (sched_update_scaling)";
            return Err(Error::new(Kind::Unsafe, format!("{tuning}: {why}")));
        }
        Ok(Request { changes, may_be_partial: *sort == Sort::Group(Group::Irqs) })
    }

    /// Checks whether this process may make the changes.
    fn may_change(&self, tuning: &Tuning, request: &Request) -> Result<(), Error> {
        // What a cgroup has exists only when the cgroup does.
        let changes = request.changes.iter().filter(|change| !change.is_transient());
        for Change { setting, .. } in changes {
            setting.try_open().map_err(|error| self.refusal(tuning, setting, error))?;
        }
        Ok(())
    }

    fn feature(&self, tuning: &Tuning) -> Result<Setting, Error> {
        let [new, old] =
            FEATURES.map(|file| self.root.text(file).map(|text| (file, text)));
        let found = new.or_else(|why| match why.code == Why::Absent {
            true => old.map_err(|_: Unknown| why),
            false => Err(why),
        });
        let (file, text) = found.map_err(|why| self.unknown(tuning, &why))?;
        let name = tuning.name();
        if features(&text).any(|(feature, _)| feature == name) {
            return Ok(Setting::Feature { file: file.into(), name: name.to_owned() });
        }
        let all: Vec<&str> = features(&text).map(|(feature, _)| feature).collect();
        Err(missing(tuning, &format!("has no feature {name}"), &all))
    }

    fn tunable(&self, tuning: &Tuning) -> Result<Setting, Error> {
        let all = self.tunables().map_err(|why| self.unknown(tuning, &why))?;
        let name = tuning.name();
        if let Some((_, path)) = all.iter().find(|(tunable, _)| tunable == name) {
            return Ok(Setting::File(path.clone()));
        }
        let all: Vec<&str> = all.iter().map(|(tunable, _)| tunable.as_str()).collect();
        Err(missing(tuning, &format!("has no tunable {name}"), &all))
    }

    /// The tunables that are numbers, with their files.
    fn tunables(&self) -> Result<Vec<(String, PathBuf)>, Unknown> {
        let unknown = match self.root.list(DEBUGFS) {
            Ok(names) => return Ok(self.of_debugfs(names)),
            Err(unknown) => unknown,
        };
        let sysctls = SYSCTLS.map(|name| (name.to_owned(), format!("{SYSCTL}{name}")));
        let there = sysctls.into_iter().filter(|(_, path)| self.has(path));
        let there: Vec<_> = there.map(|(name, path)| (name, path.into())).collect();
        if there.is_empty() { Err(unknown) } else { Ok(there) }
    }

    fn of_debugfs(&self, names: Vec<String>) -> Vec<(String, PathBuf)> {
        let files = names.into_iter().map(|name| (format!("{DEBUGFS}/{name}"), name));
        let numbers = files.filter(|(path, name)| {
            !OTHERS.contains(&name.as_str()) && self.root.list(path).is_err()
        });
        numbers.map(|(path, name)| (name, path.into())).collect()
    }

    fn preempt(&self, tuning: &Tuning) -> Result<Setting, Error> {
        let file = format!("{DEBUGFS}/{PREEMPT}");
        let text =
            self.root.text(&file).map_err(|why| match self.root.list(DEBUGFS) {
                Ok(_) if why.code == Why::Absent => self.fixed(tuning, &why),
                _ => self.unknown(tuning, &why),
            })?;
        let all: Vec<&str> = choices(&text).map(|(word, _)| word).collect();
        if all.contains(&tuning.value()) {
            return Ok(Setting::Choice(file.into()));
        }
        Err(missing(tuning, &format!("has no model {}", tuning.value()), &all))
    }

    /// The error if the preemption model is fixed at build time.
    fn fixed(&self, tuning: &Tuning, unknown: &Unknown) -> Error {
        let why = match self.facts.preempt.dynamic.get() {
            Some(false) => "the kernel is built without CONFIG_PREEMPT_DYNAMIC",
            _ => &unknown.text,
        };
        Error::new(Kind::NoSetting, format!("{tuning}: it cannot be changed: {why}"))
    }

    fn has(&self, path: &str) -> bool {
        self.root.exists(path) == Ok(true)
    }

    /// The error for a setting that cannot be read.
    fn unknown(&self, tuning: &Tuning, unknown: &Unknown) -> Error {
        let (kind, why) = match unknown.code {
            Why::Lockdown => (Kind::Privilege, self.locked(&unknown.text)),
            Why::NeedsRoot => (Kind::Privilege, format!("{unknown}: run it as root")),
            Why::Absent => (Kind::NoSetting, self.absent(unknown)),
            Why::NotMounted
            | Why::TooOld
            | Why::TooNew
            | Why::NotConfigured
            | Why::NotExported
            | Why::NotApplicable
            | Why::Garbage
            | Why::NotRecorded => (Kind::System, unknown.text.clone()),
        };
        Error::new(kind, format!("{tuning}: {why}"))
    }

    /// Why the file does not exist.
    fn absent(&self, unknown: &Unknown) -> String {
        let unmounted = facts::unmounted(self.root, "debugfs");
        let features = self.facts.sched.features.value().err().cloned();
        unmounted.or(features).unwrap_or_else(|| unknown.clone()).text
    }

    /// Why root cannot open a file; `refused` is the error without the lockdown level.
    fn locked(&self, refused: &str) -> String {
        match self.facts.security.lockdown.get().map(String::as_str) {
            None => refused.to_owned(),
            Some("none") => format!("{refused}; this kernel is not locked down"),
            Some(level) => format!(
                "lockdown={level} closes the scheduler's settings to root as well; it takes a \
                 kernel that is not locked down (no Secure Boot, no lockdown=)"
            ),
        }
    }

    /// The error for a setting that exists but cannot be changed.
    fn refusal(&self, tuning: &Tuning, setting: &Setting, error: io::Error) -> Error {
        if error.kind() != ErrorKind::PermissionDenied {
            let text = format!("failed to open {setting} for {tuning}");
            return Error::new(Kind::System, text).caused_by(error);
        }
        let (code, why) = match rustix::process::geteuid().is_root() {
            true => (
                Why::Lockdown,
                "is refused even to root: lockdown, or a capability is missing",
            ),
            false => (Why::NeedsRoot, "may be changed by root only"),
        };
        self.unknown(tuning, &Unknown::new(code, format!("{setting} {why}")))
    }
}

/// Whether the kernel takes the number as zero: it uses the lower 32 bits.
fn is_zero(tuning: &Tuning) -> bool {
    tuning.value().parse::<i64>().is_ok_and(|number| number.trailing_zeros() >= 32)
}

/// The error for a missing setting, with the existing ones.
fn missing(tuning: &Tuning, what: &str, all: &[&str]) -> Error {
    let text = format!("{tuning}: this kernel {what}; it has: {}", all.join(" "));
    Error::new(Kind::NoSetting, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const NEW: [(&str, &str); 7] = [
        ("/sys/kernel/debug/sched/features", "PLACE_LAG NO_HRTICK WAKEUP_PREEMPTION \n"),
        ("/sys/kernel/debug/sched/preempt", "none (voluntary) full \n"),
        ("/sys/kernel/debug/sched/base_slice_ns", "2800000\n"),
        ("/sys/kernel/debug/sched/migration_cost_ns", "500000\n"),
        ("/sys/kernel/debug/sched/verbose", "N\n"),
        ("/sys/kernel/debug/sched/debug", "Sched Debug Version\n"),
        ("/sys/kernel/debug/sched/fair_server/cpu0/runtime", "50000000\n"),
    ];
    const MOUNTED: (&str, &str) =
        ("/proc/self/mounts", "n /sys/kernel/debug debugfs rw 0 0\n");
    const UNMOUNTED: (&str, &str) = ("/proc/self/mounts", "proc /proc proc rw 0 0\n");

    /// Finds a setting in a kernel with these files, of which some cannot be read.
    fn find(
        files: &[(&str, &str)],
        refused: &[(&str, Why)],
        text: &str,
    ) -> Result<Setting, Error> {
        let tree = tempfile::tempdir().unwrap();
        let unreadable: serde_json::Map<String, serde_json::Value> = refused
            .iter()
            .map(|&(path, code)| {
                let unknown = Unknown::new(code, format!("{path} is refused"));
                (path.to_owned(), serde_json::to_value(unknown).unwrap())
            })
            .collect();
        let manifest =
            serde_json::json!({"format": 1, "unreadable": unreadable}).to_string();
        let own =
            [("/proc/version", "Linux version"), ("/noisefloor-tree.json", &manifest)];
        for (path, text) in own.iter().chain(files) {
            let place = tree.path().join(&path[1..]);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, text).unwrap();
        }
        let root = Root::tree(tree.path()).unwrap();
        let facts = Facts::read(&root);
        let request =
            Kernel { root: &root, facts: &facts }.request(&text.parse().unwrap())?;
        let [change] = &request.changes[..] else { panic!("{request:?}") };
        Ok(change.setting.clone())
    }

    fn refused(
        files: &[(&str, &str)],
        denied: &[(&str, Why)],
        text: &str,
    ) -> (Kind, String) {
        let error = find(files, denied, text).unwrap_err();
        (error.kind(), error.to_string())
    }

    fn feature(file: &str, name: &str) -> Setting {
        Setting::Feature { file: file.into(), name: name.to_owned() }
    }

    /// Check the earlier paths of the scheduler's files, and that others have none.
    #[test]
    fn paths_before_5_13() {
        let place = |name: &str| path_before_5_13(&format!("{DEBUGFS}/{name}"));
        assert_eq!(
            place("features").as_deref(),
            Some("/sys/kernel/debug/sched_features")
        );
        let latency = Some("/proc/sys/kernel/sched_latency_ns");
        assert_eq!(place("latency_ns").as_deref(), latency);
        assert_eq!(
            (place("base_slice_ns"), path_before_5_13("/proc/sys/kernel/x")),
            (None, None)
        );
    }

    /// Check that each kind of setting is found in debugfs, also features that are off.
    #[test]
    fn since_5_13() {
        let found = |text: &str| find(&NEW, &[], text).unwrap();
        for name in ["HRTICK", "WAKEUP_PREEMPTION"] {
            let expected = feature("/sys/kernel/debug/sched/features", name);
            assert_eq!(found(&format!("{name}=on")), expected);
        }
        let slice = Setting::File("/sys/kernel/debug/sched/base_slice_ns".into());
        assert_eq!(found("base_slice_ns=3000000"), slice);
        let preempt = Setting::Choice("/sys/kernel/debug/sched/preempt".into());
        assert_eq!(found("preempt=full"), preempt);
    }

    /// Check that the settings of older kernels are found.
    #[test]
    fn before_5_13() {
        let files = [
            ("/sys/kernel/debug/sched_features", "START_DEBIT NO_HRTICK\n"),
            ("/proc/sys/kernel/sched_latency_ns", "12000000\n"),
            ("/proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
        ];
        let found = find(&files, &[], "START_DEBIT=off").unwrap();
        assert_eq!(found, feature("/sys/kernel/debug/sched_features", "START_DEBIT"));
        let found = find(&files, &[], "latency_ns=1000000").unwrap();
        assert_eq!(found, Setting::File("/proc/sys/kernel/sched_latency_ns".into()));
        let (kind, message) = refused(&files, &[], "rt_runtime_us=-1");
        assert_eq!(kind, Kind::NoSetting);
        assert!(message.ends_with("it has: latency_ns"), "{message}");
    }

    /// Check that a missing setting is rejected with the existing ones.
    #[test]
    fn existing_settings_are_listed() {
        let features = "it has: PLACE_LAG HRTICK WAKEUP_PREEMPTION";
        let tunables = "it has: base_slice_ns migration_cost_ns";
        for (text, has) in [
            ("LAST_BUDDY=off", features),
            ("latency_ns=1", tunables),
            ("verbose=1", tunables),
            ("debug=1", tunables),
            ("fair_server=1", tunables),
            ("preempt=lazy", "it has: none voluntary full"),
        ] {
            let (kind, message) = refused(&NEW, &[], text);
            assert_eq!(kind, Kind::NoSetting, "{text}");
            assert!(message.starts_with(text) && message.ends_with(has), "{message}");
        }
        let (_, message) = refused(&NEW[..1], &[], "preempt=full");
        assert!(message.contains("preempt is not there"), "{message}");
    }

    /// Check that a divisor cannot be set to zero.
    #[test]
    fn nothing_is_divided_by_zero() {
        let file = "/sys/kernel/debug/sched/min_granularity_ns";
        let files = [(file, "750000\n")];
        assert!(find(&files, &[], "min_granularity_ns=1").is_ok());
        let by_path = format!("{file}=0");
        for text in ["min_granularity_ns=0", "min_granularity_ns=4294967296", &by_path] {
            assert_eq!(refused(&files, &[], text).0, Kind::Unsafe, "{text}");
        }
    }

    /// Check that the error has the mount command only if debugfs is not mounted.
    #[test]
    fn not_mounted() {
        for text in ["HRTICK=on", "base_slice_ns=1", "preempt=full"] {
            let (kind, message) = refused(&[UNMOUNTED], &[], text);
            assert_eq!(kind, Kind::NoSetting, "{text}");
            let help = "mount -t debugfs debugfs /sys/kernel/debug";
            assert!(message.starts_with(text) && message.contains(help), "{message}");
            let (kind, message) = refused(&[MOUNTED], &[], text);
            assert_eq!(kind, Kind::NoSetting, "{text}");
            assert!(message.contains("is not there"), "{message}");
        }
    }

    /// Check that lockdown is reported only if it is known.
    #[test]
    fn locked_down() {
        let file = "/sys/kernel/debug/sched/features";
        let closed = [(file, Why::Lockdown)];
        let level = |levels| {
            let files = [("/sys/kernel/security/lockdown", levels)];
            let (kind, message) = refused(&files, &closed, "HRTICK=on");
            assert_eq!(kind, Kind::Privilege);
            message
        };
        let message = level("none [integrity] confidentiality\n");
        assert!(message.starts_with("HRTICK=on: lockdown=integrity closes"), "{message}");
        let message = level("[none] integrity confidentiality\n");
        assert!(message.ends_with("this kernel is not locked down"), "{message}");
        let message = level("");
        assert!(message.ends_with(&format!("{file} is refused")), "{message}");
        let (kind, message) = refused(&[], &[(file, Why::NeedsRoot)], "HRTICK=on");
        assert_eq!(kind, Kind::Privilege);
        assert!(message.ends_with("run it as root"), "{message}");
    }

    /// Check that lockdown of this machine, if any, is reported for each kind of setting.
    #[test]
    fn locked_down_here() {
        let facts = Facts::read(&Root::live());
        let level = facts.security.lockdown.get().map(String::as_str);
        let is_locked = level.is_some_and(|level| level != "none");
        let is_there = fs::exists("/sys/kernel/debug/sched/features").is_ok_and(|is| is);
        if !is_locked || !is_there || !rustix::process::geteuid().is_root() {
            println!("skipped: locked_down_here: it takes root, lockdown and debugfs");
            return;
        }
        let expected = format!("lockdown={} closes", level.unwrap());
        for text in ["WAKEUP_PREEMPTION=off", "migration_cost_ns=500000"] {
            let refused = may_tune(&[text.parse().unwrap()], &facts).unwrap_err();
            assert_eq!(refused.kind(), Kind::Privilege, "{text}");
            assert!(refused.to_string().contains(&expected), "{refused}");
        }
    }
}
