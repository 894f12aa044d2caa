//! Selection of the CPUs to isolate: the requested ones, or else the first `nohz_full` or isolated
//! CPU, or else the one with the fewest interrupts since boot (`/proc/interrupts`).
//!
//! CPU 0 is used only on request: it does the timekeeping while the ticks of all other CPUs are
//! stopped, and some of its timers and interrupts cannot be moved.

use facts::{Facts, Interrupts, Root};
use units::{Cpu, CpuSet};

use crate::cpus::choice::choose;
use crate::error::{Error, Kind};

/// The selected CPUs, and related CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pick {
    /// The first selected CPU.
    pub cpu: Cpu,
    /// All selected CPUs.
    pub cpus: CpuSet,
    /// Why these CPUs were selected.
    pub why: Reason,
    /// Other online CPUs that share a core with them: load on these slows them down.
    pub siblings: CpuSet,
    /// Online CPUs that remain for all other tasks.
    pub others: CpuSet,
}

/// Why a CPU was selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It was requested.
    Requested,
    /// Its tick stops while one task runs there (`nohz_full=`).
    NohzFull,
    /// It is excluded from scheduler balancing (`isolcpus=`, isolated cpusets).
    Isolated,
    /// It had the fewest interrupts since boot.
    LeastInterrupted,
}

/// Selects the requested CPU, or the best one.
///
/// # Errors
/// Those of [`choose`] for a requested CPU that cannot be used; `Kind::Unsafe` if none is
/// requested and only CPU 0 is available.
pub fn pick(requested: Option<Cpu>, facts: &Facts) -> Result<Pick, Error> {
    pick_all(requested.map(CpuSet::from).as_ref(), facts)
}

/// Selects the requested CPUs, or the best one.
///
/// # Errors
/// Those of [`pick`].
pub fn pick_all(requested: Option<&CpuSet>, facts: &Facts) -> Result<Pick, Error> {
    let total = interrupts_since_boot();
    let (cpus, why) = match requested {
        Some(cpus) => (choose(Some(cpus), facts)?, Reason::Requested),
        None => best(facts, total).map(|(cpu, why)| (cpu.into(), why))?,
    };
    let no_cpu = || Error::new(Kind::NoSuchCpu, "no CPU is named");
    let cpu = cpus.first().ok_or_else(no_cpu)?;
    let online = facts.cpus.online.get().cloned().unwrap_or_else(CpuSet::empty);
    let cores = facts.cpus.cores.get().into_iter().flatten();
    let own = cores.filter(|core| !core.and(&cpus).is_empty()).flat_map(CpuSet::iter);
    let siblings = own.collect::<CpuSet>().and(&online).without(&cpus);
    let others = others(cpus.clone(), facts);
    Ok(Pick { cpu, cpus, why, siblings, others })
}

/// The number of interrupts of each CPU since boot; `None` if it is unknown.
pub(crate) fn interrupts_since_boot() -> impl Fn(Cpu) -> Option<u64> {
    let text = Root::live().text(Interrupts::FILE);
    let interrupts =
        text.and_then(|text| Interrupts::parse(&text, Interrupts::FILE)).ok();
    move |cpu| interrupts.as_ref().and_then(|interrupts| interrupts.total(cpu))
}

/// The online CPUs that remain for other tasks: those that are neither isolated nor `nohz_full`, or
/// all if there are none of these.
pub fn others(cpus: impl Into<CpuSet>, facts: &Facts) -> CpuSet {
    let online = facts.cpus.online.get().cloned().unwrap_or_else(CpuSet::empty);
    let others = online.without(&cpus.into());
    let rest = others.without(&facts.set_apart());
    if rest.is_empty() { others } else { rest }
}

fn best(
    facts: &Facts,
    interrupted: impl Fn(Cpu) -> Option<u64>,
) -> Result<(Cpu, Reason), Error> {
    // The lists of CPUs can be read.
    choose(None, facts)?;
    let first: CpuSet = Cpu::new(0).into();
    let among = |fact: &facts::Fact<CpuSet>| {
        let cpus = fact.get().cloned().unwrap_or_else(CpuSet::empty).without(&first);
        let is_usable = |cpu: &Cpu| choose(Some(&(*cpu).into()), facts).is_ok();
        cpus.iter().filter(is_usable).collect::<Vec<_>>()
    };
    let candidates = [
        (&facts.tick.nohz_full, Reason::NohzFull),
        (&facts.cpus.isolated, Reason::Isolated),
    ];
    for (fact, why) in candidates {
        if let Some(&cpu) = among(fact).first() {
            return Ok((cpu, why));
        }
    }
    let least = among(&facts.cpus.online)
        .into_iter()
        .min_by_key(|&cpu| interrupted(cpu).unwrap_or(u64::MAX));
    let text = "CPU 0 is the only CPU that this process may use, and is selected only on request";
    least
        .map(|cpu| (cpu, Reason::LeastInterrupted))
        .ok_or_else(|| Error::new(Kind::Unsafe, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(nohz_full: &str, isolated: &str, cores: &[&str]) -> Facts {
        let page = serde_json::json!({
            "cpus": {"present": "0-3", "online": "0-3", "allowed": "0-3",
                "isolated": isolated, "cores": cores},
            "tick": {"nohz_full": nohz_full}, "sources": {}, "unknown": {},
        });
        serde_json::from_value(page).unwrap()
    }

    fn picked(facts: &Facts) -> (u32, Reason) {
        // CPU 2 has the fewest interrupts of CPUs 1 to 3, CPU 0 has none.
        let (cpu, why) = best(facts, |cpu| Some([0, 70, 7, 700][cpu.index()])).unwrap();
        (u32::try_from(cpu.index()).unwrap(), why)
    }

    /// Check the order: nohz_full, isolated, fewest interrupts; never CPU 0.
    #[test]
    fn best_ones_first() {
        assert_eq!(picked(&machine("3", "1", &[])), (3, Reason::NohzFull));
        assert_eq!(picked(&machine("0", "1-2", &[])), (1, Reason::Isolated));
        assert_eq!(picked(&machine("", "0", &[])), (2, Reason::LeastInterrupted));
        let mut alone = machine("", "", &[]);
        alone.cpus.online = facts::Fact::known("0".parse().unwrap(), "test");
        assert_eq!(best(&alone, |_| None).unwrap_err().kind(), Kind::Unsafe);
    }

    /// Check that requested CPUs are selected, also CPU 0, and the siblings and others.
    #[test]
    fn siblings_and_others() {
        let mut facts = machine("3", "3", &["0,2", "1,3"]);
        let requested = |cpu: u32, facts: &Facts| {
            let pick = pick(Some(Cpu::new(cpu)), facts).unwrap();
            (pick.why, pick.siblings.to_string(), pick.others.to_string())
        };
        let expected = (Reason::Requested, "2".to_owned(), "1,2".to_owned());
        assert_eq!(requested(0, &facts), expected);
        let several = pick_all(Some(&"0-1".parse().unwrap()), &facts).unwrap();
        assert_eq!(
            (several.cpu, several.cpus.to_string()),
            (Cpu::new(0), "0,1".to_owned())
        );
        assert_eq!(several.siblings.to_string(), "2,3");
        assert_eq!(several.others.to_string(), "2");
        // If all others are isolated, they are still returned.
        facts.tick.nohz_full = facts::Fact::known("1-3".parse().unwrap(), "test");
        assert_eq!(requested(0, &facts).2, "1-3");
    }
}
