//! The counts of each CPU, the method of counting, and the executing CPU.
//!
//! With one CPU QEMU's translated code counts, without callbacks (inline operations, on a
//! scoreboard if there are any). With several that is not possible: QEMU 10.0 treats the CPU's
//! number as a constant while it translates for instruction-counted CPUs, although they
//! share translations (`gen_cpu_index` in accel/tcg/plugin-gen.c), and inline counting corrupts
//! the constant. The number that callbacks get is that constant, too. So with several CPUs
//! every instruction calls back, and is counted for all of them together: QEMU runs them in
//! turns, each of which begins with a block, and every block calls back. The count up to then
//! belongs to the CPU of the last turn; the CPU of the new one is read from QEMU's `current_cpu`.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_int, c_uint, c_void};
use std::mem::offset_of;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::episode::Count;
use crate::qemu::api::{self, OnExecution, Score, Scoreboard};
use crate::qemu::clock::Clock;
use crate::qemu::interface::{self, Adding, Interface, PerCpu};
use crate::qemu::translation::{Instruction, Translated};
use crate::symbols::{Function, UNKNOWN};

/// Values of a place's privilege level.
pub(crate) const USER: u64 = 0;
pub(crate) const IN_KERNEL: u64 = 1;
/// In the kernel, after the return from an interrupt or exception.
pub(crate) const RETURNED: u64 = 2;
/// The number of functions that are counted apart; the others share the first counter.
const FUNCTIONS_MAX: usize = 1 << 15;

/// The counts of one CPU.
#[repr(C)]
#[derive(Default)]
struct Place {
    user: u64,
    kernel: u64,
    /// The CPU's privilege level, so that blocks of programs call back only on arrival.
    level: u64,
}

/// How instructions are counted.
enum Counting {
    /// QEMU counts on a scoreboard: one CPU.
    OnBoard(PerCpu, *mut Scoreboard),
    /// QEMU counts in the entry of the one CPU.
    InPlace(unsafe extern "C" fn(*mut api::Instruction, c_int, *mut u64, u64)),
    /// Each instruction calls back, and is counted here: several CPUs.
    CalledBack(*mut Place),
}

/// The counts of all CPUs.
pub(crate) struct Places {
    cpus: usize,
    counting: Counting,
    /// An entry for each CPU, once QEMU has created them.
    places: OnceLock<Vec<*mut Place>>,
    /// The scoreboard of the counters of functions, if they are on one.
    board: *mut Scoreboard,
    /// The counters of functions, once QEMU has created its CPUs.
    functions: OnceLock<FunctionCounters>,
    /// The counter of each function that has one, and the functions in the order of counters.
    counters: Mutex<(BTreeMap<Function, usize>, Vec<Function>)>,
    /// Of several CPUs, the executing one.
    turn: AtomicUsize,
    /// QEMU's clock, if this QEMU exports it, for the thread that runs the CPUs.
    clock: OnceLock<Option<Clock>>,
}

/// The memory of the counters of functions.
struct FunctionCounters(*mut u64);

// SAFETY: as below.
unsafe impl Send for FunctionCounters {}
// SAFETY: as below.
unsafe impl Sync for FunctionCounters {}

// SAFETY: the entries live until the end, and only the one thread that runs the CPUs of an
// instruction-counted guest, or the one that ends QEMU after it, accesses them.
unsafe impl Send for Places {}
// SAFETY: as above.
unsafe impl Sync for Places {}

/// QEMU's variable for the CPU that a thread executes (`include/hw/core/cpu.h`).
pub(crate) const CURRENT_CPU: &CStr = c"current_cpu";
/// The address of that variable in the thread that runs the CPUs.
static CURRENT: AtomicPtr<*mut c_void> = AtomicPtr::new(null_mut());
/// QEMU's CPUs, in their order.
static CPUS: AtomicPtr<Vec<*mut c_void>> = AtomicPtr::new(null_mut());

impl Places {
    /// Entries for that many CPUs; an error if this QEMU does not support counting them.
    pub(crate) fn new(cpus: usize, interface: &Interface) -> Result<Self, String> {
        let counting = match interface.adding {
            _ if cpus > 1 => Counting::CalledBack(Box::into_raw(Box::default())),
            Adding::ToAddress(add) => Counting::InPlace(add),
            Adding::PerCpu(boards) => {
                // SAFETY: the parameter is a size; the result is memory owned by QEMU.
                let board = unsafe { (boards.new)(size_of::<Place>()) };
                Counting::OnBoard(boards, board)
            }
        };
        if cpus > 1 && interface::find(CURRENT_CPU).is_none() {
            return Err("this QEMU does not export its executing CPU".to_owned());
        }
        let (places, turn) = (OnceLock::new(), AtomicUsize::new(0));
        let counters = Mutex::new((BTreeMap::new(), vec![UNKNOWN]));
        let functions = OnceLock::new();
        let board = match counting {
            // SAFETY: as above.
            Counting::OnBoard(boards, _) => unsafe {
                (boards.new)(FUNCTIONS_MAX * size_of::<u64>())
            },
            Counting::InPlace(_) | Counting::CalledBack(_) => null_mut(),
        };
        let clock = OnceLock::new();
        Ok(Self { cpus, counting, places, board, functions, counters, turn, clock })
    }

