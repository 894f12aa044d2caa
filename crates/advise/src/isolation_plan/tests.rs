//! Choices on invented machines, and the lines for kernels.

use std::path::Path;

use facts::Root;
use proptest::prelude::*;
use serde_json::{Value, json};
use summary::{NoiseSummary, Summary};
use units::{Cpu, Nanos, Ppm};

use super::*;
use crate::findings::tests::golden;
use crate::rule::kernels;

/// A machine with these CPUs; each text has sets, separated by blanks.
fn machine(online: &str, cores: &str, nodes: &str, caches: &str) -> Value {
    let sets = |text: &str| {
        text.split(' ').filter(|set| !set.is_empty()).map(Value::from).collect()
    };
    let [cores, nodes, caches]: [Vec<Value>; 3] = [cores, nodes, caches].map(sets);
    json!({
        "kernel": {"release": "6.12.1"},
        "cpus": {"present": online, "online": online, "cores": cores, "nodes": nodes,
            "memory_nodes": nodes, "caches": caches, "isolated": "", "isolcpus": true},
        "tick": {"nohz_full": ""},
        "irq": {"bound": []},
        "sources": {}, "unknown": {},
    })
}

fn facts(page: Value) -> Facts {
    serde_json::from_value(page).unwrap()
}

fn cpus(text: &str) -> CpuSet {
    text.parse().unwrap()
}

fn plan(page: Value, wanted: usize, near: &str) -> IsolationPlan {
    let place = (!near.is_empty()).then(|| Near { node: 1, cpus: cpus(near) });
    let near = place.map(|place| NearDevice::new("eth0", Some(place)));
    IsolationPlan::of(&facts(page), None, wanted, near)
}

/// The chosen CPUs and the idle ones.
fn chosen(page: Value, wanted: usize, near: &str) -> (String, String) {
    let choice = plan(page, wanted, near).choice.unwrap();
    (choice.cpus.to_string(), choice.idle.to_string())
}

/// The reason for which a CPU was not chosen.
fn why_not(choice: &Choice, cpu: u32) -> &WhyNot {
    let has = |one: &&Rejected| one.cpus.contains(Cpu::new(cpu));
    &choice.rejected.iter().find(has).unwrap().why
}

/// Check choices by cores, nodes and caches.
#[test]
fn choices() {
    let smt = "0,4 1,5 2,6 3,7";
    let two_nodes = "0-7 8-15";
    for (online, cores, nodes, caches, wanted, near, expected) in [
        ("0-3", "", "0-3", "0-3", 1, "", ("3", "")),
        ("0-3", "", "", "", 3, "", ("1-3", "")),
        // Whole cores; of an odd number the sibling of one stays idle.
        ("0-7", smt, "0-7", "0-7", 2, "", ("3,7", "")),
        ("0-7", smt, "0-7", "0-7", 3, "", ("2,3,7", "6")),
        ("0-7", smt, "0-7", "0-7", 1, "", ("3", "7")),
        // One node, that of the device, and a core for housekeeping on each of them.
        ("0-15", "", two_nodes, two_nodes, 4, "", ("12-15", "")),
        ("0-15", "", two_nodes, two_nodes, 4, "0-7", ("4-7", "")),
        ("0-15", "", two_nodes, two_nodes, 7, "", ("9-15", "")),
        ("0-15", "", two_nodes, two_nodes, 10, "", ("5-7,9-15", "")),
        ("0-15", "", two_nodes, two_nodes, 10, "0-7", ("1-7,13-15", "")),
        ("0-15", "", two_nodes, two_nodes, 15, "", ("1-15", "")),
        // One cache, not that of the first core.
        ("0-7", "", "0-7", "0-3 4-7", 4, "", ("4-7", "")),
        ("0-7", "", "0-7", "0-3 4-7", 2, "", ("6,7", "")),
        ("0-11", "", "0-11", "0-3 4-9 10-11", 2, "", ("10,11", "")),
        ("0-7", "", "0-7", "0-3 4-7", 6, "", ("2-7", "")),
        // A hybrid processor: fast cores have two threads.
        ("0-7", "0-1 2-3", "0-7", "0-7", 1, "", ("2", "3")),
        ("0-7", "0-1 2-3", "0-7", "0-7", 4, "", ("2,3,6,7", "")),
        // The first CPU is offline.
        ("2-5", "", "2-5", "2-5", 3, "", ("3-5", "")),
    ] {
        let page = machine(online, cores, nodes, caches);
        let expected = (expected.0.to_owned(), expected.1.to_owned());
        assert_eq!(
            chosen(page, wanted, near),
            expected,
            "{online} {cores} {wanted} {near}"
        );
    }
}

