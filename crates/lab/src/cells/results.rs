//! The result of one cell: from the cache, or of a guest that is booted for it.

use std::fs;
use std::path::{Path, PathBuf};

use experiments::CellPlan;
use facts::{CommandLine, Facts, Inert, WhyInert};
use recording::{Answer, Body, Cell, Code, Counts, Doubt, Ending, HostUse, Mode};
use units::CpuSet;
use units::chain;

use crate::cells::cache::{self, Stored};
use crate::cells::cell::Ready;
use crate::cells::failed_program::FailedProgram;
use crate::cells::lab::Lab;
use crate::cells::prepare::Prepared;
use crate::cells::run::{Notify, Run, Step};
use crate::cells::symbols::SymbolNames;
use crate::error::Error;
use crate::guest::boot::Ended;
use crate::guest::command_line::Engine;
use crate::guest::request::Request;

impl Lab {
    /// The result of one cell, from the cache or a run; `None` if it was stopped.
    pub(crate) fn cell(
        &self,
        prepared: &Prepared,
        run: &Run<'_>,
        notify: Notify<'_>,
    ) -> Result<Option<Cell>, Error> {
        let plan = &prepared.plan;
        let ready = match &prepared.ready {
            Ok(ready) => ready,
            Err(error) => return Ok(Some(unavailable(plan, error))),
        };
        let ending = self.ending(ready, run, notify)?;
        Ok(ending.map(|(cached, ending)| completed(plan, ready, cached, ending)))
    }

    /// Whether the result of a cell was cached, and the result; `None` if it was stopped.
    pub(crate) fn ending(
        &self,
        ready: &Ready,
        run: &Run<'_>,
        notify: Notify<'_>,
    ) -> Result<Option<(bool, Ending)>, Error> {
        let key = ready.key();
        let waits = || notify(Step::Waits);
        let Some(_lock) = self.cell_cache.lock(&key, run.stop, &waits)? else {
            return Ok(None);
        };
        if let Some(answer) = self.cached_answer(ready).filter(|_| !run.fresh) {
            return Ok(Some((true, Ending::Done(Box::new(answer)))));
        }
        let symbols = match self.symbols(ready, run, notify)? {
            SymbolNames::Text(symbols) => symbols,
            SymbolNames::Lost(ending) => return Ok(Some((false, ending))),
            SymbolNames::Stopped => return Ok(None),
        };
        notify(Step::Boots);
        let place = self.cache.workplace()?;
        let ending = match ready.boot(place.path(), &symbols, self, run)? {
            Ended::Stopped => return Ok(None),
            Ended::Lost(why) => self.lost(&key, place.path(), why)?,
            Ended::Off(host) => self.ended(ready, &key, host, place.path())?,
        };
        Ok(Some((false, ending)))
    }

    /// The cached answer of a cell, if its result is the same each time and there is one.
    pub(crate) fn cached_answer(&self, ready: &Ready) -> Option<Answer> {
        is_cacheable(ready).then(|| self.cell_cache.find(&ready.key())).flatten()
    }

    /// The ending of a cell that has run in `folder`, and whose process used that on the host. A
    /// program that failed is no result: it is lost, and its output is stored with the console.
    fn ended(
        &self,
        ready: &Ready,
        key: &str,
        host: HostUse,
        folder: &Path,
    ) -> Result<Ending, Error> {
        let mut answer = cache::read(folder)?;
        answer.host = (ready.request.mode == Mode::Timed).then_some(host);
        match FailedProgram::of(&answer) {
            Some(failed) => {
                let console =
                    self.cell_cache.store_console(key, folder, &failed.output)?;
                Ok(Ending::Lost { why: failed.why, console })
            }
            None => Ok(Ending::Done(Box::new(self.done(ready, folder, answer)?))),
        }
    }

    /// The answer of a cell that has run in `folder`; stored, if it is exact.
    fn done(
        &self,
        ready: &Ready,
        folder: &Path,
        mut answer: Answer,
    ) -> Result<Answer, Error> {
        let is_idle = matches!(answer.recording.body, Body::Ticks { .. });
        let doubts = &mut answer.recording.doubts;
        if is_cacheable(ready)
            && self.cell_cache.store(&ready.key(), &ready.inputs, ready.counts, folder)?
                == Stored::Differs
        {
            doubts.push(Doubt::new(Code::NotRepeated, DIFFERS));
        }
        if answer.host.is_some() && is_idle {
            doubts.push(Doubt::new(Code::HostTime, HOST_TIME));
        }
        if ready.engine == Engine::Emulated {
            doubts.push(Doubt::new(Code::Emulated, EMULATED));
        }
        Ok(answer)
    }

