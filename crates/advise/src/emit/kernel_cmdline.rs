//! Boot parameters for any boot loader: a list, one a line, and scripts that add them with the program that the
//! distribution has for it, or to `/etc/kernel/cmdline` (`kernel-install(8)`).

use crate::emit::parameter::{Parameter, WITHOUT, quoted};
use crate::emit::text::{self, shell};
use crate::emit::{EmittedFile, Job, Line, Made, body, entries};
use crate::lasting::{boot_commands, unboot_commands};

/// The programs for which commands are known.
const TOOLS: [&str; 3] = ["rpm-ostree", "grubby", "kernelstub"];

/// Edits the words of `/etc/kernel/cmdline`.
const FILE: &str = r#"file=$root/etc/kernel/cmdline
# without NAME: removes the parameters of that name.
without() {
    rest=$(words_without "$1" '"' <"$file")
    printf '%s\n' "$rest" >"$file"
}
add() {
    printf '%s %s\n' "$(cat "$file")" "$1" >"$file"
}
edit() {
    :
EDIT
}
"#;

pub(super) fn make(job: &Job) -> Made {
    let (lines, left) = job.split(|wanted| {
        let parameter = Parameter::of(wanted)?;
        let line = match &parameter {
            Parameter::Add(text) => quoted(text),
            Parameter::Remove(name) => format!("# remove: {name}"),
        };
        Ok((line, parameter.added()))
    });
    let header = job.header(
        "Boot parameters, one a line; in one line they are what follows the kernel's \
         image. install.sh adds them.",
        &left,
    );
    let list = EmittedFile::new("parameters", format!("{header}{}", body(&lines)));
    let files = vec![list, install(job, &lines), uninstall(job, &lines)];
    Made { files, entries: entries(&lines), left }
}

/// What each line changes, without repetitions.
fn parameters(lines: &[Line<'_>]) -> Vec<(Parameter, Option<String>)> {
    let mut all: Vec<(Parameter, Option<String>)> = Vec::new();
    for line in lines {
        if let Ok(parameter) = Parameter::of(line.wanted) {
            if !all.iter().any(|(known, _)| *known == parameter) {
                all.push((parameter, before(line)));
            }
        }
    }
    all
}

/// The parameter of that name when the files were made.
fn before(line: &Line<'_>) -> Option<String> {
    let parameter = Parameter::of(line.wanted).ok()?;
    let is_parameter = matches!(
        line.wanted.what,
        crate::emit::wanted::What::Boot(_) | crate::emit::wanted::What::Unboot(_)
    );
    let value = line.wanted.before.as_deref().filter(|_| is_parameter)?;
    let is_unsafe = |c: char| c.is_whitespace() || "\"'\\".contains(c);
    let value = Some(value).filter(|value| !value.contains(is_unsafe))?;
    Some(match value {
        "" => parameter.name().to_owned(),
        value => format!("{}={value}", parameter.name()),
    })
}

fn install(job: &Job, lines: &[Line<'_>]) -> EmittedFile {
    let changes = parameters(lines);
    let removed: Vec<&str> =
        changes.iter().map(|(parameter, _)| parameter.name()).collect();
    let added: Vec<String> =
        changes.iter().filter_map(|(parameter, _)| parameter.added()).collect();
    EmittedFile::executable(
        "install.sh",
        steps("Changes the boot parameters of the next boot.", job, &removed, &added),
    )
}

fn uninstall(job: &Job, lines: &[Line<'_>]) -> EmittedFile {
    let changes = parameters(lines);
    let removed: Vec<&str> = changes
        .iter()
        .filter(|(parameter, _)| parameter.added().is_some())
        .map(|(parameter, _)| parameter.name())
        .collect();
    let added: Vec<String> =
        changes.iter().filter_map(|(_, before)| before.clone()).collect();
    EmittedFile::executable(
        "uninstall.sh",
        steps("Changes the boot parameters back.", job, &removed, &added),
    )
}

/// A script that removes parameters by their names, and adds others.
fn steps(what: &str, job: &Job, removed: &[&str], added: &[String]) -> String {
    let edit = removed
        .iter()
        .map(|name| format!("    without {}\n", shell(name)))
        .chain(added.iter().map(|text| format!("    add {}\n", shell(&quoted(text)))));
    let edit: String = edit.collect();
    let mut script = format!(
        "#!/bin/sh\n{}{}set -eu\nroot=${{ROOT-}}\n{WITHOUT}{FILE}if [ -n \"$root\" ]; then\n    edit\n",
        text::comment(what),
        text::comment(&job.about),
    )
    .replace("EDIT\n", &edit);
    for tool in TOOLS {
        script += &format!("elif command -v {tool} >/dev/null; then\n");
        let undo = removed.iter().flat_map(|name| unboot_commands(tool, &shell(name)));
        let add =
            added.iter().flat_map(|text| boot_commands(tool, &shell(&quoted(text))));
        for command in undo.chain(add) {
            script += &format!("    {}\n", command.trim_start_matches("sudo "));
        }
        script += "    :\n";
    }
    script
        + "elif [ -e \"$file\" ]; then\n    edit\n    echo \"$file is changed: run the program that \
           reads it, such as kernel-install\"\nelse\n    echo 'no rpm-ostree, grubby, kernelstub or /etc/kernel/cmdline: change \
           the boot loader by hand, or use --emit grub' >&2\n    exit 1\nfi\n"
}
