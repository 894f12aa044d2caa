//! Unbound workqueues: which CPUs their workers may use.
//!
//! `/sys/devices/virtual/workqueue/cpumask` (`Documentation/core-api/workqueue.rst`). Work
//! that is bound to a CPU stays there.

use std::path::PathBuf;

use units::CpuSet;

use crate::error::{Error, Kind};
use crate::settings::change::{Change, Changes};

const MASK: &str = "/sys/devices/virtual/workqueue/cpumask";

/// What has to be changed so that no unbound work runs on these CPUs.
pub(crate) fn away(cpus: &CpuSet, others: &CpuSet) -> Changes {
    let mask = PathBuf::from(MASK);
    if !mask.exists() {
        let text = format!("unbound workqueues stay: {MASK} is not there");
        return vec![Err(Error::new(Kind::NoSetting, text))];
    }
    Change::of_mask(mask, cpus, others).into_iter().map(Ok).collect()
}
