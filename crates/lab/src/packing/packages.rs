//! What would help if a program or a library is missing: the Debian package that has it.

use kernels::{Error, Source, Wanted};
use units::chain;

/// Looks for the packages that have a missing file.
pub(crate) type Look<'a> = &'a mut dyn FnMut(Wanted<'_>) -> Result<Option<Source>, Error>;

/// A hint for a missing file.
pub(super) fn hint(wanted: Wanted<'_>, look: Look<'_>) -> String {
    let install = |packages: &[String]| format!("apt install {}", packages.join(" or "));
    match look(wanted) {
        Ok(Some(Source::Installed(packages))) => {
            let packages = packages.join(" or ");
            format!("the package {packages} had it: apt install --reinstall {packages}")
        }
        Ok(Some(Source::Archive(packages))) => install(&packages),
        Ok(None) => {
            "no package of this machine's Debian release has it; install it yourself, or write \
             its path"
                .to_owned()
        }
        Err(why) => {
            let why = chain(&why);
            format!("install it (the list of Debian's files is not available: {why})")
        }
    }
}
