//! Units of systemd and containers, by the paths of their cgroups.
//!
//! From `/proc/PID/cgroup`, or from any path in a hierarchy. The formats are conventions of the programs
//! that create the cgroups:
//!
//! | path ends with | belongs to |
//! |---|---|
//! | `system.slice/NAME.service`, `user.slice/user-0.slice/session-3.scope` | a unit of systemd |
//! | `system.slice/docker-ID.scope`, `docker/ID` | Docker |
//! | `kubepods.slice/.../kubepods-burstable-podUID.slice/cri-containerd-ID.scope` | containerd, in a pod |
//! | `kubepods.slice:cri-containerd:ID`, `system.slice/nerdctl-ID.scope` | containerd |
//! | `crio-ID.scope`, `libpod-ID.scope` | CRI-O, Podman |
//! | `kubepods/burstable/podUID/ID` | a container of a pod, of any runtime |
//! | `lxc.payload.NAME`, `lxc/NAME` | LXC |
//! | `machine.slice/machine-qemu\x2d1\x2dweb.scope` | a machine of systemd-machined |
//!
//! An ID has 64 hexadecimal digits. The innermost container counts, also if systemd runs within, else the
//! innermost service or scope. In names of systemd, `\x2d` is `-`; systemd writes the UID of a pod with
//! underscores.
//!
//! Every user who may create a cgroup may give it any name: names may contain anything but `/` and line
//! feeds, and have to be escaped for a terminal.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The digits of an ID, and those that are shown of it.
const ID: usize = 64;
const SHOWN: usize = 12;

/// What programs belong to.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum UnitKind {
    /// A service, scope or slice of systemd.
    Systemd,
    /// A container of Docker.
    Docker,
    /// A container of containerd.
    Containerd,
    /// A container of CRI-O.
    Crio,
    /// A container of Podman.
    Podman,
    /// A container of LXC.
    Lxc,
    /// A virtual machine or a container of systemd-machined.
    Machine,
    /// A container of Kubernetes, of an unknown runtime.
    Container,
    /// A pod of Kubernetes.
    Pod,
    /// A kind of a later version.
    #[serde(other)]
    Other,
}

/// A unit of systemd, or a container.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Unit {
    /// What it is.
    pub kind: UnitKind,
    /// Its name: `nginx.service`, the ID of a container, the name of a container of LXC.
    pub name: String,
    /// The UID of its pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<String>,
}

impl Unit {
    /// That of a cgroup, by its path in a hierarchy; `None` if it belongs to none.
    pub fn of_path(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let pod = parts.iter().rev().find_map(|part| pod(part));
        let inner = parts.iter().enumerate().rev();
        let container = inner.clone().find_map(|(at, part)| {
            let above = at.checked_sub(1).and_then(|at| parts.get(at)).copied();
            container(part, above)
        });
        let found = container
            .or_else(|| Some((UnitKind::Pod, pod.clone()?)))
            .or_else(|| inner.clone().find_map(|(_, part)| machine(part)))
            .or_else(|| inner.clone().find_map(|(_, part)| systemd(part)));
        let (kind, name) = found?;
        let pod = pod.filter(|_| kind != UnitKind::Pod);
        Some(Self { kind, name, pod })
    }

    /// That of a process, from the contents of its `/proc/PID/cgroup`. If its hierarchies differ, a
    /// container counts before a unit, and version 2 and systemd's own hierarchy before others.
    pub fn of_process(groups: &str) -> Option<Self> {
        let mut paths: Vec<(&str, &str)> = groups
            .lines()
            .filter_map(|line| {
                let mut fields = line.splitn(3, ':').skip(1);
                Some((fields.next()?, fields.next()?))
            })
            .collect();
        paths.sort_by_key(|(controllers, _)| !["", "name=systemd"].contains(controllers));
        let mut units = paths.iter().filter_map(|(_, path)| Self::of_path(path));
        let first = units.next()?;
        if first.kind != UnitKind::Systemd {
            return Some(first);
        }
        units.find(|unit| unit.kind != UnitKind::Systemd).or(Some(first))
    }
}

