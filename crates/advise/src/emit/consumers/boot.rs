//! The consumers of boot parameters: GRUB's programs, and kernel-install.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Place, has, text, write};
use crate::emit::Format;

/// Check that the shell that GRUB's programs source has the parameters, that those to remove are gone, and that
/// GRUB's own script, made from that, is valid and has the same words.
#[test]
fn grub_reads_its_file() {
    let place = Place::new(Format::Grub);
    let script = "GRUB_CMDLINE_LINUX='quiet nohz_full=9 root=\"a\"' \
                  GRUB_CMDLINE_LINUX_DEFAULT='idle=poll splash'\n. \"$1\"\n\
                  printf '%s|%s' \"$GRUB_CMDLINE_LINUX\" \"$GRUB_CMDLINE_LINUX_DEFAULT\"";
    let file = place.file("etc/default/grub.d/60-noisefloor.cfg");
    let mut command = Command::new("sh");
    command.args(["-euc", script, "sh"]).arg(&file).current_dir(place.tree.path());
    let output = command.output().unwrap();
    let line = text(&output);
    let expected = "quiet root=\"a\" transparent_hugepage=madvise \
                    cpufreq.default_governor=performance workqueue.unbound_cpus=0 \
                    irqaffinity=0 isolcpus=domain,1-3 nohz_full=1-3 'dyndbg=file a +p' \
                    'a=$(touch PWNED);&|'|splash";
    let words = |text: &str| {
        let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
        words.sort();
        words
    };
    assert_eq!(words(&line), words(expected), "{line}");
    assert!(!place.tree.path().join("PWNED").exists());
    if has("grub-script-check") {
        let entry = line.replace('|', " ").replace(";& '", ";&|'");
        let config = place.tree.path().join("grub.cfg");
        write(&config, &format!("menuentry 'a' {{\n\tlinux /vmlinuz ro {entry}\n}}\n"));
        let output = Command::new("grub-script-check").arg(&config).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
    }
}

/// Check that `grub-mkconfig` itself writes the parameters to its configuration.
#[test]
fn grub_mkconfig_has_the_parameters() {
    let place = Place::new(Format::Grub);
    if !has("grub-mkconfig") {
        return;
    }
    let script = "mkdir -p /etc/default boot/grub\n\
                  mount --bind \"$1/etc/default\" /etc/default\n\
                  printf 'GRUB_CMDLINE_LINUX=quiet\\nGRUB_DISABLE_OS_PROBER=true\\n' >/etc/default/grub\n\
                  : >boot/vmlinuz-6.1.0; : >boot/initrd.img-6.1.0; : >boot/config-6.1.0\n\
                  mount --bind boot /boot; grub-mkconfig";
    let Some(output) = place.unshared(script) else { return };
    let found = text(&output);
    if found.contains("failed to get canonical path")
        || found.contains("cannot find a device")
    {
        eprintln!("skipped: grub-probe knows no device of / here");
        return;
    }
    assert!(output.status.success(), "{found}");
    let line = found.lines().find(|line| line.trim_start().starts_with("linux")).unwrap();
    assert!(line.contains("quiet") && line.contains("'dyndbg=file a +p'"), "{line}");
    assert!(
        line.contains(" nohz_full=1-3") && line.contains(" isolcpus=domain,1-3"),
        "{line}"
    );
}

/// Check that `/etc/kernel/cmdline` gets the parameters and loses the others, and that all is undone.
#[test]
fn kernel_cmdline_is_changed_and_back() {
    let place = Place::new(Format::KernelCmdline);
    write(&place.tree.path().join("etc/kernel/cmdline"), "root=/dev/a idle=poll quiet\n");
    place.run("install.sh");
    let line = place.value("etc/kernel/cmdline");
    assert!(line.starts_with("root=/dev/a quiet "), "{line}");
    for part in [" nohz_full=1-3 ", " \"dyndbg=file a +p\" ", " isolcpus=domain,1-3 "] {
        assert!(format!("{line} ").contains(part), "{line}");
    }
    place.run("uninstall.sh");
    let line = place.value("etc/kernel/cmdline");
    assert_eq!(line, "root=/dev/a quiet idle=poll");
}

/// Check that `kernel-install` writes the parameters to the entry of the boot loader.
#[test]
fn kernel_install_has_the_parameters() {
    let place = Place::new(Format::KernelCmdline);
    let plugin = "/usr/lib/kernel/install.d/90-loaderentry.install";
    if !has("kernel-install") || !Path::new(plugin).exists() {
        return;
    }
    let version = Command::new("systemctl").arg("--version").output();
    let version = version.map(|output| text(&output)).unwrap_or_default();
    let version = version.split_whitespace().nth(1).and_then(|it| it.parse::<u32>().ok());
    if version.is_none_or(|version| version < 251) {
        // It would write below /boot.
        return eprintln!("skipped: kernel-install before 251 takes no folder");
    }
    let root = place.tree.path();
    let configuration = root.join("etc/kernel");
    for (file, text) in [
        ("etc/kernel/cmdline", "root=/dev/a idle=poll quiet\n"),
        ("etc/kernel/entry-token", "token\n"),
        ("etc/kernel/install.conf", "layout=bls\n"),
        ("boot/token/README", ""),
        ("vmlinuz", ""),
    ] {
        write(&root.join(file), text);
    }
    place.run("install.sh");
    let mut command = Command::new("kernel-install");
    command.args(["add", "6.1.0"]).arg(root.join("vmlinuz"));
    command.env("KERNEL_INSTALL_CONF_ROOT", configuration);
    command.env("KERNEL_INSTALL_PLUGINS", plugin).env("BOOT_ROOT", root.join("boot"));
    let output = command.output().unwrap();
    let entry = fs::read_to_string(root.join("boot/loader/entries/token-6.1.0.conf"));
    let entry = entry.unwrap_or_else(|_| panic!("{}", text(&output)));
    let options = entry.lines().find_map(|line| line.strip_prefix("options")).unwrap();
    assert!(options.trim().starts_with("root=/dev/a quiet "), "{options}");
    assert!(options.contains(" \"dyndbg=file a +p\" "), "{options}");
}
