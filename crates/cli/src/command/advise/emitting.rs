//! `advise --emit` and `advise --verify`: files of other programs in a new folder, and the settings of such a
//! folder compared with the machine.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use ::advise::{
    Advice, EmittedFile, Format, MANIFEST, Machine, Manifest, Origin, SettingState,
};
use ::facts::{Facts, Root, Why};
use recording::{Kind, Recording};
use units::chain;

use crate::args::Output;
use crate::destination::{Destination, create_folder};
use crate::outcome::{Failure, Outcome};
use crate::reporting::{none, show};

/// Write permission of group and others.
const WRITABLE: u32 = 0o022;

#[derive(Debug, clap::Args)]
pub(crate) struct EmitOptions {
    /// Write files that make the changes last to the new or empty directory DIR, with scripts that install and
    /// uninstall them; FORMAT is sysctl, tuned, systemd, kernel-cmdline, grub, udev, irqbalance, ansible,
    /// kubernetes or script.
    #[arg(long, num_args = 2, value_names = ["FORMAT", "DIR"], conflicts_with = "fail_on")]
    emit: Option<Vec<OsString>>,
    /// Emit the changes of these rules only, by their names [default: all that hold].
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "emit")]
    only: Option<Vec<String>>,
    /// Compare the settings of DIR, which --emit wrote, with this machine, or with the one of --root; exit code 1
    /// if one is not in force, 4 if that is not known of one.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["emit", "from", "config", "no_measure", "fail_on", "cpus"])]
    verify: Option<PathBuf>,
}

/// An empty folder for the files of a format.
#[derive(Debug)]
pub(crate) struct EmitFolder<'a> {
    format: Format,
    path: &'a Path,
    only: Option<&'a [String]>,
}

impl EmitOptions {
    pub(crate) fn verified(&self) -> Option<&Path> {
        self.verify.as_deref()
    }

    /// Creates the folder, before anything is measured.
    pub(crate) fn folder(&self) -> Result<Option<EmitFolder<'_>>, Failure> {
        let Some([format, dir]) = self.emit.as_deref() else { return Ok(None) };
        let name = format.to_string_lossy();
        let format = Format::named(&name).ok_or_else(|| {
            let names = Format::ALL.map(Format::name).join(", ");
            Failure::usage(format!("--emit: unknown format '{name}'; formats: {names}"))
        })?;
        let path = Path::new(dir);
        check_empty(path)?;
        Ok(Some(EmitFolder { format, path, only: self.only.as_deref() }))
    }
}

/// Creates a folder, or checks that it is empty and only this user can write to it: its scripts are run as root.
fn check_empty(path: &Path) -> Result<(), Failure> {
    let shown = units::printable(&path.to_string_lossy()).into_owned();
    let is_new = fs::symlink_metadata(path).is_err();
    let folder = create_folder(path)
        .map_err(|why| Failure::usage(format!("--emit: {}", chain(&why))))?;
    let failed =
        |why: io::Error| Failure::usage(format!("--emit: failed to read {shown}: {why}"));
    let resolved = match folder.path() {
        path if path.as_os_str().is_empty() => Path::new("."),
        path => path,
    };
    if is_new {
        // Also with a umask that lets the group write.
        fs::set_permissions(resolved, Permissions::from_mode(0o755)).map_err(failed)?;
    }
    let about = fs::metadata(resolved).map_err(failed)?;
    let refuse = |why: &str| {
        Err(Failure::usage(format!(
            "--emit: {shown} {why}; hint: name a new directory of your own"
        )))
    };
    let is_own = about.uid() == rustix::process::geteuid().as_raw();
    if !is_own || about.mode() & WRITABLE != 0 {
        return refuse("can be written by another user");
    }
    match fs::read_dir(resolved).map_err(failed)?.next() {
        Some(_) => refuse("is not empty"),
        None => Ok(()),
    }
}

