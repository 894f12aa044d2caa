//! A program on some kernels, without a file: the experiment of one command line.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use toml::Spanned;

use crate::error::{EntryError, Error};
use crate::experiment::Experiment;
use crate::table::entry::{KernelName, Length, Line, Name};
use crate::table::number::Number;
use crate::table::program::{FileRow, GuestPath, ProgramRow, Variable, Word};
use crate::table::sequence::{List, Pairs};
use crate::table::source::{NOWHERE, Source};
use crate::table::{
    BootRow, MachineRow, ModeWord, PhaseCount, Repeats, SettingRow, Table, WorkloadRow,
};

/// The name of the experiment in reports and messages.
const NAME: &str = "cost";
/// The guest's directory for relative paths. It is the same wherever the files are on this
/// machine, because the length of a path changes the number of instructions.
const DIRECTORY: &str = "/root";
/// The variable with folders of libraries.
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";
/// The name of a program that has none of its own: one whose path ends with `/`.
const UNNAMED: &str = "program";
/// What a CPU whose tick can stop needs: a second one, a model with a stable clock, and that the kernel
/// does nothing else on it.
const NOHZ_CPUS: &str = "2";
const NOHZ_CPU: &str = "max,-rdrand,-rdseed";
const NOHZ_PARAMETERS: &str = "nohz_full=1 isolcpus=1 rcu_nocbs=1";

/// A program to run on some kernels. Relative paths belong to the current directory, and to `/root`
/// in the guest.
#[derive(Debug, Clone, Default)]
pub struct ProgramRequest {
    /// The kernels.
    pub kernels: Vec<String>,
    /// The command line.
    pub run: Vec<String>,
    /// Programs that it starts.
    pub programs: Vec<String>,
    /// Files and folders of this machine, and their paths in the guest, if these differ.
    pub files: Vec<(String, Option<String>)>,
    /// Environment variables.
    pub env: Vec<(String, String)>,
    /// Exit codes that are no failure; none: only 0.
    pub exit: Vec<u8>,
    /// The longest run time in the guest: `60s`.
    pub limit: Option<String>,
    /// The variable `LD_LIBRARY_PATH` of this machine, and the current folder, whose libraries are below
    /// `/root` in the guest.
    pub library_path: Option<(String, PathBuf)>,
    /// Whether the command is run once on this machine, and what it uses is packed, too.
    pub is_observed: bool,
    /// Whether CPU 1 of the guest is one whose tick can stop.
    pub has_nohz_cpu: bool,
}

impl Experiment {
    /// The experiment of one program.
    ///
    /// # Errors
    /// An entry is invalid.
    pub fn of_program(request: &ProgramRequest) -> Result<Self, Error> {
        let invalid =
            |why: EntryError| Source::new(NAME, "").refuse(NOWHERE, why.to_string());
        let table = program_table(request, NAME).map_err(invalid)?;
        Self::from_table(Source::new(NAME, ""), table)
    }
}

/// The table of one program, in an experiment of that name.
pub(crate) fn program_table(
    request: &ProgramRequest,
    experiment: &str,
) -> Result<Table, EntryError> {
    let kernels = list::<KernelName>(&request.kernels)?;
    let program = program(request)?;
    let (machine, boot) = match request.has_nohz_cpu {
        true => nohz_guest()?,
        false => Default::default(),
    };
    let workload = WorkloadRow {
        name: spanned(name(request).parse()?),
        noise: None,
        ticks: None,
        calls: None,
        nohz: None,
        slices: None,
        latency: None,
        program: Some(program),
        trace: None,
        boots: None,
        background: Vec::new(),
    };
    Ok(Table {
        name: spanned(experiment.parse::<Name>()?),
        about: Line::default(),
        kernels: kernels.ok_or_else(|| EntryError::Kernel(String::new()))?,
        mode: ModeWord::default(),
        repeats: Repeats::of::<1>(),
        phases: PhaseCount::of::<1>(),
        variations: None,
        machine,
        boot: vec![spanned(boot)],
        setting: vec![spanned(SettingRow::default())],
        workload: vec![spanned(workload)],
        include: Vec::new(),
        step: Vec::new(),
        limits: Pairs::default(),
        limit: Vec::new(),
        baseline: Vec::new(),
    })
}

/// A guest with a CPU whose tick can stop, as in the experiment `nohz-entry`.
fn nohz_guest() -> Result<(MachineRow, BootRow), EntryError> {
    let machine = MachineRow {
        cpu: Some(spanned(NOHZ_CPU.parse()?)),
        cpus: Some(NOHZ_CPUS.parse()?),
        ..MachineRow::default()
    };
    let boot = BootRow { append: NOHZ_PARAMETERS.parse()?, ..BootRow::default() };
    Ok((machine, boot))
}

