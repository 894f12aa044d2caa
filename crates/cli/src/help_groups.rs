//! The commands in the help, grouped by the question that they answer.

/// The questions, and the commands that answer them.
const GROUPS: [(&str, &[&str]); 6] = [
    (
        "How much time is lost, and to what?",
        &[
            "check", "noise", "ticks", "latency", "jitter", "slices", "wakers", "watch",
            "top", "guests", "run",
        ],
    ),
    ("How to get it back?", &["advise", "facts", "nohz", "try", "restore"]),
    ("Has it changed?", &["repeat", "compare", "history", "exporter"]),
    (
        "Which of many machines are noisy, and what does noise cost them?",
        &["fleet", "scale"],
    ),
    ("What would another kernel cost?", &["lab", "sim"]),
    ("What was measured before?", &["report", "export"]),
];
/// A command that no other command has.
const FIRST: &str = "restore";
/// Commands that are not listed.
const HIDDEN: [&str; 1] = ["generate"];
/// The heading of clap's list.
const LIST: &str = "\nCommands:\n";

/// Whether there is such a command. Clap would need all definitions to know.
pub(crate) fn is_command(name: &str) -> bool {
    GROUPS.iter().any(|(_, all)| all.contains(&name)) || HIDDEN.contains(&name)
}

/// The help of noisefloor with its list of commands in groups; other texts are not changed.
pub(crate) fn grouped(help: &str) -> String {
    let Some((before, rest)) = help.split_once(LIST) else { return help.to_owned() };
    let (list, after) = rest.split_once("\n\n").unwrap_or((rest, ""));
    let entries = entries(list);
    let entry = |name: &str| entries.iter().find(|(own, _)| *own == name);
    if !entries.iter().any(|(name, _)| *name == FIRST) {
        return help.to_owned(); // the commands of a command
    }
    let mut text = before.to_owned();
    for (question, names) in GROUPS {
        let lines = names.iter().filter_map(|name| entry(name)).map(|(_, lines)| lines);
        text.push_str(&format!("\n{question}\n{}", lines.cloned().collect::<String>()));
    }
    text + "\n" + after
}

/// The names of the listed commands, and their lines.
fn entries(list: &str) -> Vec<(&str, String)> {
    let mut entries: Vec<(&str, String)> = Vec::new();
    for line in list.lines() {
        let is_name = line.starts_with("  ") && !line.starts_with("   ");
        match (entries.last_mut(), is_name) {
            (Some((_, lines)), false) => lines.extend([line, "\n"]),
            _ => {
                let name = line.split_whitespace().next().unwrap_or_default();
                entries.push((name, format!("{line}\n")));
            }
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::command::Args;

    /// Check that each command that is listed is in one group, with all of its lines.
    #[test]
    fn each_once() {
        let help = Args::command().render_help().to_string();
        let grouped = grouped(&help);
        assert!(!grouped.contains(LIST), "{grouped}");
        for line in help.lines().filter(|line| *line != "Commands:") {
            assert_eq!(
                grouped.lines().filter(|own| *own == line).count(),
                help.lines().filter(|own| *own == line).count()
                    + usize::from(line.is_empty()) * (GROUPS.len() - 1),
                "{line}"
            );
        }
        for command in Args::command().get_subcommands() {
            assert!(is_command(command.get_name()), "{}", command.get_name());
        }
        let nested = "Usage\n\nCommands:\n  test  Words\n\nOptions:\n";
        assert_eq!(super::grouped(nested), nested);
    }
}