/// Check what is said of a choice: nodes without housekeeping, several nodes, cores of several kinds.
#[test]
fn remarks() {
    let two = || machine("0-15", "", "0-7 8-15", "0-7 8-15");
    let all = plan(two(), 15, "8-15").choice.unwrap();
    assert_eq!((all.nodes, all.caches, all.near), (2, 2, Some(false)));
    assert_eq!(all.without_housekeeping, [cpus("8-15")]);
    let few = plan(two(), 4, "8-15").choice.unwrap();
    assert_eq!((few.nodes, few.caches, few.near), (1, 1, Some(true)));
    assert!(few.without_housekeeping.is_empty() && !few.unequal);
    assert_eq!(few.housekeeping, cpus("0-11"));
    assert!(plan(machine("0-7", "0-1 2-3", "", ""), 4, "").choice.unwrap().unequal);
}

/// Check that it says so if no CPU can be isolated.
#[test]
fn impossible() {
    let why = |online: &str, cores: &str, wanted| {
        let plan = plan(machine(online, cores, "", ""), wanted, "");
        assert!(plan.choice.is_none() && plan.boot.is_empty() && plan.proof.is_empty());
        plan.impossible.unwrap()
    };
    assert_eq!(why("0", "", 1), Impossible::OneCpu);
    assert_eq!(why("0-1", "0-1", 1), Impossible::OneCore);
    assert_eq!(why("0-7", "0,4 1,5 2,6 3,7", 7), Impossible::TooFew { most: 6 });
    assert_eq!(why("0-3", "", 4), Impossible::TooFew { most: 3 });
    let unknown =
        IsolationPlan::of(&facts(json!({"sources": {}, "unknown": {}})), None, 1, None);
    assert_eq!(unknown.impossible, Some(Impossible::UnknownCpus));
}

/// Check the reasons for which CPUs are not chosen.
#[test]
fn reasons() {
    let mut page = machine("0-15", "", "0-7 8-15", "0-7 8-11 12-15");
    page["cpus"]["present"] = json!("0-17");
    page["irq"]["bound"] = json!([{"number": 36, "name": "nvme0q15", "cpus": "15"}]);
    let choice = plan(page, 2, "8-15").choice.unwrap();
    assert_eq!(choice.cpus, cpus("13,14"));
    for (cpu, why) in [
        (0, WhyNot::BootCore),
        (3, WhyNot::OtherNode),
        (8, WhyNot::OtherCache),
        (12, WhyNot::NotNeeded),
        (15, WhyNot::Housekeeping),
        (16, WhyNot::Offline),
    ] {
        assert_eq!(*why_not(&choice, cpu), why, "CPU {cpu}");
    }
    let mut page = machine("0-7", "0-1 2-3", "", "");
    page["irq"]["bound"] = json!([{"number": 36, "name": "nvme0q7", "cpus": "7"}]);
    let three = plan(page.clone(), 3, "");
    let choice = three.choice.unwrap();
    assert_eq!(choice.cpus, cpus("2-3,6"));
    let names = vec!["nvme0q7".to_owned()];
    assert_eq!(*why_not(&choice, 7), WhyNot::BoundIrqs { names });
    assert!(three.bound.is_empty());
    let two = plan(page.clone(), 2, "").choice.unwrap();
    assert_eq!(*why_not(&two, 4), WhyNot::FewerThreads);
    // If all are needed, it says which interrupts stay.
    assert_eq!(plan(page, 6, "").bound.len(), 1);
}

