//! From a program row to its specification, and to the files that its guest needs.

use std::collections::HashSet;
use std::ops::Range;
use std::path::PathBuf;

use recording::{ProgramSpec, Ready, ServiceSpec, Spec, Words, WorkUnit};
use toml::Spanned;
use units::Nanos;

use crate::error::Error;
use crate::table::entry::Length;
use crate::table::program::{FileRow, GuestPath, ProgramRow, ReadyRow, ServiceRow, Word};
use crate::table::sequence::List;
use crate::table::source::Source;

/// The environment of a program whose row has no other values.
const ENVIRONMENT: [(&str, &str); 2] = [("PATH", USUAL_PATH), ("HOME", USUAL_HOME)];
/// The folders of programs in a guest, unless others are given.
pub const USUAL_PATH: &str =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The home directory in a guest, unless another one is given.
pub const USUAL_HOME: &str = "/root";
/// The limit of a program whose row has none.
const LIMIT: Nanos = Nanos::from_secs(60);
/// The permissions of files, of executable ones, and of directories without others.
const PLAIN: u32 = 0o644;
const EXECUTABLE: u32 = 0o755;
/// A longer command line is cut in the description of a cell.
const COMMAND: usize = 60;

/// What a program needs in its guest, beside itself and its services.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramFiles {
    /// The folder of this machine that relative paths of programs belong to; empty: the current
    /// one.
    pub folder: PathBuf,
    /// Programs that are started by others.
    pub programs: Vec<String>,
    /// Further files.
    pub files: Vec<GuestFile>,
    /// Whether the command is run once on this machine, and what it uses is packed, too.
    pub is_observed: bool,
    /// Whether the guest's memory was not specified: then it grows with the files.
    pub grows: bool,
    /// Where programs are from: a program, and what to do if this machine does not have it.
    pub hints: Vec<(String, String)>,
}

/// A file in a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuestFile {
    /// Its absolute path in the guest.
    pub path: String,
    /// Its permissions; `None`: those of the copied file.
    pub mode: Option<u32>,
    /// Its contents.
    pub contents: FileContents,
}

/// The contents of a file in a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContents {
    /// An empty directory.
    Directory,
    /// That text.
    Text(String),
    /// That many bytes.
    Size(u64),
    /// A copy of this file or folder of the machine that runs the lab.
    Copy(PathBuf),
}

/// A path in the guest, relative to a directory there, in its shortest form.
pub fn guest_path(directory: &str, path: &str) -> String {
    GuestPath::resolve(directory, path).as_str().to_owned()
}

/// Whether the lab or its agent use that path of the guest, so that no file can be there.
pub fn is_owned_path(path: &str) -> bool {
    GuestPath::resolve("/", path).refuse_owned().is_err()
}

