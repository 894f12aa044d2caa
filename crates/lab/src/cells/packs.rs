//! The requests of plans, with the files of their programs; those of one program are packed once.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use agent::Task;
use experiments::{CellPlan, ProgramFiles, usual_environment};
use recording::{ProgramSpec, Spec};
use units::Nanos;

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

/// Programs, and their files or why they cannot be packed.
type Pack<'a> = (ProgramSpec, &'a ProgramFiles, Result<Packed, Arc<PackError>>);

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

/// All programs of a plan, as one specification: a measured program with its services, and the services that
/// run beside a measurement. Without a measured program, the first service is the command. `None` without any.
fn programs(plan: &CellPlan) -> Option<ProgramSpec> {
    if let Spec::Program(spec) = &plan.spec {
        let mut spec = spec.clone();
        spec.services.extend(plan.services.iter().cloned());
        return Some(spec);
    }
    let (first, others) = plan.services.split_first()?;
    Some(ProgramSpec {
        command: first.command.clone(),
        services: others.to_vec(),
        environment: usual_environment(),
        directory: "/".to_owned(),
        exit_codes: Vec::new(),
        limit_ns: Nanos::ZERO,
        unit: None,
    })
}

/// Replaces the folders of programs.
fn set_path(environment: &mut Vec<(String, String)>, path: &str) {
    environment.retain(|(name, _)| name != PATH);
    environment.insert(0, (PATH.to_owned(), path.to_owned()));
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
        let (Some(spec), Some(files)) = (programs(plan), &plan.files) else {
            return Ok(Requested { request, packed: None });
        };
        let failed = |why| Error::Pack(plan.name.clone(), why);
        let packed = self.pack(spec, files, host).map_err(failed)?;
        let memory = packed.memory_mib(plan.machine.memory_mib, files.grows);
        request.machine.memory_mib =
            memory.map_err(|why| Error::Pack(plan.name.clone(), Arc::new(why)))?;
        if let (Some(path), false) = (&packed.path, request.services.is_empty()) {
            set_path(&mut request.environment, path);
        }
        if let Task::Measure(Spec::Program(spec)) = &mut request.task {
            if let Some(path) = &packed.path {
                set_path(&mut spec.environment, path);
            }
            if let Some(directory) = &packed.directory {
                spec.directory.clone_from(directory);
            }
        }
        Ok(Requested { request, packed: Some(packed) })
    }

    fn pack(
        &mut self,
        spec: ProgramSpec,
        files: &'a ProgramFiles,
        host: &mut Host<'_>,
    ) -> Result<Packed, Arc<PackError>> {
        let same = |(own, with, _): &&Pack<'a>| *own == spec && *with == files;
        if let Some((_, _, packed)) = self.0.iter().find(same) {
            return packed.clone();
        }
        let packed = packing::pack(&spec, files, host).map_err(Arc::new);
        self.0.push((spec, files, packed.clone()));
        packed
    }
}
