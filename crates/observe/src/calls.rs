//! The system calls with a path, where it is, and what they do there.

use libc::c_long;

/// What a call does at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Looks it up.
    Look,
    /// Gives what it contains another name, too.
    Link,
    /// Executes it.
    Execute,
    /// Opens it, with the flags in that argument.
    Open(usize),
    /// Opens it, with the flags in the structure at that argument (openat2(2)).
    OpenHow(usize),
    /// Opens it as creat(2) does.
    Replace,
    /// Creates it; it must not exist.
    Create,
    /// Writes to it without an open file (truncate(2)).
    Change,
    /// Removes it.
    Remove,
    /// Gives it another name.
    Move,
    /// Replaces it by what has another name.
    Receive,
    /// Lists the directory that is open in the argument `path`.
    List,
}

/// When the last part of a path is followed if it is a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Follow {
    Always,
    Never,
    /// Unless that argument has this flag.
    Unless(usize, i32),
    /// If that argument has this flag.
    If(usize, i32),
}

/// A path of a system call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) number: c_long,
    /// The argument with the directory that a relative path belongs to; without: the working directory.
    pub(crate) directory: Option<usize>,
    /// The argument with the address of the path.
    pub(crate) path: usize,
    pub(crate) follow: Follow,
    pub(crate) action: Action,
}

/// A path that belongs to the working directory.
const fn plain(number: c_long, path: usize, follow: Follow, action: Action) -> Row {
    Row { number, directory: None, path, follow, action }
}

/// A path after a directory.
const fn at(number: c_long, directory: usize, follow: Follow, action: Action) -> Row {
    Row { number, directory: Some(directory), path: directory + 1, follow, action }
}

const FOLLOW: Follow = Follow::Always;
const NO_FOLLOW: Follow = Follow::Never;
const fn unless(argument: usize) -> Follow {
    Follow::Unless(argument, libc::AT_SYMLINK_NOFOLLOW)
}