/// Check that the CPUs are chosen of which the hypervisor takes the least, if all were measured, and small
/// differences count for nothing.
#[test]
fn least_stolen() {
    let recording = golden();
    let Summary::Check(check) = Summary::of(&recording) else { panic!("another kind") };
    let one = check.noise.cpus[0].clone();
    let measured = |shares: &[(u32, u64)]| {
        let of = |(cpu, permille): &(u32, u64)| {
            let mut own = one.clone();
            (own.cpu, own.steal, own.noise_ppm) =
                (Cpu::new(*cpu), None, Some(Ppm::new(5.0)));
            own.elapsed_ns = Nanos::from_secs(100);
            own.proc.steal_ns = Some(Nanos::from_millis(100 * permille));
            own
        };
        let cpus = shares.iter().map(of).collect();
        Summary::Noise(NoiseSummary { cpus, ..check.noise.clone() })
    };
    let chosen = |shares: &[(u32, u64)]| {
        let facts = facts(machine("0-3", "", "0-3", "0-3"));
        let plan = IsolationPlan::of(&facts, Some(&measured(shares)), 1, None);
        (plan.measured, plan.choice.unwrap())
    };
    let (is_measured, choice) = chosen(&[(1, 9), (2, 0), (3, 40)]);
    assert!(is_measured && choice.cpus == cpus("2"));
    let WhyNot::Steal { ppm: Some(ppm) } = why_not(&choice, 3) else {
        panic!("{choice:?}")
    };
    assert!((ppm.get() - 39_900.0).abs() < 200.0, "{ppm:?}");
    assert_eq!(chosen(&[(1, 0), (2, 0), (3, 0)]).1.cpus, cpus("3"));
    let (is_measured, choice) = chosen(&[(1, 0), (3, 40)]);
    assert!(!is_measured && choice.cpus == cpus("3"));
}

/// Any machine: threads of a core, cores of a cache, caches of a node, nodes, and CPUs that are offline.
fn any_machine() -> impl Strategy<Value = (Value, usize)> {
    let sizes = (1_u32..=4, 1_u32..=8, 1_u32..=4, 1_u32..=2);
    (sizes, any::<u64>(), 1_usize..=260).prop_map(
        |((threads, cores, caches, nodes), bits, wanted)| {
            let count = threads * cores * caches * nodes;
            let is_online = |cpu: &u32| *cpu % 7 != 3 || bits >> (*cpu % 64) & 1 == 0;
            let set = |wanted: &dyn Fn(u32) -> bool| {
                (0..count)
                    .filter(is_online)
                    .filter(|cpu| wanted(*cpu))
                    .map(Cpu::new)
                    .collect::<CpuSet>()
            };
            // Siblings are as far apart as on many machines.
            let apart = count / threads;
            let by = |size: u32| {
                let sets = (0..apart.div_ceil(size))
                    .map(|one| set(&|cpu| cpu % apart / size == one));
                let sets = sets.filter(|set| !set.is_empty());
                sets.map(|set| set.to_string()).collect::<Vec<_>>().join(" ")
            };
            let online = set(&|_| true).to_string();
            (machine(&online, &by(1), &by(cores * caches), &by(cores)), wanted)
        },
    )
}

