//! Runs plans: finds their kernels, takes from the shelf what is there, boots the rest.

use std::collections::BTreeMap;
use std::fs;

use agent::{Answer as Sent, Symbols};
use recording::{Cell, Code, Doubt, Ending, Mode};

use crate::accelerator;
use crate::boot::Ended;
use crate::cell::Ready;
use crate::command_line::{ANSWER, Engine};
use crate::crew::Run;
use crate::error::{Error, Kind};
use crate::kernel::{Kernel, Kernels};
use crate::places::{Cache, Parts, failed};
use crate::plan::Plan;
use crate::qemu::Qemu;
use crate::shelf::{self, Kept, Shelf};

/// A lab: what cells are run with, and where they are kept.
pub struct Lab {
    pub(crate) cache: Cache,
    kernels: Kernels,
    pub(crate) qemu: Qemu,
    pub(crate) parts: Parts,
    shelf: Shelf,
}

/// A kernel that was found for each spec.
type Found = BTreeMap<String, Kernel>;

impl Lab {
    /// The lab of this machine and user.
    ///
    /// # Errors
    /// `Kind::Qemu`, `Kind::Parts` or `Kind::Cache`, each with what would help.
    pub fn open(cache: Cache) -> Result<Self, Error> {
        let (qemu, parts) = (Qemu::find()?, Parts::find()?);
        cache.sweep();
        let shelf = Shelf::new(&cache)?;
        let kernels = Kernels::new(&cache.folder);
        Ok(Self { cache, kernels, qemu, parts, shelf })
    }

    /// The QEMU that runs the cells.
    pub fn qemu(&self) -> &Qemu {
        &self.qemu
    }

    /// Finds the kernels of all plans, and refuses what this QEMU cannot do.
    pub(crate) fn ready(
        &self,
        plans: &[Plan],
        run: &Run<'_>,
        say: &mut dyn FnMut(&str),
    ) -> Result<Vec<Ready>, Error> {
        let mut found = Found::new();
        for plan in plans {
            self.qemu.refuse(plan.mode, plan.machine.cpus)?;
            if !found.contains_key(&plan.kernel) {
                let kernel = self.kernels.find(&plan.kernel, false, say)?;
                found.insert(plan.kernel.clone(), kernel);
            }
        }
        if !self.qemu.can_count() && plans.iter().any(|plan| plan.mode == Mode::Exact) {
            let version = &self.qemu.version;
            say(&format!(
                "QEMU {version} cannot count instructions by function; QEMU 10 can"
            ));
        }
        let mut ready = Vec::with_capacity(plans.len());
        for plan in plans {
            let Some(kernel) = found.get(&plan.kernel) else { continue };
            let engine = self.engine(plan, kernel, run, say)?;
            ready.push(Ready::new(plan, kernel, engine, &self.qemu, &self.parts)?);
        }
        Ok(ready)
    }

    fn engine(
        &self,
        plan: &Plan,
        kernel: &Kernel,
        run: &Run<'_>,
        say: &mut dyn FnMut(&str),
    ) -> Result<Engine, Error> {
        if plan.mode == Mode::Exact {
            return Ok(Engine::Counted);
        }
        let boots = |engine| {
            say("proving /dev/kvm by booting with it");
            // A plain boot: what this cell asks for may not be able to boot at all.
            let plan = Plan { mode: Mode::Timed, ..Plan::of_symbols(&kernel.spec) };
            let ready = Ready::new(&plan, kernel, engine, &self.qemu, &self.parts)?;
            let place = self.cache.workplace()?;
            let run = Run { deadline: accelerator::DEADLINE.min(run.deadline), ..*run };
            ready.boot(place.path(), "", self, &run)
        };
        accelerator::prove(&self.cache, &self.qemu, boots)
    }

    /// Runs one cell, or takes it from the shelf; none where that was ended early.
    pub(crate) fn cell(
        &self,
        ready: &Ready,
        run: &Run<'_>,
    ) -> Result<Option<Cell>, Error> {
        let key = ready.key();
        let Some(_lock) = self.shelf.lock(&key, run.stop)? else { return Ok(None) };
        let keeps = ready.plan.mode == Mode::Exact;
        let kept = self.shelf.find(&key).filter(|_| keeps && !run.fresh);
        if let Some(answer) = kept {
            return Ok(Some(told(ready, true, Ending::Done(Box::new(answer)))));
        }
        let symbols = match ready.counts {
            true => match self.symbols(&ready.kernel, run)? {
                Ok(symbols) => symbols,
                Err(Ended::Stopped) => return Ok(None),
                Err(ended) => return Ok(Some(unnamed(ready, &self.shelf, &ended)?)),
            },
            false => String::new(),
        };
        let place = self.cache.workplace()?;
        let ended = ready.boot(place.path(), &symbols, self, run)?;
        let ending = match ended {
            Ended::Stopped => return Ok(None),
            Ended::Lost(why) => {
                let console = self.shelf.keep_lost(&key, place.path())?;
                Ending::Lost { why, console }
            }
            Ended::Off => {
                let mut answer = shelf::read(place.path())?;
                let doubts = &mut answer.recording.doubts;
                if keeps && self.shelf.keep(ready, place.path())? == Kept::Differs {
                    doubts.push(Doubt::new(Code::NotRepeated, DIFFERS));
                }
                if ready.engine == Engine::Emulated {
                    doubts.push(Doubt::new(Code::Emulated, EMULATED));
                }
                Ending::Done(Box::new(answer))
            }
        };
        Ok(Some(told(ready, false, ending)))
    }

