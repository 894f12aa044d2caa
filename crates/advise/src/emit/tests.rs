//! What all formats have in common: each chosen rule is in the files or left out, and contradictions are found.

use facts::{Facts, Root};

use super::*;
use crate::advice::{AdviceItem, RuleText};
use crate::rule::{Change, Goal, Importance, Kind, Proof};

/// An item that is not from the tables: values may be anything there.
pub(crate) fn item(name: &'static str, change: Change, from: Option<&str>) -> AdviceItem {
    let kernels = String::from("..").try_into().unwrap();
    let rule = RuleText {
        name,
        subject: "subject",
        kind: Kind::Advice,
        importance: Importance::Useful,
        reason: "A reason.",
        gain: "A gain.",
        price: "A price.",
        kernels,
        source: "source",
        proof: Proof::None,
        acts_on: None,
    };
    AdviceItem {
        rule,
        goal: Goal::Latency,
        change,
        from: from.map(str::to_owned),
        also: Vec::new(),
        taken: None,
        largest: None,
        proof: None,
    }
}

pub(crate) fn set(name: &str, to: &str) -> Change {
    Change::Set { name: name.into(), to: to.into() }
}

pub(crate) fn boot(parameter: &str) -> Change {
    Change::Boot { parameter: parameter.into() }
}

/// A machine of four CPUs.
fn facts() -> Facts {
    let tree = tempfile::tempdir().unwrap();
    let files = [
        ("proc/sys/kernel/osrelease", "6.12.0\n"),
        ("sys/devices/system/cpu/online", "0-3\n"),
    ];
    for (path, text) in files {
        let place = tree.path().join(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, text).unwrap();
    }
    Facts::read(&Root::tree(tree.path()).unwrap())
}

/// The files of these items for a machine of four CPUs, of which the last three are to be quiet.
pub(crate) fn emitted(format: Format, items: Vec<AdviceItem>) -> Emitted {
    let facts = facts();
    let machine = Machine::new(&facts, None, None);
    let advice = Advice {
        goals: Goal::Latency.into(),
        rules: 0,
        items,
        not_advised: Vec::new(),
        contradictions: Vec::new(),
        undecided: Vec::new(),
        measured: false,
    };
    let origin = Origin { tool: "noisefloor 0", taken: "2026-01-01", taken_s: 1 };
    emit(format, &advice, &machine, None, origin).unwrap()
}

/// One change of each kind, with values that consumers could misread.
pub(crate) fn all_kinds() -> Vec<AdviceItem> {
    let action = |text: &str| Change::Action { text: text.into() };
    vec![
        item("sysctl", set("vm.stat_interval", "10"), Some("1")),
        item(
            "dollar",
            set("kernel.a", "$(touch PWNED) 'q' \"d\" #c %b \\n"),
            Some("`touch PWNED`"),
        ),
        item("file", set("/sys/kernel/mm/ksm/run", "0"), Some("1")),
        item(
            "module",
            set("/sys/module/kvm/parameters/halt_poll_ns", "0"),
            Some("200000"),
        ),
        item("feature", set("HRTICK", "off"), None),
        item("tunable", set("base_slice_ns", "3000000"), None),
        item("governor", set("governor", "performance"), None),
        item("idle", set("idle_latency_us", "10"), None),
        item("thp", set("thp", "madvise"), None),
        item("workqueues", set("workqueues", "0"), None),
        item("irqs", set("irqs", "0"), None),
        item("partition", set("partition", "1-3"), None),
        item("boot", boot("nohz_full=1-3"), None),
        item("spaces", boot("dyndbg=file a +p"), None),
        item("shell", boot("a=$(touch PWNED);&|"), None),
        item("quotes", boot("b=\"it's\""), None),
        item("unboot", Change::Unboot { parameter: "idle".into() }, Some("poll")),
        item("build", Change::Build { option: "HZ".into(), to: "100".into() }, None),
        item("hand", action("Do something"), None),
        item("banned", action("Set IRQBALANCE_BANNED_CPULIST to them"), None),
        item(
            "kubelet",
            action("Set cpuManagerPolicy: static and reservedSystemCPUs"),
            None,
        ),
        item("other", set("vm.stat_interval", "20"), Some("1")),
    ]
}

