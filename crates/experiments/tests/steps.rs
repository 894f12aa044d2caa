//! Steps of a series, and cells of built-in experiments in another one.
#![expect(clippy::unwrap_used, reason = "what fails in a helper fails the test")]

use experiments::{CellPlan, Experiment};

/// Two steps on two kernels, with a workload of its own and an included one.
const SERIES: &str = r#"
    name = "mine"
    kernels = [
        { source = "debian:6.1" },
        { source = "./linux", base = "debian", options = { HZ = 100 }, name = "slow" },
    ]

    [[include]]
    experiment = "tick-cost"
    cells = ["other", "nohz=off idle"]

    [[workload]]
    name = "calls"
    calls = { cpu = 0, calls = ["getpid"], repeats = 5 }

    [[step]]
    name = "quiet"
    options = { PROFILING = false, AUDIT = false }
    costs = "no audit log"

    [[step]]
    name = "lazy"
    options = { PREEMPT = "none" }
"#;
/// The lines of an experiment before its steps.
const HEAD: &str = "name = \"x\"\nkernels = [\"build:./a,lean\"]\n\
     [[include]]\nexperiment = \"syscalls\"\ncells = [\"calls\"]\n";

fn series() -> Experiment {
    Experiment::parse(SERIES, "mine.toml").unwrap()
}

fn refusal(text: &str) -> String {
    Experiment::parse(text, "x.toml").unwrap_err().to_string()
}

fn names(experiment: &Experiment) -> Vec<&str> {
    let first = &experiment.cells()[0].kernel;
    let own = experiment.cells().iter().filter(|plan| plan.kernel == *first);
    own.map(|plan| plan.name.as_str()).collect()
}

/// Check that each step is a kernel alone and one with the steps before it, that the first is built
/// once, and that labels begin with that of the base.
#[test]
fn kernels_of_steps() {
    let series = series();
    let mut kernels: Vec<&str> =
        series.cells().iter().map(|plan| plan.kernel.as_str()).collect();
    kernels.dedup();
    assert_eq!(
        kernels,
        [
            "build:debian:6.1,lean",
            "build:debian:6.1,lean,AUDIT=n,PROFILING=n,name=quiet",
            "build:debian:6.1,lean,PREEMPT=none,name=lazy",
            "build:debian:6.1,lean,AUDIT=n,PROFILING=n,PREEMPT=none,name=to-lazy",
            "build:./linux,debian,HZ=100,name=slow",
            "build:./linux,debian,HZ=100,AUDIT=n,PROFILING=n,name=slow-quiet",
            "build:./linux,debian,HZ=100,PREEMPT=none,name=slow-lazy",
            "build:./linux,debian,HZ=100,AUDIT=n,PROFILING=n,PREEMPT=none,name=slow-to-lazy",
        ]
    );
    let [first, _] = series.series() else { panic!("{:?}", series.series()) };
    assert_eq!(first.kernels().collect::<Vec<_>>(), kernels[..4]);
    let [quiet, lazy] = first.steps.as_slice() else { panic!("{first:?}") };
    assert_eq!(quiet.options, ["AUDIT=n", "PROFILING=n"]);
    assert_eq!((quiet.costs.as_str(), lazy.costs.as_str()), ("no audit log", ""));
    assert_eq!(quiet.alone, quiet.cumulated);
    assert_eq!((lazy.alone.as_str(), lazy.cumulated.as_str()), (kernels[2], kernels[3]));
}

/// Check that an included cell is that of the built-in experiment: it differs in the kernel and the
/// beginning of its name only.
#[test]
fn included_cells() {
    let series = series();
    assert_eq!(names(&series), ["calls", "tick-cost other", "tick-cost nohz=off idle"]);
    let builtin = Experiment::builtin("tick-cost").unwrap();
    for name in ["other", "nohz=off idle"] {
        let own = builtin.cells().iter().find(|plan| plan.name == name).unwrap();
        let prefixed = format!("tick-cost {name}");
        let included = series.cells().iter().find(|plan| plan.name == prefixed).unwrap();
        let same = CellPlan {
            kernel: own.kernel.clone(),
            name: own.name.clone(),
            ..included.clone()
        };
        assert_eq!(same, *own);
    }
}

/// Check that the cells of `trim` are those of the experiments that it includes, with their machines
/// and settings.
#[test]
fn cells_of_trim() {
    let trim = Experiment::builtin("trim").unwrap();
    for name in names(&trim) {
        let (experiment, cell) = name.split_once(' ').unwrap();
        let builtin = Experiment::builtin(experiment).unwrap();
        let own = builtin.cells().iter().find(|plan| plan.name == cell).unwrap();
        let included = trim.cells().iter().find(|plan| plan.name == name).unwrap();
        assert_eq!(included.spec, own.spec);
        assert_eq!(included.machine, own.machine);
        assert_eq!((&included.settings, &included.files), (&own.settings, &own.files));
        assert_eq!((&included.params, included.mode), (&own.params, own.mode));
    }
    let [all] = trim.series() else { panic!("{:?}", trim.series()) };
    assert!(
        all.steps.iter().all(|step| !step.costs.is_empty() && !step.options.is_empty())
    );
    assert_eq!(all.kernels().count(), 2 * all.steps.len());
}

