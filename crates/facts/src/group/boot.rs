//! Boot parameters, those without effect, and the program that changes them.
//!
//! From `/proc/cmdline`. Parameters without effect are determined from the kernel's version and
//! configuration (`parameters`), from other parameters (`contradictions`), and since 5.15 from the
//! kernel's message with the parameters that it does not know.

use crate::fact::{Fact, Unknown, Why, group};
use crate::format::command_line::{self, CommandLine, Parameter};
use crate::format::kernel_log::{self, KernelLog};
use crate::group::contradictions;
use crate::group::preempt;
use crate::group::tick;
use crate::parameters;
use crate::parameters::divider;
use crate::parameters::inert::{Inert, WhyInert};
use crate::sources::Sources;

group! {
    /// Boot parameters.
    "boot" Boot {
        /// All parameters, without values that may be secret.
        parameters: Vec<String>,
        /// The parameters without effect.
        inert: Vec<Inert>,
        /// The program that changes the parameters of the next boot: `rpm-ostree`, `grubby`,
        /// `kernelstub` or `update-grub`.
        changed_with: String,
    }
}

/// The programs that change boot parameters, and the file that shows that a machine uses them; the
/// first of several: images of rpm-ostree have the others, too, without effect.
const TOOLS: [(&str, &str); 4] = [
    ("rpm-ostree", "/run/ostree-booted"),
    ("grubby", "/usr/sbin/grubby"),
    ("kernelstub", "/usr/bin/kernelstub"),
    ("update-grub", "/usr/sbin/update-grub"),
];

impl Boot {
    pub(crate) fn read(sources: &Sources) -> Self {
        let line = sources.command_line.as_ref().map_err(Clone::clone);
        let redact =
            |line: &CommandLine| line.parameters().map(parameters::redact).collect();
        let inert = match (&line, &sources.log) {
            // If the log is invalid, a missing message is no evidence.
            (Ok(_), Err(unknown)) if unknown.code == Why::Garbage => Err(unknown.clone()),
            _ => line.clone().map(|line| inert(line, sources)),
        };
        Self {
            parameters: Fact::of(line.map(redact), command_line::FILE),
            inert: Fact::of(inert, evidence(sources)),
            changed_with: changed_with(sources),
        }
    }
}

impl Boot {
    /// The values of the parameters of that name, spelt with `-` or `_`, in their order; empty of flags, and `...` if
    /// they are not shown. `None` if the parameters are not known.
    pub fn given(&self, name: &str) -> Option<Vec<&str>> {
        let values = self.parameters.get()?.iter().filter_map(|text| {
            let text = text.trim_matches('"');
            let (own, value) = text.split_once('=').unwrap_or((text, ""));
            command_line::same_name(own, name).then(|| value.trim_matches('"'))
        });
        Some(values.collect())
    }
}

fn changed_with(sources: &Sources) -> Fact<String> {
    for (tool, file) in TOOLS {
        match sources.root.exists(file) {
            Ok(true) => return Fact::of(Ok(tool.to_owned()), file),
            Ok(false) => {}
            Err(unknown) => return Fact::of(Err(unknown), file),
        }
    }
    let files = TOOLS.map(|(_, file)| file).join(", ");
    let text = "none of the programs is there that change them on common distributions";
    Fact::of(Err(Unknown::new(Why::Absent, text)), files)
}

fn inert(line: &CommandLine, sources: &Sources) -> Vec<Inert> {
    let parameters =
        sources.log.as_ref().map(KernelLog::unknown_parameters).unwrap_or_default().0;
    let unknown: Vec<String> = parameters.iter().map(parameters::redact).collect();
    let parameters = line.parameters().enumerate();
    let found = parameters.filter_map(|(at, given)| {
        let (why, text) = by_rule(given, sources)
            .or_else(|| contradictions::find(at, line, sources))
            .or_else(|| not_known(given, &unknown))?;
        Some(Inert { parameter: parameters::redact(given), why, text })
    });
    found.collect()
}

