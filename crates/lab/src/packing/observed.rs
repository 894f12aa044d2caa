//! The files that a command used when it ran on this machine, packed as they were before.
//!
//! What is in the current folder is packed below the guest's working directory, with fixed times and
//! permissions, so that two folders and two users give the same bytes. Other files keep their times,
//! by which interpreters know whether a compiled file belongs to its source. Not packed are secrets
//! (`secrets`), what the guest has itself (`base`, and its `/dev`, `/proc`, `/run` and `/sys`), files
//! that the command creates or replaces, and the folder's compiled Python, which names it.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use experiments::is_owned_path;
use observe::{Contents, FileUse, Listed, Node, Observation};

use crate::pack_error::PackError;
use crate::packing::base;
use crate::packing::libraries::Place;
use crate::packing::mapping::Mapping;
use crate::packing::packer::{self, Packer, Program};
use crate::packing::remarks::{Remark, Remarks};
use crate::packing::secrets::{is_secret_path, is_secret_text};
use crate::packing::tree::{File, refuse_sizes};

/// The permissions of files and directories in the folder, and the bit of those that can be executed.
const PLAIN: u32 = 0o644;
const EXECUTABLE: u32 = 0o755;
const EXECUTE: u32 = 0o100;
/// The bits that give a program other privileges (set-user-ID, set-group-ID).
const PRIVILEGES: u32 = 0o6000;
/// The folder of compiled Python.
const COMPILED: &str = "__pycache__";
/// Folders whose other entries are not packed if they are listed: those of users, and temporary ones.
const UNLISTED: [&str; 5] = ["/", "/home", "/root", "/tmp", "/var/tmp"];
/// Files that were only looked up have their contents up to this size, in bytes.
const LOOKED_UP: u64 = 16 << 20;
/// Files are searched for the folder's name up to this size, in bytes.
const SEARCHED: usize = 1 << 20;

/// Adds what was observed to a guest's files.
pub(super) struct Adder<'a, 'b> {
    pub(super) packer: &'a mut Packer<'b>,
    pub(super) seen: &'a Observation,
    pub(super) mapping: &'a Mapping,
    /// The home directory of this user.
    pub(super) home: Option<PathBuf>,
    /// Whether programs had the privileges of the caller only.
    pub(super) is_root: bool,
    pub(super) remarks: &'a mut Remarks,
    /// Files whose contents are secret.
    pub(super) secret: BTreeSet<&'a Path>,
}

/// A file that is packed.
struct Found<'a> {
    host: &'a Path,
    guest: String,
    used: &'a FileUse,
    file: File,
}