/// Those of every architecture; a call with two paths has two rows.
const ROWS: &[Row] = &[
    at(libc::SYS_openat, 0, FOLLOW, Action::Open(2)),
    at(libc::SYS_openat2, 0, FOLLOW, Action::OpenHow(2)),
    plain(libc::SYS_execve, 0, FOLLOW, Action::Execute),
    at(libc::SYS_execveat, 0, unless(4), Action::Execute),
    at(libc::SYS_newfstatat, 0, unless(3), Action::Look),
    at(libc::SYS_statx, 0, unless(2), Action::Look),
    plain(libc::SYS_statfs, 0, FOLLOW, Action::Look),
    at(libc::SYS_faccessat, 0, FOLLOW, Action::Look),
    at(libc::SYS_faccessat2, 0, unless(3), Action::Look),
    at(libc::SYS_readlinkat, 0, NO_FOLLOW, Action::Look),
    plain(libc::SYS_getxattr, 0, FOLLOW, Action::Look),
    plain(libc::SYS_lgetxattr, 0, NO_FOLLOW, Action::Look),
    plain(libc::SYS_listxattr, 0, FOLLOW, Action::Look),
    plain(libc::SYS_llistxattr, 0, NO_FOLLOW, Action::Look),
    plain(libc::SYS_inotify_add_watch, 1, FOLLOW, Action::Look),
    at(libc::SYS_name_to_handle_at, 0, NO_FOLLOW, Action::Look),
    plain(libc::SYS_chdir, 0, FOLLOW, Action::Look),
    plain(libc::SYS_chroot, 0, FOLLOW, Action::Look),
    plain(libc::SYS_getdents64, 0, FOLLOW, Action::List),
    plain(libc::SYS_truncate, 0, FOLLOW, Action::Change),
    at(libc::SYS_unlinkat, 0, NO_FOLLOW, Action::Remove),
    at(libc::SYS_renameat, 0, NO_FOLLOW, Action::Move),
    at(libc::SYS_renameat, 2, NO_FOLLOW, Action::Receive),
    at(libc::SYS_renameat2, 0, NO_FOLLOW, Action::Move),
    at(libc::SYS_renameat2, 2, NO_FOLLOW, Action::Receive),
    at(libc::SYS_linkat, 0, Follow::If(4, libc::AT_SYMLINK_FOLLOW), Action::Link),
    at(libc::SYS_linkat, 2, NO_FOLLOW, Action::Create),
    at(libc::SYS_symlinkat, 1, NO_FOLLOW, Action::Create),
    at(libc::SYS_mkdirat, 0, NO_FOLLOW, Action::Create),
    at(libc::SYS_mknodat, 0, NO_FOLLOW, Action::Create),
    at(libc::SYS_utimensat, 0, unless(3), Action::Look),
    at(libc::SYS_fchmodat, 0, FOLLOW, Action::Look),
    at(FCHMODAT2, 0, unless(3), Action::Look),
    at(libc::SYS_fchownat, 0, unless(4), Action::Look),
    plain(libc::SYS_setxattr, 0, FOLLOW, Action::Look),
    plain(libc::SYS_lsetxattr, 0, NO_FOLLOW, Action::Look),
    plain(libc::SYS_removexattr, 0, FOLLOW, Action::Look),
    plain(libc::SYS_lremovexattr, 0, NO_FOLLOW, Action::Look),
    plain(libc::SYS_acct, 0, FOLLOW, Action::Look),
];
/// Those that only older architectures have (`__ARCH_WANT_SYSCALL_NO_AT` and others of the kernel's
/// include/uapi/asm-generic/unistd.h).
#[cfg(target_arch = "x86_64")]
const OLDER: &[Row] = &[
    plain(libc::SYS_open, 0, FOLLOW, Action::Open(1)),
    plain(libc::SYS_creat, 0, FOLLOW, Action::Replace),
    plain(libc::SYS_stat, 0, FOLLOW, Action::Look),
    plain(libc::SYS_lstat, 0, NO_FOLLOW, Action::Look),
    plain(libc::SYS_access, 0, FOLLOW, Action::Look),
    plain(libc::SYS_readlink, 0, NO_FOLLOW, Action::Look),
    plain(libc::SYS_getdents, 0, FOLLOW, Action::List),
    plain(libc::SYS_unlink, 0, NO_FOLLOW, Action::Remove),
    plain(libc::SYS_rmdir, 0, NO_FOLLOW, Action::Remove),
    plain(libc::SYS_rename, 0, NO_FOLLOW, Action::Move),
    plain(libc::SYS_rename, 1, NO_FOLLOW, Action::Receive),
    plain(libc::SYS_link, 0, NO_FOLLOW, Action::Link),
    plain(libc::SYS_link, 1, NO_FOLLOW, Action::Create),
    plain(libc::SYS_symlink, 1, NO_FOLLOW, Action::Create),
    plain(libc::SYS_mkdir, 0, NO_FOLLOW, Action::Create),
    plain(libc::SYS_mknod, 0, NO_FOLLOW, Action::Create),
    plain(libc::SYS_utime, 0, FOLLOW, Action::Look),
    plain(libc::SYS_utimes, 0, FOLLOW, Action::Look),
    at(libc::SYS_futimesat, 0, FOLLOW, Action::Look),
    plain(libc::SYS_chmod, 0, FOLLOW, Action::Look),
    plain(libc::SYS_chown, 0, FOLLOW, Action::Look),
    plain(libc::SYS_lchown, 0, NO_FOLLOW, Action::Look),
    plain(libc::SYS_uselib, 0, FOLLOW, Action::Look),
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[Row] = &[];
/// fchmodat2(2), of Linux 6.6.
const FCHMODAT2: c_long = 452;
/// The call that programs do without.
pub(crate) const REFUSED: c_long = libc::SYS_io_uring_setup;

/// All of them.
pub(crate) fn all() -> impl Iterator<Item = &'static Row> {
    ROWS.iter().chain(OLDER)
}

/// The paths of a system call.
pub(crate) fn rows(number: u64) -> impl Iterator<Item = &'static Row> {
    all().filter(move |row| u64::try_from(row.number) == Ok(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a call with two paths has both, and that others have none.
    #[test]
    fn paths() {
        let of = |number: c_long| {
            rows(u64::try_from(number).unwrap()).map(|row| row.path).collect::<Vec<_>>()
        };
        assert_eq!(of(libc::SYS_renameat2), [1, 3]);
        assert_eq!(of(libc::SYS_symlinkat), [2]);
        assert_eq!(of(libc::SYS_read), [0; 0]);
    }
}