/// By the kernel's version and configuration, and by its messages about rejected values.
fn by_rule(given: &Parameter, sources: &Sources) -> Option<(WhyInert, String)> {
    let value = given.value.as_deref().unwrap_or_default();
    if given.is("divider") {
        let release = sources.release.as_ref().ok()?;
        let why = divider::why_inert(value, release)?;
        return Some((why, divider::divider(value, release, tick::hz(sources)).text));
    }
    if let Some(rule) = parameters::find_rule(&given.name, value, sources) {
        return Some((rule.why, rule.text.to_owned()));
    }
    let refused = given.is("preempt") && preempt::has_logged_refusal(sources, value);
    let text = "the kernel rejected this preemption model (see its log)";
    refused.then(|| (WhyInert::Refused, text.to_owned()))
}

/// By the kernel's message about unknown parameters.
fn not_known(given: &Parameter, unknown: &[String]) -> Option<(WhyInert, String)> {
    if parameters::is_for_user_space(&given.name)
        || !unknown.contains(&parameters::redact(given))
    {
        return None;
    }
    let text = "the kernel does not know it, and passed it to init";
    Some((WhyInert::Unrecognised, text.to_owned()))
}

/// The files that were checked for parameters without effect, and those that could not be.
fn evidence(sources: &Sources) -> String {
    let config = match &sources.config {
        Ok(config) => config.file().to_owned(),
        Err(unknown) => format!("no configuration ({unknown})"),
    };
    let log = match &sources.log {
        _ if sources.at_least(5, 15) == Some(false) => {
            "no messages (kernels before 5.15 do not say which they do not know)"
                .to_owned()
        }
        Ok(log) if log.from_boot() => kernel_log::FILE.to_owned(),
        Ok(_) => format!("{} (its beginning is overwritten)", kernel_log::FILE),
        Err(unknown) => format!("no messages ({unknown})"),
    };
    format!("{}, {config}, {log}", command_line::FILE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::tree;

    const DYNAMIC: &str = "CONFIG_PREEMPT_DYNAMIC=y\nCONFIG_PREEMPT_VOLUNTARY=y\n\
                           CONFIG_NO_HZ_COMMON=y\nCONFIG_NO_HZ_FULL=y\n\
                           CONFIG_CPU_ISOLATION=y\nCONFIG_RCU_NOCB_CPU=y\n";

    /// The parameters without effect on a machine with 4 CPUs, with the reasons.
    fn inert_on(
        release: &str,
        config: &str,
        line: &str,
        more: &[(&str, &str)],
    ) -> Vec<(String, WhyInert)> {
        let config_file = format!("/boot/config-{release}");
        let mut files = vec![
            ("/proc/sys/kernel/osrelease", release),
            ("/proc/cmdline", line),
            ("/sys/devices/system/cpu/possible", "0-3\n"),
        ];
        if !config.is_empty() {
            files.push((&config_file, config));
        }
        files.extend_from_slice(more);
        let tree = tree(&files);
        let boot = Boot::read(&tree.sources());
        let inert = boot.inert.get().unwrap().iter();
        inert.map(|inert| (inert.parameter.clone(), inert.why)).collect()
    }

    fn one(parameter: &str, why: WhyInert) -> Vec<(String, WhyInert)> {
        vec![(parameter.to_owned(), why)]
    }

    /// Check that only parameters that contradict each other are found.
    #[test]
    fn contradictions() {
        const FULL: &str = "/sys/devices/system/cpu/nohz_full";
        const ISOLATED: &str = "/sys/devices/system/cpu/isolated";
        let contradicts = |parameter| one(parameter, WhyInert::Contradictory);
        for (line, more, expected) in [
            ("nohz=off nohz_full=1", (FULL, "1\n"), contradicts("nohz_full=1")),
            ("nohz_full=0-3", (FULL, "1-3\n"), contradicts("nohz_full=0-3")),
            ("nohz_full=all", (FULL, "1-3\n"), contradicts("nohz_full=all")),
            ("nohz_full=1-N", (FULL, "1-3\n"), vec![]),
            // A kernel that accepts more than mainline's.
            ("nohz_full=1-15", (FULL, "1-3\n"), vec![]),
            ("nohz_full=1-15", (FULL, "\n"), one("nohz_full=1-15", WhyInert::Refused)),
            ("nohz_full=2", (FULL, "(null)\n"), one("nohz_full=2", WhyInert::Refused)),
            (
                "nohz_full=9 nohz_full=2",
                (FULL, "2"),
                one("nohz_full=9", WhyInert::Refused),
            ),
            ("isolcpus=4-3", (ISOLATED, "\n"), one("isolcpus=4-3", WhyInert::Refused)),
            ("rcu_nocbs=1-9", (FULL, "\n"), one("rcu_nocbs=1-9", WhyInert::Refused)),
            ("irqaffinity=9", (FULL, "\n"), one("irqaffinity=9", WhyInert::Refused)),
            ("nohz_full=1 nohz_full=2", (FULL, "1\n"), contradicts("nohz_full=2")),
            ("nohz_full=1 isolcpus=nohz,2", (FULL, "1"), contradicts("isolcpus=nohz,2")),
            ("nohz_full=1 isolcpus=nohz,1", (FULL, "1"), vec![]),
            ("nohz_full=1 isolcpus=2", (FULL, "1"), vec![]),
            ("isolcpus=2", (ISOLATED, "\n"), one("isolcpus=2", WhyInert::Refused)),
            ("isolcpus=managed_irq,2", (ISOLATED, "\n"), vec![]),
            ("isolcpus=domain,2-3", (ISOLATED, "2-3\n"), vec![]),
            ("rcu_nocbs=1 rcu-nocbs=2", (FULL, "\n"), contradicts("rcu_nocbs=1")),
            ("rcu_nocbs=1 rcu_nocbs=1", (FULL, "\n"), vec![]),
            ("preempt=full preempt=none", (FULL, "\n"), contradicts("preempt=full")),
        ] {
            assert_eq!(inert_on("6.8.0", DYNAMIC, line, &[more]), expected, "{line}");
        }
    }

    /// Check rules by version and configuration, and that a rejected value does not override an
    /// accepted one.
    #[test]
    fn versions_and_options() {
        let lazy = format!("{DYNAMIC}CONFIG_ARCH_HAS_PREEMPT_LAZY=y\n");
        let refused = |parameter| one(parameter, WhyInert::Refused);
        for (release, config, line, expected) in [
            (
                "7.2.1",
                lazy.as_str(),
                "preempt=full preempt=none",
                refused("preempt=none"),
            ),
            ("6.18.1", &lazy, "preempt=none", vec![]),
            ("6.12.1", DYNAMIC, "preempt=lazy", refused("preempt=lazy")),
            ("6.18.1", &lazy, "preempt=lazy", vec![]),
            ("6.1.1", DYNAMIC, "preempt=fast", refused("preempt=fast")),
            (
                "5.10.1",
                "CONFIG_HZ=250\n",
                "preempt=full",
                one("preempt=full", WhyInert::Unsupported),
            ),
            ("6.1.1", DYNAMIC, "nohz=maybe", refused("nohz=maybe")),
            ("6.1.1", DYNAMIC, "nohz=off", vec![]),
            ("4.18.0", DYNAMIC, "elevator=noop", vec![]),
            ("5.4.0", DYNAMIC, "elevator=noop", one("elevator=noop", WhyInert::OtherAge)),
            ("6.1.1", DYNAMIC, "divider=10", one("divider=10", WhyInert::OtherAge)),
            ("2.6.18-308.el5", DYNAMIC, "divider=10", vec![]),
            ("2.6.18-308.el5", DYNAMIC, "divider=50", refused("divider=50")),
        ] {
            assert_eq!(
                inert_on(release, config, line, &[]),
                expected,
                "{release} {line}"
            );
        }
    }

    /// Check that nothing is reported without a configuration, or for parameters without rules.
    #[test]
    fn no_uncertain_reports() {
        for line in ["nohz_full=1 rcu_nocbs=1 preempt=none", "foo=1 bar"] {
            assert_eq!(inert_on("7.2.1", "", line, &[]), [], "{line}");
        }
        assert_eq!(inert_on("7.2.1", DYNAMIC, "foo=1 bar", &[]), []);
    }

    /// Check that the kernel's messages override rules about mainline kernels.
    #[test]
    fn messages_override_rules() {
        let listed = "5,0,0,-;x\n5,1,0,-;Unknown kernel command line parameters \"splash \
                      foo=1 kthread_cpus=0\", will be passed to user space.\n";
        let line = "splash foo=1 kthread_cpus=0";
        let config = format!("{DYNAMIC}CONFIG_NO_HZ=y\n# CONFIG_PREEMPT_RT is not set\n");
        let on = |log| inert_on("6.8.0", &config, line, &[("/dev/kmsg", log)]);
        let expected = [
            ("foo=...".to_owned(), WhyInert::Unrecognised),
            ("kthread_cpus=0".to_owned(), WhyInert::Unrecognised),
        ];
        assert_eq!(on(listed), expected);
        // A patched kernel that knows it.
        assert_eq!(on("5,0,0,-;x\n"), []);
        // A log without its beginning is no evidence.
        let unsure = [("kthread_cpus=0".to_owned(), WhyInert::Unrecognised)];
        assert_eq!(on("5,9,0,-;x\n"), unsure);
    }

    /// Check that the source lists missing files.
    #[test]
    fn missing_evidence_is_named() {
        let source = |files: &[(&str, &str)]| {
            let tree = tree(files);
            Boot::read(&tree.sources()).inert.source().to_owned()
        };
        let line = ("/proc/cmdline", "quiet");
        let release = ("/proc/sys/kernel/osrelease", "6.1.0");
        let nothing = source(&[line, release]);
        assert!(nothing.contains("no configuration ("), "{nothing}");
        assert!(nothing.contains("no messages ("), "{nothing}");
        let late = source(&[line, release, ("/dev/kmsg", "5,9,0,-;x\n")]);
        assert!(late.contains("/dev/kmsg (its beginning is overwritten)"), "{late}");
        let old = source(&[line, ("/proc/sys/kernel/osrelease", "5.10.0")]);
        assert!(old.contains("kernels before 5.15"), "{old}");
    }

    /// Check which program changes boot parameters: the first that is there.
    #[test]
    fn changed_with() {
        let found = |file: &str| {
            let tree = tree(&[
                ("/proc/cmdline", "quiet"),
                ("/usr/sbin/update-grub", ""),
                (file, ""),
            ]);
            Boot::read(&tree.sources()).changed_with.get().cloned()
        };
        assert_eq!(found("/usr/sbin/grubby").as_deref(), Some("grubby"));
        assert_eq!(found("/run/ostree-booted").as_deref(), Some("rpm-ostree"));
        assert_eq!(found("/etc/hostname").as_deref(), Some("update-grub"));
        let tree = tree(&[("/proc/cmdline", "quiet")]);
        let none = Boot::read(&tree.sources()).changed_with;
        assert_eq!(none.value().unwrap_err().code, Why::Absent);
    }

    /// Check that an invalid log is an error.
    #[test]
    fn invalid_log() {
        let tree = tree(&[
            ("/proc/sys/kernel/osrelease", "6.1.0"),
            ("/proc/cmdline", "quiet"),
            ("/dev/kmsg", "hello\n"),
        ]);
        let inert = Boot::read(&tree.sources()).inert;
        assert_eq!(inert.value().unwrap_err().code, Why::Garbage);
    }
}
