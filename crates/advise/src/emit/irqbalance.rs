//! The environment of irqbalance (1.8 or newer): the CPUs that get no interrupt, as a drop-in of its unit.
//!
//! `EnvironmentFile=` overrides `Environment=` (`systemd.exec(5)`), so that a value in `/etc/default/irqbalance`
//! or `/etc/sysconfig/irqbalance` wins; `advise --verify` finds that.

use units::CpuSet;

use crate::emit::wanted::{Wanted, What};
use crate::emit::{EmittedFile, Job, Line, Made, body, entries, shell, text};
use crate::lasting::RunTime;

const FILE: &str = "/etc/systemd/system/irqbalance.service.d/60-noisefloor.conf";

pub(super) fn make(job: &Job) -> Made {
    let (mut lines, mut left) = job.split(|wanted| {
        let banned = banned(wanted, job)?;
        Ok((format!("Environment=IRQBALANCE_BANNED_CPULIST={}", banned.to_list()), None))
    });
    // One list: what contradicts the first is left out.
    let first = lines.first().map(|line| line.text.clone());
    lines.retain(|line| {
        let fits = Some(&line.text) == first.as_ref();
        if !fits {
            let why =
                "another chosen rule bans other CPUs; choose with --only".to_owned();
            left.push(crate::emit::LeftOut { rule: line.wanted.rule.clone(), why });
        }
        fits
    });
    let header = job.header("CPUs that irqbalance uses for no interrupt.", &left);
    let note = text::comment(
        "A value in /etc/default/irqbalance or /etc/sysconfig/irqbalance wins over this one.",
    );
    let text = format!("{header}[Service]\n{note}{}", body(&lines));
    let files = [EmittedFile::new(FILE, text)];
    let restart = shell::on_machine(
        "systemctl daemon-reload\nsystemctl try-restart irqbalance.service\n",
    );
    let install = shell::install(&job.about, &files, &restart);
    let uninstall = shell::uninstall(&job.about, &files, &[], ["", &restart]);
    let [file] = files;
    let entries = entries_of(&lines, job);
    Made { files: vec![file, install, uninstall], entries, left }
}

/// As the manifest has them: what is verified is the list of irqbalance.
fn entries_of(lines: &[Line<'_>], job: &Job) -> Vec<crate::emit::manifest::Entry> {
    let mut all = entries(lines);
    for (entry, line) in all.iter_mut().zip(lines) {
        if let Ok(cpus) = banned(line.wanted, job) {
            entry.name = Some(crate::emit::manifest::BANNED.to_owned());
            entry.value = Some(cpus.to_string());
            entry.boot = None;
        }
    }
    all
}

fn banned(wanted: &Wanted, job: &Job) -> Result<CpuSet, String> {
    let others =
        |allowed: &CpuSet| job.online.as_ref().map(|online| online.without(allowed));
    let banned = match &wanted.what {
        What::Banned(cpus) => Some(cpus.clone()),
        What::Set { files: RunTime::Irqs(allowed), .. } => others(allowed),
        What::Boot(parameter) => match parameter.split_once('=') {
            Some(("irqaffinity", list)) => list.parse().ok().as_ref().and_then(others),
            Some(_) | None => None,
        },
        What::Set { .. } | What::Unboot(_) | What::Kubelet(_) => None,
    };
    banned.filter(|cpus| !cpus.is_empty()).ok_or_else(|| wanted.elsewhere())
}
