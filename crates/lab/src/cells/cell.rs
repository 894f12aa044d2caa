//! One cell: its parts, its identity, and its run.
//!
//! A cell's identity is the SHA-256 of everything that its result depends on: the kernel's image,
//! the initramfs (the agent, its order, and the files of a program), the counter, QEMU's version and
//! arguments, the kernel's command line among them. Nothing of the host is in it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use agent::{Answer, DecodeError, Order, Task, order};
use kernels::{Architecture, Kernel, checksum};
use recording::{HostUse, Spec};
use serde::Serialize;
use units::Nanos;

use crate::cells::lab::{Emulator, Lab};
use crate::cells::run::Run;
use crate::error::{Error, failed};
use crate::guest::boot::{Deadlines, End, Ended, FILE_BYTES_MAX, Guest, NO_ANSWER};
use crate::guest::command_line::{self as line, Engine};
use crate::guest::console::{self, Console};
use crate::guest::exit::{self, Exit};
use crate::guest::initramfs::{self, Config};
use crate::guest::request::Request;
use crate::packing::Packed;
use crate::parts::Parts;

/// The longest answer of an agent.
const ANSWER_BYTES_MAX: u64 = FILE_BYTES_MAX / 2;
/// A kernel without these options panics as with a damaged agent.
const NOTHING_TO_START: &str = " (it cannot start the agent if it was built without \
    CONFIG_BLK_DEV_INITRD or CONFIG_BINFMT_ELF: put its configuration beside the image, \
    config-NAME beside vmlinuz-NAME, and the lab says which)";
/// QEMU needs a second or two of CPU time for a guest's second, five on a slow or busy host.
const WORK_PER_SECOND: u32 = 60;

/// A cell that is ready to run.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    pub(crate) request: Request,
    /// Which repeat of the same cell it is, from 1.
    pub(crate) repeat: u32,
    pub(crate) kernel: Kernel,
    pub(crate) engine: Engine,
    pub(crate) counts: bool,
    /// Why an exact cell is not counted: QEMU's message.
    pub(crate) why_uncounted: Option<String>,
    /// Why the host's load may affect its result, if it does: QEMU's threads cannot be ordered.
    pub(crate) races: Option<String>,
    exit: Exit,
    /// The hash of the agent's archive, with the order.
    initramfs_sha256: String,
    order: Order,
    /// Whether a guest that does not come up is booted once more with all messages.
    logs_failure: bool,
    /// Programs beside the agent, by their names.
    files: Vec<(String, Vec<u8>)>,
    /// The files of a measured program.
    pub(crate) packed: Option<Packed>,
    arguments: Vec<String>,
    /// The inputs that the result depends on, as JSON.
    pub(crate) inputs: String,
    /// Its hash, in hexadecimal.
    pub(crate) identity: String,
}

#[derive(Serialize)]
struct Inputs<'a> {
    kernel: &'a str,
    kernel_sha256: &'a str,
    initramfs_sha256: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    files_sha256: Option<&'a str>,
    counter_sha256: Option<&'a String>,
    qemu: &'a str,
    arguments: &'a [String],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    races: bool,
    order: &'a Order,
}

impl Ready {
    /// Makes a request ready for that kernel, with the files of its program.
    pub(crate) fn new(
        request: Request,
        packed: Option<&Packed>,
        kernel: &Kernel,
        engine: Engine,
        lab: &Lab,
    ) -> Result<Self, Error> {
        let Lab { parts, thread_ordering, .. } = lab;
        let request = on_machine(request, kernel.architecture);
        let is_exact = engine == Engine::Counted;
        let uncounted = lab.emulator(kernel.architecture)?.uncounted();
        let counts = is_exact && uncounted.is_none();
        let why_uncounted = uncounted.filter(|_| is_exact).map(str::to_owned);
        let races = (is_exact && request.machine.cpus > 1)
            .then(|| thread_ordering.refusal())
            .flatten();
        let order = order(&request);
        let config = kernel.configuration()?;
        let exit = exit::choose(kernel.architecture, config.as_ref(), &request)
            .map_err(|cause| Error::NoExit(kernel.spec.clone(), cause))?;
        let ready = Self {
            request,
            repeat: 1,
            kernel: kernel.clone(),
            engine,
            counts,
            why_uncounted,
            races,
            exit,
            initramfs_sha256: checksum(&initrd(kernel, &order, &[], parts)?),
            order,
            logs_failure: true,
            files: Vec::new(),
            packed: packed.cloned(),
            arguments: Vec::new(),
            inputs: String::new(),
            identity: String::new(),
        };
        ready.identified(lab)
    }

