//! The allowed dependencies between crates ("rooms"), and the check of the actual ones.
//!
//! The table is that of ARCHITECTURE.md. A room depends only on rooms it lists, and those are
//! always of a lower layer, so that there are no cycles. Dependencies of tests may also
//! be of the same layer, as long as no cycle arises.

use crate::workspace::{Member, Workspace};
use crate::{circles, reasons, sources};

/// A row of the table.
pub(crate) struct Room {
    name: &'static str,
    layer: u8,
    may_know: &'static [&'static str],
}

const fn room(name: &'static str, layer: u8, may_know: &'static [&'static str]) -> Room {
    Room { name, layer, may_know }
}

const ROOMS: &[Room] = &[
    room("units", 0, &[]),
    room("facts", 1, &["units"]),
    room("recording", 2, &["units", "facts"]),
    room("isolate", 2, &["units", "facts"]),
    room("stats", 1, &["units"]),
    room("summary", 3, &["units", "facts", "recording", "stats"]),
    room("measure", 3, &["units", "facts", "recording", "isolate"]),
    room("blame", 3, &["units", "facts", "recording"]),
    room("imports", 3, &["units", "facts", "recording"]),
    room("sim", 3, &["units", "facts", "recording", "stats"]),
    room("history", 4, &["summary"]),
    room("advise", 4, &["units", "facts", "stats", "recording", "summary"]),
    room("report", 5, &["units", "facts", "recording", "stats", "summary", "advise"]),
    room("session", 4, &["units", "facts", "recording", "isolate", "measure", "blame"]),
    room(
        "agent",
        5,
        &["units", "facts", "recording", "isolate", "measure", "blame", "session"],
    ),
    room("ffi", 3, &["units", "facts", "isolate"]),
    room(
        "capi",
        4,
        &["units", "facts", "isolate", "measure", "recording", "stats", "summary", "ffi"],
    ),
    room("tif", 4, &["units", "facts", "isolate", "ffi"]),
    room("counter", 5, &["units"]),
    room("kernels", 4, &["units", "facts", "isolate"]),
    room("observe", 1, &["units"]),
    room("experiments", 5, &["units", "facts", "recording", "summary", "kernels"]),
    room("lab", 6, LAB),
    room("exporter", 6, EXPORTER),
    room("cli", 7, CLI),
    room("xtask", 0, &[]),
];

/// The exporter measures nothing itself: it reads the counters of `blame`.
const EXPORTER: &[&str] =
    &["units", "facts", "recording", "isolate", "blame", "summary", "report"];

/// The lab needs only the language of `agent`.
const LAB: &[&str] = &[
    "units",
    "facts",
    "recording",
    "isolate",
    "agent",
    "kernels",
    "observe",
    "experiments",
];

/// All but `ffi`, `capi`, `tif` and `counter`, which are for other programs.
const CLI: &[&str] = &[
    "units",
    "facts",
    "stats",
    "summary",
    "imports",
    "sim",
    "history",
    "advise",
    "recording",
    "isolate",
    "measure",
    "blame",
    "session",
    "report",
    "exporter",
    "agent",
    "kernels",
    "experiments",
    "lab",
];

fn find(name: &str) -> Option<&'static Room> {
    ROOMS.iter().find(|room| room.name == name)
}

/// Checks the whole workspace; reports what was checked, or everything that is wrong.
pub(crate) fn run(workspace: &Workspace) -> Result<String, String> {
    let mut wrong = check(&workspace.members);
    wrong.extend(sources::check(workspace)?);
    wrong.extend(reasons::check(workspace)?);
    wrong.extend(circles::check(workspace)?);
    if wrong.is_empty() {
        let edges: usize = workspace.members.iter().map(|m| m.edges.len()).sum();
        let members = workspace.members.len();
        return Ok(format!(
            "layers: {members} crates with {edges} edges follow the rules"
        ));
    }
    Err(format!("violated rules:\n  {}", wrong.join("\n  ")))
}

/// Every edge that the table does not allow.
fn check(members: &[Member]) -> Vec<String> {
    let mut wrong = Vec::new();
    for member in members {
        let Some(room) = find(&member.name) else {
            wrong.push(format!("{}: not in xtask's table of rooms", member.name));
            continue;
        };
        wrong.extend(check_edges(room, member));
    }
    wrong.extend(circle(members));
    wrong
}

