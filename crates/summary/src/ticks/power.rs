//! The power of the processors during `ticks`: energy divided by time.

use facts::Unknown;
use recording::Energy;
use serde::Serialize;

/// The power of the processors.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PowerSummary {
    /// The mean power of each zone; empty if unknown.
    pub zones: Vec<ZonePower>,
    /// Why it is unknown; null if it is known.
    pub unknown: Option<Unknown>,
}

/// The mean power of a zone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ZonePower {
    /// The zone: `package-0`, or a part of it: `package-0 core`.
    pub zone: String,
    /// Its mean power in watts; null if no time passed.
    pub power_w: Option<f64>,
}

impl PowerSummary {
    pub(crate) fn of(energy: &Energy) -> Self {
        let seconds = energy.span_ns.as_secs_f64();
        let zones = energy.zones.iter().map(|zone| ZonePower {
            zone: zone.zone.clone(),
            power_w: (seconds > 0.0).then(|| zone.energy_uj as f64 / 1e6 / seconds),
        });
        Self { zones: zones.collect(), unknown: energy.unknown.clone() }
    }
}

#[cfg(test)]
mod tests {
    use recording::ZoneEnergy;
    use units::Nanos;

    use super::*;

    /// Check that power is energy divided by time, and unknown without time.
    #[test]
    fn watts() {
        let power = |span_ns| {
            let zone = ZoneEnergy { zone: "package-0".to_owned(), energy_uj: 9_000_000 };
            let energy = Energy { span_ns, zones: vec![zone], unknown: None };
            PowerSummary::of(&energy).zones[0].power_w
        };
        assert_eq!(power(Nanos::from_secs(4)), Some(2.25));
        assert_eq!(power(Nanos::ZERO), None);
    }
}
