//! The messages of libbpf and the kernel's verifier about a rejected program.
//!
//! A failed `bpf(2)` only returns an error number, most often EINVAL; the reason is in the
//! verifier's log, which libbpf requests and prints (`src/libbpf.c`, `bpf_object_load_prog`).

use std::sync::{Mutex, PoisonError};

use libbpf_rs::{PrintLevel, set_print};

/// The lines of libbpf around a log, and the name of the program before it.
const BEGIN: &str = "-- BEGIN PROG LOAD LOG --";
const END: &str = "-- END PROG LOAD LOG --";
const PROGRAM: &str = "prog '";
/// The beginning of the verifier's statistics, its last line.
const STATISTICS: &str = "processed ";
/// The maximum length of stored messages of libbpf.
const BYTES_MAX: usize = 1 << 20;

static PRINTED: Mutex<String> = Mutex::new(String::new());

/// Stores the messages of libbpf from now on, instead of printing them to standard error.
pub(crate) fn capture() {
    PRINTED.lock().unwrap_or_else(PoisonError::into_inner).clear();
    set_print(Some((PrintLevel::Warn, keep)));
}

/// The verifier's reason for the first rejection since then, and the program; `None` without one.
pub(crate) fn reason() -> Option<String> {
    reason_in(&PRINTED.lock().unwrap_or_else(PoisonError::into_inner))
}

fn keep(_: PrintLevel, text: String) {
    let mut printed = PRINTED.lock().unwrap_or_else(PoisonError::into_inner);
    if printed.len() + text.len() <= BYTES_MAX {
        printed.push_str(&text);
    }
}

fn reason_in(printed: &str) -> Option<String> {
    let (before, log) = printed.split_once(BEGIN)?;
    let log = log.split_once(END).map_or(log, |(log, _)| log);
    let lines = log.lines().map(str::trim);
    let why =
        lines.rev().find(|line| !line.is_empty() && !line.starts_with(STATISTICS))?;
    let program = before.rsplit_once(PROGRAM).and_then(|(_, name)| name.split_once('\''));
    let program = program.map_or_else(String::new, |(name, _)| format!(" {name}"));
    Some(format!("the kernel's verifier refuses the program{program}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the reason is the last line of the log that is not about the verifier itself.
    #[test]
    fn last_line() {
        let printed = "libbpf: prog 'switched': BPF program load failed: Invalid argument\n\
             libbpf: prog 'switched': -- BEGIN PROG LOAD LOG --\n\
             0: (85) call bpf_get_current_task_btf#158\n\
             unknown func bpf_get_current_task_btf#158\n\
             processed 12 insns (limit 1000000) max_states_per_insn 0\n\
             -- END PROG LOAD LOG --\n\
             libbpf: prog 'switched': failed to load: -22\n";
        let reason = "the kernel's verifier refuses the program switched: \
                      unknown func bpf_get_current_task_btf#158";
        assert_eq!(reason_in(printed).as_deref(), Some(reason));
        assert_eq!(reason_in("libbpf: failed to load object 'events'\n"), None);
    }
}
