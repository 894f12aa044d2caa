//! Idle stretches: how long each CPU stays halted, in guest time.
//!
//! A stretch begins when a CPU executes `hlt`, and ends when it executes its next instruction. In
//! between, guest time passes in two ways: other CPUs execute instructions, of which each takes a
//! nanosecond, and when all CPUs are halted, QEMU skips the time to the next timer
//! (`-icount shift=0,sleep=off`). Both are counted from the start, so that the length of a stretch is
//! a difference of two sums.
//!
//! A stretch that is in progress when a phase begins or ends counts with its part within the
//! phase. A CPU that waits for its turn, as QEMU runs them one after the other, is still idle. Other
//! ways to wait than `hlt` are not seen; QEMU's CPUs do not offer `mwait` for idle.

use std::collections::BTreeMap;

use crate::episode::Count;

/// Lengths of stretches in nanoseconds, each with its frequency.
pub(crate) type Stretches = BTreeMap<u64, u64>;

/// What a CPU does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It has not executed an instruction since counting began: it may have been halted then.
    Unobserved,
    Runs,
    /// It is halted, since that time of the others.
    Halted(u64),
}

/// The idle stretches of all CPUs.
#[derive(Debug)]
pub(crate) struct Idle {
    states: Vec<State>,
    /// The stretches of the current phase.
    stretches: Vec<Stretches>,
    /// The nanoseconds that QEMU has skipped so far; `None` if this QEMU does not export them.
    skipped: Option<u64>,
}

impl Idle {
    /// That many CPUs.
    pub(crate) fn new(cpus: usize) -> Self {
        let (states, stretches) =
            (vec![State::Unobserved; cpus], vec![Stretches::new(); cpus]);
        Self { states, stretches, skipped: None }
    }

    /// Sets the nanoseconds that QEMU has skipped so far, before each of the calls below.
    pub(crate) fn set_skipped(&mut self, skipped: Option<u64>) {
        self.skipped = skipped;
    }

    /// Whether the CPU may be halted, so that its next instruction ends a stretch.
    pub(crate) fn may_be_halted(&self, cpu: usize) -> bool {
        self.states[cpu] != State::Runs
    }

    /// A CPU executes `hlt`; `counts` are those of all CPUs.
    pub(crate) fn halt(&mut self, cpu: usize, counts: &[Count]) {
        self.states[cpu] = State::Halted(self.time_without(cpu, counts));
    }

    /// A CPU executes an instruction.
    pub(crate) fn run(&mut self, cpu: usize, counts: &[Count]) {
        self.add(cpu, counts);
        self.states[cpu] = State::Runs;
    }

    /// A phase begins.
    pub(crate) fn begin(&mut self, counts: &[Count]) {
        self.stretches.iter_mut().for_each(Stretches::clear);
        for cpu in 0..self.states.len() {
            let has_run = counts.get(cpu).is_some_and(|count| count.all() > 0);
            match self.states[cpu] {
                State::Unobserved if has_run => self.states[cpu] = State::Runs,
                State::Unobserved | State::Halted(_) => self.halt(cpu, counts),
                State::Runs => {}
            }
        }
    }

    /// A phase ends; returns the stretches of each CPU in it, if they are known.
    pub(crate) fn end(&mut self, counts: &[Count]) -> Option<Vec<Stretches>> {
        for cpu in 0..self.states.len() {
            if let State::Halted(_) = self.states[cpu] {
                self.add(cpu, counts);
                self.halt(cpu, counts);
            }
        }
        let stretches = self.stretches.iter_mut().map(std::mem::take).collect();
        self.skipped.map(|_| stretches)
    }

    /// Adds the stretch of a halted CPU.
    fn add(&mut self, cpu: usize, counts: &[Count]) {
        let State::Halted(since) = self.states[cpu] else { return };
        let length = self.time_without(cpu, counts).saturating_sub(since);
        *self.stretches[cpu].entry(length).or_default() += 1;
    }

    /// The guest time that has passed without an instruction of this CPU.
    fn time_without(&self, cpu: usize, counts: &[Count]) -> u64 {
        let others = counts.iter().enumerate().filter(|(other, _)| *other != cpu);
        let executed = others.map(|(_, count)| count.all()).sum::<u64>();
        self.skipped.unwrap_or(0) + executed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel's instructions of two CPUs.
    fn counts(kernel: [u64; 2]) -> [Count; 2] {
        kernel.map(|kernel| Count { user: 0, kernel })
    }

    /// Check that a stretch has the skipped time and the instructions of the other CPU, and not
    /// those of the CPU itself.
    #[test]
    fn lengths() {
        let mut idle = Idle::new(2);
        idle.set_skipped(Some(5));
        idle.begin(&counts([10, 10]));
        assert!(!idle.may_be_halted(1));
        idle.halt(1, &counts([10, 20]));
        assert!(idle.may_be_halted(1));
        // The halt itself is counted after its callback.
        idle.set_skipped(Some(1005));
        idle.run(1, &counts([40, 21]));
        idle.halt(1, &counts([40, 30]));
        idle.set_skipped(Some(2035));
        idle.run(1, &counts([40, 31]));
        let ended = idle.end(&counts([50, 60])).unwrap();
        assert_eq!(ended, [Stretches::new(), Stretches::from([(1030, 2)])]);
    }

    /// Check that a stretch counts with its part within the phase, that one before the first phase is
    /// not counted, and that a CPU that has executed nothing so far is halted.
    #[test]
    fn edges() {
        let mut idle = Idle::new(2);
        idle.run(0, &counts([0, 0]));
        idle.set_skipped(Some(400));
        idle.begin(&counts([100, 0]));
        idle.set_skipped(Some(1400));
        let ended = idle.end(&counts([150, 0])).unwrap();
        assert_eq!(ended, [Stretches::new(), Stretches::from([(1050, 1)])]);
        idle.set_skipped(Some(1500));
        idle.begin(&counts([160, 0]));
        idle.set_skipped(Some(1600));
        idle.run(1, &counts([170, 0]));
        let ended = idle.end(&counts([170, 90])).unwrap();
        assert_eq!(ended, [Stretches::new(), Stretches::from([(110, 1)])]);
    }

    /// Check that a CPU whose first observed instructions were a program's is not idle, and that
    /// nothing is known without QEMU's clock.
    #[test]
    fn programs_and_unknown() {
        let mut idle = Idle::new(1);
        idle.begin(&[Count { user: 7, kernel: 0 }]);
        assert_eq!(idle.end(&[Count { user: 90, kernel: 0 }]), None);
        idle.set_skipped(Some(0));
        let ended = idle.end(&[Count { user: 90, kernel: 0 }]);
        assert_eq!(ended, Some(vec![Stretches::new()]));
    }
}
