//! What is counted for each CPU, by which instructions, and which CPU that is.
//!
//! With one CPU QEMU's own code counts, without calling back (inline operations, on a
//! scoreboard where there are any). With several it must not: QEMU 10.0 takes the CPU's
//! number for a constant while it translates for instruction-counted CPUs, although they
//! share translations (`gen_cpu_index` in accel/tcg/plugin-gen.c), and the constant is spoilt
//! besides. The number that callbacks are given is that constant, too. So with several CPUs
//! every instruction calls back, and is counted for all of them together: QEMU runs them in
//! turns, each of which begins with a block, and every block calls back. What was counted by
//! then is the CPU's whose turn it was; whose it is, is read from QEMU's `current_cpu`.

use std::ffi::{CStr, c_int, c_uint, c_void};
use std::mem::offset_of;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

use crate::api::{self, OnExecution, Score, Scoreboard};
use crate::episode::Count;
use crate::interface::{self, Adding, Interface, PerCpu};
use crate::translation::{Instruction, Translated};

/// Values of a place's level.
pub(crate) const USER: u64 = 0;
pub(crate) const IN_KERNEL: u64 = 1;

/// What is counted for one CPU.
#[repr(C)]
#[derive(Default)]
struct Place {
    user: u64,
    kernel: u64,
    /// Where the CPU is, so that programs' blocks are told only on arrival.
    level: u64,
}

/// How instructions are counted.
enum Counting {
    /// QEMU adds them up on a scoreboard: one CPU.
    OnBoard(PerCpu, *mut Scoreboard),
    /// QEMU adds them up in the place of the one CPU.
    InPlace(unsafe extern "C" fn(*mut api::Instruction, c_int, *mut u64, u64)),
    /// Each of them calls back, and is added here: several CPUs.
    CalledBack(*mut Place),
}

/// What is counted for all CPUs.
pub(crate) struct Places {
    cpus: usize,
    counting: Counting,
    /// A place for each CPU, once QEMU has made them.
    places: OnceLock<Vec<*mut Place>>,
    /// Of several CPUs, the one whose turn it is.
    turn: AtomicUsize,
}

// SAFETY: the places live until the end, and only the one thread that runs the CPUs of an
// instruction-counted guest, or the one that ends QEMU after it, looks at them.
unsafe impl Send for Places {}
// SAFETY: as above.
unsafe impl Sync for Places {}

/// What QEMU calls the CPU that a thread is at (`include/hw/core/cpu.h`).
const CURRENT_CPU: &CStr = c"current_cpu";
/// Where QEMU says, for the thread that runs the CPUs, which one it is at.
static CURRENT: AtomicPtr<*mut c_void> = AtomicPtr::new(null_mut());
/// QEMU's CPUs, in their order.
static CPUS: AtomicPtr<Vec<*mut c_void>> = AtomicPtr::new(null_mut());

impl Places {
    /// Places for that many CPUs; says why, where this QEMU does not let them be counted.
    pub(crate) fn new(cpus: usize, interface: &Interface) -> Result<Self, String> {
        let counting = match interface.adding {
            _ if cpus > 1 => Counting::CalledBack(Box::into_raw(Box::default())),
            Adding::ToAddress(add) => Counting::InPlace(add),
            Adding::PerCpu(boards) => {
                // SAFETY: takes a size, and gives memory that QEMU owns.
                let board = unsafe { (boards.new)(size_of::<Place>()) };
                Counting::OnBoard(boards, board)
            }
        };
        if cpus > 1 && interface::find(CURRENT_CPU).is_none() {
            return Err("this QEMU does not tell which CPU it is at".to_owned());
        }
        let (places, turn) = (OnceLock::new(), AtomicUsize::new(0));
        Ok(Self { cpus, counting, places, turn })
    }

    /// Finds the places, and learns, in the thread that runs the CPUs, how to tell which
    /// one it is at.
    pub(crate) fn meet_thread(&self) {
        let make = |cpu: usize| match self.counting {
            Counting::OnBoard(boards, board) => {
                let cpu = c_uint::try_from(cpu).unwrap_or(0);
                // SAFETY: QEMU has made its one CPU by now, and a place for it.
                unsafe { (boards.find)(board, cpu) }.cast()
            }
            Counting::InPlace(_) | Counting::CalledBack(_) => {
                Box::into_raw(Box::default())
            }
        };
        let places = self.places.get_or_init(|| (0..self.cpus).map(make).collect());
        if self.cpus > 1 && CURRENT.load(Ordering::Relaxed).is_null() {
            learn_current(places.len());
        }
    }

    /// The number of the CPU that calls back. To be asked for at the beginning of each block.
    pub(crate) fn current(&self) -> usize {
        let Counting::CalledBack(together) = self.counting else { return 0 };
        let (before, now) = (self.turn.load(Ordering::Relaxed), current_cpu());
        if now != before {
            self.end_turn(before, together);
            self.turn.store(now, Ordering::Relaxed);
        }
        now
    }

