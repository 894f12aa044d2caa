//! The crates of this workspace, from `cargo metadata` (format 1).
//!
//! Only declared dependencies are known, not their use, and only those between these crates.

use std::path::PathBuf;

use serde_json::Value;

use crate::command;

/// The workspace.
pub(crate) struct Workspace {
    /// The folder of its Cargo.toml.
    pub(crate) root: PathBuf,
    /// The target directory.
    pub(crate) target: PathBuf,
    /// Its crates, in the manifest's order.
    pub(crate) members: Vec<Member>,
}

/// One crate of the workspace.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// `src/lib.rs` and `src/main.rs`, if they exist.
    pub(crate) roots: Vec<PathBuf>,
    /// The crates on this machine that it depends on.
    pub(crate) edges: Vec<Edge>,
}

/// A dependency on another crate of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edge {
    pub(crate) to: String,
    /// Whether only tests and benches need it.
    pub(crate) dev: bool,
}

impl Workspace {
    /// Calls `cargo metadata`.
    pub(crate) fn read() -> Result<Self, String> {
        let mut cargo = command::cargo();
        cargo.args(["metadata", "--no-deps", "--locked", "--format-version", "1"]);
        let text = command::output(&mut cargo)?;
        let metadata = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        Self::parse(&metadata)
            .ok_or_else(|| "unknown format of cargo metadata".to_owned())
    }

    fn parse(metadata: &Value) -> Option<Self> {
        let packages = metadata["packages"].as_array()?;
        Some(Self {
            root: path(&metadata["workspace_root"])?,
            target: path(&metadata["target_directory"])?,
            members: packages.iter().map(member).collect::<Option<_>>()?,
        })
    }
}

fn member(package: &Value) -> Option<Member> {
    let of_product = |target: &&Value| {
        let kinds = target["kind"].as_array().into_iter().flatten();
        kinds.filter_map(Value::as_str).any(|kind| matches!(kind, "lib" | "bin"))
    };
    let targets = package["targets"].as_array()?.iter().filter(of_product);
    Some(Member {
        name: package["name"].as_str()?.to_owned(),
        folder: path(&package["manifest_path"])?.parent()?.to_owned(),
        roots: targets.map(|target| path(&target["src_path"])).collect::<Option<_>>()?,
        edges: package["dependencies"].as_array()?.iter().filter_map(edge).collect(),
    })
}

/// A dependency with a path is a crate of the workspace; one from a registry has no path.
fn edge(dependency: &Value) -> Option<Edge> {
    dependency.get("path").filter(|path| path.is_string())?;
    let to = dependency["name"].as_str()?.to_owned();
    Some(Edge { to, dev: dependency["kind"] == "dev" })
}

fn path(value: &Value) -> Option<PathBuf> {
    value.as_str().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Check that edges, their kinds and the crates' roots are found.
    #[test]
    fn reads_metadata() {
        let metadata = json!({
            "workspace_root": "/w", "target_directory": "/w/target",
            "packages": [{
                "name": "facts", "manifest_path": "/w/crates/facts/Cargo.toml",
                "targets": [
                    {"kind": ["lib"], "src_path": "/w/crates/facts/src/lib.rs"},
                    {"kind": ["test"], "src_path": "/w/crates/facts/tests/a.rs"},
                ],
                "dependencies": [
                    {"name": "units", "kind": null, "path": "/w/crates/units"},
                    {"name": "stats", "kind": "dev", "path": "/w/crates/stats"},
                    {"name": "recording", "kind": "build", "path": "/w/crates/recording"},
                    {"name": "serde", "kind": null},
                ],
            }],
        });
        let workspace = Workspace::parse(&metadata).unwrap();
        let facts = &workspace.members[0];
        assert_eq!(facts.folder, PathBuf::from("/w/crates/facts"));
        assert_eq!(facts.roots, [PathBuf::from("/w/crates/facts/src/lib.rs")]);
        let edge = |to: &str, dev| Edge { to: to.to_owned(), dev };
        let edges = [edge("units", false), edge("stats", true), edge("recording", false)];
        assert_eq!(facts.edges, edges);
    }

    /// Check that metadata of an unknown format is an error.
    #[test]
    fn refuses_other_metadata() {
        assert!(Workspace::parse(&json!({})).is_none());
        let no_targets = json!({
            "workspace_root": "/w", "target_directory": "/w/target",
            "packages": [{"name": "facts", "manifest_path": "/w/Cargo.toml"}],
        });
        assert!(Workspace::parse(&no_targets).is_none());
    }
}
