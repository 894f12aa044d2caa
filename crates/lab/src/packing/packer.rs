//! Adds programs to a guest's files, with everything that starts or loads them.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use experiments::{ProgramFiles, guest_path};
use kernels::Wanted;
use recording::ProgramSpec;
use rustix::fs::{Mode, OFlags};

use crate::pack_error::PackError;
use crate::packing::PATH;
use crate::packing::elf::{self, Format, Needs};
use crate::packing::folder;
use crate::packing::host;
use crate::packing::libraries::{self, Found, Libraries, Place};
use crate::packing::links;
use crate::packing::packages::{self, Look};
use crate::packing::script::{self, Interpreter};
use crate::packing::tree::{File, Tree, refuse_size};

/// How much a file has to be complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    /// It is executed, so that whatever is missing is an error.
    Runs,
    /// It is there, and has its libraries as far as they exist.
    IsThere,
}

/// What a file is, as far as it can be executed or loaded.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Program {
    format: Format,
    script: Option<Interpreter>,
}

impl Program {
    /// What these bytes are.
    pub(super) fn of(contents: &[u8]) -> Self {
        Self { format: elf::format(contents), script: script::interpreter(contents) }
    }

    /// Whether it is none.
    fn is_none(&self) -> bool {
        self.format == Format::Other && self.script.is_none()
    }

    /// Whether it is a script whose interpreter is in that folder.
    pub(super) fn has_interpreter_in(&self, folder: &str) -> bool {
        self.script
            .as_ref()
            .is_some_and(|script| Path::new(&script.path).starts_with(folder))
    }
}

/// The files of a guest, to which programs are added.
pub(super) struct Packer<'a> {
    directory: &'a str,
    /// The folder on this machine that stands for the guest's working directory.
    folder: &'a Path,
    tree: Tree,
    /// The guest's `PATH`, and whether it differs from the specified one.
    path: String,
    has_grown: bool,
    libraries: Libraries,
    /// What to do if a program is missing: its name, and the hint.
    hints: &'a [(String, String)],
    look: Look<'a>,
}

impl<'a> Packer<'a> {
    pub(super) fn new(
        spec: &'a ProgramSpec,
        files: &'a ProgramFiles,
        look: Look<'a>,
    ) -> Self {
        let ProgramFiles { folder, hints, .. } = files;
        let path = spec.environment.iter().find(|(name, _)| name == PATH);
        Self {
            directory: &spec.directory,
            folder,
            tree: Tree::default(),
            path: path.map(|(_, value)| value.clone()).unwrap_or_default(),
            has_grown: false,
            libraries: Libraries::new(spec, folder),
            hints,
            look,
        }
    }

    /// The files so far.
    pub(super) fn tree(&mut self) -> &mut Tree {
        &mut self.tree
    }

    /// The files, and the guest's `PATH` if it is not the specified one.
    pub(super) fn finish(self) -> (Tree, Option<String>) {
        (self.tree, self.has_grown.then_some(self.path))
    }

    /// Adds a file with these contents.
    pub(super) fn file(
        &mut self,
        path: &str,
        mode: Option<u32>,
        contents: Vec<u8>,
    ) -> Result<(), PackError> {
        let place = Place::same(path);
        self.put(&place, mode.unwrap_or(0o644), contents, &[], Need::IsThere)
    }

    /// Adds a copy of a file or a folder of this machine.
    pub(super) fn copy(
        &mut self,
        path: &str,
        mode: Option<u32>,
        from: &Path,
    ) -> Result<(), PackError> {
        folder::copy(self, path, mode, from)
    }

    /// Adds a program as a shell in the guest would find it.
    pub(super) fn program(&mut self, name: &str) -> Result<(), PackError> {
        if name.contains('/') {
            let guest = guest_path(self.directory, name);
            let host = self.folder.join(name);
            if self.tree.has_directory(&guest) {
                return Err(PackError::Conflict(guest));
            }
            if self.tree.has(&guest) {
                return Ok(());
            }
            host::refuse_program(&host)?;
            return match name.starts_with('/') {
                true => self.add(&Place::same(&guest), &[]),
                false => self.add(&Place { host, guest }, &[]),
            };
        }
        let has_file = |path: &str| self.tree.has(path) && !self.tree.has_directory(path);
        let mut folders = self.path.split(':').filter(|folder| folder.starts_with('/'));
        if folders.any(|folder| has_file(&format!("{folder}/{name}"))) {
            return Ok(());
        }
        let usual = host::find(name, &self.path);
        let Some(host) = usual.or_else(|| self.find_elsewhere(name)) else {
            return Err(self.no_program(name));
        };
        match host.to_str() {
            Some(path) => self.add(&Place::same(&guest_path("/", path)), &[]),
            None => Err(PackError::Name(host.into())),
        }
    }

