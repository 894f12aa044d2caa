//! Why the kernel refuses eBPF to this process, and what would help: the kernel only says
//! that it does.
//!
//! Truth: capabilities and lockdown from the facts; `/proc/self/status` for a filter of system
//! calls (`Seccomp:`, since Linux 3.8). Cannot see which calls a filter refuses, nor what a
//! security module does.

use facts::{Facts, Root};

use crate::error::{Error, Kind};

const STATUS: &str = "/proc/self/status";

/// Loads eBPF programs; a refusal says what would help.
pub(crate) fn explained<T>(
    facts: &Facts,
    load: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    if facts.tracing.btf.get() == Some(&false) {
        return Err(no_btf());
    }
    load().map_err(|error| match error.kind() {
        Kind::Privilege => error.with(&help(facts)),
        _ => error,
    })
}

fn no_btf() -> Error {
    let text = "load the eBPF programs: the kernel does not describe its types \
                (/sys/kernel/btf/vmlinux): it needs one with CONFIG_DEBUG_INFO_BTF";
    Error::new(Kind::Missing, text)
}

/// What would help, as far as is known.
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

/// Whether a filter decides which system calls this process may make.
fn is_filtered(root: &Root) -> bool {
    let status = root.text(STATUS).unwrap_or_default();
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
    mode.is_some_and(|mode| mode.trim() == "2")
}