    /// The same with the arguments of its request, and the identity that follows from them.
    fn identified(mut self, lab: &Lab) -> Result<Self, Error> {
        let arguments = line::qemu(&self.request, self.engine, self.exit, self.counts);
        let inputs = Inputs {
            kernel: &self.kernel.release,
            kernel_sha256: &self.kernel.sha256,
            initramfs_sha256: &self.initramfs_sha256,
            files_sha256: self.packed.as_ref().map(|packed| packed.sha256.as_str()),
            counter_sha256: self.counts.then_some(&lab.parts.counter_sha256),
            qemu: &self.emulator(lab)?.qemu.version,
            arguments: &arguments,
            races: self.races.is_some(),
            order: &self.order,
        };
        self.inputs = serde_json::to_string_pretty(&inputs).map_err(Error::Inputs)?;
        self.identity = checksum(self.inputs.as_bytes());
        self.arguments = arguments;
        Ok(self)
    }

    /// The same, as that repeat of its cell.
    pub(crate) fn repeated(self, repeat: u32) -> Self {
        Self { repeat, ..self }
    }

    /// The variation of that number of the same cell; this is the first one.
    pub(crate) fn varied(&self, number: u32, lab: &Lab) -> Result<Self, Error> {
        // The order to the agent is the same.
        Self { request: self.request.varied(number), ..self.clone() }.identified(lab)
    }

    /// The same without the counter.
    pub(crate) fn uncounted(self) -> Self {
        let arguments = line::qemu(&self.request, self.engine, self.exit, false);
        Self { arguments, counts: false, ..self }
    }

    /// The same, without a second boot if the guest does not come up.
    pub(crate) fn booted_once(self) -> Self {
        Self { logs_failure: false, ..self }
    }

    /// The same with programs for its task. They are no part of the identity:
    /// their results are not cached.
    pub(crate) fn with_files(self, files: Vec<(String, Vec<u8>)>) -> Self {
        Self { files, ..self }
    }

