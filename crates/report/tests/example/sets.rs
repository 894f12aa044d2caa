//! Sets of runs that differ in the lengths of their gaps.

use recording::Recording;
use summary::RunSet;

/// A recording whose gaps are so many percent as long.
fn scaled(recording: &Recording, percent: u64) -> Recording {
    let mut recording = recording.clone();
    let noise = recording.body.noise_mut().unwrap();
    for cpu in &mut noise.cpus {
        let gaps = cpu.gaps.iter_mut().map(|gap| &mut gap.length);
        let shares = cpu.blamed.iter_mut().flat_map(|blamed| &mut blamed.shares);
        for length in gaps.chain(shares.map(|share| &mut share.ns)) {
            *length = units::Nanos::from_nanos(length.get() * percent / 100);
        }
    }
    recording
}

/// A set of runs with such gaps.
pub(crate) fn run_set(recording: &Recording, percents: &[u64]) -> RunSet {
    let mut set = RunSet::default();
    percents.iter().for_each(|percent| set.add(&scaled(recording, *percent)));
    set
}