/// The environment of a program or a service, unless more is specified.
pub fn usual_environment() -> Vec<(String, String)> {
    ENVIRONMENT.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

/// The hints of services whose program may be missing.
pub(crate) fn hints(rows: &[ServiceRow]) -> Vec<(String, String)> {
    let hint = |row: &ServiceRow| {
        let program = row.run.iter().next()?.get_ref().as_str().to_owned();
        Some((program, row.hint.as_ref()?.as_str().to_owned()))
    };
    rows.iter().filter_map(hint).collect()
}

/// The specification of a program, what it needs, and its description.
pub(crate) fn program(
    source: &Source,
    row: &ProgramRow,
) -> Result<(Spec, ProgramFiles, String), Error> {
    let command = command(source, &row.run)?;
    let services = services(source, &row.service)?;
    let mut environment = usual_environment();
    for (name, value) in row.env.iter() {
        let (name, value) = (name.get_ref().as_str(), value.as_str().to_owned());
        match environment.iter_mut().find(|(given, _)| given == name) {
            Some((_, given)) => *given = value,
            None => environment.push((name.to_owned(), value)),
        }
    }
    let files = ProgramFiles {
        folder: source.folder(),
        programs: programs(source, row.programs.as_ref())?,
        files: files(source, &row.files)?,
        is_observed: is_observed(source, row)?,
        grows: false,
        hints: hints(&row.service),
    };
    let description = description(&command, &services);
    let spec = Spec::Program(ProgramSpec {
        command,
        services,
        environment,
        directory: row.directory.as_str().to_owned(),
        exit_codes: exit_codes(row),
        limit_ns: row.limit.as_ref().map_or(LIMIT, Length::nanos),
        unit: row.unit.as_ref().map(|unit| WorkUnit {
            name: unit.name.as_str().to_owned(),
            count: u64::from(unit.count.get()),
        }),
    });
    Ok((spec, files, description))
}

fn is_observed(source: &Source, row: &ProgramRow) -> Result<bool, Error> {
    let Some(observe) = &row.observe else { return Ok(false) };
    match *observe.get_ref() && !row.service.is_empty() {
        true => Err(source.refuse(
            observe.span(),
            "a program with services cannot be observed; hint: name its files",
        )),
        false => Ok(*observe.get_ref()),
    }
}

fn exit_codes(row: &ProgramRow) -> Vec<u8> {
    let Some(codes) = &row.exit else { return vec![0] };
    codes.iter().filter_map(|code| u8::try_from(code.get_ref().get()).ok()).collect()
}

fn command(source: &Source, words: &List<Word>) -> Result<Words, Error> {
    match words.iter().next() {
        Some(program) if program.get_ref().as_str().is_empty() => {
            Err(source.refuse(program.span(), NO_PROGRAM))
        }
        _ => Ok(Words::new(words.iter().map(|word| word.get_ref().as_str().into()))),
    }
}

const NO_PROGRAM: &str = "the name of the program is empty";

fn programs(source: &Source, words: Option<&List<Word>>) -> Result<Vec<String>, Error> {
    let words = words.into_iter().flat_map(List::iter);
    let program = |word: &Spanned<Word>| match word.get_ref().as_str() {
        "" => Err(source.refuse(word.span(), NO_PROGRAM)),
        name => Ok(name.to_owned()),
    };
    words.map(program).collect()
}

/// The names of what is no service, in reports.
const GROUPS: [&str; 2] = ["command", "other"];

/// The specifications of services.
pub(crate) fn services(
    source: &Source,
    rows: &[ServiceRow],
) -> Result<Vec<ServiceSpec>, Error> {
    let mut names = HashSet::new();
    let mut services = Vec::new();
    for row in rows {
        let name = row.name.get_ref().as_str();
        if !names.insert(name) {
            let why = format!("two services are named '{name}'");
            return Err(source.refuse(row.name.span(), why));
        }
        if GROUPS.contains(&name) {
            let why = format!("reports have '{name}' as a name for what is no service");
            return Err(source.refuse(row.name.span(), why));
        }
        services.push(ServiceSpec {
            name: name.to_owned(),
            command: command(source, &row.run)?,
            ready: row.ready.as_ref().map(|row| ready(source, row)).transpose()?,
        });
    }
    Ok(services)
}

fn ready(source: &Source, row: &Spanned<ReadyRow>) -> Result<Ready, Error> {
    let ReadyRow { port, socket, file, text } = row.get_ref();
    let port = port.and_then(|port| u16::try_from(port.get()).ok()).map(Ready::Port);
    let socket = socket.as_ref().map(|path| Ready::Socket(path.as_str().to_owned()));
    let file = match (file, text) {
        (None, Some(_)) => {
            return Err(
                source.refuse(row.span(), "a text that a file must have needs a file")
            );
        }
        (None, None) => None,
        (Some(path), None) => Some(Ready::File(path.as_str().to_owned())),
        (Some(path), Some(text)) => Some(Ready::Text {
            file: path.as_str().to_owned(),
            text: text.as_str().to_owned(),
        }),
    };
    let mut given = [port, socket, file].into_iter().flatten();
    match (given.next(), given.next()) {
        (Some(ready), None) => Ok(ready),
        _ => {
            Err(source
                .refuse(row.span(), "ready is exactly one of port, socket and file"))
        }
    }
}

fn files(source: &Source, rows: &[FileRow]) -> Result<Vec<GuestFile>, Error> {
    let mut paths = HashSet::new();
    let mut files = Vec::new();
    for row in rows {
        let (path, place) = (row.path.get_ref(), row.path.span());
        path.refuse_owned()
            .map_err(|why| source.refuse(place.clone(), why.to_string()))?;
        if !paths.insert(path) {
            let why = format!("two files have the path {}", path.as_str());
            return Err(source.refuse(place, why));
        }
        files.push(file(source, row, place)?);
    }
    Ok(files)
}

fn file(source: &Source, row: &FileRow, place: Range<usize>) -> Result<GuestFile, Error> {
    let text = row.text.clone().map(FileContents::Text);
    let size = row.size.map(|size| FileContents::Size(size.0));
    let from = row.from.as_ref().map(|from| source.folder().join(from.as_str()));
    let copy = from.map(FileContents::Copy);
    let directory = row.directory.then_some(FileContents::Directory);
    let mut given = [text, size, copy, directory].into_iter().flatten();
    let (Some(contents), None) = (given.next(), given.next()) else {
        let why = "a file has exactly one of text, size and from, or is a directory (directory = true)";
        return Err(source.refuse(place, why));
    };
    let usual = match &contents {
        FileContents::Directory => Some(EXECUTABLE),
        FileContents::Text(text) if text.starts_with("#!") => Some(EXECUTABLE),
        FileContents::Text(_) | FileContents::Size(_) => Some(PLAIN),
        FileContents::Copy(_) => None,
    };
    let mode = row.mode.map(|mode| mode.0).or(usual);
    Ok(GuestFile { path: row.path.get_ref().as_str().to_owned(), mode, contents })
}

/// The command in one line, and the services.
fn description(command: &Words, services: &[ServiceSpec]) -> String {
    let line = command.to_string();
    let line: Vec<&str> = line.split_whitespace().collect();
    let line = line.join(" ");
    let mut words = match line.char_indices().nth(COMMAND) {
        Some((end, _)) => format!("run {}…", &line[..end]),
        None => format!("run {line}"),
    };
    for (place, service) in services.iter().enumerate() {
        words += if place == 0 { ", beside " } else { " and " };
        words += &service.name;
    }
    words
}
