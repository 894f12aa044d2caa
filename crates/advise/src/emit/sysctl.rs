//! `sysctl.d(5)`: a line `NAME = VALUE` for each sysctl; all after the first `=` is the value, without quotes.

use crate::emit::wanted::{Wanted, What};
use crate::emit::{EmittedFile, Job, Line, Made, body, entries, shell};
use crate::lasting::{Lasting, lasting};

pub(super) const FILE: &str = "/etc/sysctl.d/60-noisefloor.conf";

pub(super) fn make(job: &Job) -> Made {
    let (lines, left) = job.split(|wanted| Ok((line(wanted)?, None)));
    let file = file(&lines, &job.header("Sysctls (sysctl.d(5)).", &left));
    let files = [file];
    let load = shell::on_machine(&format!("sysctl -p {FILE}\n"));
    let install = shell::install(&job.about, &files, &load);
    let uninstall = shell::uninstall(&job.about, &files, &lines, ["", ""]);
    let [file] = files;
    Made { files: vec![file, install, uninstall], entries: entries(&lines), left }
}

/// The file of these lines.
pub(super) fn file(lines: &[Line<'_>], header: &str) -> EmittedFile {
    EmittedFile::new(FILE, format!("{header}{}", body(lines)))
}

/// The line of a setting.
///
/// # Errors
/// It is no sysctl.
pub(super) fn line(wanted: &Wanted) -> Result<String, String> {
    if let What::Set { name, to, .. } = &wanted.what {
        for way in lasting(name, to) {
            match way {
                Lasting::Sysctl(line) => return Ok(line),
                Lasting::Tmpfile(_)
                | Lasting::KernelParameter(_)
                | Lasting::TunedCpu(_) => {}
            }
        }
    }
    Err(wanted.elsewhere())
}
