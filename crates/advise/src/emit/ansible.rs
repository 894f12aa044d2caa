//! Playbooks of `ansible-core`: they copy the files of the formats sysctl and systemd, and change boot parameters
//! with `grubby` or a file of `/etc/default/grub.d`. `uninstall.yml` is the other direction.
//!
//! Values are in the copied files, not in the playbooks, so that no template is expanded in them.

use crate::emit::text::{self, yaml};
use crate::emit::{EmittedFile, Job, Made, grub, kernel_cmdline, systemd};

const HOSTS: &str = "- name: Settings advised by noisefloor\n  hosts: all\n  become: true\n  \
                     gather_facts: false\n";

pub(super) fn make(job: &Job) -> Made {
    let settings = systemd::make(job);
    // What is set at run time at each boot needs no boot parameter.
    let boot_job = only_boot(job, &settings);
    let boot = grub::make(&boot_job);
    let left = boot.left.clone();
    let entries = [&settings.entries[..], &boot.entries].concat();
    let lines = kernel_cmdline::make(&boot_job);
    let header = job.header("ansible-playbook -i INVENTORY playbook.yml", &left);
    let mut copied: Vec<EmittedFile> = Vec::new();
    let is_file = |file: &&EmittedFile| file.path.contains('/');
    copied.extend(settings.files.iter().filter(is_file).cloned());
    let has_boot = !boot.entries.is_empty();
    if has_boot {
        copied.extend(boot.files.iter().filter(is_file).cloned());
    }
    let scripts = |name: &str, of: &Made| {
        of.files.iter().find(|file| file.path == name).map(|file| file.text.clone())
    };
    let mut files = vec![
        EmittedFile::new("playbook.yml", playbook(&header, &copied, has_boot)),
        EmittedFile::new("uninstall.yml", undo(&header, &copied, has_boot)),
    ];
    if has_boot {
        for (to, from) in [("add", "install.sh"), ("remove", "uninstall.sh")] {
            let text = scripts(from, &lines).unwrap_or_default();
            files.push(EmittedFile::executable(&format!("files/boot-{to}.sh"), text));
        }
    }
    files.extend(
        copied
            .into_iter()
            .map(|file| EmittedFile { path: format!("files/{}", file.path), ..file }),
    );
    Made { files, entries, left }
}

fn only_boot(job: &Job, settings: &Made) -> Job {
    let wanted = job.wanted.iter().filter(|one| !entries_have(settings, &one.rule));
    Job {
        wanted: wanted.cloned().collect(),
        left: job.left.clone(),
        about: job.about.clone(),
        online: job.online.clone(),
        quiet: job.quiet.clone(),
    }
}

fn entries_have(made: &Made, rule: &str) -> bool {
    made.entries.iter().any(|entry| entry.rule == rule)
}

fn task(name: &str, module: &str, arguments: &[(&str, String)]) -> String {
    let mut task = format!("    - name: {name}\n      {module}:\n");
    for (key, value) in arguments {
        task += &format!("        {key}: {}\n", yaml(value));
    }
    task
}

fn playbook(header: &str, copied: &[EmittedFile], has_boot: bool) -> String {
    let mut text = format!("---\n{header}{HOSTS}  tasks:\n");
    let grub = |file: &EmittedFile| file.path.contains("grub.d");
    for file in copied {
        let to = format!("/{}", file.path);
        if grub(file) {
            text += "    - name: Look for update-grub\n      ansible.builtin.stat:\n        path: \
                     /usr/sbin/update-grub\n      register: update_grub\n";
        } else {
            let folder = to.rsplit_once('/').map_or("/", |(folder, _)| folder);
            text += &task(
                "Create its folder",
                "ansible.builtin.file",
                &[("path", folder.to_owned()), ("state", "directory".to_owned())],
            );
        }
        text += &task(
            &format!("Copy {to}"),
            "ansible.builtin.copy",
            &[
                ("src", file.path.clone()),
                ("dest", to.clone()),
                ("mode", format!("{:04o}", file.mode)),
            ],
        );
        if grub(file) {
            text += "      when: update_grub.stat.exists\n      notify: Update GRUB\n";
        } else if let Some(handler) = handler(&file.path) {
            text += &format!("      notify: {handler}\n");
        }
    }
    if has_boot {
        text += &task(
            "Change boot parameters",
            "ansible.builtin.script",
            &[("cmd", "files/boot-add.sh".to_owned())],
        );
        text += "      when: not update_grub.stat.exists\n";
    }
    if copied.is_empty() {
        text += "    []\n";
    }
    text + &handlers(copied, has_boot)
}

/// The handler that puts a file into force.
fn handler(path: &str) -> Option<&'static str> {
    match path.rsplit_once('/').map_or("", |(folder, _)| folder) {
        "etc/sysctl.d" => Some("Set sysctls"),
        "etc/tmpfiles.d" => Some("Write files"),
        "etc/systemd/system" => Some("Start the service"),
        _ => None,
    }
}

fn handlers(copied: &[EmittedFile], has_boot: bool) -> String {
    let mut text = "  handlers:\n".to_owned();
    let mut any = has_boot;
    for file in copied {
        let to = format!("/{}", file.path);
        let Some(name) = handler(&file.path) else { continue };
        any = true;
        text += &match name {
            "Set sysctls" => task(
                name,
                "ansible.builtin.command",
                &[("cmd", format!("sysctl -p {to}"))],
            ),
            "Write files" => task(
                name,
                "ansible.builtin.command",
                &[("cmd", format!("systemd-tmpfiles --create {to}"))],
            ),
            _ => {
                format!(
                    "    - name: {name}\n      ansible.builtin.systemd:\n        name: \
                     noisefloor-advice.service\n        daemon_reload: true\n        enabled: \
                     true\n        state: restarted\n      when: not ansible_check_mode\n"
                )
            }
        };
    }
    if has_boot {
        text += &task(
            "Update GRUB",
            "ansible.builtin.command",
            &[("cmd", "update-grub".to_owned())],
        );
    }
    if any { text } else { String::new() }
}

fn undo(header: &str, copied: &[EmittedFile], has_boot: bool) -> String {
    let mut text = format!("---\n{header}{HOSTS}  tasks:\n");
    if copied.iter().any(|file| handler(&file.path) == Some("Start the service")) {
        text += "    - name: Stop the service, which sets its values back\n      \
                 ansible.builtin.systemd:\n        name: noisefloor-advice.service\n        \
                 enabled: false\n        state: stopped\n      when: not ansible_check_mode\n      \
                 failed_when: false\n";
    }
    for file in copied {
        let to = format!("/{}", file.path);
        text += &task(
            &format!("Remove {to}"),
            "ansible.builtin.file",
            &[("path", to), ("state", "absent".to_owned())],
        );
    }
    if has_boot {
        text += "    - name: Look for update-grub\n      ansible.builtin.stat:\n        path: \
                 /usr/sbin/update-grub\n      register: update_grub\n";
        text += &task(
            "Update GRUB",
            "ansible.builtin.command",
            &[("cmd", "update-grub".to_owned())],
        );
        text += "      when: update_grub.stat.exists\n";
        text += &task(
            "Change boot parameters back",
            "ansible.builtin.script",
            &[("cmd", "files/boot-remove.sh".to_owned())],
        );
        text += "      when: not update_grub.stat.exists\n";
    }
    if copied.is_empty() {
        text += "    []\n";
    }
    text + &text::comment("Values that the files set stay until the next boot.")
}