    /// The memory of the counters of functions, once QEMU has created its CPUs.
    fn function_counters(&self) -> *mut u64 {
        let made = self.functions.get_or_init(|| match self.counting {
            // SAFETY: QEMU has created its one CPU by now, and an entry for it.
            Counting::OnBoard(boards, _) => unsafe {
                FunctionCounters((boards.find)(self.board, 0).cast())
            },
            Counting::InPlace(_) | Counting::CalledBack(_) => {
                let counters = Box::leak(vec![0; FUNCTIONS_MAX].into_boxed_slice());
                FunctionCounters(counters.as_mut_ptr())
            }
        });
        made.0
    }

    /// The counter of a function.
    pub(crate) fn counter(&self, function: Function) -> usize {
        let mut counters = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, order) = &mut *counters;
        match known.get(&function) {
            Some(&counter) => counter,
            None if order.len() < FUNCTIONS_MAX => {
                order.push(function);
                known.insert(function, order.len() - 1);
                order.len() - 1
            }
            None => 0,
        }
    }

    /// The functions, in the order of their counters.
    pub(crate) fn counted(&self) -> Vec<Function> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    /// The counters of functions.
    pub(crate) fn functions(&self) -> &[u64] {
        let Some(memory) = self.functions.get() else { return &[] };
        let length = self.counters.lock().unwrap_or_else(PoisonError::into_inner).1.len();
        // SAFETY: the memory lives until the end, has `FUNCTIONS_MAX` counters, and is written by
        // the calling thread only, while it executes the guest's code.
        unsafe { std::slice::from_raw_parts(memory.0, length) }
    }

    /// Counts an instruction of the kernel, also in that counter of a function, whenever it is
    /// executed.
    pub(crate) fn count_kernel_in(&self, instruction: &Instruction, counter: usize) {
        self.count_kernel(instruction);
        let offset = counter * size_of::<u64>();
        // SAFETY: the counter is below `FUNCTIONS_MAX`.
        unsafe {
            self.add_one(
                instruction,
                self.board,
                self.function_counters().byte_add(offset),
                offset,
            )
        }
    }

    /// Finds the entries, and, in the thread that runs the CPUs, the variable of the executing
    /// CPU.
    pub(crate) fn meet_thread(&self) {
        let make = |cpu: usize| match self.counting {
            Counting::OnBoard(boards, board) => {
                let cpu = c_uint::try_from(cpu).unwrap_or(0);
                // SAFETY: QEMU has created its one CPU by now, and an entry for it.
                unsafe { (boards.find)(board, cpu) }.cast()
            }
            Counting::InPlace(_) | Counting::CalledBack(_) => {
                Box::into_raw(Box::default())
            }
        };
        let places = self.places.get_or_init(|| (0..self.cpus).map(make).collect());
        self.clock.get_or_init(Clock::of_thread);
        if self.cpus > 1 && CURRENT.load(Ordering::Relaxed).is_null() {
            learn_current(places.len());
        }
    }

    /// The number of the CPU that calls back. To be called at the beginning of each block.
    pub(crate) fn current(&self) -> usize {
        let Counting::CalledBack(together) = self.counting else { return 0 };
        let (before, now) = (self.turn.load(Ordering::Relaxed), current_cpu());
        if now != before {
            self.end_turn(before, together);
            self.turn.store(now, Ordering::Relaxed);
        }
        now
    }

    /// Adds the count of a turn to its CPU.
    fn end_turn(&self, cpu: usize, together: *mut Place) {
        let place = self.all()[cpu];
        // SAFETY: both entries live until the end, and are written by the calling thread.
        unsafe {
            (*place).user += std::mem::take(&mut (*together).user);
            (*place).kernel += std::mem::take(&mut (*together).kernel);
        }
    }

    /// The instructions that a CPU has executed so far.
    pub(crate) fn count(&self, cpu: usize) -> Count {
        if let Counting::CalledBack(together) = self.counting {
            self.end_turn(self.turn.load(Ordering::Relaxed), together);
        }
        let place = self.all()[cpu];
        // SAFETY: the entry lives until the end, and is written by the calling thread.
        unsafe { Count { user: (*place).user, kernel: (*place).kernel } }
    }

    /// The instructions that each CPU has executed so far.
    pub(crate) fn counts(&self) -> Vec<Count> {
        (0..self.cpus).map(|cpu| self.count(cpu)).collect()
    }

    /// The nanoseconds that QEMU has skipped so far, because all CPUs were halted; `None` if this
    /// QEMU does not export them.
    pub(crate) fn skipped(&self) -> Option<u64> {
        self.clock.get().copied().flatten().map(Clock::skipped)
    }

    /// The last known level of a CPU.
    pub(crate) fn level(&self, cpu: usize) -> u64 {
        // SAFETY: as in `count`.
        unsafe { (*self.all()[cpu]).level }
    }

    /// Stores the level of a CPU.
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

    /// The entries; there are no callbacks before they exist.
    fn all(&self) -> &[*mut Place] {
        self.places.get().map_or(&[], Vec::as_slice)
    }

    fn count_at(&self, instruction: &Instruction, offset: usize) {
        let (board, entry) = match self.counting {
            Counting::OnBoard(_, board) => (board, null_mut()),
            Counting::InPlace(_) => match self.all().first() {
                Some(place) => (null_mut(), *place),
                None => return,
            },
            Counting::CalledBack(together) => (null_mut(), together),
        };
        // SAFETY: the offset is that of a number within an entry.
        unsafe {
            self.add_one(
                instruction,
                board,
                entry.cast::<u64>().wrapping_byte_add(offset),
                offset,
            )
        }
    }

    /// Adds one whenever the instruction is executed: on that board at that offset if QEMU counts on
    /// scoreboards, else to that number.
    ///
    /// # Safety
    /// The offset must be that of a number on the board, or the number valid until the end.
    unsafe fn add_one(
        &self,
        instruction: &Instruction,
        board: *mut Scoreboard,
        number: *mut u64,
        offset: usize,
    ) {
        // SAFETY: QEMU's instruction is valid during its callback; the rest is the caller's.
        unsafe {
            match self.counting {
                Counting::OnBoard(boards, _) => {
                    (boards.add)(instruction.0, api::ADD, Score { board, offset }, 1);
                }
                Counting::InPlace(add) => add(instruction.0, api::ADD, number, 1),
                Counting::CalledBack(_) => {
                    api::qemu_plugin_register_vcpu_insn_exec_cb(
                        instruction.0,
                        executed,
                        api::NO_REGISTERS,
                        number.cast(),
                    );
                }
            }
        }
    }

    /// Calls back with `data` when a block is executed, unless the CPU's level is that one; always
    /// without one, and where QEMU has no callbacks with a condition.
    pub(crate) fn call_back_unless(
        &self,
        level: Option<u64>,
        block: &Translated,
        then: OnExecution,
        data: *mut c_void,
    ) {
        let registers = api::NO_REGISTERS;
        // SAFETY: QEMU's block is valid during its callback; the score is within an entry.
        unsafe {
            if let (
                Counting::OnBoard(PerCpu { call_if: Some(call_if), .. }, board),
                Some(level),
            ) = (&self.counting, level)
            {
                let score = Score { board: *board, offset: offset_of!(Place, level) };
                let condition = api::NOT_EQUAL;
                call_if(block.0, then, registers, condition, score, level, data);
            } else {
                api::qemu_plugin_register_vcpu_tb_exec_cb(block.0, then, registers, data);
            }
        }
    }
}

fn learn_current(cpus: usize) {
    let cpu = |number: usize| {
        // SAFETY: the parameter is a number; the result for an invalid one is null.
        unsafe { api::qemu_get_cpu(c_int::try_from(number).unwrap_or(-1)) }
    };
    CPUS.store(Box::into_raw(Box::new((0..cpus).map(cpu).collect())), Ordering::Relaxed);
    // Checked when the plugin was installed.
    let current = interface::find(CURRENT_CPU).unwrap_or(null_mut());
    CURRENT.store(current.cast(), Ordering::Relaxed);
}

/// The number of the CPU that the calling thread executes.
fn current_cpu() -> usize {
    let (current, cpus) = (CURRENT.load(Ordering::Relaxed), CPUS.load(Ordering::Relaxed));
    // SAFETY: both were stored before the first callback, belong to this thread, and live
    // until the end.
    let (now, cpus) = unsafe { (*current, &*cpus) };
    cpus.iter().position(|cpu| *cpu == now).unwrap_or(0)
}

/// Counts an executed instruction in that number.
extern "C" fn executed(_: c_uint, number: *mut c_void) {
    // SAFETY: the number is part of an entry that lives until the end.
    unsafe { *number.cast::<u64>() += 1 }
}