/// Its name, and what it is: `docker 4f2a1b3c4d5e`, `nginx.service`.
impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match is_id(&self.name) {
            true => &self.name[..SHOWN],
            false => &self.name,
        };
        let word = match self.kind {
            UnitKind::Systemd | UnitKind::Other => return f.write_str(name),
            UnitKind::Docker => "docker",
            UnitKind::Containerd => "containerd",
            UnitKind::Crio => "cri-o",
            UnitKind::Podman => "podman",
            UnitKind::Lxc => "lxc",
            UnitKind::Machine => "machine",
            UnitKind::Container => "container",
            UnitKind::Pod => "pod",
        };
        write!(f, "{word} {name}")
    }
}

/// The container of a part of a path, and of the part above it.
fn container(part: &str, above: Option<&str>) -> Option<(UnitKind, String)> {
    let scope = part.strip_suffix(".scope").unwrap_or(part);
    for (prefix, kind) in [
        ("docker-", UnitKind::Docker),
        ("cri-containerd-", UnitKind::Containerd),
        ("nerdctl-", UnitKind::Containerd),
        ("crio-", UnitKind::Crio),
        ("libpod-", UnitKind::Podman),
    ] {
        if let Some(id) = scope.strip_prefix(prefix).filter(|id| is_id(id)) {
            return Some((kind, id.to_owned()));
        }
    }
    if let Some(name) = part.strip_prefix("lxc.payload.").filter(|name| !name.is_empty())
    {
        return Some((UnitKind::Lxc, name.to_owned()));
    }
    let mut colons = part.rsplit(':');
    if let (Some(id), Some("cri-containerd")) = (colons.next(), colons.next()) {
        return is_id(id).then(|| (UnitKind::Containerd, id.to_owned()));
    }
    let above = above?;
    match above {
        "docker" if is_id(part) => Some((UnitKind::Docker, part.to_owned())),
        "lxc" => Some((UnitKind::Lxc, part.to_owned())),
        _ if pod(above).is_some() && is_id(part) => {
            Some((UnitKind::Container, part.to_owned()))
        }
        _ => None,
    }
}

/// The UID of the pod of a part: `kubepods-burstable-pod1a2b_....slice`, `pod1a2b-...`.
fn pod(part: &str) -> Option<String> {
    let part = part.split(':').next().unwrap_or(part);
    let slice = part.strip_suffix(".slice").filter(|name| name.starts_with("kubepods"));
    let uid = match slice {
        Some(name) => name.rsplit_once("-pod")?.1,
        None => part.strip_prefix("pod")?,
    };
    let uid = uid.replace('_', "-");
    let is_uid =
        uid.len() >= 32 && uid.bytes().all(|c| c.is_ascii_hexdigit() || c == b'-');
    is_uid.then_some(uid)
}

/// `machine-qemu\x2d1\x2dweb.scope`
fn machine(part: &str) -> Option<(UnitKind, String)> {
    let name = part.strip_prefix("machine-")?.strip_suffix(".scope")?;
    Some((UnitKind::Machine, unescaped(name)))
}

fn systemd(part: &str) -> Option<(UnitKind, String)> {
    let is_unit = [".service", ".scope"]
        .iter()
        .any(|suffix| part.strip_suffix(suffix).is_some_and(|name| !name.is_empty()));
    is_unit.then(|| (UnitKind::Systemd, unescaped(part)))
}

fn is_id(text: &str) -> bool {
    text.len() == ID && text.bytes().all(|c| c.is_ascii_hexdigit())
}