fn check_edges(room: &Room, member: &Member) -> Vec<String> {
    let mut wrong = Vec::new();
    for edge in &member.edges {
        let Some(other) = find(&edge.to) else {
            wrong.push(format!("{} -> {}: no such room", room.name, edge.to));
            continue;
        };
        if edge.dev {
            if other.layer > room.layer {
                let text = "its tests must not depend on a higher layer";
                wrong.push(format!("{} -> {}: {text}", room.name, other.name));
            }
        } else if !room.may_know.contains(&other.name) {
            let may = match room.may_know {
                [] => "no room".to_owned(),
                rooms => rooms.join(", "),
            };
            wrong.push(format!("{} -> {}: may depend on {may}", room.name, other.name));
        }
    }
    wrong
}

/// One cycle of edges of any kind, if there is one: what cargo allows for tests.
fn circle(members: &[Member]) -> Option<String> {
    let mut left: Vec<&Member> = members.iter().collect();
    loop {
        let before = left.len();
        let names: Vec<String> = left.iter().map(|member| member.name.clone()).collect();
        left.retain(|member| member.edges.iter().any(|edge| names.contains(&edge.to)));
        if left.is_empty() {
            return None;
        }
        if left.len() == before {
            return Some(format!(
                "in a cycle, or depending on one: {}",
                names.join(", ")
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Edge;
    use std::path::PathBuf;

    fn member(name: &str, edges: &[(&str, bool)]) -> Member {
        let edge = |&(to, dev): &(&str, bool)| Edge { to: to.to_owned(), dev };
        Member {
            name: name.to_owned(),
            folder: PathBuf::new(),
            roots: Vec::new(),
            edges: edges.iter().map(edge).collect(),
        }
    }

    /// Check that an edge the table lists passes, and no other.
    #[test]
    fn edges() {
        assert_eq!(check(&[member("measure", &[("isolate", false)])]), [""; 0]);
        for (from, to) in [
            ("facts", "recording"),
            ("stats", "recording"),
            ("summary", "measure"),
            ("isolate", "recording"),
            ("report", "measure"),
            ("cli", "capi"),
            ("tif", "capi"),
            ("units", "xtask"),
        ] {
            let wrong = check(&[member(from, &[(to, false)])]);
            assert_eq!(wrong.len(), 1, "{from} -> {to}");
            assert!(
                wrong[0].starts_with(&format!("{from} -> {to}: may depend on ")),
                "{wrong:?}"
            );
        }
    }

    /// Check that tests may depend on the same layer, but not on a higher one.
    #[test]
    fn edges_of_tests() {
        assert_eq!(check(&[member("recording", &[("isolate", true)])]), [""; 0]);
        let wrong = check(&[member("facts", &[("recording", true)])]);
        assert_eq!(
            wrong,
            ["facts -> recording: its tests must not depend on a higher layer"]
        );
    }

    /// Check that cyclic dependencies of tests are found.
    #[test]
    fn circles() {
        let members = [
            member("units", &[]),
            member("recording", &[("units", false), ("isolate", true)]),
            member("isolate", &[("units", false), ("recording", true)]),
        ];
        let found = ["in a cycle, or depending on one: recording, isolate"];
        assert_eq!(check(&members), found);
        let own = [member("facts", &[("facts", true)])];
        assert_eq!(check(&own).len(), 1);
    }

    /// Check that an unknown crate is an error at both ends of an edge.
    #[test]
    fn unknown_rooms() {
        assert_eq!(
            check(&[member("attic", &[])]),
            ["attic: not in xtask's table of rooms"]
        );
        assert_eq!(
            check(&[member("cli", &[("attic", false)])]),
            ["cli -> attic: no such room"]
        );
    }

    /// Check that the table itself only refers to lower layers, so that it cannot allow a cycle.
    #[test]
    fn the_table_looks_down() {
        for room in ROOMS {
            for name in room.may_know {
                let known = find(name).unwrap_or_else(|| panic!("{name} is no room"));
                assert!(known.layer < room.layer, "{} -> {name}", room.name);
            }
        }
    }
}
