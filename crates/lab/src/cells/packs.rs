//! The requests of plans, with the files of their programs; those of one program are packed once.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use agent::Task;
use experiments::{CellPlan, ProgramFiles};
use recording::{ProgramSpec, Spec};

use crate::error::Error;
use crate::guest::request::Request;
use crate::pack_error::PackError;
use crate::packing::{self, Host, PATH, Packed};

/// The request of a plan, and the files of its program.
#[derive(Debug, Clone)]
pub(crate) struct Requested {
    pub(crate) request: Request,
    pub(crate) packed: Option<Packed>,
}

/// A program, and its files or why they cannot be packed.
type Pack<'a> = (&'a ProgramSpec, &'a ProgramFiles, Result<Packed, Arc<PackError>>);

/// The files of the programs so far.
#[derive(Default)]
struct Packs<'a>(Vec<Pack<'a>>);

/// The requests of plans.
pub(crate) struct Requests {
    pub(crate) requests: Vec<Result<Requested, Arc<Error>>>,
    /// What a user has to know of the programs.
    pub(crate) remarks: Vec<String>,
}

/// The requests of all plans. Plans whose program cannot be packed have the reason, unless that are
/// all.
///
/// # Errors
/// The first reason, if no plan has a request; `Error::Interrupted`.
pub(crate) fn requests(
    plans: &[CellPlan],
    host: &mut Host<'_>,
) -> Result<Requests, Error> {
    let mut packs = Packs::default();
    let mut requests: Vec<Result<Requested, Error>> =
        plans.iter().map(|plan| packs.request(plan, host)).collect();
    if host.stop.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    if requests.iter().all(Result::is_err) {
        if let Some(Err(first)) = requests.drain(..).next() {
            return Err(first);
        }
    }
    let requests = requests.into_iter().map(|request| request.map_err(Arc::new));
    Ok(Requests { requests: requests.collect(), remarks: packs.remarks() })
}

impl<'a> Packs<'a> {
    fn remarks(&self) -> Vec<String> {
        let packed = self.0.iter().filter_map(|(_, _, packed)| packed.as_ref().ok());
        packed.flat_map(|packed| packed.remarks.iter().cloned()).collect()
    }

    fn request(
        &mut self,
        plan: &'a CellPlan,
        host: &mut Host<'_>,
    ) -> Result<Requested, Error> {
        let mut request = Request::from(plan);
        let (Spec::Program(spec), Some(files)) = (&plan.spec, &plan.files) else {
            return Ok(Requested { request, packed: None });
        };
        let failed = |why| Error::Pack(plan.name.clone(), why);
        let packed = self.pack(spec, files, host).map_err(failed)?;
        let memory = packed.memory_mib(plan.machine.memory_mib, files.grows);
        request.machine.memory_mib =
            memory.map_err(|why| Error::Pack(plan.name.clone(), Arc::new(why)))?;
        if let Task::Measure(Spec::Program(spec)) = &mut request.task {
            if let Some(path) = &packed.path {
                spec.environment.retain(|(name, _)| name != PATH);
                spec.environment.insert(0, (PATH.to_owned(), path.clone()));
            }
            if let Some(directory) = &packed.directory {
                spec.directory.clone_from(directory);
            }
        }
        Ok(Requested { request, packed: Some(packed) })
    }

    fn pack(
        &mut self,
        spec: &'a ProgramSpec,
        files: &'a ProgramFiles,
        host: &mut Host<'_>,
    ) -> Result<Packed, Arc<PackError>> {
        let same = |(own, with, _): &&(_, _, _)| *own == spec && *with == files;
        if let Some((_, _, packed)) = self.0.iter().find(same) {
            return packed.clone();
        }
        let packed = packing::pack(spec, files, host).map_err(Arc::new);
        self.0.push((spec, files, packed.clone()));
        packed
    }
}