    /// The stored answer of an exact cell that has run; with `differs`, the one that differs from the
    /// cached one.
    pub(crate) fn stored_answer(&self, ready: &Ready, differs: bool) -> Option<Answer> {
        match differs {
            true => self.cell_cache.find_differing(&ready.key()),
            false => self.cell_cache.find(&ready.key()),
        }
    }

    /// The cached result of the one cell whose identity has that prefix.
    ///
    /// # Errors
    /// `Kind::Cell` if there is none, or more than one; `Kind::Cache` if it is damaged.
    pub fn cached(&self, prefix: &str) -> Result<Cell, Error> {
        let keys = self.cell_cache.with_prefix(prefix);
        let [key] = keys.as_slice() else {
            let prefix = prefix.to_owned();
            return Err(match keys.len() {
                0 => Error::NoCell(prefix),
                cells => Error::AmbiguousCell(prefix, cells),
            });
        };
        let damaged = || Error::Damaged(key.clone());
        let mut answer = self.cell_cache.find(key).ok_or_else(damaged)?;
        let uncounted = uncounted(answer.counts.as_ref(), None);
        answer.recording.doubts.extend(uncounted);
        let kernel = answer.recording.facts.kernel.release.get().cloned();
        Ok(Cell {
            name: prefix.to_owned(),
            asked: String::new(),
            kernel: kernel.unwrap_or_default(),
            image_bytes: None,
            machine: String::new(),
            params: String::new(),
            settings: Vec::new(),
            services: Vec::new(),
            workload: String::new(),
            watch: None,
            mode: Mode::Exact,
            repeat: 1,
            identity: key.clone(),
            cached: true,
            ending: Ending::Done(Box::new(answer)),
            variations: Vec::new(),
        })
    }
}

const DIFFERS: &str = "the result of this run differs from the cached one: both are in \
                       the cache, and one of the two runs is wrong";
const EMULATED: &str = "QEMU emulated the processor, because KVM is not available or \
                        hangs here: durations are meaningless";

const HOST_TIME: &str = "host CPU time is that of the whole QEMU process: its own work, and \
    the guest's preparation of the measurement, are included, and its resolution is 10 ms";

const UNCOUNTED: &str = "instructions were counted by the guest's own clock only: how \
    the kernel used them is unknown";

/// The boot parameters that remove the tick or other work from the CPUs in their value.
const FREEING: [&str; 3] = ["nohz_full", "isolcpus", "rcu_nocbs"];

/// Whether a cell's result is the same each time.
pub(crate) fn is_cacheable(ready: &Ready) -> bool {
    ready.request.mode == Mode::Exact
}

/// A doubt about an exact cell that was not counted, and the reason.
fn uncounted(counts: Option<&Counts>, why: Option<&str>) -> Option<Doubt> {
    let text = match why {
        Some(why) => format!("{UNCOUNTED} (QEMU does not load the counter: {why})"),
        None => UNCOUNTED.to_owned(),
    };
    counts.is_none().then(|| Doubt::new(Code::Uncounted, text))
}

/// The doubts about an exact cell.
fn inexact(ready: &Ready, counts: Option<&Counts>) -> Vec<Doubt> {
    let uncounted = uncounted(counts, ready.why_uncounted.as_deref());
    let races = ready.races.as_ref().map(|why| {
        let text = format!(
            "with several CPUs a loaded host may give another result: QEMU's threads \
             could race, because {why}"
        );
        Doubt::new(Code::Races, text)
    });
    uncounted.into_iter().chain(races).collect()
}

/// A doubt if a boot parameter is for CPUs that the guest does not have.
fn absent_cpus(request: &Request) -> Option<Doubt> {
    let parameters = CommandLine::parse(&request.params);
    let has = request.machine.cpus;
    let absent = |name: &&str| {
        let cpus: Option<CpuSet> = parameters.value(name).and_then(|v| v.parse().ok());
        cpus.is_some_and(|cpus| cpus.iter().all(|cpu| cpu.get() >= has))
    };
    let names: Vec<&str> = FREEING.into_iter().filter(absent).collect();
    let s = if has == 1 { "" } else { "s" };
    (!names.is_empty()).then(|| {
        let names = names.join(", ");
        let text = format!(
            "{names} names no CPU that the guest has: it has {has} CPU{s}, from 0"
        );
        Doubt::new(Code::NoSuchCpu, text)
    })
}

/// A doubt if the guest's kernel rejected the CPUs of a boot parameter.
fn rejected_lists(facts: &Facts) -> Option<Doubt> {
    let is_freeing = |inert: &&Inert| {
        let name = inert.parameter.split('=').next().unwrap_or_default();
        FREEING.contains(&name.replace('-', "_").as_str())
    };
    let inert = facts.boot.inert.get()?.iter().filter(is_freeing);
    let rejected = inert.filter(|inert| inert.why == WhyInert::Refused);
    let texts: Vec<String> =
        rejected.map(|inert| format!("{}: {}", inert.parameter, inert.text)).collect();
    (!texts.is_empty()).then(|| Doubt::new(Code::NoSuchCpu, texts.join("; ")))
}

