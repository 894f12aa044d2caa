//! A file of `/etc/default/grub.d`, which Debian's `grub-mkconfig` sources after `/etc/default/grub`.
//!
//! It is shell, and its value becomes a line of GRUB's own script, in which a word in single quotes is literal;
//! GRUB passes a word with spaces to the kernel in double quotes (`grub-core/lib/cmdline.c`). Parameters with
//! quotes or backslashes do not survive that, and are left out.

use crate::emit::parameter::{Parameter, WITHOUT};
use crate::emit::text::shell;
use crate::emit::{EmittedFile, Job, Made, body, entries, shell as scripts};

const FILE: &str = "/etc/default/grub.d/60-noisefloor.cfg";
/// Removes words by their names, also of those that are replaced.
const FUNCTIONS: &str = r#"noisefloor_without() {
    GRUB_CMDLINE_LINUX=$(printf '%s\n' "${GRUB_CMDLINE_LINUX-}" | words_without "$1" "\"'")
    GRUB_CMDLINE_LINUX_DEFAULT=$(
        printf '%s\n' "${GRUB_CMDLINE_LINUX_DEFAULT-}" | words_without "$1" "\"'"
    )
}
noisefloor_add() {
    GRUB_CMDLINE_LINUX="${GRUB_CMDLINE_LINUX:+$GRUB_CMDLINE_LINUX }$1"
}

"#;

pub(super) fn make(job: &Job) -> Made {
    let (lines, left) = job.split(|wanted| {
        let parameter = Parameter::of(wanted)?;
        let remove = format!("noisefloor_without {}", shell(parameter.name()));
        let line = match &parameter {
            Parameter::Remove(_) => remove,
            Parameter::Add(text) => {
                format!("{remove}\nnoisefloor_add {}", shell(&in_grub(text)))
            }
        };
        Ok((line, parameter.added()))
    });
    let header = job.header(
        "Boot parameters for GRUB; update-grub reads this file, on Debian and Ubuntu.",
        &left,
    );
    let files =
        [EmittedFile::new(FILE, format!("{header}{WITHOUT}{FUNCTIONS}{}", body(&lines)))];
    let update = scripts::on_machine("update-grub\n");
    let install = scripts::install(&job.about, &files, &update);
    let uninstall = scripts::uninstall(&job.about, &files, &lines, ["", &update]);
    let [file] = files;
    Made { files: vec![file, install, uninstall], entries: entries(&lines), left }
}

/// A word of GRUB's script.
fn in_grub(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./,:=+@%^~!".contains(c);
    match text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{text}'"),
    }
}