/// A name of systemd without escapes of printable characters; others are left as they are.
fn unescaped(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find("\\x") {
        let (before, escape) = rest.split_at(at);
        text.push_str(before);
        let code = escape.get(2..4).and_then(|code| u8::from_str_radix(code, 16).ok());
        match code.map(char::from).filter(|c| c.is_ascii_graphic() || *c == ' ') {
            Some(c) => {
                text.push(c);
                rest = &escape[4..];
            }
            None => {
                text.push_str("\\x");
                rest = &escape[2..];
            }
        }
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: &str = "4f2a1b3c4d5e6f708192a3b4c5d6e7f84f2a1b3c4d5e6f708192a3b4c5d6e7f8";
    const UID: &str = "1a2b3c4d-1a2b-1a2b-1a2b-1a2b3c4d5e6f";

    fn of(path: &str) -> Option<(UnitKind, String)> {
        Unit::of_path(path).map(|unit| (unit.kind, unit.name))
    }

    /// Check units of systemd, whose names have escapes, and paths that belong to nothing.
    #[test]
    fn units() {
        use UnitKind::{Machine, Systemd};
        for (path, expected) in [
            ("/system.slice/nginx.service", Some((Systemd, "nginx.service"))),
            (
                "/user.slice/user-0.slice/session-3.scope",
                Some((Systemd, "session-3.scope")),
            ),
            (
                "/user.slice/user-1.slice/user@1.service/app.slice/app-a\\x2db.service/x",
                Some((Systemd, "app-a-b.service")),
            ),
            (
                "/machine.slice/machine-qemu\\x2d1\\x2dweb.scope/libvirt/vcpu0",
                Some((Machine, "qemu-1-web")),
            ),
            (
                "/a\\x1b\\x0a\\xzz\\x.service",
                Some((Systemd, "a\\x1b\\x0a\\xzz\\x.service")),
            ),
            ("/../../system.slice/cron.service", Some((Systemd, "cron.service"))),
            ("/", None),
            ("", None),
            ("/user.slice", None),
            ("/.service", None),
            ("/docker/nonsense", None),
        ] {
            let expected = expected.map(|(kind, name)| (kind, name.to_owned()));
            assert_eq!(of(path), expected, "{path}");
        }
    }

    /// Check the paths of containers, with and without a pod, and of one in which systemd runs.
    #[test]
    fn containers() {
        use UnitKind::{Container, Containerd, Crio, Docker, Lxc, Pod, Podman};
        let pod = format!("kubepods-burstable-pod{}.slice", UID.replace('-', "_"));
        for (path, kind, name, has_pod) in [
            (format!("/system.slice/docker-{ID}.scope"), Docker, ID, false),
            (format!("/docker/{ID}/system.slice/a.service"), Docker, ID, false),
            (format!("/system.slice/nerdctl-{ID}.scope"), Containerd, ID, false),
            (format!("/machine.slice/libpod-{ID}.scope/container"), Podman, ID, false),
            (format!("/libpod_parent/libpod-{ID}"), Podman, ID, false),
            (
                format!("/kubepods.slice/{pod}/cri-containerd-{ID}.scope"),
                Containerd,
                ID,
                true,
            ),
            (format!("/kubepods.slice/{pod}/crio-{ID}.scope"), Crio, ID, true),
            (
                format!("/containerd.service/{pod}:cri-containerd:{ID}"),
                Containerd,
                ID,
                true,
            ),
            (format!("/kubepods/burstable/pod{UID}/{ID}"), Container, ID, true),
            (format!("/kubepods.slice/{pod}"), Pod, UID, false),
            ("/lxc.payload.web/system.slice/a.service".to_owned(), Lxc, "web", false),
            ("/lxc/web/init.scope".to_owned(), Lxc, "web", false),
        ] {
            let unit = Unit::of_path(&path).unwrap();
            assert_eq!((unit.kind, unit.name.as_str()), (kind, name), "{path}");
            let expected = has_pod.then(|| UID.to_owned());
            assert_eq!(unit.pod, expected, "{path}");
        }
        let unit = Unit::of_path(&format!("/docker/{ID}")).unwrap();
        assert_eq!(unit.to_string(), "docker 4f2a1b3c4d5e");
    }

    /// Check a process in v2, and in v1 and hybrid layouts, in which not all hierarchies tell.
    #[test]
    fn processes() {
        let of = |groups: &str| Unit::of_process(groups).map(|unit| unit.name);
        let name = |name: &str| Some(name.to_owned());
        assert_eq!(of("0::/system.slice/a.service\n"), name("a.service"));
        let hybrid = "9:name=systemd:/system.slice/a.service\n1:cpu:/b.service\n0::/\n";
        assert_eq!(of(hybrid), name("a.service"));
        let v1 =
            format!("4:memory:/docker/{ID}\n1:name=systemd:/system.slice/a.service\n");
        assert_eq!(of(&v1), name(ID));
        assert_eq!(of("0::/\n"), None);
        assert_eq!(of("nonsense"), None);
    }

    proptest! {
        /// Check that no path panics, and that names have no control characters that the path has not.
        #[test]
        fn any_path(path in "(\\PC|/|\\\\x[0-9a-f]{2}|[.]service|[.]scope|machine-){0,40}") {
            let unit = Unit::of_path(&path);
            let is_plain = |unit: &Unit| !unit.name.chars().any(char::is_control);
            prop_assert!(unit.as_ref().is_none_or(is_plain));
            prop_assert!(unit.is_none_or(|unit| !unit.to_string().is_empty()));
        }
    }
}
