//! Why the kernel refuses eBPF to this process, and the remedy: the kernel itself only returns an
//! error number.
//!
//! Source: capabilities, lockdown and the kernel's release from the facts; `/proc/self/status` for
//! a filter of system calls (`Seccomp:`, since Linux 3.8); the verifier's log (`verifier_log`).
//! Cannot see which calls a filter refuses, nor the decisions of a security module.

use facts::{Facts, Root};

use crate::bpf::verifier_log;
use crate::error::{Error, Kind};

/// The requirement of programs at `sched_switch` that read the state of the previous task.
pub(crate) const STATE: &str =
    "the tracepoint sched_switch has the previous task's state";

const STATUS: &str = "/proc/self/status";

/// The oldest kernel that supports some programs. A distribution's older one may do so too, so they
/// are tried first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Needs {
    /// Major and minor number.
    pub(crate) version: (u32, u32),
    /// The feature that it introduced.
    pub(crate) why: &'static str,
}

/// Loads eBPF programs; an error explains the reason and the remedy.
pub(crate) fn explained<T>(
    facts: &Facts,
    needs: Needs,
    load: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    if facts.tracing.btf.get() == Some(&false) {
        return Err(no_btf());
    }
    verifier_log::capture();
    load().map_err(|error| match error.kind() {
        Kind::Privilege => error.with(&help(facts)),
        Kind::Missing | Kind::System => {
            let release = facts.kernel.release.get().map_or("", String::as_str);
            with_reason(error, verifier_log::reason(), needs, release)
        }
        Kind::Spec => error,
    })
}

/// Adds the verifier's reason, if there is one, and the required kernel, if this one is older.
fn with_reason(
    error: Error,
    reason: Option<String>,
    needs: Needs,
    release: &str,
) -> Error {
    let error = match reason {
        Some(reason) => error.with(&reason),
        None => error,
    };
    let Needs { version: (major, minor), why } = needs;
    if version(release).is_none_or(|version| version >= needs.version) {
        return error;
    }
    error.of_kind(Kind::Missing).with(&format!(
        "hint: use Linux {major}.{minor} or newer, where {why}; this is {release}"
    ))
}

/// The first two numbers of a release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn no_btf() -> Error {
    let text = "failed to load the eBPF programs: the kernel has no description of its types \
                (/sys/kernel/btf/vmlinux): it needs one with CONFIG_DEBUG_INFO_BTF";
    Error::new(Kind::Missing, text)
}

/// The remedy, as far as it is known.
fn help(facts: &Facts) -> String {
    let capabilities = facts.security.capabilities.get();
    let has = |name: &str| {
        capabilities.is_none_or(|all| all.iter().any(|capability| capability == name))
    };
    if !(has("sys_admin") || has("bpf") && has("perfmon")) {
        return "it needs root, or CAP_BPF and CAP_PERFMON".to_owned();
    }
    if facts.security.lockdown.get().is_some_and(|level| level == "confidentiality") {
        return "the kernel is locked down (confidentiality); lockdown=integrity allows it"
            .to_owned();
    }
    if is_filtered(&Root::live()) {
        return "a filter of system calls (seccomp) is on this process, as in containers: it \
                must allow bpf"
            .to_owned();
    }
    "the privileges are there, but not outside of this container (user namespace), or a \
     security module forbids it"
        .to_owned()
}

/// Whether a seccomp filter applies to this process.
fn is_filtered(root: &Root) -> bool {
    let status = root.text(STATUS).unwrap_or_default();
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
    mode.is_some_and(|mode| mode.trim() == "2")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEEDS: Needs = Needs { version: (5, 18), why: "it has x" };

    /// Check that the hint names the required kernel on an old kernel, and not on a new one, nor on
    /// one with an unknown release.
    #[test]
    fn old_kernels() {
        let text = |release, reason: Option<&str>| {
            let error = Error::new(Kind::System, "load").caused_by("EINVAL");
            let error = with_reason(error, reason.map(str::to_owned), NEEDS, release);
            (error.kind(), units::chain(&error))
        };
        let old = "load: EINVAL; bad; hint: use Linux 5.18 or newer, where it has x; this is \
                   5.10.0-46-cloud-amd64";
        let why = Some("bad");
        assert_eq!(text("5.10.0-46-cloud-amd64", why), (Kind::Missing, old.to_owned()));
        for new in ["5.18.0", "6.1.0-rc1", "", "unknown"] {
            assert_eq!(text(new, why), (Kind::System, "load: EINVAL; bad".to_owned()));
        }
        assert_eq!(text("6.1.0", None).1, "load: EINVAL");
    }
}
