//! The CPUs of a measurement. Usage errors are reported before CPUs that are not available, and
//! both before anything is changed.

use facts::{Facts, Root};
use isolate::Pick;
use measure::Kind;
use recording::Spec;
use units::{Cpu, CpuSet};

use crate::error::Error;
use crate::plan::Plan;

impl Plan {
    /// A measurement on the listed CPUs, or on all that may be used.
    ///
    /// # Errors
    /// Those of `measure::refuse` and `isolate::choose`.
    pub fn choose(
        named: Option<&CpuSet>,
        spec: impl Fn(CpuSet, &Facts) -> Spec,
    ) -> Result<Self, Error> {
        let facts = Facts::read(&Root::live());
        // Any CPU stands for those that are not known.
        let any = || Cpu::new(0).into();
        let on_named = || spec(named.cloned().unwrap_or_else(any), &facts);
        let cpus = isolate::choose(named, &facts);
        let cpus = cpus.map_err(|why| mistake_or(&on_named(), &facts, why))?;
        Self::accepted(spec(cpus, &facts), facts)
    }

    /// A measurement on the given CPU, or on the best one; and why it is the best.
    ///
    /// # Errors
    /// Those of `measure::refuse` and `isolate::pick`.
    pub fn pick(
        named: Option<Cpu>,
        spec: impl Fn(Cpu) -> Spec,
    ) -> Result<(Pick, Self), Error> {
        let facts = Facts::read(&Root::live());
        let on_named = || spec(named.unwrap_or(Cpu::new(0)));
        let pick = isolate::pick(named, &facts);
        let pick = pick.map_err(|why| mistake_or(&on_named(), &facts, why))?;
        let plan = Self::accepted(spec(pick.cpu), facts)?;
        Ok((pick, plan))
    }

    fn accepted(spec: Spec, facts: Facts) -> Result<Self, Error> {
        measure::refuse(&spec, &facts)?;
        Ok(Self::new(spec, facts))
    }
}

/// The usage error in a specification, or why its CPUs are not available.
fn mistake_or(spec: &Spec, facts: &Facts, why: isolate::Error) -> Error {
    match measure::refuse(spec, facts) {
        Err(mistake) if mistake.kind() == Kind::Spec => mistake.into(),
        _ => why.into(),
    }
}