proptest! {
    /// Check that as many CPUs are chosen as wanted, of whole cores, without the first core, never all of
    /// them, that each other CPU has a reason, and that it is refused only if there are too few.
    #[test]
    fn any_topology((page, wanted) in any_machine()) {
        let facts = facts(page);
        let online = facts.cpus.online.get().unwrap().clone();
        let plan = IsolationPlan::of(&facts, None, wanted, None);
        let cores = facts.cpus.cores.get().unwrap();
        let first = cores.iter().find(|core| core.contains(online.first().unwrap())).unwrap();
        let Some(choice) = plan.choice else {
            prop_assert!(online.without(first).len() < wanted);
            return Ok(());
        };
        prop_assert_eq!(choice.cpus.len(), wanted);
        let isolated = choice.isolated();
        prop_assert!(isolated.and(first).is_empty() && !first.is_empty());
        for core in cores {
            let own = core.and(&isolated);
            prop_assert!(own.is_empty() || own == *core, "{} of {}", own, core);
        }
        let partly = cores.iter().filter(|core| !core.and(&choice.idle).is_empty()).count();
        prop_assert!(partly <= 1 && choice.idle.and(&choice.cpus).is_empty());
        // A node gives up its last core only if there are too few others.
        let largest = |node: &CpuSet| {
            let sizes = cores.iter().map(|core| core.and(node).len());
            sizes.max().unwrap_or(0)
        };
        let nodes = facts.cpus.nodes.get().unwrap();
        let others = nodes.iter().filter(|node| node.and(first).is_empty());
        let kept: usize = others.map(largest).sum();
        if wanted + kept <= online.without(first).len() {
            prop_assert!(choice.without_housekeeping.is_empty());
        }
        let rejected: CpuSet = choice.rejected.iter().flat_map(|one| one.cpus.iter()).collect();
        prop_assert_eq!(&rejected, &online.without(&isolated));
        prop_assert_eq!(&choice.housekeeping, &rejected);
    }
}

/// A machine with four CPUs, as far as lines depend on it.
fn kernel(release: &str, options: &str) -> Value {
    let mut page = machine("0-3", "", "0-3", "0-3");
    let has = |name: &str| options.split(' ').any(|option| option == name);
    let value = |name: &str| (name.to_owned(), json!(if has(name) { "y" } else { "n" }));
    let options: serde_json::Map<_, _> =
        ["NO_HZ_FULL", "RCU_NOCB_CPU"].map(value).into_iter().collect();
    page["kernel"]["release"] = json!(release);
    page["cpus"]["isolcpus"] = json!(has("CPU_ISOLATION"));
    page["settings"] = json!({"options": options, "unread": [], "services": ["irqbalance"],
        "values": {"kernel.watchdog": "1", "kernel.watchdog_cpumask": "0-3",
            "kernel.timer_migration": "0", "vm.stat_interval": "1", "/sys/kernel/rcu_normal": "0"}});
    page["boot"] = json!({"parameters": ["quiet"]});
    page["cgroup"] = json!({"partitions": "/sys/fs/cgroup"});
    page["security"] = json!({"lockdown": "none"});
    page["sched"] = json!({"fair_server_runtime_ns": [50_000_000]});
    if !has("NO_HZ_FULL") {
        page["tick"] = json!({});
        page["unknown"]["tick.nohz_full"] = json!({"code": "not_configured", "text": ""});
    }
    page
}

const ALL: &str = "NO_HZ_FULL RCU_NOCB_CPU CPU_ISOLATION";

fn boot(plan: &IsolationPlan) -> String {
    let lines: Vec<&str> =
        plan.boot.iter().flat_map(|line| &line.text).map(String::as_str).collect();
    lines.join(" ")
}

/// Check the boot parameters by version and configuration.
#[test]
fn boot_parameters() {
    let patience = "rcutree.nohz_full_patience_delay=1000";
    for (release, options, expected) in [
        (
            "6.12.1",
            ALL,
            format!(
                "nohz_full=3 isolcpus=managed_irq,domain,3 irqaffinity=0-2 {patience}"
            ),
        ),
        (
            "6.8.0",
            ALL,
            "nohz_full=3 isolcpus=managed_irq,domain,3 irqaffinity=0-2".to_owned(),
        ),
        ("5.4.0", ALL, "nohz_full=3 isolcpus=domain,3 irqaffinity=0-2".to_owned()),
        ("4.14.0", "CPU_ISOLATION", "isolcpus=3 irqaffinity=0-2".to_owned()),
        (
            "6.12.1",
            "RCU_NOCB_CPU CPU_ISOLATION",
            "rcu_nocbs=3 isolcpus=managed_irq,domain,3 irqaffinity=0-2".to_owned(),
        ),
        ("6.12.1", "", "irqaffinity=0-2 workqueue.unbound_cpus=0-2".to_owned()),
    ] {
        assert_eq!(
            boot(&plan(kernel(release, options), 1, "")),
            expected,
            "{release} {options}"
        );
    }
    let mut large = kernel("6.8.0", ALL);
    large["cpus"]["online"] = json!("0-15");
    assert!(boot(&plan(large, 2, "")).ends_with(" skew_tick=1"));
}