/// Writes the files, and prints what they are.
pub(crate) fn emit(
    folder: &EmitFolder<'_>,
    advice: &Advice,
    machine: &Machine<'_>,
    output: Output,
    files: &[Destination<'_>],
) -> Result<Outcome, Failure> {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH);
    let taken = Recording::moment();
    let origin = Origin {
        tool: Recording::TOOL,
        taken: &taken,
        taken_s: seconds.map_or(0, |since| since.as_secs()),
    };
    let format = folder.format;
    let emitted = ::advise::emit(format, advice, machine, folder.only, origin);
    let emitted = emitted.map_err(|unknown| {
        Failure::usage(format!(
            "--only: not advised here: {}; hint: advise --full has the names",
            unknown.join(", ")
        ))
    })?;
    for file in &emitted.files {
        write(folder.path, file)?;
    }
    let dir = folder.path.to_string_lossy();
    show(
        output,
        files,
        || ::report::emitted_json(&emitted, format, &dir),
        || ::report::emitted_document(&emitted, format, &dir),
        none,
    )?;
    Ok(Outcome::Done)
}

/// Writes one file, which does not exist yet.
fn write(dir: &Path, file: &EmittedFile) -> Result<(), Failure> {
    let path = dir.join(&file.path);
    let failed = |why: io::Error| {
        Failure::of_writing(&recording::Error::new(Kind::Write, &path, why))
    };
    if let Some(parent) = path.parent() {
        // Whatever the umask is, no other user may write to it.
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o755).create(parent).map_err(failed)?;
    }
    let is_new = recording::write_new_file(&path, &file.text)
        .map_err(|why| Failure::of_writing(&why))?;
    if !is_new {
        return Err(failed(io::ErrorKind::AlreadyExists.into()));
    }
    fs::set_permissions(&path, Permissions::from_mode(file.mode)).map_err(failed)
}

/// Compares the settings of a folder with a machine.
pub(crate) fn verify(
    dir: &Path,
    tree: Option<&Path>,
    output: Output,
    files: &[Destination<'_>],
) -> Result<Outcome, Failure> {
    let file = dir.join(MANIFEST);
    let text = recording::read_text(&file).map_err(|why| {
        let file = file.to_string_lossy();
        Failure::usage(format!(
            "--verify: failed to read {}: {why}; hint: name a directory that --emit wrote",
            units::printable(&file)
        ))
    })?;
    let manifest = Manifest::parse(&text).map_err(|why| {
        let file = file.to_string_lossy();
        let file = units::printable(&file);
        Failure::usage(format!("--verify: {file} is no manifest of --emit: {why}"))
    })?;
    let root = match tree {
        Some(tree) => Root::directory(tree)?,
        None => Root::live(),
    };
    let facts = Facts::read(&root);
    let machine = Machine::new(&facts, None, None);
    let verified = ::advise::verify(&manifest, &machine, &|path| matching(&root, path));
    show(
        output,
        files,
        || ::report::verified_json(&manifest, &verified),
        || ::report::verified_document(&manifest, &verified),
        none,
    )?;
    let has =
        |is_it: fn(&SettingState) -> bool| verified.iter().any(|it| is_it(&it.state));
    let is_undone = has(|state| {
        matches!(state, SettingState::NeedsReboot | SettingState::Differs { .. })
    });
    let is_unknown = has(|state| matches!(state, SettingState::Unknown { .. }));
    Ok(match (is_undone, is_unknown) {
        (true, _) => Outcome::Exceeded,
        (false, true) => Outcome::Doubtful,
        (false, false) => Outcome::Done,
    })
}

/// The files that match a path, of which some names may have a `*`, and their texts.
fn matching(root: &Root, pattern: &str) -> Vec<(String, Option<String>)> {
    let mut paths = vec![String::new()];
    for name in pattern.split('/').skip(1) {
        let Some((start, end)) = name.split_once('*') else {
            paths.iter_mut().for_each(|path| *path += &format!("/{name}"));
            continue;
        };
        let fits = |name: &String| {
            name.len() >= start.len() + end.len()
                && name.starts_with(start)
                && name.ends_with(end)
        };
        paths = paths
            .iter()
            .flat_map(|path| {
                let names = root.list(path).unwrap_or_default().into_iter().filter(fits);
                names.map(|name| format!("{path}/{name}")).collect::<Vec<_>>()
            })
            .collect();
    }
    let texts = paths.into_iter().map(|path| (root.text(&path), path));
    let known = texts.filter_map(|(text, path)| match text {
        Ok(text) => Some((path, Some(text))),
        Err(unknown) if unknown.code == Why::Absent => None,
        Err(_) => Some((path, None)),
    });
    known.collect()
}
