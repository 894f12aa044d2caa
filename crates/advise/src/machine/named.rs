//! The subjects with names of their own, which summarize facts.

use std::collections::BTreeMap;

use facts::{IdleState, Model, Unknown};
use units::Nanos;

use crate::machine::{Machine, missing, yes_or_no};
use crate::rule::condition::Answer;

/// The preemption models by their options, the strongest first.
const MODELS: [(&str, &str); 5] = [
    ("CONFIG_PREEMPT_RT", "rt"),
    ("CONFIG_PREEMPT", "full"),
    ("CONFIG_PREEMPT_LAZY", "lazy"),
    ("CONFIG_PREEMPT_VOLUNTARY", "voluntary"),
    ("CONFIG_PREEMPT_NONE", "none"),
];
/// How often the modules of KVM are in use.
const KVM: [&str; 2] = ["/sys/module/kvm_intel/refcnt", "/sys/module/kvm_amd/refcnt"];
/// The facts that the tables have in another form.
const DERIVED: [&str; 10] = [
    "boot.inert",
    "cpus.smt_control",
    "power.deepest_latency_us",
    "power.dma_latency_holders",
    "power.excluded_states",
    "sched.fair_server_us",
    "security.mitigation_parameters",
    "security.smt_vulnerable",
    "security.vulnerable",
    "security.without_microcode",
];
/// The boot parameters that can turn a mitigation off: `Documentation/admin-guide/kernel-parameters.txt`
/// (`mitigations=`, 7.3).
const MITIGATION_PARAMETERS: [&str; 27] = [
    "gather_data_sampling",
    "indirect_target_selection",
    "kpti",
    "l1tf",
    "mds",
    "mitigations",
    "mmio_stale_data",
    "no_entry_flush",
    "no_uaccess_flush",
    "nobp",
    "nopti",
    "nospectre_bhb",
    "nospectre_v1",
    "nospectre_v2",
    "pti",
    "reg_file_data_sampling",
    "retbleed",
    "spec_rstack_overflow",
    "spec_store_bypass_disable",
    "spectre_bhi",
    "spectre_v2",
    "spectre_v2_user",
    "srbds",
    "ssbd",
    "tsa",
    "tsx_async_abort",
    "vmscape",
];
/// The start of the key of one vulnerability.
const MITIGATIONS: &str = "security.mitigations.";