/// Check that current parameters are compared as sets, and those that are replaced are named.
#[test]
fn current_parameters() {
    let mut page = kernel("6.8.0", ALL);
    let given = ["nohz_full=2", "isolcpus=domain,managed_irq,3-3", "irqaffinity=0-1,2"];
    page["boot"]["parameters"] = json!(given);
    let states: Vec<State> =
        plan(page, 1, "").boot.into_iter().map(|line| line.state).collect();
    let old = State::Replaces("nohz_full=2".to_owned());
    assert_eq!(states, [old, State::InForce, State::InForce]);
}

/// The subjects of the lines at a time.
fn at(plan: &IsolationPlan, when: When) -> Vec<Subject> {
    plan.run_time
        .iter()
        .filter(|line| line.when == when)
        .map(|line| line.subject)
        .collect()
}

/// Check what is set at run time, beside the boot parameters and in their place.
#[test]
fn run_time() {
    use Subject::{
        FairServers, Interrupts, KernelThreads, Partition, Rcu, Statistics, Timers,
        Watchdog, Workqueues,
    };
    for (release, options, after, instead) in [
        (
            "6.12.1",
            ALL,
            vec![Timers, FairServers],
            vec![Partition, Interrupts, Interrupts, KernelThreads, Rcu, Watchdog],
        ),
        (
            "6.18.0",
            ALL,
            vec![Timers],
            vec![Partition, Interrupts, Interrupts, KernelThreads, Rcu, Watchdog],
        ),
        (
            "7.2.0",
            ALL,
            vec![Timers],
            vec![Partition, Interrupts, Interrupts, Rcu, Watchdog],
        ),
        (
            "6.1.0",
            ALL,
            vec![Timers, Statistics],
            vec![
                Partition,
                Interrupts,
                Interrupts,
                Workqueues,
                KernelThreads,
                Rcu,
                Watchdog,
            ],
        ),
        (
            "5.15.0",
            "CPU_ISOLATION",
            vec![KernelThreads, Rcu, Watchdog, Statistics],
            vec![Interrupts, Interrupts, Workqueues],
        ),
        (
            "6.12.1",
            "",
            vec![Partition, KernelThreads, Rcu, Watchdog],
            vec![Interrupts, Interrupts],
        ),
    ] {
        let plan = plan(kernel(release, options), 1, "");
        assert_eq!(at(&plan, When::AfterBoot), after, "{release} {options}");
        assert_eq!(at(&plan, When::Instead), instead, "{release} {options}");
    }
}

/// Check that the file system of the fair servers is mounted first if it is not, and that they are stopped
/// while deadline tasks have no limit, which is restored.
#[test]
fn fair_servers() {
    let mut page = kernel("6.12.1", ALL);
    page["sched"] = json!({"rt_runtime_us": 900_000});
    let key = "sched.fair_server_runtime_ns";
    page["unknown"][key] = json!({"code": "not_mounted", "text": ""});
    let plan = plan(page, 1, "");
    let servers = plan.run_time.iter().find(|line| line.subject == Subject::FairServers);
    let commands = &servers.unwrap().text;
    assert!(commands[0].starts_with("mount -t debugfs"), "{commands:?}");
    assert_eq!(commands[1], "sysctl kernel.sched_rt_runtime_us=-1");
    assert!(commands[2].starts_with("for c in 3; do echo 0 > "), "{commands:?}");
    assert_eq!(commands[3], "sysctl kernel.sched_rt_runtime_us=900000");
}

