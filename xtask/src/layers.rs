//! Who may know whom: the table of rooms, and the check that the crates keep to it.
//!
//! The table is ARCHITECTURE.md's. A room depends only on rooms it lists, and those are
//! always of a lower layer, so nothing runs in circles. What only tests need may also
//! be of the same layer, as long as no circle arises.

use crate::workspace::{Member, Workspace};
use crate::{circles, reasons, sources};

/// One room of the house.
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
    room("stats", 1, &["units"]),
    room("recording", 2, &["units", "facts"]),
    room("isolate", 2, &["units", "facts"]),
    room("measure", 3, &["units", "facts", "recording", "isolate"]),
    room("blame", 3, &["units", "facts", "recording"]),
    room("report", 3, &["units", "facts", "recording", "stats"]),
    room("agent", 4, &["units", "facts", "recording", "measure", "blame", "isolate"]),
    room("capi", 4, &["units", "facts", "isolate", "measure", "recording", "stats"]),
    room("counter", 5, &["units"]),
    room("lab", 5, &["units", "facts", "recording", "isolate", "agent"]),
    room("cli", 6, CLI),
    room("xtask", 0, &[]),
];

/// All but `capi` and `counter`, which are for other programs.
const CLI: &[&str] = &[
    "units",
    "facts",
    "stats",
    "recording",
    "isolate",
    "measure",
    "blame",
    "report",
    "agent",
    "lab",
];

fn find(name: &str) -> Option<&'static Room> {
    ROOMS.iter().find(|room| room.name == name)
}

/// Checks the whole workspace; says what was checked, or everything that is wrong.
pub(crate) fn run(workspace: &Workspace) -> Result<String, String> {
    let mut wrong = check(&workspace.members);
    wrong.extend(sources::check(workspace)?);
    wrong.extend(reasons::check(workspace)?);
    wrong.extend(circles::check(workspace)?);
    if wrong.is_empty() {
        let edges: usize = workspace.members.iter().map(|m| m.edges.len()).sum();
        let members = workspace.members.len();
        return Ok(format!("layers: {members} crates with {edges} edges keep the rules"));
    }
    Err(format!("the house rules are broken:\n  {}", wrong.join("\n  ")))
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
                let text = "its tests must not look up to a higher layer";
                wrong.push(format!("{} -> {}: {text}", room.name, other.name));
            }
        } else if !room.may_know.contains(&other.name) {
            let may = match room.may_know {
                [] => "nobody".to_owned(),
                rooms => rooms.join(", "),
            };
            wrong.push(format!("{} -> {}: may know {may}", room.name, other.name));
        }
    }
    wrong
}

/// One circle of edges of any kind, if there is one: what cargo allows for tests.
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
                "in a circle, or depending on one: {}",
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
            ("stats", "facts"),
            ("isolate", "recording"),
            ("report", "measure"),
            ("cli", "capi"),
            ("units", "xtask"),
        ] {
            let wrong = check(&[member(from, &[(to, false)])]);
            assert_eq!(wrong.len(), 1, "{from} -> {to}");
            assert!(
                wrong[0].starts_with(&format!("{from} -> {to}: may know ")),
                "{wrong:?}"
            );
        }
    }

    /// Check that tests may look sideways, but not up.
    #[test]
    fn edges_of_tests() {
        assert_eq!(check(&[member("facts", &[("stats", true)])]), [""; 0]);
        let wrong = check(&[member("facts", &[("recording", true)])]);
        assert_eq!(
            wrong,
            ["facts -> recording: its tests must not look up to a higher layer"]
        );
    }

    /// Check that tests that look at each other are found.
    #[test]
    fn circles() {
        let members = [
            member("units", &[]),
            member("facts", &[("units", false), ("stats", true)]),
            member("stats", &[("units", false), ("facts", true)]),
        ];
        assert_eq!(check(&members), ["in a circle, or depending on one: facts, stats"]);
        let own = [member("facts", &[("facts", true)])];
        assert_eq!(check(&own).len(), 1);
    }

    /// Check that a crate nobody knows is an error at both ends of an edge.
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

    /// Check that the table itself only looks down, so that it cannot allow a circle.
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
