//! The files that every program may expect, the same on every machine: directories, the links of a
//! merged `/usr`, and the databases of users, hosts and their order (passwd(5), group(5), hosts(5),
//! nsswitch.conf(5)).
//!
//! There is no `/etc/resolv.conf`: a guest has no network but loopback.

use crate::pack_error::PackError;
use crate::packing::tree::{File, Tree};

/// Those of programs and libraries are added with them: on some machines they are links.
const DIRECTORIES: [&str; 12] = [
    "/dev",
    "/etc",
    "/home",
    "/proc",
    "/root",
    "/run",
    "/srv",
    "/sys",
    "/var",
    "/var/cache",
    "/var/lib",
    "/var/log",
];
/// Directories that everyone may write to.
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];
const LINKS: [(&str, &str); 6] = [
    ("/bin", "usr/bin"),
    ("/lib", "usr/lib"),
    ("/lib64", "usr/lib64"),
    ("/sbin", "usr/sbin"),
    ("/var/lock", "/run/lock"),
    ("/var/run", "/run"),
];
/// Files that a guest does not have: the state of this machine's network and of its dynamic linker, whose
/// list names libraries that are not packed.
const ABSENT: [&str; 3] = ["/etc/ld.so.cache", "/etc/machine-id", "/etc/resolv.conf"];
/// Names, and the user and group with the ID that Debian's base-passwd gives them.
const PASSWD: &str = "\
root:x:0:0:root:/root:/bin/sh
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
";
const GROUP: &str = "\
root:x:0:
daemon:x:1:
tty:x:5:
adm:x:4:
www-data:x:33:
users:x:100:
nogroup:x:65534:
";
const HOSTS: &str = "\
127.0.0.1 localhost guest
::1 localhost ip6-localhost ip6-loopback
";
const NSSWITCH: &str = "\
passwd: files
group: files
shadow: files
hosts: files
networks: files
protocols: files
services: files
ethers: files
rpc: files
";
const FILES: [(&str, &str); 5] = [
    ("/etc/passwd", PASSWD),
    ("/etc/group", GROUP),
    ("/etc/hosts", HOSTS),
    ("/etc/nsswitch.conf", NSSWITCH),
    ("/etc/hostname", "guest\n"),
];

/// Whether a file is the guest's own, so that this machine's is not packed: those above, and those that
/// only make sense on this machine.
pub(super) fn is_own(path: &str) -> bool {
    FILES.iter().any(|(own, _)| path == *own) || ABSENT.contains(&path)
}

/// Adds them.
pub(super) fn add(tree: &mut Tree) -> Result<(), PackError> {
    for path in DIRECTORIES {
        tree.directory(path, None)?;
    }
    for path in TEMPORARY {
        tree.directory(path, Some(0o1777))?;
    }
    for (path, target) in LINKS {
        tree.link(path, target)?;
    }
    for (path, text) in FILES {
        tree.file(path, File { mode: 0o644, contents: text.into(), modified: 0 })?;
    }
    Ok(())
}
