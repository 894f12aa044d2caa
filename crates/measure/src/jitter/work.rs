//! The workloads of jitter. One run always takes the same steps, so that only their duration
//! varies; their results are used, so that the optimiser removes none of them.
//!
//! Their memory is touched before the first run. None but `syscall` and the user's library enters
//! the kernel (`tests/quiet.rs` counts).
//!
//! # Caveats
//! `tif` takes its random numbers from the CPU's time stamp counter, as Intel's tool does: reading
//! it is most of the time, and with a coarse counter the indices are less random.

use std::fmt;
use std::hint::black_box;
use std::path::Path;

use recording::Workload;
use units::Tsc;

use crate::calls::repeats::failed;
use crate::jitter::library::{self, Library};
use crate::threads::memory::{self, Memory};
use crate::time::counter;
use crate::{Error, Kind};

/// Steps of one run of `tif` and `memory`.
const STEPS: usize = 50_000;
/// Steps of one run of `compute`: they are shorter.
const COMPUTE_STEPS: usize = 250_000;
/// System calls of one run of `syscall`.
const CALLS: usize = 5_000;
/// The size of a cache line, on x86 and nearly all of arm64.
const LINE: usize = 64;

/// A workload that can be repeated, with the same steps each time.
pub trait Work {
    /// Runs it once.
    fn once(&mut self);
}

impl fmt::Debug for dyn Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Work")
    }
}

/// Prepares a workload: allocates its memory, loads its library. Both happen on the CPU of the
/// calling thread, so that the memory is local to it.
///
/// # Errors
/// `Kind::Spec` for an invalid size or library, `Kind::System` if there is not enough memory.
pub fn prepare(workload: &Workload) -> Result<Box<dyn Work>, Error> {
    Ok(match workload {
        Workload::Tif => Box::new(Tif { array: [1; 256] }),
        Workload::Memory(bytes) => Box::new(Chase::through(*bytes)?),
        Workload::Compute => Box::new(Compute { value: 1 }),
        Workload::Syscall => Box::new(Syscall),
        Workload::Exec(library) => Box::new(Exec::load(library)?),
    })
}

/// Random reads and writes in 256 numbers of 4 bytes, 1 KB.
struct Tif {
    array: [u32; 256],
}

/// A random index of the array.
#[inline(always)]
fn place() -> u8 {
    counter::now().since(Tsc::from_counter(0)).ticks().to_le_bytes()[0]
}

impl Work for Tif {
    fn once(&mut self) {
        let array = black_box(&mut self.array);
        for _ in 0..STEPS / 2 {
            let (first, second) = (place(), place());
            array[usize::from(first)] = u32::from(first) + 1;
            array[usize::from(second)] = u32::from(first) + u32::from(second);
        }
        for _ in 0..STEPS / 2 {
            let (first, second) = (place(), place());
            let sum = array[usize::from(first)].wrapping_add(array[usize::from(second)]);
            array[usize::from(sum.to_le_bytes()[0])] = sum;
        }
        black_box(&self.array);
    }
}

/// Follows a random cycle through all cache lines of a buffer. Each run continues where the one
/// before ended, so that the whole buffer is used.
struct Chase {
    memory: Memory,
    at: u32,
}

/// The numbers per line; the first is the index of the next line.
const NUMBERS: usize = LINE / size_of::<u32>();

/// Refuses an invalid workload, as far as that is visible before it is prepared.
pub(crate) fn refuse(workload: &Workload) -> Result<(), Error> {
    match workload {
        Workload::Memory(bytes) => Chase::lines(*bytes).map(drop),
        Workload::Exec(file) => library::exists(file),
        Workload::Tif | Workload::Compute | Workload::Syscall => Ok(()),
    }
}

impl Chase {
    /// The number of cache lines of that memory.
    fn lines(bytes: u64) -> Result<usize, Error> {
        let lines = usize::try_from(bytes).unwrap_or(usize::MAX) / LINE;
        if lines < 2 {
            let text = "the memory workload needs at least 128 bytes";
            return Err(Error::new(Kind::Spec, text));
        }
        let most = memory::total_bytes().map_or(u64::MAX, |whole| whole / 2);
        if bytes > most || u32::try_from(lines).is_err() {
            let text = format!(
                "{bytes} bytes are more than half of this machine's memory: at most {most} \
                 bytes"
            );
            return Err(Error::new(Kind::System, text));
        }
        Ok(lines)
    }

    fn through(bytes: u64) -> Result<Self, Error> {
        let lines = Self::lines(bytes)?;
        let memory = Memory::new(lines * LINE);
        let mut memory = memory.map_err(|error| failed("mmap(2)", error))?;
        link(memory.filled(0));
        Ok(Self { memory, at: 0 })
    }
}

