//! Programs that tests copy to another place, to run them there.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Copies a program or a script, for every user to run. Another process copies it, because a
/// file that this process writes is also open in programs that other tests start at the same
/// time, and could not be executed (`ETXTBSY`). A guest has no install(1), and runs one test at
/// a time.
pub(crate) fn install(program: impl AsRef<Path>, to: &Path) {
    let mut install = Command::new("install");
    match install.args(["-m", "755"]).arg(program.as_ref()).arg(to).status() {
        Ok(status) => assert!(status.success(), "{}", to.display()),
        Err(_) => {
            fs::copy(program, to).unwrap();
            fs::set_permissions(to, Permissions::from_mode(0o755)).unwrap();
        }
    }
}
