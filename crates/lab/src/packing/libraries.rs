//! Where a program's libraries are: the folders that the dynamic linker searches, in its order
//! (ld.so(8)), on this machine and in the guest.
//!
//! Cannot see: variants for newer processors (`glibc-hwcaps`), which are not packed; a guest's
//! linker then uses the ordinary ones.

use std::path::{Path, PathBuf};

use experiments::guest_path;
use recording::ProgramSpec;

use crate::packing::elf::{self, Format, Needs};
use crate::packing::host;

/// The variable with folders that are searched after `DT_RPATH` and before `DT_RUNPATH`.
pub(super) const VARIABLE: &str = "LD_LIBRARY_PATH";
/// The library that glibc loads by itself when a thread ends early (pthread_exit(3)).
pub(super) const UNWINDER: &str = "libgcc_s.so.1";
/// The library that does so.
pub(super) const GLIBC: &str = "libc.so.6";
/// Where a guest's linker, which has no configuration, finds a library of another folder.
pub(crate) const LINKED: &str = "/usr/lib/x86_64-linux-gnu";
/// The names of the folder of a program or library in `DT_RPATH` and `DT_RUNPATH`.
const ORIGINS: [&str; 2] = ["$ORIGIN", "${ORIGIN}"];

/// A folder or a file on this machine and in the guest; they differ for what the experiment puts
/// elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) host: PathBuf,
    pub(super) guest: String,
}

impl Place {
    /// The same path on both.
    pub(super) fn same(path: &str) -> Self {
        Self { host: path.into(), guest: path.to_owned() }
    }

    /// Whether the paths are the same.
    pub(super) fn is_same(&self) -> bool {
        self.host.as_os_str() == self.guest.as_str()
    }

    fn join(&self, name: &str) -> Self {
        Self { host: self.host.join(name), guest: format!("{}/{name}", self.guest) }
    }

    /// The folder that a program names, which may be relative to its own.
    fn expand(&self, folder: &str) -> Option<Self> {
        let origin = ORIGINS.iter().find_map(|origin| folder.strip_prefix(origin));
        let Some(rest) = origin else {
            return folder.starts_with('/').then(|| Self::same(&guest_path("/", folder)));
        };
        let parent = |path: &str| {
            let folder = path.rsplit_once('/').map_or("/", |(folder, _)| folder);
            guest_path("/", &format!("{folder}/{rest}"))
        };
        let host = parent(self.host.to_str()?).into();
        Some(Self { host, guest: parent(&self.guest) })
    }
}

/// A library that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) place: Place,
    /// Whether the guest's linker does not find it there by itself.
    pub(super) is_hidden: bool,
}

/// The search for libraries.
#[derive(Debug)]
pub(super) struct Libraries {
    environment: Vec<Place>,
    configured: Vec<String>,
}

impl Libraries {
    /// That of this machine, with a program's environment; `folder` stands for the guest's working
    /// directory.
    pub(super) fn new(spec: &ProgramSpec, folder: &Path) -> Self {
        let values = spec.environment.iter().filter(|(name, _)| name == VARIABLE);
        let folders = values.flat_map(|(_, value)| value.split([':', ';']));
        let place = |named: &str| {
            let guest = guest_path(&spec.directory, named);
            let is_root = spec.directory == "/" && named.starts_with('/');
            let inside = Path::new(&guest).strip_prefix(&spec.directory);
            let host = match inside.ok().filter(|_| !is_root) {
                Some(rest) => Path::new(".").join(folder).join(rest),
                None => guest.clone().into(),
            };
            Place { host, guest }
        };
        let environment = folders.map(place).collect();
        Self { environment, configured: host::library_folders() }
    }

    /// Where a library would be in the guest's folders of the environment.
    pub(super) fn named_places(&self, name: &str) -> impl Iterator<Item = String> {
        self.environment.iter().map(move |folder| format!("{}/{name}", folder.guest))
    }

    /// Whether a library is in a folder that only this machine's linker knows.
    pub(super) fn is_hidden(&self, library: &Path) -> bool {
        let folder = library.parent().and_then(Path::to_str).unwrap_or_default();
        let is_configured = self.configured.iter().any(|own| own == folder);
        is_configured
            && !host::USUAL.contains(&folder)
            && elf::header_of(library)
                .is_some_and(|format| matches!(format, Format::Elf(_)))
    }

    /// The folders of `DT_RPATH` for the libraries of a program or library: its own, then those of
    /// what loads it.
    pub(super) fn rpath(of: &Place, needs: &Needs, inherited: &[Place]) -> Vec<Place> {
        let own = needs.rpath.iter().filter_map(|folder| of.expand(folder));
        own.chain(inherited.iter().cloned()).collect()
    }

    /// The library of that name for a program or library.
    pub(super) fn find(
        &self,
        name: &str,
        of: &Place,
        needs: &Needs,
        rpath: &[Place],
    ) -> Option<Found> {
        if name.contains('/') {
            let place = Place::same(&guest_path("/", name));
            return is_native(&place.host).then_some(Found { place, is_hidden: false });
        }
        let rpath = if needs.runpath.is_empty() { rpath } else { &[] };
        let runpath = needs.runpath.iter().filter_map(|folder| of.expand(folder));
        let named = rpath.iter().chain(&self.environment).cloned().chain(runpath);
        let named = named.map(|folder| (folder, false));
        let configured = self
            .configured
            .iter()
            .map(|folder| (Place::same(folder), !host::USUAL.contains(&folder.as_str())));
        let usual = host::USUAL.iter().map(|folder| (Place::same(folder), false));
        let mut places = named.chain(configured).chain(usual);
        places.find_map(|(folder, is_hidden)| {
            let place = folder.join(name);
            is_native(&place.host).then_some(Found { place, is_hidden })
        })
    }
}

/// Whether that is a library for a guest; the linker skips others.
fn is_native(path: &Path) -> bool {
    elf::header_of(path).is_some_and(|header| !matches!(header, Format::Foreign(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(host: &str, guest: &str) -> Place {
        Place { host: host.into(), guest: guest.to_owned() }
    }

    /// Check that folders relative to a program are found on this machine and in the guest.
    #[test]
    fn origins() {
        let program = place("/home/me/app/bin/tool", "/root/bin/tool");
        let expanded = program.expand("$ORIGIN/../lib");
        assert_eq!(expanded, Some(place("/home/me/app/lib", "/root/lib")));
        assert_eq!(
            program.expand("${ORIGIN}"),
            Some(place("/home/me/app/bin", "/root/bin"))
        );
        assert_eq!(program.expand("/opt/lib/"), Some(Place::same("/opt/lib")));
        assert_eq!(program.expand("lib"), None);
    }

    /// Check the order of DT_RPATH: that of a library before that of the program that loads it.
    #[test]
    fn inherited_paths() {
        let needs = Needs { rpath: vec!["/own".to_owned()], ..Needs::default() };
        let inherited = [Place::same("/program")];
        let rpath = Libraries::rpath(&Place::same("/lib/a.so"), &needs, &inherited);
        assert_eq!(rpath, [Place::same("/own"), Place::same("/program")]);
    }
}
