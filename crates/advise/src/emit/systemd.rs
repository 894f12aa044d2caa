//! systemd: `sysctl.d(5)`, `tmpfiles.d(5)`, and a service for what these cannot set.
//!
//! `systemd-tmpfiles` writes files at boot before debugfs need be mounted and before all modules are loaded, so
//! files there are set by the service, which runs later. In a unit, `%` and `$` would need to be doubled, and
//! there are two kinds of quotes: the service runs a program, in which the values are.

use crate::emit::text;
use crate::emit::wanted::{Wanted, What};
use crate::emit::{EmittedFile, Job, Line, Made, body, entries, script, shell, sysctl};
use crate::lasting::{Lasting, RunTime, lasting};

pub(super) const TMPFILES: &str = "/etc/tmpfiles.d/60-noisefloor.conf";
const UNIT: &str = "/etc/systemd/system/noisefloor-advice.service";
const PROGRAM: &str = "/usr/local/sbin/noisefloor-advice";
/// Files that need not exist when systemd-tmpfiles runs: of debugfs, and of drivers that may be modules.
const LATE: [&str; 5] = [
    "/sys/devices/system/cpu/",
    "/sys/firmware/",
    "/sys/kernel/debug/",
    "/sys/kernel/tracing/",
    "/sys/module/",
];

/// The part of systemd that sets something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Sysctl,
    Tmpfiles,
    Service,
}

pub(super) fn make(job: &Job) -> Made {
    let (lines, left) = job.split(|wanted| part(wanted).map(|(_, line)| (line, None)));
    let of = |wanted: Part| -> Vec<Line<'_>> {
        let is_it =
            |line: &&Line<'_>| part(line.wanted).is_ok_and(|(it, _)| it == wanted);
        lines.iter().filter(is_it).cloned().collect()
    };
    let header = |what: &str| job.header(what, &left);
    let (sysctls, tmpfiles, rest) =
        (of(Part::Sysctl), of(Part::Tmpfiles), of(Part::Service));
    let mut files = Vec::new();
    let (mut start, mut stop) = (String::new(), String::new());
    if !sysctls.is_empty() || lines.is_empty() {
        files.push(sysctl::file(&sysctls, &header("Sysctls (sysctl.d(5)).")));
        start += &format!("sysctl -p {}\n", sysctl::FILE);
    }
    if !tmpfiles.is_empty() {
        let text = header("Files of /sys (tmpfiles.d(5)).") + &body(&tmpfiles);
        files.push(EmittedFile::new(TMPFILES, text));
        start += &format!("systemd-tmpfiles --create {TMPFILES}\n");
    }
    if !rest.is_empty() {
        files.extend(service(
            job,
            &header("Program of noisefloor-advice.service."),
            &rest,
        ));
        start +=
            "systemctl daemon-reload\nsystemctl enable --now noisefloor-advice.service\n";
        stop = "[ -n \"$root\" ] || systemctl disable --now noisefloor-advice.service || :\n"
            .into();
    }
    let install = shell::install(&job.about, &files, &shell::on_machine(&start));
    let reload = if rest.is_empty() { "" } else { "systemctl daemon-reload\n" };
    let [set, last] =
        [[sysctls, tmpfiles].into_iter().flatten().collect::<Vec<_>>(), rest];
    let reload = if last.is_empty() { String::new() } else { shell::on_machine(reload) };
    let uninstall = shell::uninstall(&job.about, &files, &set, [&stop, &reload]);
    files.extend([install, uninstall]);
    Made { files, entries: entries(&lines), left }
}

fn service(job: &Job, header: &str, lines: &[Line<'_>]) -> [EmittedFile; 2] {
    let unit = format!(
        "{}\n[Unit]\nDescription=Settings advised by noisefloor\n\
         After=sys-kernel-debug.mount systemd-modules-load.service\n\
         ConditionPathIsReadWrite=/sys\n\n\
         [Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart={PROGRAM} start\n\
         ExecStop={PROGRAM} stop\n\n[Install]\nWantedBy=multi-user.target\n",
        text::comment(&job.about)
    );
    let program = EmittedFile::executable(PROGRAM, script::program(header, lines));
    [EmittedFile::new(UNIT, unit), program]
}

/// The part that sets it, and its line there.
fn part(wanted: &Wanted) -> Result<(Part, String), String> {
    if let Ok(line) = sysctl::line(wanted) {
        return Ok((Part::Sysctl, line));
    }
    if let Some(line) = tmpfile(wanted) {
        return Ok((Part::Tmpfiles, line));
    }
    script::line(wanted).map(|line| (Part::Service, line))
}

/// The line of `tmpfiles.d`, for a file that exists early.
fn tmpfile(wanted: &Wanted) -> Option<String> {
    let What::Set { name, to, files: RunTime::Files { path, .. } } = &wanted.what else {
        return None;
    };
    let is_late = LATE.iter().any(|start| path.starts_with(start));
    let is_plain = !path.contains(|c: char| c.is_whitespace() || "\"'\\%".contains(c));
    lasting(name, to).into_iter().filter(|_| is_plain && !is_late).find_map(|way| {
        match way {
            Lasting::Tmpfile(line) => Some(line),
            Lasting::Sysctl(_) | Lasting::KernelParameter(_) | Lasting::TunedCpu(_) => {
                None
            }
        }
    })
}