/// Check what is said if a kernel or a machine cannot do something.
#[test]
fn left_out() {
    let of = |page: Value| -> Vec<Subject> {
        plan(page, 1, "").left_out.into_iter().map(|one| one.subject).collect()
    };
    assert_eq!(of(kernel("6.12.1", ALL)), []);
    assert_eq!(of(kernel("6.12.1", "")), [Subject::Tick, Subject::Tasks]);
    assert_eq!(of(kernel("5.4.0", ALL)), [Subject::Interrupts, Subject::Partition]);
    let mut off = kernel("6.12.1", ALL);
    off["boot"]["parameters"] = json!(["nohz=off"]);
    assert_eq!(of(off), [Subject::Tick]);
    let mut locked = kernel("6.12.1", ALL);
    locked["security"]["lockdown"] = json!("integrity");
    assert_eq!(of(locked), [Subject::FairServers]);
    let mut v1 = kernel("6.12.1", ALL);
    v1["cgroup"] = json!({});
    let plan = plan(v1, 1, "");
    assert!(plan.left_out[0].reason.contains("cgroup v2"));
    assert!(!plan.program.unwrap().contains("--partition"));
}

/// Check that each rule that a line names is in the tables, for that kernel.
#[test]
fn rules_exist() {
    let rules: Vec<_> = crate::tables().iter().flat_map(|table| &table.rules).collect();
    let mut named = 0;
    for release in ["5.15.0", "6.1.0", "6.8.0", "6.12.1", "6.18.0", "7.2.0"] {
        for options in [ALL, "RCU_NOCB_CPU CPU_ISOLATION", "NO_HZ_FULL", ""] {
            let plan = plan(kernel(release, options), 1, "");
            for line in plan.boot.iter().chain(&plan.run_time) {
                let Some(name) = line.rule else { continue };
                let rule = rules.iter().find(|rule| rule.name == name);
                let rule = rule.unwrap_or_else(|| panic!("there is no rule {name}"));
                let version = kernels::version(release).unwrap();
                assert!(rule.kernels.contains(version), "{name} is not for {release}");
                named += 1;
            }
        }
    }
    assert!(named > 100, "{named}");
}

/// Check masks of machines with up to 256 CPUs.
#[test]
fn masks() {
    for (online, rest, expected) in [
        ("0-3", "0-2", "7"),
        ("0-255", "0,255", &*format!("80000000,{}00000001", "00000000,".repeat(6))),
    ] {
        let mut page = machine(online, "", "", "");
        page["cpus"]["possible"] = json!(online);
        let facts = facts(page);
        let kernel = Kernel::new(&facts, cpus("3"), cpus(rest));
        assert_eq!(crate::lasting::mask(&kernel.rest), expected);
    }
}

/// Check the plans for the recorded machines.
#[test]
fn fixtures() {
    for (tree, expected) in [
        ("arm64", Some("isolcpus=managed_irq,domain,3 irqaffinity=0-2")),
        ("debian-6.1", Some("nohz_full=1 isolcpus=managed_irq,domain,1 irqaffinity=0")),
        (
            "debian-6.12",
            Some(
                "nohz_full=1 isolcpus=managed_irq,domain,1 irqaffinity=0 \
                 rcutree.nohz_full_patience_delay=1000",
            ),
        ),
        ("rhel5-divider", Some("isolcpus=1")),
        (
            "ubuntu-24.04",
            Some("nohz_full=2,3 isolcpus=managed_irq,domain,2,3 irqaffinity=0,1"),
        ),
    ] {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures");
        let facts = Facts::read(&Root::tree(&Path::new(folder).join(tree)).unwrap());
        let plan = IsolationPlan::of(&facts, None, 1, None);
        let found = plan.choice.is_some().then(|| boot(&plan));
        assert_eq!(found.as_deref(), expected, "{tree} {:?}", plan.impossible);
    }
}