impl Machine<'_> {
    /// A subject without a dot; `None` for others.
    pub(crate) fn named(&self, subject: &str) -> Option<Answer> {
        let facts = self.facts();
        let number = |number: Option<usize>| {
            number.map_or(Answer::Unknown, |number| Answer::Is(number.to_string()))
        };
        Some(match subject {
            "kernel" => self.fact("kernel.release"),
            "arch" => self.fact("kernel.arch"),
            "cpus" => number(facts.cpus.online.get().map(units::CpuSet::len)),
            "nodes" => number(facts.cpus.nodes.get().map(Vec::len)),
            "packages" => number(facts.cpus.packages.get().map(Vec::len)),
            "isolated" => {
                number(facts.cpus.isolated.get().map(|_| facts.set_apart().len()))
            }
            "cgroup" => self.fact("cgroup.layout"),
            "smt" => match facts.cpus.smt.get() {
                Some(smt) => yes_or_no(smt.active),
                None => Answer::Unknown,
            },
            "vms" => self.virtual_machines(),
            "guest" | "hypervisor" => self.hypervisor(subject == "guest"),
            "container" => match facts.virt.container.get() {
                Some(container) => yes_or_no(container.is_some()),
                None => Answer::Unknown,
            },
            "rt" | "preempt" => match facts.preempt.model.get() {
                Some(model) if subject == "rt" => yes_or_no(*model == Model::Rt),
                Some(_) => self.fact("preempt.model"),
                None => self.model_by_configuration(subject == "rt"),
            },
            _ => return None,
        })
    }

    /// The preemption model that the kernel is built with, or that its command line chooses.
    fn model_by_configuration(&self, only_rt: bool) -> Answer {
        let is_set = |option: &str| self.answer(option) == Answer::Is("y".to_owned());
        let built =
            MODELS.iter().find(|(option, _)| is_set(option)).map(|(_, model)| *model);
        match (built, self.answer("boot.preempt")) {
            (None, _) => Answer::Unknown,
            (Some(model), _) if only_rt => yes_or_no(model == "rt"),
            (Some("rt"), _) => Answer::Is("rt".to_owned()),
            (Some(_), Answer::Is(chosen)) if is_set("CONFIG_PREEMPT_DYNAMIC") => {
                Answer::Is(chosen)
            }
            (Some(model), _) => Answer::Is(model.to_owned()),
        }
    }

    /// Whether virtual machines of KVM run: each holds a reference to the processor's module.
    fn virtual_machines(&self) -> Answer {
        let answers = KVM.map(|file| self.answer(file));
        let runs = |answer: &Answer| matches!(answer, Answer::Is(count) if count != "0");
        match answers.iter().any(runs) {
            true => yes_or_no(true),
            false if answers.contains(&Answer::Unknown) => Answer::Unknown,
            false => yes_or_no(false),
        }
    }

    fn hypervisor(&self, only_whether: bool) -> Answer {
        match self.facts().virt.hypervisor.get() {
            None => Answer::Unknown,
            Some(name) if only_whether => yes_or_no(name.is_some()),
            Some(None) => Answer::Absent,
            Some(Some(name)) => Answer::Is(name.clone()),
        }
    }

    /// Whether a fact is one that the tables have in another form.
    pub fn derives(key: &str) -> bool {
        DERIVED.contains(&key) || key.starts_with(MITIGATIONS)
    }

    /// A fact that the tables have in another form; `None` for others.
    pub(crate) fn derived(&self, key: &str) -> Option<Answer> {
        let facts = self.facts();
        if let Some(answer) = self.list(key) {
            return Some(answer);
        }
        if let Some(name) = key.strip_prefix(MITIGATIONS) {
            let texts = facts.security.mitigations.value();
            return Some(texts.map_or_else(
                |unknown| missing(unknown.code),
                |texts| texts.get(name).cloned().map_or(Answer::Absent, Answer::Is),
            ));
        }
        let answer = match key {
            "cpus.smt_control" => facts.cpus.smt.value().map(|smt| smt.control.clone()),
            "power.deepest_latency_us" => facts
                .power
                .idle_states
                .value()
                .map(|states| deepest_us(states, self.limit_us()).to_string()),
            "sched.fair_server_us" => {
                let runtimes = facts.sched.fair_server_runtime_ns.value();
                runtimes.map(|all| longest_us(all).to_string())
            }
            "boot.inert" => facts.boot.inert.value().map(|inert| {
                let names = inert.iter().map(|one| {
                    one.parameter.split('=').next().unwrap_or_default().to_owned()
                });
                names.collect::<Vec<_>>().join(",")
            }),
            _ => return None,
        };
        Some(answer.map_or_else(|unknown| missing(unknown.code), Answer::Is))
    }

    /// A list, which is absent if it is empty; `None` for other facts.
    fn list(&self, key: &str) -> Option<Answer> {
        let facts = self.facts();
        let mitigations = facts.security.mitigations.value();
        let vulnerabilities = |is_such: fn(&str) -> bool| {
            mitigations.map(|texts| with_text(texts, is_such))
        };
        let names: Result<Vec<String>, &Unknown> = match key {
            "security.mitigation_parameters" => {
                let is_given = |name: &&str| {
                    facts.boot.given(name).is_some_and(|given| !given.is_empty())
                };
                let given = MITIGATION_PARAMETERS.into_iter().filter(is_given);
                facts.boot.parameters.value().map(|_| given.map(str::to_owned).collect())
            }
            "power.dma_latency_holders" => {
                facts.power.dma_latency_holders.value().cloned()
            }
            "power.excluded_states" => {
                let power = &facts.power;
                let limit = power.dma_latency_us.value();
                limit.and_then(|limit| Ok(excluded(power.idle_states.value()?, *limit)))
            }
            "security.smt_vulnerable" => {
                vulnerabilities(|text| text.contains("SMT vulnerable"))
            }
            "security.vulnerable" => {
                vulnerabilities(|text| text.starts_with("Vulnerable"))
            }
            "security.without_microcode" => {
                vulnerabilities(|text| text.to_lowercase().contains("no microcode"))
            }
            _ => return None,
        };
        Some(match names {
            Ok(names) if names.is_empty() => Answer::Absent,
            Ok(names) => Answer::Is(names.join(",")),
            Err(unknown) => missing(unknown.code),
        })
    }

    /// The limit of the idle states' exit latency, if one is known.
    fn limit_us(&self) -> Option<i32> {
        self.facts().power.dma_latency_us.get().copied().flatten()
    }
}

/// The exit latency of the deepest state that is neither disabled nor excluded by the limit.
fn deepest_us(states: &[IdleState], limit: Option<i32>) -> u64 {
    let allowed = states.iter().filter(|state| !state.disabled && !exceeds(state, limit));
    allowed.map(|state| state.latency_us).max().unwrap_or(0)
}

/// The states that only the limit excludes.
fn excluded(states: &[IdleState], limit: Option<i32>) -> Vec<String> {
    let excluded = states.iter().filter(|state| !state.disabled && exceeds(state, limit));
    excluded.map(|state| state.name.replace([' ', ','], "-")).collect()
}

