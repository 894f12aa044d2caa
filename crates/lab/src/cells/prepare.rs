//! From plans to cells that can run: packs their programs, finds their kernels, and selects the
//! engine that runs their instructions.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use agent::Task;
use experiments::CellPlan;
use itertools::Itertools;
use kernels::{Architecture, BuildSpec, Fetch, Kernel, Kind, Wanted};
use recording::Mode;
use units::chain;

use crate::cells::cell::Ready;
use crate::cells::lab::Lab;
use crate::cells::packs::{self, Requested, Requests};
use crate::cells::run::Run;
use crate::error::Error;
use crate::guest::accelerator;
use crate::guest::command_line::Engine;
use crate::guest::request::{FIRST, Request};
use crate::packing::Host;

/// The kernel of each name, or why there is none.
type Found = BTreeMap<String, Result<Kernel, Arc<kernels::Error>>>;

/// A cell before it runs.
pub(crate) struct Prepared {
    pub(crate) plan: CellPlan,
    /// Which variation of the cell it is, from 1.
    pub(crate) variation: u32,
    /// The cell for its guest, or why its kernel or its program is not available.
    pub(crate) ready: Result<Ready, Arc<Error>>,
}

/// All cells before they run.
pub(crate) struct Preparation {
    pub(crate) prepared: Vec<Prepared>,
    /// What a user has to know of programs that ran on this machine.
    pub(crate) remarks: Vec<String>,
}

impl Prepared {
    /// The same cell as another repeat, if that is all in which the plan differs.
    fn repeated(&self, plan: &CellPlan) -> Option<Self> {
        let same = CellPlan { repeat: plan.repeat, ..self.plan.clone() };
        (same == *plan).then(|| {
            let ready = self.ready.clone().map(|ready| ready.repeated(plan.repeat));
            Self { plan: same, variation: self.variation, ready }
        })
    }

    /// The variation of that number of the same cell; this is the first one.
    pub(crate) fn varied(&self, number: u32, lab: &Lab) -> Result<Self, Error> {
        let plan = self.plan.clone();
        let ready = match &self.ready {
            Ok(ready) if number != self.variation => Ok(ready.varied(number, lab)?),
            ready => ready.clone(),
        };
        Ok(Self { plan, variation: number, ready })
    }
}

/// Where the guests of cells boot, and with them the engines of those in real time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engines {
    OfThisMachine,
    Elsewhere,
}

/// The engine of a mode where it is not known whether KVM works.
pub(crate) fn unproven(mode: Mode) -> Engine {
    match mode {
        Mode::Exact => Engine::Counted,
        Mode::Timed => Engine::Emulated,
    }
}

/// The reason without the cell: several cells that lack one program have one message.
fn reason(error: &Error) -> String {
    let Error::Pack(_, why) = error else { return chain(error) };
    chain(why.as_ref())
}

impl Lab {
    /// Finds the kernels of all plans, and refuses what this QEMU cannot do. The cells of an
    /// unavailable kernel are lost, unless all are. Guests in real time that boot on other machines get
    /// the engine of those (`engines`).
    pub(crate) fn prepare(
        &self,
        plans: &[CellPlan],
        run: &Run<'_>,
        engines: Engines,
        say: &mut dyn FnMut(&str),
    ) -> Result<Preparation, Error> {
        let architectures = self.refuse(plans)?;
        let Requests { requests, remarks } = self.requests(plans, run, say)?;
        let errors = requests.iter().filter_map(|one| one.as_ref().err());
        for error in errors.unique_by(|error| reason(error)) {
            say(&chain(error.as_ref()));
        }
        for architecture in Architecture::ALL {
            let of_it = |(_, own): &(&CellPlan, &Architecture)| **own == architecture;
            let plans = plans.iter().zip(&architectures).filter(of_it);
            let plans: Vec<&CellPlan> = plans.map(|(plan, _)| plan).collect();
            self.probe_counter(&plans, architecture, run)?;
        }
        let found = self.find_kernels(plans, run, say)?;
        let mut prepared: Vec<Prepared> = Vec::with_capacity(plans.len());
        for (plan, requested) in plans.iter().zip(requests) {
            if let Some(again) = prepared.last().and_then(|last| last.repeated(plan)) {
                prepared.push(again);
                continue;
            }
            let ready = match (requested, found.get(&plan.kernel)) {
                (_, None) => continue,
                (Err(error), _) => Err(error),
                (Ok(_), Some(Err(error))) => {
                    Err(Arc::new(Error::Kernel(Arc::clone(error))))
                }
                (Ok(Requested { request, packed }), Some(Ok(kernel))) => {
                    let engine = match engines {
                        Engines::OfThisMachine => {
                            self.engine(plan.mode, kernel, run, say)?
                        }
                        Engines::Elsewhere => unproven(plan.mode),
                    };
                    match Ready::new(request, packed.as_ref(), kernel, engine, self) {
                        Ok(ready) => Ok(ready.repeated(plan.repeat)),
                        Err(error @ Error::NoExit(..)) => Err(Arc::new(error)),
                        Err(error) => return Err(error),
                    }
                }
            };
            prepared.push(Prepared { plan: plan.clone(), variation: FIRST, ready });
        }
        Ok(Preparation { prepared, remarks })
    }

