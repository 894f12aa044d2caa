//! What the BPF programs that count for each thread have in common: the key of a thread in their maps, how
//! these are read, and programs that are run by hand.

use libbpf_rs::{Link, MapCore, MapFlags, ProgramInput, ProgramMut};
use units::CpuSet;

use crate::bpf::attached::failed;
use crate::error::{Error, Kind};

/// The number of elements per read.
const BATCH: u32 = 4096;
/// `BPF_F_TEST_RUN_ON_CPU` in `include/uapi/linux/bpf.h`.
const ON_CPU: u32 = 1;

/// A thread, or (with number 0) a waker that is not a thread: `struct who` of `wakers.bpf.c`,
/// `slices.bpf.c` and `watch.bpf.c`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub(crate) struct ThreadKey {
    pub(crate) tid: u32,
    /// Part of its start time; with TID 0, `enum no_thread`.
    pub(crate) born: u32,
}

/// Attaches a program to a raw tracepoint that it cannot do without.
///
/// # Errors
/// The kernel does not have it, or refuses.
pub(crate) fn at(tracepoint: &str, program: &ProgramMut<'_>) -> Result<Link, Error> {
    program.attach_raw_tracepoint(tracepoint).map_err(|error| {
        let text = format!("failed to attach to the tracepoint {tracepoint}");
        Error::new(Kind::Missing, text).caused_by(error)
    })
}

/// Runs a program once on each CPU, for the thread that runs there; an offline one has none.
pub(crate) fn run_on(program: &ProgramMut<'_>, online: &CpuSet) {
    for cpu in online.iter() {
        let (cpu, flags) = (cpu.get(), ON_CPU);
        let input = ProgramInput { cpu, flags, ..ProgramInput::default() };
        let _ = program.test_run(input);
    }
}

/// All elements of a map that is no longer written to.
pub(crate) fn elements<K: Copy, V: Copy>(
    map: &impl MapCore,
) -> Result<Vec<(K, V)>, Error> {
    Ok(each_element(map)?.collect())
}

/// The same, of which only some are needed.
pub(crate) fn each_element<K: Copy, V: Copy>(
    map: &impl MapCore,
) -> Result<impl Iterator<Item = (K, V)>, Error> {
    let read = map.lookup_batch(BATCH, MapFlags::ANY, MapFlags::ANY).map_err(failed)?;
    Ok(read.filter_map(|(key, value)| Some((decoded(&key)?, decoded(&value)?))))
}

/// One of the programs' structures, which contain only numbers.
pub(crate) fn decoded<T: Copy>(bytes: &[u8]) -> Option<T> {
    // SAFETY: the size is right, and any bytes make a `T`.
    (bytes.len() == size_of::<T>())
        .then(|| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}
