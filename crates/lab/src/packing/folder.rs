//! Copies of this machine's files and folders, at another path in the guest.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::pack_error::PackError;
use crate::packing::host::PERMISSIONS;
use crate::packing::libraries::Place;
use crate::packing::packer::{Need, Packer, read};

/// Copies a file, or a folder with everything in it; links in a folder stay links. `mode` is for
/// the file or the folder itself.
pub(super) fn copy(
    packer: &mut Packer<'_>,
    path: &str,
    mode: Option<u32>,
    from: &Path,
) -> Result<(), PackError> {
    let failed = |why| PackError::Read(from.to_owned(), why);
    if !from.exists() {
        return Err(PackError::NoFile(from.to_owned()));
    }
    let about = fs::metadata(from).map_err(failed)?;
    if about.is_file() {
        let (own, contents) = read(from)?;
        let host = fs::canonicalize(from).map_err(failed)?;
        let place = Place { host, guest: path.to_owned() };
        return packer.put(&place, mode.unwrap_or(own), contents, &[], Need::IsThere);
    }
    if !about.is_dir() {
        return Err(PackError::Special(from.to_owned()));
    }
    let own = about.permissions().mode() & PERMISSIONS;
    packer.tree().directory(path, Some(mode.unwrap_or(own)))?;
    // The order of a folder's entries is arbitrary.
    let mut names = Vec::new();
    for entry in fs::read_dir(from).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        names.push(name.into_string().map_err(PackError::Name)?);
    }
    names.sort();
    names
        .iter()
        .try_for_each(|name| entry(packer, &format!("{path}/{name}"), &from.join(name)))
}

fn entry(packer: &mut Packer<'_>, path: &str, from: &Path) -> Result<(), PackError> {
    let failed = |why| PackError::Read(from.to_owned(), why);
    if !fs::symlink_metadata(from).map_err(failed)?.is_symlink() {
        return copy(packer, path, None, from);
    }
    let target = fs::read_link(from).map_err(failed)?.into_os_string();
    packer.tree().link(path, &target.into_string().map_err(PackError::Name)?)
}
