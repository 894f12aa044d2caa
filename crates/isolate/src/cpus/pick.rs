//! Which CPUs to isolate: those that are asked for, else the first `nohz_full` or isolated one, else
//! the one that was interrupted least since boot (`/proc/interrupts`); CPU 0 only if asked for.
//!
//! CPU 0 does what no other CPU can: it keeps the time while all others' ticks are stopped,
//! and some of its timers and interrupts cannot be moved.

use facts::{Facts, Interrupts, Root};
use units::{Cpu, CpuSet};

use crate::cpus::choice::choose;
use crate::error::{Error, Kind};

/// CPUs to isolate, and what is to be known about them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pick {
    /// The CPU; the first of several.
    pub cpu: Cpu,
    /// All of them.
    pub cpus: CpuSet,
    /// Why these.
    pub why: Reason,
    /// Other online CPUs that share a core with them: what runs there slows them down.
    pub siblings: CpuSet,
    /// Online CPUs that are left for everything else.
    pub others: CpuSet,
}

/// Why a CPU was picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Somebody asked for it.
    Asked,
    /// Its tick stops while one task runs there (`nohz_full=`).
    NohzFull,
    /// The scheduler keeps others off it (`isolcpus=`, isolated cpusets).
    Isolated,
    /// It was interrupted least since boot.
    LeastInterrupted,
}

/// The CPU that is asked for, or else the best one.
///
/// # Errors
/// Those of [`choose`] for a CPU that is asked for and cannot be had; `Kind::Unsafe` where
/// none is asked for and there is only CPU 0.
pub fn pick(asked: Option<Cpu>, facts: &Facts) -> Result<Pick, Error> {
    pick_all(asked.map(CpuSet::from).as_ref(), facts)
}

/// The CPUs that are asked for, or else the best one.
///
/// # Errors
/// Those of [`pick`].
pub fn pick_all(asked: Option<&CpuSet>, facts: &Facts) -> Result<Pick, Error> {
    let text = Root::live().text(Interrupts::FILE);
    let interrupts =
        text.and_then(|text| Interrupts::parse(&text, Interrupts::FILE)).ok();
    let total = |cpu| interrupts.as_ref().and_then(|interrupts| interrupts.total(cpu));
    let (cpus, why) = match asked {
        Some(cpus) => (choose(Some(cpus), facts)?, Reason::Asked),
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

/// The online CPUs that are left for everything else where these are taken: those that are
/// not set apart, if there are any.
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
    let first: CpuSet = [Cpu::new(0)].into_iter().collect();
    let among = |fact: &facts::Fact<CpuSet>| {
        let cpus = fact.get().cloned().unwrap_or_else(CpuSet::empty).without(&first);
        let can_be_had =
            |cpu: &Cpu| choose(Some(&[*cpu].into_iter().collect()), facts).is_ok();
        cpus.iter().filter(can_be_had).collect::<Vec<_>>()
    };
    let told = [
        (&facts.tick.nohz_full, Reason::NohzFull),
        (&facts.cpus.isolated, Reason::Isolated),
    ];
    for (fact, why) in told {
        if let Some(&cpu) = among(fact).first() {
            return Ok((cpu, why));
        }
    }
    let least = among(&facts.cpus.online)
        .into_iter()
        .min_by_key(|&cpu| interrupted(cpu).unwrap_or(u64::MAX));
    let text = "CPU 0 is the only one that this process may use, and is only taken where it \
                is asked for";
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
        // CPU 2 was interrupted least; CPU 0 not at all.
        let (cpu, why) = best(facts, |cpu| Some([0, 70, 7, 700][cpu.index()])).unwrap();
        (u32::try_from(cpu.index()).unwrap(), why)
    }

    /// Check the order: nohz_full, isolated, least interrupted; CPU 0 never by itself.
    #[test]
    fn best_ones_first() {
        assert_eq!(picked(&machine("3", "1", &[])), (3, Reason::NohzFull));
        assert_eq!(picked(&machine("0", "1-2", &[])), (1, Reason::Isolated));
        assert_eq!(picked(&machine("", "0", &[])), (2, Reason::LeastInterrupted));
        let mut alone = machine("", "", &[]);
        alone.cpus.online = facts::Fact::known("0".parse().unwrap(), "test");
        assert_eq!(best(&alone, |_| None).unwrap_err().kind(), Kind::Unsafe);
    }

    /// Check that who is asked for is taken, CPU 0 too, and who shares its core is told.
    #[test]
    fn neighbours_are_told() {
        let mut facts = machine("3", "3", &["0,2", "1,3"]);
        let asked = |cpu: u32, facts: &Facts| {
            let pick = pick(Some(Cpu::new(cpu)), facts).unwrap();
            (pick.why, pick.siblings.to_string(), pick.others.to_string())
        };
        let expected = (Reason::Asked, "2".to_owned(), "1,2".to_owned());
        assert_eq!(asked(0, &facts), expected);
        let several = pick_all(Some(&"0-1".parse().unwrap()), &facts).unwrap();
        assert_eq!(
            (several.cpu, several.cpus.to_string()),
            (Cpu::new(0), "0,1".to_owned())
        );
        assert_eq!(several.siblings.to_string(), "2,3");
        assert_eq!(several.others.to_string(), "2");
        // Where all others are set apart, they still are others.
        facts.tick.nohz_full = facts::Fact::known("1-3".parse().unwrap(), "test");
        assert_eq!(asked(0, &facts).2, "1-3");
    }
}