impl<'a> Adder<'a, '_> {
    /// Adds everything; `words` are the arguments and variables of the command.
    pub(super) fn add(&mut self, words: &[&str]) -> Result<(), PackError> {
        let mut found = self.found()?;
        // What is in the folder has precedence over what has its path in the guest by chance.
        found.sort_by_key(|found| !self.mapping.is_inside(found.host));
        self.link_folder(&found, words)?;
        self.links()?;
        let mut programs = Vec::new();
        for Found { host, guest, used, file } in found {
            if self.packer.tree().has_name(&guest) {
                continue;
            }
            if used.is_executed {
                let program = Program::of(&file.contents);
                self.note_privileges(host, used);
                programs.push((
                    Place { host: host.to_owned(), guest: guest.clone() },
                    program,
                ));
            } else if self.packer.is_hidden(host) {
                self.packer.link_library(&guest)?;
            }
            self.packer.tree().file(&guest, file)?;
        }
        self.directories()?;
        for (place, program) in programs {
            self.packer.complete_executed(&place, program)?;
        }
        self.seen.listings.iter().try_for_each(|(path, listed)| self.list(path, listed))
    }

    /// The files to pack, with their contents.
    fn found(&mut self) -> Result<Vec<Found<'a>>, PackError> {
        let mut found = Vec::new();
        for (host, used) in &self.seen.files {
            match used.node {
                Node::File { .. } if used.is_replaced => {}
                Node::File { .. } => {
                    if let Some(guest) = self.guest(host) {
                        found.push((host, guest, used));
                    }
                }
                Node::Special => self.remarks.add(Remark::Special, host.display()),
                Node::Missing | Node::Directory(_) | Node::Link(_) => {}
            }
        }
        let size = |used: &FileUse| match used.node {
            Node::File { size, .. } if has_contents(used) => size,
            Node::File { .. }
            | Node::Missing
            | Node::Directory(_)
            | Node::Link(_)
            | Node::Special => 0,
        };
        refuse_sizes(found.iter().map(|(host, _, used)| (host.as_path(), size(used))))?;
        let mut files = Vec::new();
        for (host, guest, used) in found {
            if let Some(file) = self.file(host, used)? {
                files.push(Found { host, guest, used, file });
            }
        }
        Ok(files)
    }

    /// The path in the guest of what is to be packed; `None` if it is not, with a remark if a user has to
    /// know that.
    fn guest(&mut self, host: &Path) -> Option<String> {
        let Ok(guest) = self.mapping.guest(host) else {
            self.remarks.add(Remark::NotUtf8, host.display());
            return None;
        };
        let is_compiled = self.is_plain(host)
            && host.components().any(|part| part.as_os_str() == COMPILED);
        if is_owned_path(&guest) || base::is_own(&guest) || is_compiled {
            return None;
        }
        if self.packer.tree().has_name(&guest) {
            return None; // named by the experiment
        }
        if is_secret_path(host) {
            self.remarks.add(Remark::Secret, host.display());
            return None;
        }
        Some(guest)
    }

    /// Whether a file has fixed times and permissions: one of the folder's that no installation put there.
    fn is_plain(&self, host: &Path) -> bool {
        let is_python = |path: &Path| {
            let name =
                path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with("python")
                && path.parent().is_some_and(|lib| lib.ends_with("lib"))
        };
        self.mapping.is_inside(host) && !host.ancestors().any(is_python)
    }

    /// A file as it was before; `None` if it cannot be packed, with the reason as a remark.
    fn file(
        &mut self,
        host: &'a Path,
        used: &FileUse,
    ) -> Result<Option<File>, PackError> {
        let Node::File { mode, modified, .. } = used.node else { return Ok(None) };
        if used.is_used && !has_contents(used) {
            self.remarks.add(Remark::LookedUp, host.display());
        }
        let contents = match &used.contents {
            _ if !has_contents(used) => Vec::new(),
            Contents::Stored(contents) => contents.clone(),
            Contents::Same => match packer::read(host) {
                Ok((_, contents)) => contents,
                Err(PackError::Read(_, why)) if why.kind() == ErrorKind::NotFound => {
                    self.remarks.add(Remark::Vanished, host.display());
                    return Ok(None);
                }
                Err(why) if used.is_executed => return Err(why),
                Err(_) => {
                    self.remarks.add(Remark::Unreadable, host.display());
                    return Ok(None);
                }
            },
            Contents::Lost => {
                self.remarks.add(Remark::Unreadable, host.display());
                return Ok(None);
            }
        };
        if is_secret_text(host, &contents) {
            self.secret.insert(host);
            self.remarks.add(Remark::Secret, host.display());
            return Ok(None);
        }
        let (mode, modified) = match self.is_plain(host) {
            true if mode & EXECUTE != 0 => (EXECUTABLE, 0),
            true => (PLAIN, 0),
            false => (mode, u32::try_from(modified).unwrap_or_default()),
        };
        Ok(Some(File { mode, modified, contents }))
    }

    /// If the command was given the folder's own name, and uses it, the guest has a link from there to its
    /// working directory.
    fn link_folder(
        &mut self,
        found: &[Found<'_>],
        words: &[&str],
    ) -> Result<(), PackError> {
        let Some(folder) = self.mapping.folder().to_str() else { return Ok(()) };
        let is_interpreter = |found: &Found<'_>| {
            let program =
                found.used.is_executed.then(|| Program::of(&found.file.contents));
            program.is_some_and(|program| program.has_interpreter_in(folder))
        };
        if self.mapping.keeps_paths()
            || !self.seen.names_folder
                && !words
                    .first()
                    .is_some_and(|program| Path::new(program).starts_with(folder))
                && !found.iter().any(is_interpreter)
        {
            return Ok(());
        }
        let is_word = words.iter().any(|word| mentions(word.as_bytes(), folder));
        let file = found.iter().find(|found| mentions(&found.file.contents, folder));
        let place = match file {
            _ if is_word => "the command line".to_owned(),
            Some(found) => found.guest.clone(),
            None => return Ok(()),
        };
        let directory = self.mapping.directory();
        if self.packer.tree().has_name(folder) {
            return Ok(());
        }
        self.packer.tree().link(folder, directory)?;
        self.remarks.say(format!(
            "the result depends on the folder's name, {folder}, which is in {place}: in the guest it \
             is a link to {directory}"
        ));
        Ok(())
    }

    fn links(&mut self) -> Result<(), PackError> {
        for (link, target) in &self.seen.links {
            if let Some(guest) = self.guest(link) {
                if let Ok(target) = self.mapping.target(link, target) {
                    self.packer.tree().link(&guest, &target)?;
                }
            }
        }
        Ok(())
    }

    /// Adds the directories that were looked up, and those in which files were created.
    fn directories(&mut self) -> Result<(), PackError> {
        for (host, used) in &self.seen.files {
            let is_made = used.is_created || used.is_replaced;
            let (host, mode) = match (&used.node, host.parent()) {
                (Node::Directory(mode), _) if !used.is_replaced => {
                    (host.as_path(), Some(*mode))
                }
                (_, Some(parent)) if is_made => {
                    match parent.is_dir() && !self.is_created(parent) {
                        true => (parent, None),
                        false => continue,
                    }
                }
                _ => continue,
            };
            // Their names are those of the user and of the folder.
            let is_above = |path: &Path| path.starts_with(host);
            let is_home = self.home.as_deref().is_some_and(is_above);
            if (is_home || is_above(self.mapping.folder()))
                && !self.mapping.is_inside(host)
            {
                continue;
            }
            let Some(guest) = self.guest(host) else { continue };
            let mode = mode.filter(|_| !self.is_plain(host));
            self.packer.tree().directory(&guest, mode)?;
        }
        Ok(())
    }

    /// Whether the command created a directory, or one around it.
    fn is_created(&self, path: &Path) -> bool {
        let is_missing = |path: &Path| {
            self.seen
                .files
                .get(path)
                .is_some_and(|used| used.node == Node::Missing || used.is_replaced)
        };
        path.ancestors().any(is_missing)
    }

    /// Adds the other entries of a directory that was listed, without contents.
    fn list(&mut self, path: &Path, listed: &[Listed]) -> Result<(), PackError> {
        let is_home = self.home.as_deref() == Some(path);
        // It may be that of an earlier run.
        let is_made = self.seen.files.get(path).is_some_and(|used| used.is_replaced);
        if is_home
            || is_made
            || UNLISTED.iter().any(|unlisted| path == Path::new(unlisted))
        {
            return Ok(());
        }
        let mut added = 0;
        for Listed { name, node } in listed {
            let host = path.join(name);
            let is_replaced =
                self.seen.files.get(&host).is_some_and(|used| used.is_replaced);
            let is_secret = is_secret_path(&host) || self.secret.contains(&*host);
            if is_replaced || is_secret {
                continue;
            }
            let Some(guest) = self.guest(&host) else { continue };
            added += 1;
            match node {
                Node::Directory(_) => self.packer.tree().directory(&guest, None)?,
                Node::File { .. } => {
                    let file = File { mode: PLAIN, ..File::default() };
                    self.packer.tree().file(&guest, file)?;
                }
                Node::Link(target) => {
                    if let Ok(target) = self.mapping.target(&host, target) {
                        self.packer.tree().link(&guest, &target)?;
                    }
                }
                Node::Missing | Node::Special => {}
            }
        }
        if added > 0 && path == self.mapping.folder() {
            self.remarks.say(format!(
                "the command lists the current folder: the result depends on the names in it, of \
                 which {added} are packed without contents"
            ));
        }
        Ok(())
    }

    fn note_privileges(&mut self, host: &Path, used: &FileUse) {
        if let Node::File { mode, .. } = used.node {
            if mode & PRIVILEGES != 0 && !self.is_root {
                self.remarks.add(Remark::Privileged, host.display());
            }
        }
    }
}

/// Whether the contents of a file are packed, and not only its name: not those of a large one that was only
/// looked up.
fn has_contents(used: &FileUse) -> bool {
    let is_large = matches!(used.node, Node::File { size, .. } if size > LOOKED_UP);
    used.is_used && (used.is_opened || !is_large)
}

/// Whether a text has a path, not only as the beginning of a longer name.
fn mentions(text: &[u8], path: &str) -> bool {
    let path = path.as_bytes();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    text.len() <= SEARCHED
        && text.windows(path.len()).enumerate().any(|(at, part)| {
            part == path && !text.get(at + path.len()).is_some_and(|&byte| is_name(byte))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a path is found as a whole only.
    #[test]
    fn mentioned_paths() {
        assert!(mentions(b"home = /a/b\n", "/a/b"));
        assert!(mentions(b"/a/b", "/a/b"));
        assert!(mentions(b"/a/bc:/a/b/c", "/a/b"));
        assert!(!mentions(b"/a/bc /a/b.d", "/a/b"));
        assert!(!mentions(b"", "/a/b"));
    }
}