    /// The names of a kernel's functions: kept, or asked of the kernel itself in a boot
    /// of its own.
    fn symbols(
        &self,
        kernel: &Kernel,
        run: &Run<'_>,
    ) -> Result<Result<String, Ended>, Error> {
        let Some(_lock) = self.shelf.lock(&kernel.sha256, run.stop)? else {
            return Ok(Err(Ended::Stopped));
        };
        let file = self.cache.folder("symbols")?.join(&kernel.sha256);
        let text =
            |symbols: &Symbols| symbols.text().map_err(|error| failed(&file, &error));
        if let Ok(deflated) = fs::read(&file) {
            return text(&Symbols::from_deflated(deflated)).map(Ok);
        }
        let plan = Plan::of_symbols(&kernel.spec);
        let ready = Ready::new(&plan, kernel, Engine::Counted, &self.qemu, &self.parts)?
            .uncounted();
        let place = self.cache.workplace()?;
        match ready.boot(place.path(), "", self, run)? {
            Ended::Off => {}
            ended => return Ok(Err(ended)),
        }
        let bytes = fs::read(place.path().join(ANSWER)).map_err(|e| failed(&file, &e))?;
        match Sent::from_bytes(&bytes) {
            Ok(Sent::Symbols(symbols)) => {
                let part = place.path().join("symbols.deflated");
                fs::write(&part, symbols.deflated())
                    .and_then(|()| fs::rename(&part, &file))
                    .map_err(|error| failed(&file, &error))?;
                text(&symbols).map(Ok)
            }
            _ => Ok(Err(Ended::Lost("it sent no symbols".to_owned()))),
        }
    }

    /// The kept result of the one cell whose identity begins so.
    ///
    /// # Errors
    /// `Kind::Experiment` where there is none, or more than one.
    pub fn kept(&self, prefix: &str) -> Result<Cell, Error> {
        let keys = self.shelf.beginning(prefix);
        let [key] = keys.as_slice() else {
            let text = match keys.len() {
                0 => format!("no cell that is kept is called '{prefix}'"),
                many => format!(
                    "'{prefix}' is the beginning of {many} cells: write more of it"
                ),
            };
            return Err(Error::new(Kind::Experiment, text));
        };
        let gone = || Error::new(Kind::Cache, format!("the result of {key} is damaged"));
        let answer = self.shelf.find(key).ok_or_else(gone)?;
        let kernel = answer.recording.facts.kernel.release.get().cloned();
        Ok(Cell {
            name: prefix.to_owned(),
            asked: String::new(),
            kernel: kernel.unwrap_or_default(),
            machine: String::new(),
            params: String::new(),
            settings: Vec::new(),
            workload: String::new(),
            mode: Mode::Exact,
            repeat: 1,
            identity: key.clone(),
            cached: true,
            ending: Ending::Done(Box::new(answer)),
        })
    }
}

const DIFFERS: &str = "run again, the cell gave another result than the one that was kept: \
                       both are in the cache, and one of the two runs is wrong";
const EMULATED: &str = "QEMU emulated the processor, for KVM is not to be had or hangs here: \
                        lengths of time mean nothing";

/// A cell that was lost before it was booted: its kernel's functions have no names.
fn unnamed(ready: &Ready, shelf: &Shelf, ended: &Ended) -> Result<Cell, Error> {
    let Ended::Lost(why) = ended else {
        return Err(Error::new(Kind::Interrupted, "ended early"));
    };
    let console = shelf.keep_lost(&ready.key(), std::path::Path::new("."))?;
    let why = format!("in the boot that asks the kernel for its symbols: {why}");
    Ok(told(ready, false, Ending::Lost { why, console }))
}

/// A cell as it is told.
fn told(ready: &Ready, cached: bool, ending: Ending) -> Cell {
    let Ready { plan, kernel, identity, .. } = ready;
    let version = kernel.package_version.as_deref();
    let settings = plan.settings.iter().map(|s| format!("{}={}", s.path, s.value));
    Cell {
        name: plan.name.clone(),
        asked: kernel.spec.clone(),
        kernel: match version {
            Some(version) => format!("{} ({version})", kernel.release),
            None => kernel.release.clone(),
        },
        machine: plan.machine.to_string(),
        params: plan.params.clone(),
        settings: settings.collect(),
        workload: plan.workload.clone(),
        mode: plan.mode,
        repeat: plan.repeat,
        identity: identity.clone(),
        cached,
        ending,
    }
}
