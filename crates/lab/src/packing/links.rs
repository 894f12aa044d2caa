//! A path without its symbolic links, as a kernel resolves it (path_resolution(7)).

use crate::pack_error::PackError;

/// As many links as the kernel follows in a path (`MAXSYMLINKS`).
const LINKS_MAX: u32 = 40;

/// Resolves an absolute path; `link` returns the target of a path that is a link to be followed. Its
/// second parameter is whether the path is whole, and not only a directory on the way.
///
/// # Errors
/// Those of `link`, and `PackError::Loop`.
pub(super) fn resolve(
    path: &str,
    mut link: impl FnMut(&str, bool) -> Result<Option<String>, PackError>,
) -> Result<String, PackError> {
    let mut left: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
    let (mut resolved, mut links) = (String::new(), 0);
    while let Some(part) = left.pop() {
        match part.as_str() {
            "" | "." => continue,
            ".." => {
                resolved.truncate(resolved.rfind('/').unwrap_or(0));
                continue;
            }
            _ => {}
        }
        let next = format!("{resolved}/{part}");
        let is_last = left.iter().all(|part| matches!(part.as_str(), "" | "."));
        let Some(target) = link(&next, is_last)? else {
            resolved = next;
            continue;
        };
        links += 1;
        if links > LINKS_MAX {
            return Err(PackError::Loop(path.to_owned()));
        }
        if target.starts_with('/') {
            resolved.clear();
        }
        left.extend(target.split('/').rev().map(str::to_owned));
    }
    Ok(if resolved.is_empty() { "/".to_owned() } else { resolved })
}