/// Check that changes apply to included cells, that a selected row leaves out the experiments
/// without it, and that a step can be selected.
#[test]
fn changes() {
    let change = |changes: &[&str]| {
        let changes: Vec<String> = changes.iter().map(|&one| one.to_owned()).collect();
        series().with_changes(&changes)
    };
    let two = change(&["repeats=2", "cpus=2"]).unwrap();
    assert_eq!(names(&two).len(), 6);
    assert!(two.cells().iter().all(|plan| plan.machine.cpus == 2));
    assert_eq!(names(&change(&["workload=other"]).unwrap()), ["tick-cost other"]);
    assert_eq!(names(&change(&["workload=calls"]).unwrap()), ["calls"]);
    let lazy = change(&["step=lazy"]).unwrap();
    let kernels: Vec<&str> = lazy.series()[0].kernels().collect();
    assert_eq!(
        kernels,
        ["build:debian:6.1,lean", "build:debian:6.1,lean,PREEMPT=none,name=lazy"]
    );
    assert_eq!(names(&lazy).len(), 3);
    let refused = |one: &str| units::chain(&change(&[one]).unwrap_err());
    assert_eq!(
        refused("step=fast"),
        "step=fast: no step 'fast': there are 'quiet', 'lazy'"
    );
    assert!(
        refused("workload=x").contains("no workload 'x'"),
        "{}",
        refused("workload=x")
    );
    let other = series().with_kernels(&["debian:6.1-cloud".to_owned()]).unwrap_err();
    assert!(other.to_string().contains("'debian:6.1-cloud' is not"), "{other}");
}

/// Check that a mistake has its place, and what is possible instead.
#[test]
fn refused() {
    for (rows, message) in [
        ("[[step]]\nname = \"a\"", "6:1: missing field `options`"),
        (
            "[[step]]\nname = \"a\"\noptions = { a = 1 }\n",
            "6:1: build:./a,lean: 'a=1' is not an option: write NAME=VALUE, as in HZ=40",
        ),
        (
            "[[step]]\nname = \"a\"\noptions = { NO_HZ = \"x\" }\n",
            "6:1: NO_HZ=x: NO_HZ must be off, idle or full",
        ),
        (
            "[[step]]\nname = \"a\"\noptions = { A = \"b,c\" }\n",
            "6:1: a kernel's source, fragments and options must not contain a comma",
        ),
        (
            "[[step]]\nname = \"a\"\noptions = { A = 1 }\n\
             [[step]]\nname = \"a\"\noptions = { B = 1 }\n",
            "10:8: two steps are named 'a'",
        ),
        (
            "[[step]]\nname = \"a\"\noptions = { A = 1 }\n\
             [[step]]\nname = \"to-a\"\noptions = { B = 1 }\n",
            "10:8: 'to-a' is the name of all steps up to another one",
        ),
        ("[[boot]]\nappend = \"x\"\n", "6:1: no workload runs with this boot row"),
        (
            "[[include]]\nexperiment = \"syscalls\"\ncells = [\"calls\"]\n",
            "1:8: two cells are named 'syscalls calls'",
        ),
        (
            "[[include]]\nexperiment = \"trim\"\n",
            "7:14: experiment 'trim' includes others or has steps, and cannot be included",
        ),
        (
            "[[include]]\nexperiment = \"web\"\ncells = [\"2k\"]\n",
            "8:10: no cell '2k': there are 'nginx-2k', ",
        ),
        ("[[include]]\nexperiment = \"wob\"\n", "7:14: no experiment 'wob': there are "),
    ] {
        let refused = refusal(&format!("{HEAD}{rows}"));
        assert!(refused.starts_with(&format!("x.toml:{message}")), "{rows}: {refused}");
    }
    let stock = HEAD.replace("build:./a,lean", "debian:6.1-cloud");
    let refused =
        refusal(&format!("{stock}[[step]]\nname = \"a\"\noptions = {{ A = 1 }}\n"));
    assert!(
        refused.starts_with(
            "x.toml:2:12: steps change the options of kernels that are built, and \
             'debian:6.1-cloud' is not: write build:debian:6.1,debian"
        ),
        "{refused}"
    );
}

/// Check that the trimmed kernel of `web` has all steps of `trim`.
#[test]
fn trimmed_kernel_of_web() {
    let trim = Experiment::builtin("trim").unwrap();
    let all = &trim.series()[0].steps.last().unwrap().cumulated;
    let web = Experiment::builtin("web").unwrap();
    let mut kernels = web.cells().iter().map(|plan| plan.kernel.as_str());
    let trimmed = kernels.find(|kernel| kernel.contains("trimmed")).unwrap();
    let options = |kernel: &str| {
        let parts = kernel.split(',').filter(|part| part.contains('='));
        let mut options: Vec<String> =
            parts.filter(|part| !part.starts_with("name=")).map(str::to_owned).collect();
        options.sort();
        options
    };
    assert_eq!(options(trimmed), options(all));
}
