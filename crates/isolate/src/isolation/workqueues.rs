//! Moving unbound workqueues off CPUs.
//!
//! `/sys/devices/virtual/workqueue/cpumask` (`Documentation/core-api/workqueue.rst`). Per-CPU
//! workqueues cannot be moved.

use std::path::PathBuf;

use units::CpuSet;

use crate::error::{Error, Kind};
use crate::settings::change::{Change, Changes};

const MASK: &str = "/sys/devices/virtual/workqueue/cpumask";

/// The changes that keep unbound work off these CPUs.
pub(crate) fn move_off(cpus: &CpuSet, others: &CpuSet) -> Changes {
    let mask = PathBuf::from(MASK);
    if !mask.exists() {
        let text = format!("unbound workqueues are not moved: {MASK} does not exist");
        return vec![Err(Error::new(Kind::NoSetting, text))];
    }
    Change::of_mask(mask, cpus, others).into_iter().map(Ok).collect()
}
