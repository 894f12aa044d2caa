//! A profile of tuned (`tuned-profiles(7)`), read with Python's `configparser`: a `#` after a blank begins a
//! comment in a value, and `${...}` is a variable.

use crate::emit::parameter::Parameter;
use crate::emit::wanted::{Wanted, What};
use crate::emit::{EmittedFile, Job, Line, Made, body, entries, shell, sysctl};
use crate::lasting::{Lasting, RunTime, lasting};

const FILE: &str = "/etc/tuned/noisefloor/tuned.conf";
/// The sections, in the order of the file.
const SECTIONS: [&str; 4] = ["cpu", "sysctl", "sysfs", "bootloader"];

pub(super) fn make(job: &Job) -> Made {
    let (lines, left) = job.split(|wanted| {
        let (_, line, boot) = option(wanted)?;
        Ok((line, boot))
    });
    let mut text =
        job.header("A profile of tuned; tuned-adm profile noisefloor selects it.", &left);
    text += "[main]\nsummary=Settings advised by noisefloor\n";
    let mut parameters = 0;
    for section in SECTIONS {
        let mut of = Vec::new();
        for line in &lines {
            if option(line.wanted).is_ok_and(|(it, ..)| it == section) {
                // Options of one section have different names.
                let text = line.text.replace("cmdline_noisefloor=", &{
                    parameters += 1;
                    format!("cmdline_noisefloor{parameters}=")
                });
                of.push(Line { wanted: line.wanted, text, boot: None });
            }
        }
        if !of.is_empty() {
            text += &format!("\n[{section}]\n{}", body(&of));
        }
    }
    let files = [EmittedFile::new(FILE, text)];
    let select = shell::on_machine("tuned-adm profile noisefloor\n");
    let install = shell::install(&job.about, &files, &select);
    // tuned sets back what a profile changed when another one is selected.
    let other = "[ -n \"$root\" ] || tuned-adm profile \"$(tuned-adm recommend)\" || :\n";
    let uninstall = shell::uninstall(&job.about, &files, &[], [other, ""]);
    let [file] = files;
    Made { files: vec![file, install, uninstall], entries: entries(&lines), left }
}

/// The section, the line, and the boot parameter.
fn option(wanted: &Wanted) -> Result<(&'static str, String, Option<String>), String> {
    let found = plain(wanted)?;
    let is_changed = found.1.contains('#') || found.1.contains("${");
    match is_changed {
        true => Err("tuned would read its value in another way".to_owned()),
        false => Ok(found),
    }
}

fn plain(wanted: &Wanted) -> Result<(&'static str, String, Option<String>), String> {
    if let Ok(line) = sysctl::line(wanted) {
        return Ok(("sysctl", line.replacen(" = ", "=", 1), None));
    }
    if let What::Set { name, to, files } = &wanted.what {
        for way in lasting(name, to) {
            match way {
                Lasting::TunedCpu(line) => return Ok(("cpu", line, None)),
                Lasting::Sysctl(_)
                | Lasting::Tmpfile(_)
                | Lasting::KernelParameter(_) => {}
            }
        }
        match files {
            // Each feature is written to the same file, and an option stands once.
            RunTime::Files { path, value } if !path.ends_with("/features") => {
                return Ok(("sysfs", format!("{path}={value}"), None));
            }
            RunTime::Files { .. }
            | RunTime::Irqs(_)
            | RunTime::IdleLatency(_)
            | RunTime::Partition(_) => {}
        }
    }
    match Parameter::of(wanted)? {
        // tuned separates parameters at blanks.
        Parameter::Add(text) if !text.contains(' ') => {
            Ok(("bootloader", format!("cmdline_noisefloor=+{text}"), Some(text)))
        }
        Parameter::Add(text) => Err(format!("tuned would separate {text} at the blanks")),
        Parameter::Remove(name) => Err(format!(
            "tuned removes no boot parameter that it did not add: {name} (--emit \
             kernel-cmdline or grub)"
        )),
    }
}