/// A cell with the ending of its run.
pub(crate) fn completed(
    plan: &CellPlan,
    ready: &Ready,
    cached: bool,
    mut ending: Ending,
) -> Cell {
    if let Ending::Done(answer) = &mut ending {
        let rejected = rejected_lists(&answer.recording.facts);
        let unusable = rejected.or_else(|| absent_cpus(&ready.request));
        let counts = answer.counts.as_ref();
        let exact = (plan.mode == Mode::Exact).then(|| inexact(ready, counts));
        let doubts = exact.into_iter().flatten().chain(unusable);
        answer.recording.doubts.extend(doubts);
    }
    let Ready { kernel, identity, request, .. } = ready;
    let machine = request.machine.to_string(); // it may have grown with the files
    let image_bytes = fs::metadata(&kernel.image).ok().map(|image| image.len());
    let version = kernel.package_version.as_deref();
    let kernel = match version {
        Some(version) => format!("{} ({version})", kernel.release),
        None => kernel.release.clone(),
    };
    let identity = identity.clone();
    Cell { kernel, image_bytes, machine, identity, cached, ..planned(plan, ending) }
}

/// A cell that is lost because its kernel or its program is not available.
pub(crate) fn unavailable(plan: &CellPlan, error: &Error) -> Cell {
    let console = PathBuf::new(); // nothing has booted
    planned(plan, Ending::Lost { why: chain(error), console })
}

/// A cell as far as its plan goes.
fn planned(plan: &CellPlan, ending: Ending) -> Cell {
    let settings = plan.settings.iter().map(|s| format!("{}={}", s.path, s.value));
    let services = plan.services.iter().map(|service| service.command.to_string());
    Cell {
        name: plan.name.clone(),
        asked: plan.kernel.clone(),
        kernel: plan.kernel.clone(),
        image_bytes: None,
        machine: plan.machine.to_string(),
        params: plan.params.clone(),
        settings: settings.collect(),
        services: services.collect(),
        workload: plan.workload.clone(),
        watch: plan.watch,
        mode: plan.mode,
        repeat: plan.repeat,
        identity: String::new(),
        cached: false,
        ending,
        variations: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use agent::Task;

    use super::*;

    /// Check that parameters for CPUs that the guest does not have are doubted, by name, and that
    /// those for one that it has are not.
    #[test]
    fn parameters_for_no_cpu() {
        let doubt = |params: &str, cpus| {
            let mut request = Request::new(Task::Symbols);
            params.clone_into(&mut request.params);
            request.machine.cpus = cpus;
            absent_cpus(&request).map(|doubt| doubt.text)
        };
        let why =
            "nohz_full, rcu_nocbs names no CPU that the guest has: it has 1 CPU, from 0";
        assert_eq!(doubt("nohz_full=1 rcu_nocbs=1-3", 1).as_deref(), Some(why));
        assert!(doubt("isolcpus=2,3", 2).is_some());
        for fine in ["", "nohz=off", "nohz_full=1 rcu_nocbs=0-1", "nohz_full=all"] {
            assert_eq!(doubt(fine, 2), None, "{fine}");
        }
    }

    /// Check that a list that the guest's kernel rejected is doubted, with the reason.
    #[test]
    fn lists_that_the_kernel_rejected() {
        let doubt = |inert: serde_json::Value| {
            let page = serde_json::json!({
                "boot": {"inert": inert}, "sources": {}, "unknown": {},
            });
            rejected_lists(&serde_json::from_value(page).unwrap()).map(|doubt| doubt.text)
        };
        let list = serde_json::json!([
            {"parameter": "isolcpus=4-3", "why": "refused", "text": "it is ignored"},
            {"parameter": "nohz-full=9", "why": "refused", "text": "so is this"},
            {"parameter": "preempt=x", "why": "refused", "text": "no model"},
            {"parameter": "rcu_nocbs=1", "why": "unsupported", "text": "not built"},
        ]);
        let expected = "isolcpus=4-3: it is ignored; nohz-full=9: so is this";
        assert_eq!(doubt(list).as_deref(), Some(expected));
        assert_eq!(doubt(serde_json::json!([])), None);
    }

    /// Check that an exact cell without counts says so, and one with them does not.
    #[test]
    fn uncounted_cells() {
        let doubt = uncounted(None, Some("no plugins")).unwrap();
        assert_eq!(doubt.code, Code::Uncounted);
        assert!(doubt.text.ends_with("(QEMU does not load the counter: no plugins)"));
        assert_eq!(uncounted(None, None).map(|doubt| doubt.code), Some(Code::Uncounted));
        assert_eq!(uncounted(Some(&Counts::default()), Some("any")), None);
    }
}