    /// Adds the libraries that the linker loads before those of each program (`LD_PRELOAD`).
    pub(super) fn preloaded(&mut self, libraries: &str) -> Result<(), PackError> {
        let names = libraries.split([':', ' ']).filter(|name| !name.is_empty());
        let names = names.map(|name| match name.contains('/') {
            true => guest_path(self.directory, name),
            false => name.to_owned(),
        });
        let libraries = names.filter(|name| !self.tree.has(name)).collect();
        let needs = Needs { libraries, ..Needs::default() };
        self.needs(&Place::same("/LD_PRELOAD"), &needs, &[], Need::Runs)
    }

    /// Finds a program in this machine's `PATH`; the folder is added to the guest's.
    fn find_elsewhere(&mut self, name: &str) -> Option<PathBuf> {
        let host = host::find(name, &host::path())?;
        let folder = host.parent()?.to_str()?;
        if !self.path.is_empty() {
            self.path.push(':');
        }
        self.path += folder;
        self.has_grown = true;
        Some(host)
    }

    fn no_program(&mut self, name: &str) -> PackError {
        PackError::NoProgram {
            name: name.to_owned(),
            path: self.path.clone(),
            hint: match self.hints.iter().find(|(program, _)| program == name) {
                Some((_, hint)) => hint.clone(),
                None => packages::hint(Wanted::Program(name), self.look),
            },
        }
    }

    /// Adds a program or a library, and everything that it needs.
    fn add(&mut self, place: &Place, rpath: &[Place]) -> Result<(), PackError> {
        let real = match place.is_same() {
            true => Place::same(&self.links(&place.guest)?),
            false => {
                let host = fs::canonicalize(&place.host);
                let host =
                    host.map_err(|why| PackError::Read(place.host.clone(), why))?;
                Place { host, guest: place.guest.clone() }
            }
        };
        if self.tree.has_name(&real.guest) {
            return Ok(()); // its needs are there, too, or being added
        }
        let (mode, contents) = read(&real.host)?;
        self.put(&real, mode, contents, rpath, Need::Runs)
    }

    /// Adds the links in a path of this machine; the path without links.
    fn links(&mut self, path: &str) -> Result<String, PackError> {
        links::resolve(path, |next, _| {
            let failed = |why: io::Error| PackError::Read(PathBuf::from(next), why);
            if !fs::symlink_metadata(next).map_err(failed)?.is_symlink() {
                return Ok(None);
            }
            let target = fs::read_link(next).map_err(failed)?.into_os_string();
            let target = target.into_string().map_err(PackError::Name)?;
            if !self.tree.has_name(next) {
                self.tree.link(next, &target)?;
            }
            Ok(Some(target))
        })
    }

    /// Adds a file, and what it needs if it is a program, a library or a script.
    pub(super) fn put(
        &mut self,
        place: &Place,
        mode: u32,
        contents: Vec<u8>,
        rpath: &[Place],
        need: Need,
    ) -> Result<(), PackError> {
        let program = Program::of(&contents);
        if program.is_none() && need == Need::Runs {
            return Err(PackError::NotProgram(place.host.clone()));
        }
        self.tree.file(&place.guest, File { mode, modified: 0, contents })?;
        self.complete(place, program, rpath, need)
    }

    /// Adds what a program that is there needs, as far as it exists: it was executed on this machine.
    pub(super) fn complete_executed(
        &mut self,
        place: &Place,
        program: Program,
    ) -> Result<(), PackError> {
        let need = match program.format {
            Format::Foreign(_) => Need::Runs,
            Format::Elf(_) | Format::Damaged(_) | Format::Other => Need::IsThere,
        };
        self.complete(place, program, &[], need)
    }

    /// Whether a library is where the guest's linker, which has no configuration, does not look for it.
    pub(super) fn is_hidden(&self, library: &Path) -> bool {
        self.libraries.is_hidden(library)
    }

    /// Adds the link by which the guest's linker finds a library.
    pub(super) fn link_library(&mut self, guest: &str) -> Result<(), PackError> {
        let name = guest.rsplit('/').next().unwrap_or_default();
        let link = format!("{}/{name}", libraries::LINKED);
        match self.tree.has_name(&link) {
            true => Ok(()),
            false => self.tree.link(&link, guest),
        }
    }

