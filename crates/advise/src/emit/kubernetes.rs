//! A part of a kubelet's configuration (`KubeletConfiguration`, `kubelet.config.k8s.io/v1beta1`), for its
//! `--config-dir` (Kubernetes 1.30 or newer; 1.28 with the environment variable `KUBELET_CONFIG_DROPIN_DIR_ALPHA`).
//!
//! It has what the kubelet itself does: static CPU assignment and reserved CPUs. The kubelet refuses to start
//! with another CPU manager policy until `/var/lib/kubelet/cpu_manager_state` is removed.

use crate::emit::wanted::What;
use crate::emit::{EmittedFile, Job, Made, body, entries, shell, text};
use crate::lasting::RunTime;

const FILE: &str = "/etc/kubernetes/kubelet.conf.d/60-noisefloor.conf";

pub(super) fn make(job: &Job) -> Made {
    let (lines, left) = job.split(|wanted| {
        let reserved = match &wanted.what {
            What::Kubelet(cpus) => Some(cpus.clone()),
            What::Set { files: RunTime::Partition(quiet), .. } => {
                job.online.as_ref().map(|online| online.without(quiet))
            }
            What::Set { .. } | What::Boot(_) | What::Unboot(_) | What::Banned(_) => None,
        };
        let reserved = reserved.filter(|cpus| !cpus.is_empty());
        let reserved = reserved.ok_or_else(|| wanted.elsewhere())?;
        let list = text::yaml(&reserved.to_list());
        Ok((format!("cpuManagerPolicy: static\nreservedSystemCPUs: {list}"), None))
    });
    let header = job.header(
        "Part of a kubelet's configuration, for kubelet --config-dir=/etc/kubernetes/kubelet.conf.d. \
         The node must be drained, and /var/lib/kubelet/cpu_manager_state removed, before the \
         kubelet is restarted.",
        &left,
    );
    let text = format!(
        "{header}apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n{}",
        body(&lines)
    );
    let files = [EmittedFile::new(FILE, text)];
    let note = shell::on_machine(
        "echo 'drain the node, remove /var/lib/kubelet/cpu_manager_state, and restart the kubelet'\n",
    );
    let install = shell::install(&job.about, &files, &note);
    let uninstall = shell::uninstall(&job.about, &files, &[], ["", &note]);
    let [file] = files;
    let mut entries = entries(&lines);
    for (entry, line) in entries.iter_mut().zip(&lines) {
        let reserved = line.text.rsplit(' ').next().unwrap_or_default();
        entry.name = Some(crate::emit::manifest::KUBELET.to_owned());
        entry.value = Some(reserved.trim_matches('\'').to_owned());
    }
    Made { files: vec![file, install, uninstall], entries, left }
}
