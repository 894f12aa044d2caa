//! The priority of programs that run in parallel with others.

use std::fs;

use rustix::process::{Pid, setpriority_process};

/// Resets the nice value of a process, its descendants and their threads to 0. Requires
/// `CAP_SYS_NICE`, or a limit that allows it (`RLIMIT_NICE`); otherwise nothing changes.
pub(crate) fn make_usual(process: u32) {
    for thread in numbers(&format!("/proc/{process}/task")) {
        let thread = i32::try_from(thread).ok().and_then(Pid::from_raw);
        let _ = thread.map(|thread| setpriority_process(Some(thread), 0));
    }
    // Processes that it starts from here on inherit its priority.
    let children = numbers("/proc").filter(|&one| parent(one) == Some(process));
    children.for_each(make_usual);
}

/// The processes or threads that a folder of `/proc` lists.
fn numbers(folder: &str) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The fourth field of `/proc/PID/stat`; the second, a name, may have spaces and brackets.
fn parent(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use rustix::process::getpriority_process;

    use super::*;

    /// Check that the descendants of a process have the default priority, too.
    #[test]
    fn descendants() {
        let mut nice = Command::new("nice");
        let nice = nice.args(["-n", "5", "sh", "-c", "sleep 1000 & echo $!; wait"]);
        let mut shell = nice.stdout(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let both = [shell.id(), said.trim().parse().unwrap()];
        let priorities = || {
            both.map(|process| {
                getpriority_process(Pid::from_raw(process.cast_signed())).unwrap()
            })
        };
        let before = priorities();
        make_usual(shell.id());
        let after = priorities();
        for process in both {
            let _ = Command::new("kill").arg(process.to_string()).status();
        }
        shell.wait().unwrap();
        // These tests may themselves have another nice value than 0.
        assert!(before[0] == before[1] && before[0] != 0, "{before:?}");
        if after[0] != 0 {
            return println!("skipped: descendants: requires CAP_SYS_NICE");
        }
        assert_eq!(after, [0, 0]);
    }
}