    /// Adds what a program, a library or a script needs.
    fn complete(
        &mut self,
        place: &Place,
        program: Program,
        rpath: &[Place],
        need: Need,
    ) -> Result<(), PackError> {
        let path = || place.host.clone();
        match (program.format, need) {
            (Format::Elf(needs), _) => self.needs(place, &needs, rpath, need)?,
            (Format::Foreign(architecture), Need::Runs) => {
                return Err(PackError::Architecture { path: path(), architecture });
            }
            (Format::Damaged(why), Need::Runs) => {
                return Err(PackError::Damaged { path: path(), why });
            }
            (Format::Foreign(_) | Format::Damaged(_), Need::IsThere)
            | (Format::Other, _) => {}
        }
        match program.script {
            Some(script) => self.interpreter(place, &script, need),
            None => Ok(()),
        }
    }

    /// Adds the interpreter of a script.
    fn interpreter(
        &mut self,
        of: &Place,
        script: &Interpreter,
        need: Need,
    ) -> Result<(), PackError> {
        // The kernel does not look for an interpreter in PATH.
        let own = match script.path.contains('/') {
            true => script.path.clone(),
            false => format!("./{}", script.path),
        };
        for program in std::iter::once(&own).chain(&script.started) {
            match (self.program(program), need) {
                (Err(PackError::NoFile(_) | PackError::NoProgram { .. }), Need::Runs) => {
                    return Err(self.no_interpreter(program, of));
                }
                (
                    Err(PackError::NoFile(_) | PackError::NoProgram { .. }),
                    Need::IsThere,
                ) => {}
                (added, _) => added?,
            }
        }
        Ok(())
    }

    fn no_interpreter(&mut self, path: &str, of: &Place) -> PackError {
        let wanted = match path.contains('/') {
            true => Wanted::Path(path),
            false => Wanted::Program(path),
        };
        let hint = match path.ends_with('\r') {
            true => {
                "the lines of the script must end with LF, and not with CR LF".to_owned()
            }
            false => packages::hint(wanted, self.look),
        };
        let path = path.escape_debug().to_string();
        PackError::NoInterpreter { path, by: of.host.clone(), hint }
    }

    /// Adds the interpreter and the libraries of a program or a library.
    fn needs(
        &mut self,
        of: &Place,
        needs: &Needs,
        inherited: &[Place],
        need: Need,
    ) -> Result<(), PackError> {
        if let Some(path) = &needs.interpreter {
            match Path::new(path).is_file() {
                true => self.add(&Place::same(path), &[])?,
                false if need == Need::IsThere => {}
                false => return Err(self.no_interpreter(path, of)),
            }
        }
        let rpath = Libraries::rpath(of, needs, inherited);
        for name in &needs.libraries {
            if self.tree.has(&format!("{}/{name}", libraries::LINKED)) {
                continue; // the experiment's own, or found before
            }
            if self.libraries.named_places(name).any(|path| self.tree.has(&path)) {
                continue; // the experiment's own, in a folder of LD_LIBRARY_PATH
            }
            match self.libraries.find(name, of, needs, &rpath) {
                Some(found) => self.library(name, &found, &rpath)?,
                None if need == Need::IsThere => {}
                None => {
                    return Err(PackError::NoLibrary {
                        name: name.clone(),
                        by: of.host.clone(),
                        hint: packages::hint(Wanted::Library(name), self.look),
                    });
                }
            }
            if name == libraries::GLIBC {
                let unwinder = libraries::UNWINDER;
                let found = self.libraries.find(unwinder, of, &Needs::default(), &[]);
                if let Some(found) = found {
                    self.library(unwinder, &found, &[])?;
                }
            }
        }
        Ok(())
    }

    /// Adds a library, and a link to it if the guest's linker would not find it.
    fn library(
        &mut self,
        name: &str,
        found: &Found,
        rpath: &[Place],
    ) -> Result<(), PackError> {
        self.add(&found.place, rpath)?;
        let link = format!("{}/{name}", libraries::LINKED);
        if found.is_hidden && !self.tree.has_name(&link) {
            self.tree.link(&link, &found.place.guest)?;
        }
        Ok(())
    }
}

/// A file's permissions, and its contents.
pub(super) fn read(path: &Path) -> Result<(u32, Vec<u8>), PackError> {
    let failed = |why: io::Error| PackError::Read(path.to_owned(), why);
    let about = fs::metadata(path).map_err(failed)?;
    if !about.is_file() {
        return Err(PackError::Special(path.to_owned())); // it may never end
    }
    refuse_size(about.len())?;
    let mut contents = Vec::new();
    // A file of the kernel's, such as /proc/kmsg, may wait for contents.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty());
    let file = file.map(fs::File::from).map_err(io::Error::from);
    file.and_then(|mut file| file.read_to_end(&mut contents)).map_err(failed)?;
    Ok((about.permissions().mode() & host::PERMISSIONS, contents))
}