    /// Refuses what the QEMU of a plan cannot do, and programs of this machine in guests of another
    /// architecture; returns the architectures of the plans.
    fn refuse(&self, plans: &[CellPlan]) -> Result<Vec<Architecture>, Error> {
        let of_plan = |plan: &CellPlan| {
            let architecture = self.kernels.architecture(&plan.kernel)?;
            if architecture != Architecture::X86_64 && plan.files.is_some() {
                let (cell, kernel) = (plan.name.clone(), plan.kernel.clone());
                return Err(Error::ForeignProgram(cell, kernel));
            }
            self.emulator(architecture)?.qemu.refuse(plan, architecture)?;
            self.parts.agent(architecture)?;
            Ok(architecture)
        };
        plans.iter().map(of_plan).collect()
    }

    /// Packs the programs of all plans, after the syntax of the kernels' names has been checked: a command
    /// may run for a long time here.
    fn requests(
        &self,
        plans: &[CellPlan],
        run: &Run<'_>,
        say: &mut dyn FnMut(&str),
    ) -> Result<Requests, Error> {
        plans.iter().try_for_each(|plan| self.kernels.check_name(&plan.kernel))?;
        let say = RefCell::new(say);
        let mut look = |wanted: Wanted<'_>| {
            let mut say = |text: &str| (say.borrow_mut())(text);
            let mut fetch = Fetch { fresh: false, stop: run.stop, say: &mut say };
            self.kernels.package_with(wanted, &mut fetch)
        };
        let mut line = |text: &str| (say.borrow_mut())(text);
        packs::requests(
            plans,
            &mut Host { look: &mut look, say: &mut line, stop: run.stop },
        )
    }

    /// Finds the kernels of all plans, after the syntax of all names has been checked.
    fn find_kernels(
        &self,
        plans: &[CellPlan],
        run: &Run<'_>,
        say: &mut dyn FnMut(&str),
    ) -> Result<Found, Error> {
        let names = plans.iter().map(|plan| plan.kernel.as_str()).unique();
        let mut names: VecDeque<&str> = names.collect();
        names.iter().try_for_each(|name| self.kernels.check_name(name))?;
        let mut found = Found::new();
        let (mut lost, mut in_order) = (None, false);
        while let Some(name) = names.pop_front() {
            let mut fetch = Fetch { fresh: false, stop: run.stop, say: &mut *say };
            let kernel = self.kernels.find(name, &mut fetch).map_err(Arc::new);
            if name.starts_with(BuildSpec::PREFIX) && !in_order {
                // The order of builds depends on the objects of the first one.
                let rest = names.make_contiguous();
                names = self.kernels.in_build_order(rest, &mut fetch).into();
                in_order = true;
            }
            if let Err(error) = &kernel {
                match error.kind() {
                    Kind::Unavailable | Kind::Kernel | Kind::Build => {
                        say(&chain(error.as_ref()))
                    }
                    Kind::Name | Kind::Cache | Kind::Interrupted => {
                        return Err(Error::Kernel(Arc::clone(error)));
                    }
                }
                lost.get_or_insert_with(|| Arc::clone(error));
            }
            found.insert(name.to_owned(), kernel);
        }
        match lost.filter(|_| found.values().all(Result::is_err)) {
            Some(error) => Err(Error::Kernel(error)),
            None => Ok(found),
        }
    }

    /// The engine of a mode on this machine.
    pub(crate) fn engine(
        &self,
        mode: Mode,
        kernel: &Kernel,
        run: &Run<'_>,
        say: &mut dyn FnMut(&str),
    ) -> Result<Engine, Error> {
        let is_foreign = kernel.architecture.machine() != std::env::consts::ARCH;
        if mode == Mode::Exact || is_foreign {
            return Ok(unproven(mode));
        }
        let qemu = &self.emulator(kernel.architecture)?.qemu;
        let boots = |engine| {
            say("testing /dev/kvm with a boot");
            // A plain boot: one with this cell's parameters may not work at all.
            let request = Request { mode: Mode::Timed, ..Request::new(Task::Symbols) };
            let ready = Ready::new(request, None, kernel, engine, self)?.booted_once();
            let place = self.cache.workplace()?;
            let run = Run { deadline: accelerator::DEADLINE.min(run.deadline), ..*run };
            ready.boot(place.path(), "", self, &run)
        };
        accelerator::prove(&self.cache, qemu, boots)
    }
}
