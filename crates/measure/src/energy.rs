//! The energy that the processors used during a measurement, from the counters of RAPL.
//!
//! The counters are read at the end of each interval, so that a wrap is noticed. If they are
//! unknown at first, they are not read again. They count whole packages: noisefloor's own work and
//! that of all other programs is included.

use facts::{EnergyZone, Root, Unknown, energy_zones};
use recording::{Energy, ZoneEnergy};
use units::Nanos;

use crate::time::counter;

/// The counters so far.
pub(crate) struct EnergyMeter {
    began: Nanos,
    last: Result<Vec<EnergyZone>, Unknown>,
    /// The energy of each zone so far, in microjoules.
    used: Vec<u64>,
}

fn now() -> Nanos {
    counter::kernel(libc::CLOCK_MONOTONIC_RAW)
}

impl EnergyMeter {
    /// Starts counting.
    pub(crate) fn start() -> Self {
        let last = energy_zones(&Root::live());
        let used = vec![0; last.as_ref().map_or(0, Vec::len)];
        Self { began: now(), last, used }
    }

    /// Adds what was used since the last reading.
    pub(crate) fn look(&mut self) {
        if self.last.is_ok() {
            self.add(energy_zones(&Root::live()));
        }
    }

    fn add(&mut self, zones: Result<Vec<EnergyZone>, Unknown>) {
        if let (Ok(before), Ok(zones)) = (&self.last, &zones) {
            for ((used, zone), before) in self.used.iter_mut().zip(zones).zip(before) {
                *used = used.saturating_add(zone.since(before));
            }
        }
        self.last = zones;
    }

    /// The energy up to the last reading.
    pub(crate) fn end(self) -> Energy {
        let span_ns = now().saturating_sub(self.began);
        match self.last {
            Err(unknown) => Energy { span_ns, zones: Vec::new(), unknown: Some(unknown) },
            Ok(zones) => {
                let zone = |(zone, energy_uj): (EnergyZone, u64)| ZoneEnergy {
                    zone: zone.name,
                    energy_uj,
                };
                let zones = zones.into_iter().zip(self.used).map(zone).collect();
                Energy { span_ns, zones, unknown: None }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use facts::Why;

    fn zone(energy_uj: u64) -> Result<Vec<EnergyZone>, Unknown> {
        let name = "package-0".to_owned();
        Ok(vec![EnergyZone { name, energy_uj, range_uj: 1_000 }])
    }

    /// Check that intervals are added up, with a counter that starts again in each, and that a
    /// counter that cannot be read any more makes the energy unknown.
    #[test]
    fn adds_up() {
        let meter = || EnergyMeter { began: now(), last: zone(900), used: vec![0] };
        let mut counting = meter();
        counting.add(zone(100));
        counting.add(zone(50));
        let energy = counting.end();
        assert_eq!((energy.zones[0].energy_uj, energy.unknown), (200 + 950, None));
        let mut failing = meter();
        failing.add(Err(Unknown::new(Why::Absent, "gone")));
        let energy = failing.end();
        assert_eq!(energy.unknown.map(|unknown| unknown.code), Some(Why::Absent));
        assert_eq!(energy.zones, []);
    }
}