fn exceeds(state: &IdleState, limit: Option<i32>) -> bool {
    limit.is_some_and(|limit| i128::from(state.latency_us) > i128::from(limit))
}

/// The names of the vulnerabilities with such a text.
fn with_text(
    texts: &BTreeMap<String, String>,
    is_such: impl Fn(&str) -> bool,
) -> Vec<String> {
    let such = texts.iter().filter(|(_, text)| is_such(text));
    such.map(|(name, _)| name.clone()).collect()
}

/// The longest of some times, in microseconds.
fn longest_us(times: &[Nanos]) -> u64 {
    times.iter().copied().max().unwrap_or_default().get() / 1_000
}

#[cfg(test)]
mod tests {
    use std::fs;

    use facts::{Facts, Root};

    use super::*;

    /// The answers on a machine with these files.
    fn answers<const N: usize>(
        files: &[(String, Vec<u8>)],
        keys: [&str; N],
    ) -> [Answer; N] {
        let folder = tempfile::tempdir().unwrap();
        let version = ("/proc/version".to_owned(), b"Linux version".to_vec());
        for (path, bytes) in files.iter().chain([&version]) {
            let path = folder.path().join(&path[1..]);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let facts = Facts::read(&Root::tree(folder.path()).unwrap());
        let machine = Machine::new(&facts, None, None);
        keys.map(|key| machine.answer(&format!("facts.{key}")))
    }

    fn is(value: &str) -> Answer {
        Answer::Is(value.to_owned())
    }

    /// Check the states that a latency limit excludes, and the deepest one of the others.
    #[test]
    fn latency_limit() {
        let of = |limit: i32| {
            let mut files =
                vec![("/dev/cpu_dma_latency".to_owned(), limit.to_ne_bytes().to_vec())];
            let states = [("POLL", "0"), ("C1 ACPI", "2"), ("C6", "133")];
            for (number, (name, latency)) in states.iter().enumerate() {
                let state = format!("/sys/devices/system/cpu/cpu0/cpuidle/state{number}");
                files.push((format!("{state}/name"), name.as_bytes().to_vec()));
                files.push((format!("{state}/latency"), latency.as_bytes().to_vec()));
            }
            let keys = [
                "power.deepest_latency_us",
                "power.excluded_states",
                "power.dma_latency_holders",
            ];
            answers(&files, keys)
        };
        assert_eq!(of(10), [is("2"), is("C6"), Answer::Unknown]);
        assert_eq!(of(0), [is("0"), is("C1-ACPI,C6"), Answer::Unknown]);
        assert_eq!(of(2_000_000_000), [is("133"), Answer::Absent, Answer::Absent]);
    }

    /// Check the lists of vulnerabilities, and one by its name.
    #[test]
    fn vulnerabilities() {
        let keys = [
            "security.smt_vulnerable",
            "security.vulnerable",
            "security.without_microcode",
            "security.mitigations.meltdown",
            "security.mitigations.tsa",
        ];
        let of = |texts: &[(&str, &str)]| {
            let file = |(name, text): &(&str, &str)| {
                let folder = "/sys/devices/system/cpu/vulnerabilities";
                (format!("{folder}/{name}"), text.as_bytes().to_vec())
            };
            answers(&texts.iter().map(file).collect::<Vec<_>>(), keys)
        };
        let found = of(&[
            ("l1tf", "Mitigation: PTE Inversion; VMX: cache flushes, SMT vulnerable"),
            ("mds", "Vulnerable: no microcode; SMT vulnerable"),
            ("meltdown", "Not affected"),
            ("retbleed", "Vulnerable"),
            ("srbds", "Vulnerable: No microcode"),
        ]);
        let expected = ["l1tf,mds", "mds,retbleed,srbds", "mds,srbds", "Not affected"];
        assert_eq!(found[..4], expected.map(is));
        assert_eq!(found[4], Answer::Absent);
        let none = of(&[("meltdown", "Not affected")]);
        assert_eq!(none[..3], [const { Answer::Absent }; 3]);
    }

    /// Check that boot parameters that turn mitigations off are listed, if the command line is known.
    #[test]
    fn mitigation_parameters() {
        let of = |files: &[(String, Vec<u8>)]| {
            answers(files, ["security.mitigation_parameters"])
        };
        let line = |text: &str| [("/proc/cmdline".to_owned(), text.as_bytes().to_vec())];
        assert_eq!(of(&line("quiet tsa=off nopti\n")), [is("nopti,tsa")]);
        assert_eq!(of(&line("quiet\n")), [Answer::Absent]);
    }
}