/// Links the lines to one cycle, by Sattolo's shuffle; the same one each time.
fn link(numbers: &mut [u32]) {
    let lines = numbers.len() / NUMBERS;
    for (line, number) in (0..).zip(numbers.iter_mut().step_by(NUMBERS)) {
        *number = line;
    }
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    for line in (1..lines).rev() {
        random = scrambled(random);
        let other = usize::try_from(random >> 1).unwrap_or(0) % line;
        numbers.swap(line * NUMBERS, other * NUMBERS);
    }
}

/// Marsaglia's xorshift, 64 bits.
#[inline(always)]
fn scrambled(mut value: u64) -> u64 {
    value ^= value << 13;
    value ^= value >> 7;
    value ^ (value << 17)
}

impl Work for Chase {
    fn once(&mut self) {
        let numbers = self.memory.numbers();
        let mut at = self.at;
        for _ in 0..STEPS {
            let place = usize::try_from(at).unwrap_or(0) * NUMBERS;
            at = numbers.get(place).copied().unwrap_or(0);
        }
        self.at = black_box(at);
    }
}

/// A chain of shifts and multiplications, each dependent on the one before.
struct Compute {
    value: u64,
}

impl Work for Compute {
    fn once(&mut self) {
        let mut value = black_box(self.value);
        for _ in 0..COMPUTE_STEPS {
            value = (value ^ (value >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        self.value = black_box(value);
    }
}

/// `getppid(2)`, repeatedly: into the kernel and back.
struct Syscall;

impl Work for Syscall {
    fn once(&mut self) {
        for _ in 0..CALLS {
            // SAFETY: takes no arguments and cannot fail.
            unsafe { libc::syscall(libc::SYS_getppid) };
        }
    }
}

/// A function of the user.
struct Exec {
    workload: extern "C" fn(),
    _library: Library,
}

impl Exec {
    fn load(file: &Path) -> Result<Self, Error> {
        isolate::drop_all_capabilities()?;
        let library = Library::load(file)?;
        Ok(Self { workload: library.workload()?, _library: library })
    }
}

impl Work for Exec {
    fn once(&mut self) {
        (self.workload)();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the chase visits every line before it returns to the first, for any number of
    /// lines.
    #[test]
    fn one_cycle_through_all() {
        for lines in [2_usize, 3, 64, 1000] {
            let mut numbers = vec![0; lines * NUMBERS];
            link(&mut numbers);
            let mut seen = vec![false; lines];
            let mut at = 0;
            for _ in 0..lines {
                assert!(!std::mem::replace(&mut seen[at], true), "{lines}");
                at = numbers[at * NUMBERS] as usize;
            }
            assert_eq!(at, 0, "{lines}");
        }
    }

    /// Check that a chase continues where it ended, with the right number of steps.
    #[test]
    fn chases_go_on() {
        let mut chase = Chase::through(64 * 3).unwrap();
        let next =
            |chase: &mut Chase, at: u32| chase.memory.numbers()[at as usize * NUMBERS];
        chase.once();
        let expected = (0..STEPS).fold(0, |at, _| next(&mut chase, at));
        assert_eq!(chase.at, expected);
        chase.once();
        let expected = (0..STEPS).fold(expected, |at, _| next(&mut chase, at));
        assert_eq!(chase.at, expected);
    }

    /// Check that all of them run, and that invalid sizes are refused.
    #[test]
    fn all_can_be_run() {
        for workload in ["tif", "memory:128", "memory:1M", "compute", "syscall"] {
            prepare(&workload.parse().unwrap()).unwrap().once();
        }
        let kind = |bytes| prepare(&Workload::Memory(bytes)).unwrap_err().kind();
        assert_eq!([kind(0), kind(127)], [Kind::Spec; 2]);
        assert_eq!([kind(1 << 50), kind(u64::MAX)], [Kind::System; 2]);
    }

    /// Check the results of each workload, so that the steps are really executed.
    #[test]
    fn steps_are_made() {
        let mut compute = Compute { value: 1 };
        compute.once();
        let step =
            |value: u64| (value ^ (value >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        assert_eq!(compute.value, (0..COMPUTE_STEPS).fold(1, |value, _| step(value)));
        let mut tif = Tif { array: [0; 256] };
        tif.once();
        // 50,000 random writes that leave out 200 of 256 places are not random.
        assert!(tif.array.iter().filter(|&&number| number != 0).count() > 56);
    }
}
