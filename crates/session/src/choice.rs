//! The CPUs of a measurement. Usage errors are reported before CPUs that are not available, and
//! both before anything is changed.

use facts::Facts;
use isolate::Pick;
use measure::{Kind, Spec};
use units::{Cpu, CpuSet};

use crate::error::Error;

/// The specification of a measurement on the CPUs that were named, or on all that may be used.
///
/// # Errors
/// Those of `measure::refuse` and `isolate::choose`.
pub fn choose(
    named: Option<&CpuSet>,
    facts: &Facts,
    spec: impl Fn(CpuSet) -> Spec,
) -> Result<Spec, Error> {
    match isolate::choose(named, facts) {
        Ok(cpus) => accepted(spec(cpus), facts),
        Err(why) => {
            Err(mistake_or(&spec(named.cloned().unwrap_or_default()), facts, why))
        }
    }
}

/// The CPU that was named, or the best one, and why it is that; the specification of a measurement
/// on it.
///
/// # Errors
/// Those of `measure::refuse` and `isolate::pick`.
pub fn pick(
    named: Option<Cpu>,
    facts: &Facts,
    spec: impl Fn(Cpu) -> Spec,
) -> Result<(Pick, Spec), Error> {
    match isolate::pick(named, facts) {
        Ok(pick) => {
            let spec = accepted(spec(pick.cpu), facts)?;
            Ok((pick, spec))
        }
        Err(why) => Err(mistake_or(&spec(named.unwrap_or(Cpu::new(0))), facts, why)),
    }
}

fn accepted(spec: Spec, facts: &Facts) -> Result<Spec, Error> {
    measure::refuse(&spec, facts)?;
    Ok(spec)
}

/// The usage error in a specification, or why its CPUs are not available.
fn mistake_or(spec: &Spec, facts: &Facts, why: isolate::Error) -> Error {
    match measure::refuse(spec, facts) {
        Err(mistake) if mistake.kind() == Kind::Spec => mistake.into(),
        _ => why.into(),
    }
}
