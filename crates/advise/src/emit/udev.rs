//! `udev(7)` rules: attributes of devices, also of those that appear later, and parameters of modules when they
//! are loaded.
//!
//! In a value, `$` and `%` begin a substitution and are doubled, and `\"` is a quote. Only files of devices can
//! be set, not sysctls or files of `/sys/kernel`.

use crate::emit::wanted::{Wanted, What};
use crate::emit::{EmittedFile, Job, Made, body, entries, shell};
use crate::lasting::RunTime;

const FILE: &str = "/etc/udev/rules.d/60-noisefloor.rules";
const CPUS: &str = "/sys/devices/system/cpu/cpu*/";
const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/";
const MODULES: &str = "/sys/module/";
/// What is always built in (`bool` in Kconfig), and so is never loaded.
const BUILT_IN: [&str; 8] = [
    "damon_reclaim",
    "haltpoll",
    "kfence",
    "pcie_aspm",
    "rcupdate",
    "rcutree",
    "workqueue",
    "zswap",
];

pub(super) fn make(job: &Job) -> Made {
    let (lines, left) = job.split(|wanted| {
        line(wanted).map(|line| (line, None)).ok_or_else(|| wanted.elsewhere())
    });
    let header = job.header("Rules of udev (udev(7)).", &left);
    let files = [EmittedFile::new(FILE, format!("{header}{}", body(&lines)))];
    let reload = "udevadm control --reload\n";
    let apply = "udevadm trigger --action=add --subsystem-match=cpu --subsystem-match=module \
                 --subsystem-match=clocksource\n";
    let start = shell::on_machine(&format!("{reload}{apply}"));
    let install = shell::install(&job.about, &files, &start);
    let stop = shell::on_machine(reload);
    let uninstall = shell::uninstall(&job.about, &files, &lines, ["", &stop]);
    let [file] = files;
    Made { files: vec![file, install, uninstall], entries: entries(&lines), left }
}

fn line(wanted: &Wanted) -> Option<String> {
    let What::Set { files: RunTime::Files { path, value }, .. } = &wanted.what else {
        return None;
    };
    let (device, attribute) = if let Some(attribute) = path.strip_prefix(CPUS) {
        ("SUBSYSTEM==\"cpu\"".to_owned(), attribute.to_owned())
    } else if let Some(attribute) = path.strip_prefix(CLOCKSOURCE) {
        let device = "SUBSYSTEM==\"clocksource\", KERNEL==\"clocksource0\"";
        (device.to_owned(), attribute.to_owned())
    } else {
        let (module, parameter) =
            path.strip_prefix(MODULES)?.split_once("/parameters/")?;
        if BUILT_IN.contains(&module) {
            return None;
        }
        let device = format!("SUBSYSTEM==\"module\", KERNEL==\"{module}\"");
        (device, format!("parameters/{parameter}"))
    };
    let is_plain = |text: &str| !text.contains(|c| "\"{}$%\\*?[|".contains(c));
    if !is_plain(&attribute) || device.contains('\\') || value.contains('\\') {
        return None;
    }
    let value = value.replace('$', "$$").replace('%', "%%").replace('"', "\\\"");
    Some(format!("ACTION==\"add\", {device}, ATTR{{{attribute}}}=\"{value}\""))
}