/// Check that in each format each rule is applied or left out with a reason, that what is left out is a comment of
/// a file, and that something is applied.
#[test]
fn nothing_is_lost() {
    for format in Format::ALL {
        let emitted = emitted(format, all_kinds());
        assert!(!emitted.rules.is_empty(), "{format:?}");
        for one in all_kinds() {
            let name = one.rule.name;
            let is_in = emitted.rules.iter().any(|rule| rule == name);
            let left: Vec<_> =
                emitted.left_out.iter().filter(|it| it.rule == name).collect();
            assert_eq!(left.len(), usize::from(!is_in), "{format:?} {name} {left:?}");
            let mark = format!("# {}{name}: ", if is_in { "" } else { "- " });
            let is_comment = emitted.files.iter().any(|file| file.text.contains(&mark));
            assert!(is_comment, "{format:?} {name}: no comment {mark}");
        }
        let paths: std::collections::BTreeSet<_> =
            emitted.files.iter().map(|file| &file.path).collect();
        assert_eq!(paths.len(), emitted.files.len(), "{format:?}");
        assert!(paths.iter().any(|path| path.starts_with("uninstall")), "{format:?}");
    }
}

/// Check that a second change of the same setting is left out, and by which rule, also if one is a boot parameter.
#[test]
fn contradictions() {
    let items = vec![
        item("first", set("thp", "madvise"), None),
        item("file", set("/sys/kernel/mm/transparent_hugepage/enabled", "always"), None),
        item("boot", boot("transparent_hugepage=never"), None),
        item("same", boot("transparent_hugepage=madvise"), None),
    ];
    let emitted = emitted(Format::KernelCmdline, items);
    assert_eq!(emitted.rules, ["first", "same"]);
    assert!(emitted.left_out.iter().all(|one| one.why.starts_with("first changes")));
}

/// Check that a value with a line feed, which would be a second line of any format, is in no file.
#[test]
fn line_feeds() {
    for format in Format::ALL {
        let items = vec![
            item("set", set("kernel.a", "1\nkernel.b = 2"), None),
            item("boot", boot("a=1\nb=2"), None),
        ];
        let emitted = emitted(format, items);
        assert!(emitted.rules.is_empty(), "{format:?}");
        assert_eq!(emitted.left_out.len(), 2, "{format:?}");
    }
}

/// Check that the manifest can be read again, and that other texts are refused.
#[test]
fn manifests() {
    let emitted = emitted(Format::Systemd, all_kinds());
    let file = emitted.files.iter().find(|file| file.path == MANIFEST).unwrap();
    let manifest = Manifest::parse(&file.text).unwrap();
    assert_eq!(manifest.settings.len(), emitted.rules.len());
    assert_eq!(manifest.left_out.len(), emitted.left_out.len());
    assert!(Manifest::parse("{}").is_err());
    let newer = file.text.replacen("\"format\": 1", "\"format\": 2", 1);
    assert!(Manifest::parse(&newer).unwrap_err().contains("format is 2"));
}

/// Check that a rule that is not advised cannot be chosen.
#[test]
fn unknown_rules() {
    let facts = facts();
    let machine = Machine::new(&facts, None, None);
    let advice = Advice::of(&machine, &Goal::Latency.into());
    let origin = Origin { tool: "", taken: "", taken_s: 0 };
    let only = ["no-such-rule".to_owned()];
    let refused = emit(Format::Sysctl, &advice, &machine, Some(&only), origin);
    assert_eq!(refused.unwrap_err(), only);
}
