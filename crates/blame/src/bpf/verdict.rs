//! What libbpf and the kernel's verifier say of a program that the kernel refuses.
//!
//! A refused `bpf(2)` gives an error number only, most often EINVAL; the reason is in the
//! verifier's log, which libbpf asks for and prints (`src/libbpf.c`, `bpf_object_load_prog`).

use std::sync::{Mutex, PoisonError};

use libbpf_rs::{PrintLevel, set_print};

/// How libbpf begins and ends a log, and how it names the program before.
const BEGIN: &str = "-- BEGIN PROG LOAD LOG --";
const END: &str = "-- END PROG LOAD LOG --";
const PROGRAM: &str = "prog '";
/// The verifier's last line of statistics.
const STATISTICS: &str = "processed ";
/// The most that is kept of what libbpf prints.
const BYTES_MAX: usize = 1 << 20;

static PRINTED: Mutex<String> = Mutex::new(String::new());

/// Keeps what libbpf prints from now on, instead of letting it write to standard error.
pub(crate) fn listen() {
    PRINTED.lock().unwrap_or_else(PoisonError::into_inner).clear();
    set_print(Some((PrintLevel::Warn, keep)));
}

/// The verifier's reason for the first refusal since then, and of which program; `None` where
/// there was none.
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

    /// Check that the reason is the log's last line that is not about the verifier itself.
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
