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
    let chosen = isolate::choose(named, facts).map(&spec);
    refused_first(chosen, facts, || spec(named.cloned().unwrap_or_default()))
}

/// The specification of a measurement on the CPU that was named, or on the best one; and why it
/// is the best.
///
/// # Errors
/// Those of `measure::refuse` and `isolate::pick`.
pub fn pick(
    named: Option<Cpu>,
    facts: &Facts,
    spec: impl Fn(Cpu) -> Spec,
) -> Result<(Pick, Spec), Error> {
    let picked = isolate::pick(named, facts);
    let on_it = picked.as_ref().map(|pick| spec(pick.cpu)).map_err(Clone::clone);
    let spec = refused_first(on_it, facts, || spec(named.unwrap_or(Cpu::new(0))))?;
    Ok((picked?, spec))
}

/// The specification on CPUs that are available, unless it is refused; on others, an error in it
/// comes first.
fn refused_first(
    chosen: Result<Spec, isolate::Error>,
    facts: &Facts,
    on_named: impl FnOnce() -> Spec,
) -> Result<Spec, Error> {
    match chosen {
        Ok(spec) => {
            measure::refuse(&spec, facts)?;
            Ok(spec)
        }
        Err(why) => match measure::refuse(&on_named(), facts) {
            Err(mistake) if mistake.kind() == Kind::Spec => Err(mistake.into()),
            _ => Err(why.into()),
        },
    }
}
