//! The subjects with names of their own, which summarize facts.

use facts::{IdleState, Model};
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
const DERIVED: [&str; 4] = [
    "boot.inert",
    "cpus.smt_control",
    "power.deepest_latency_us",
    "sched.fair_server_us",
];

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
        DERIVED.contains(&key)
    }

    /// A fact that the tables have in another form; `None` for others.
    pub(crate) fn derived(&self, key: &str) -> Option<Answer> {
        let facts = self.facts();
        let answer = match key {
            "cpus.smt_control" => facts.cpus.smt.value().map(|smt| smt.control.clone()),
            "power.deepest_latency_us" => facts
                .power
                .idle_states
                .value()
                .map(|states| deepest_us(states).to_string()),
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
}

/// The exit latency of the deepest state that is not disabled.
fn deepest_us(states: &[IdleState]) -> u64 {
    states
        .iter()
        .filter(|state| !state.disabled)
        .map(|state| state.latency_us)
        .max()
        .unwrap_or(0)
}

/// The longest of some times, in microseconds.
fn longest_us(times: &[Nanos]) -> u64 {
    times.iter().copied().max().unwrap_or_default().get() / 1_000
}