    fn emulator<'a>(&self, lab: &'a Lab) -> Result<&'a Emulator, Error> {
        lab.emulator(self.kernel.architecture)
    }

    /// Its name in the cache.
    pub(crate) fn key(&self) -> String {
        match self.repeat {
            1 => self.identity.clone(),
            repeat => format!("{}-{repeat}", self.identity),
        }
    }

    /// Boots the guest in `folder`; `symbols` has its kernel's functions, if it is counted.
    pub(crate) fn boot(
        &self,
        folder: &Path,
        symbols: &str,
        lab: &Lab,
        run: &Run<'_>,
    ) -> Result<Ended, Error> {
        let initrd = initrd(&self.kernel, &self.order, &self.files, &lab.parts)?;
        self.populate(folder, &initrd, symbols, &lab.parts).map_err(failed(folder))?;
        let deadlines = self.deadlines(run.deadline);
        let slot = self.may_race().then(|| lab.thread_ordering.take()).flatten();
        let cpu = slot.as_ref().map(|slot| slot.cpu);
        let qemu = &self.emulator(lab)?.qemu;
        let guest = Guest::start(qemu, &self.arguments, folder, cpu)?;
        let ended = match guest.run(deadlines, run.stop) {
            End::Off(host) => judge(folder, self.request.machine.memory_mib, host),
            End::Overdue(why) => Ended::Lost(with_console(why, folder)),
            End::Failed(why) => return Ok(Ended::Lost(with_console(why, folder))),
            End::Stopped => Ended::Stopped,
        };
        match ended {
            Ended::Lost(why) if self.logs_failure && !has_greeted(folder) => {
                self.boot_for_log(&why, folder, lab, run)
            }
            ended @ (Ended::Off(_) | Ended::Lost(_) | Ended::Stopped) => Ok(ended),
        }
    }

    /// Boots a guest whose kernel did not come up once more, with all kernel messages; its
    /// console replaces the first one.
    fn boot_for_log(
        &self,
        why: &str,
        folder: &Path,
        lab: &Lab,
        run: &Run<'_>,
    ) -> Result<Ended, Error> {
        let place = lab.cache.workplace()?;
        let initrd = initrd(&self.kernel, &self.order, &self.files, &lab.parts)?;
        let loud = self.clone().uncounted();
        loud.populate(place.path(), &initrd, "", &lab.parts)
            .map_err(failed(place.path()))?;
        let arguments: Vec<String> =
            loud.arguments.iter().map(|word| line::loud(word)).collect();
        let qemu = &self.emulator(lab)?.qemu;
        let guest = Guest::start(qemu, &arguments, place.path(), None)?;
        let guest = guest.until(console::HALTED);
        if guest.run(loud.deadlines(run.deadline), run.stop) == End::Stopped {
            return Ok(Ended::Stopped);
        }
        let log = place.path().join(line::CONSOLE);
        fs::copy(&log, folder.join(line::CONSOLE)).map_err(failed(&log))?;
        let said = Console::read(place.path()).boot_log(has_greeted(place.path()));
        let hint = self.hint(why);
        Ok(Ended::Lost(format!("{why}{hint}; booted again without 'quiet', {said}")))
    }

    /// The hint for a kernel without a configuration that found no program to start; `kernels` has
    /// checked the others.
    fn hint(&self, why: &str) -> &'static str {
        let may_lack = self.kernel.config.is_none() && why.contains(console::NO_INIT);
        if may_lack { NOTHING_TO_START } else { "" }
    }

    /// Whether the order of QEMU's threads may affect the guest: with several CPUs.
    fn may_race(&self) -> bool {
        self.engine == Engine::Counted && self.request.machine.cpus > 1
    }

    fn populate(
        &self,
        folder: &Path,
        initrd: &[u8],
        symbols: &str,
        parts: &Parts,
    ) -> io::Result<()> {
        let mut file = File::create(folder.join(line::INITRD))?;
        file.write_all(initrd)?;
        if let Some(packed) = &self.packed {
            file.write_all(&packed.archive)?;
        }
        symlink(&self.kernel.image, folder.join(line::KERNEL))?;
        if self.counts {
            symlink(&parts.counter, folder.join(line::COUNTER))?;
            fs::write(folder.join(line::SYMBOLS), symbols)?;
        }
        Ok(())
    }

    fn deadlines(&self, each: Duration) -> Deadlines {
        let asked = match &self.request.task {
            Task::Measure(spec) => spec.duration().unwrap_or(Nanos::ZERO),
            Task::Symbols | Task::Program(_) => Nanos::ZERO,
        };
        let work = each + Duration::from(asked).saturating_mul(WORK_PER_SECOND);
        let missing = match &self.request.task {
            Task::Measure(Spec::Program(_)) => "the program and its services did not end",
            Task::Measure(_) | Task::Symbols | Task::Program(_) => NO_ANSWER,
        };
        Deadlines { boot: each, work, leave: each, missing }
    }
}

/// The request for a guest of that architecture.
fn on_machine(request: Request, architecture: Architecture) -> Request {
    match architecture {
        Architecture::X86_64 => request,
        Architecture::Arm64 => Request { machine: request.machine.of_arm64(), ..request },
    }
}

/// The guest's first file system. It is some megabytes, so that it is built for each boot
/// rather than stored for each cell.
fn initrd(
    kernel: &Kernel,
    order: &Order,
    files: &[(String, Vec<u8>)],
    parts: &Parts,
) -> Result<Vec<u8>, Error> {
    let config = kernel.config.as_deref().map(read_config).transpose()?;
    let release = &kernel.release;
    let config = config.as_deref().map(|text| Config { release, text });
    let agent = parts.agent(kernel.architecture)?;
    initramfs::build(agent, order, files, config.as_ref()).map_err(Error::Initramfs)
}