    /// Gives a CPU what was counted in its turn.
    fn end_turn(&self, cpu: usize, together: *mut Place) {
        let place = self.all()[cpu];
        // SAFETY: both places live until the end, and are written by the calling thread.
        unsafe {
            (*place).user += std::mem::take(&mut (*together).user);
            (*place).kernel += std::mem::take(&mut (*together).kernel);
        }
    }

    /// What a CPU has executed so far.
    pub(crate) fn count(&self, cpu: usize) -> Count {
        if let Counting::CalledBack(together) = self.counting {
            self.end_turn(self.turn.load(Ordering::Relaxed), together);
        }
        let place = self.all()[cpu];
        // SAFETY: the place lives until the end, and is written by the calling thread.
        unsafe { Count { user: (*place).user, kernel: (*place).kernel } }
    }

    /// What each CPU has executed so far.
    pub(crate) fn counts(&self) -> Vec<Count> {
        (0..self.cpus).map(|cpu| self.count(cpu)).collect()
    }

    /// Where a CPU was last seen.
    pub(crate) fn level(&self, cpu: usize) -> u64 {
        // SAFETY: as in `count`.
        unsafe { (*self.all()[cpu]).level }
    }

    /// Keeps where a CPU is.
    pub(crate) fn set_level(&self, cpu: usize, level: u64) {
        let place = self.all()[cpu];
        // SAFETY: as in `count`.
        unsafe { (*place).level = level }
    }

    /// Counts a program's instruction whenever it is executed.
    pub(crate) fn count_user(&self, instruction: &Instruction) {
        self.count_at(instruction, offset_of!(Place, user));
    }

    /// Counts an instruction of the kernel whenever it is executed.
    pub(crate) fn count_kernel(&self, instruction: &Instruction) {
        self.count_at(instruction, offset_of!(Place, kernel));
    }

    /// The places; nobody is told of anything before they are there.
    fn all(&self) -> &[*mut Place] {
        self.places.get().map_or(&[], Vec::as_slice)
    }

    fn count_at(&self, instruction: &Instruction, offset: usize) {
        // SAFETY: QEMU's instruction is valid while it tells of it; the offset is that of a
        // number within a place, and a callback takes it for data.
        unsafe {
            match self.counting {
                Counting::OnBoard(boards, board) => {
                    (boards.add)(instruction.0, api::ADD, Score { board, offset }, 1);
                }
                Counting::InPlace(add) => {
                    let Some(place) = self.all().first() else { return };
                    add(instruction.0, api::ADD, place.byte_add(offset).cast(), 1);
                }
                Counting::CalledBack(together) => {
                    api::qemu_plugin_register_vcpu_insn_exec_cb(
                        instruction.0,
                        executed,
                        api::NO_REGISTERS,
                        together.byte_add(offset).cast(),
                    );
                }
            }
        }
    }

    /// Calls back where a program's block is reached from the kernel, or more often.
    pub(crate) fn call_back_on_arrival(&self, block: &Translated, then: OnExecution) {
        let (registers, data) = (api::NO_REGISTERS, null_mut());
        // SAFETY: QEMU's block is valid while it tells of it; the score is within a place.
        unsafe {
            match self.counting {
                Counting::OnBoard(PerCpu { call_if: Some(call_if), .. }, board) => {
                    let level = Score { board, offset: offset_of!(Place, level) };
                    call_if(block.0, then, registers, api::NOT_EQUAL, level, USER, data);
                }
                _ => api::qemu_plugin_register_vcpu_tb_exec_cb(
                    block.0, then, registers, data,
                ),
            }
        }
    }
}

fn learn_current(cpus: usize) {
    let cpu = |number: usize| {
        // SAFETY: takes a number, and finds no CPU for a wrong one.
        unsafe { api::qemu_get_cpu(c_int::try_from(number).unwrap_or(-1)) }
    };
    CPUS.store(Box::into_raw(Box::new((0..cpus).map(cpu).collect())), Ordering::Relaxed);
    // It was there when the plugin was installed.
    let current = interface::find(CURRENT_CPU).unwrap_or(null_mut());
    CURRENT.store(current.cast(), Ordering::Relaxed);
}

/// The number of the CPU that the calling thread is at.
fn current_cpu() -> usize {
    let (current, cpus) = (CURRENT.load(Ordering::Relaxed), CPUS.load(Ordering::Relaxed));
    // SAFETY: both were stored before the first callback, are for this thread, and live
    // until the end.
    let (now, cpus) = unsafe { (*current, &*cpus) };
    cpus.iter().position(|cpu| *cpu == now).unwrap_or(0)
}

/// An instruction is executed, and counted in that number.
extern "C" fn executed(_: c_uint, number: *mut c_void) {
    // SAFETY: the number is one of a place that lives until the end.
    unsafe { *number.cast::<u64>() += 1 }
}