fn program(request: &ProgramRequest) -> Result<ProgramRow, EntryError> {
    let exit = request.exit.iter().map(u8::to_string).collect::<Vec<_>>();
    let variable = |(name, value): &(String, String)| {
        Ok((spanned(name.parse::<Variable>()?), value.parse::<Word>()?))
    };
    let inherited = library_path(request).map(|value| (LIBRARY_PATH.to_owned(), value));
    let env = request.env.iter().chain(&inherited).map(variable);
    Ok(ProgramRow {
        run: list::<Word>(&request.run)?.ok_or(EntryError::NoCommand)?,
        directory: DIRECTORY.parse()?,
        env: Pairs::new(env.collect::<Result<_, EntryError>>()?),
        exit: list::<Number<0, 255>>(&exit)?,
        unit: None,
        limit: request.limit.as_deref().map(str::parse::<Length>).transpose()?,
        programs: list::<Word>(&request.programs)?,
        files: request.files.iter().map(file).collect::<Result<_, EntryError>>()?,
        observe: Some(spanned(request.is_observed)),
        service: Vec::new(),
    })
}

impl ProgramRequest {
    /// The inherited folders of libraries, and the current one, unless others are given.
    pub fn inherits_library_path(&self) -> Option<&(String, PathBuf)> {
        let is_given = self.env.iter().any(|(name, _)| name == LIBRARY_PATH);
        self.library_path.as_ref().filter(|_| !is_given)
    }
}

/// The inherited folders of libraries, as they are in the guest, unless others are given.
fn library_path(request: &ProgramRequest) -> Option<String> {
    let (value, folder) = request.inherits_library_path()?;
    let guest = |entry: &str| match Path::new(entry).strip_prefix(folder) {
        Ok(rest) => {
            GuestPath::resolve(DIRECTORY, &rest.to_string_lossy()).as_str().to_owned()
        }
        Err(_) => entry.to_owned(),
    };
    Some(value.split(':').map(guest).collect::<Vec<_>>().join(":"))
}

fn file((host, guest): &(String, Option<String>)) -> Result<FileRow, EntryError> {
    let path = match guest {
        Some(guest) => guest.parse::<GuestPath>()?,
        None => GuestPath::resolve(DIRECTORY, host),
    };
    Ok(FileRow {
        path: spanned(path),
        text: None,
        size: None,
        from: Some(host.parse()?),
        directory: false,
        mode: None,
    })
}

/// The name of the cell: that of the program, in one word.
fn name(request: &ProgramRequest) -> String {
    let program = request.run.first().map_or("", String::as_str);
    let name = program.rsplit('/').next().unwrap_or_default();
    let is_part = |c: char| !c.is_whitespace() && !c.is_control();
    let name: String = name.chars().filter(|c| is_part(*c)).collect();
    if name.is_empty() { UNNAMED.to_owned() } else { name }
}

fn list<T: FromStr<Err = EntryError>>(
    texts: &[String],
) -> Result<Option<List<T>>, EntryError> {
    let entries = texts.iter().map(|text| text.parse().map(spanned));
    Ok(List::new(entries.collect::<Result<_, EntryError>>()?))
}

fn spanned<T>(value: T) -> Spanned<T> {
    Spanned::new(NOWHERE, value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that inherited folders of libraries are those of the guest, unless others are given.
    #[test]
    fn inherited_libraries() {
        let mut request = ProgramRequest {
            library_path: Some((
                "/home/me/p/lib:/opt/lib:rel".to_owned(),
                "/home/me/p".into(),
            )),
            ..Default::default()
        };
        assert_eq!(library_path(&request).as_deref(), Some("/root/lib:/opt/lib:rel"));
        request.env.push((LIBRARY_PATH.to_owned(), "/other".to_owned()));
        assert_eq!(library_path(&request), None);
    }

    /// Check that a guest with a CPU whose tick can stop is that of `nohz-entry`, and that its keys can
    /// be changed.
    #[test]
    fn guests_of_nohz() {
        let request = ProgramRequest {
            kernels: vec!["debian:6.12-cloud".to_owned()],
            run: vec!["./tif_test".to_owned()],
            has_nohz_cpu: true,
            ..Default::default()
        };
        let own = Experiment::of_program(&request).unwrap();
        let other = Experiment::builtin("nohz-entry").unwrap();
        let (own, other) = (&own.cells()[0], &other.cells()[0]);
        assert_eq!((own.machine.cpus, &own.machine.cpu), (2, &other.machine.cpu));
        assert_eq!((own.machine.cpus, &own.params), (other.machine.cpus, &other.params));
        let changes = ["cpus=4", "append=audit=0"].map(str::to_owned);
        let changed = Experiment::of_program(&request).unwrap();
        let changed = changed.with_changes(&changes).unwrap();
        let changed = &changed.cells()[0];
        assert_eq!((changed.machine.cpus, &changed.machine.cpu), (4, &other.machine.cpu));
        assert_eq!(changed.params, format!("{} audit=0", other.params));
    }
}