/// The order to the agent.
fn order(request: &Request) -> Order {
    Order {
        version: order::VERSION,
        settings: request.settings.clone(),
        services: request.services.clone(),
        environment: request.environment.clone(),
        background: request.background.clone(),
        task: request.task.clone(),
        trace: request.trace,
        answer_bytes_max: ANSWER_BYTES_MAX,
    }
}

fn read_config(file: &Path) -> Result<Vec<u8>, Error> {
    fs::read(file).map_err(|cause| Error::Read(file.to_owned(), cause))
}

/// Whether the agent was started in the boot in that folder.
fn has_greeted(folder: &Path) -> bool {
    fs::metadata(folder.join(line::ANSWER)).is_ok_and(|file| file.len() > 0)
}

/// The outcome of a guest, with that much memory, that has powered off by itself after its process
/// used that.
fn judge(folder: &Path, memory_mib: u32, host: HostUse) -> Ended {
    if let Some(why) = Console::read(folder).not_unpacked() {
        return Ended::Lost(format!(
            "its kernel could not create all files of the guest ({why}): {memory_mib} MiB of \
             memory are too little; hint: --memory, or memory_mib in an experiment"
        ));
    }
    let bytes = fs::read(folder.join(line::ANSWER)).unwrap_or_default();
    match Answer::from_bytes(&bytes) {
        Ok(Answer::Recording(_) | Answer::Symbols(_) | Answer::Output(_)) => {
            Ended::Off(host)
        }
        Ok(Answer::Refused(why)) => {
            Ended::Lost(format!("the agent refused its order: {why}"))
        }
        Ok(Answer::Failed(why)) => Ended::Lost(format!("the agent failed: {why}")),
        Err(broken) => Ended::Lost(no_answer(&broken, folder, memory_mib)),
    }
}

fn no_answer(broken: &DecodeError, folder: &Path, memory_mib: u32) -> String {
    let console = Console::read(folder);
    match (console.panic(), console.last_line(), broken) {
        (Some(panic), _, _) => format!("its kernel panicked: {panic}"),
        (None, None, DecodeError::Empty) => format!(
            "the guest ended before its kernel printed a message: it is no kernel that boots \
             here, or has too little memory ({memory_mib} MiB)"
        ),
        (_, Some(line), _) => with_last_line(&broken.to_string(), line),
        _ => broken.to_string(),
    }
}

/// A message and the last line of the console, if there is one.
fn with_console(why: String, folder: &Path) -> String {
    match Console::read(folder).last_line() {
        Some(line) => with_last_line(&why, line),
        None => why,
    }
}

fn with_last_line(why: &str, line: &str) -> String {
    format!("{why}; the last line of its console: {line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The message for a guest with that console and that answer.
    fn lost(console: &str, answer: &[u8]) -> String {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(line::CONSOLE), console).unwrap();
        fs::write(folder.path().join(line::ANSWER), answer).unwrap();
        match judge(folder.path(), 64, HostUse::default()) {
            Ended::Lost(why) => why,
            ended @ (Ended::Off(_) | Ended::Stopped) => panic!("{ended:?}"),
        }
    }

    /// Check that a guest without any output is distinguished from one that broke off, and
    /// that an empty console is not mentioned.
    #[test]
    fn guests_without_an_answer() {
        assert_eq!(
            lost("", b""),
            "the guest ended before its kernel printed a message: it is no kernel that boots \
             here, or has too little memory (64 MiB)"
        );
        let panic = "[ 1.2] Kernel panic - not syncing: no init\n";
        assert_eq!(lost(panic, b""), "its kernel panicked: no init");
        let why = "the guest sent no answer at all; the last line of its console: bye";
        assert_eq!(lost("bye\n", b""), why);
        assert!(!lost("", b"x").contains("console"));
        let full = "[    0.9] Initramfs unpacking failed: write error\n";
        let why = "its kernel could not create all files of the guest (write error): 64 MiB of ";
        assert!(lost(full, b"").starts_with(why));
    }
}
