//! The part of QEMU's plugin interface that is used here (version 4, `qemu-plugin.h` of
//! QEMU 10.0). The functions are QEMU's own; the loader finds them when it loads us.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// The version of the interface that this plugin is written for.
pub(crate) const VERSION: c_int = 4;

/// Names this plugin to QEMU.
pub(crate) type Id = u64;
/// Called when a block of instructions is translated.
pub(crate) type OnTranslation = extern "C" fn(Id, *mut Block);
/// Called when a vCPU comes to a block or an instruction.
pub(crate) type OnExecution = extern "C" fn(vcpu: c_uint, data: *mut c_void);
/// Called once, with the data given.
pub(crate) type OnExit = extern "C" fn(Id, data: *mut c_void);
/// Called when all callbacks have been taken away and all translations thrown away.
pub(crate) type OnReset = extern "C" fn(Id);

/// A callback does not look at the guest's registers.
pub(crate) const NO_REGISTERS: c_int = 0;
/// A conditional callback is made where the value is another one.
pub(crate) const NOT_EQUAL: c_int = 3;
/// An inline operation adds.
pub(crate) const ADD: c_int = 0;

/// A block of instructions that QEMU translates at once (`struct qemu_plugin_tb`).
#[repr(C)]
pub(crate) struct Block {
    _opaque: [u8; 0],
}

/// One instruction of a block (`struct qemu_plugin_insn`).
#[repr(C)]
pub(crate) struct Instruction {
    _opaque: [u8; 0],
}

/// Memory with a place for each vCPU (`struct qemu_plugin_scoreboard`).
#[repr(C)]
pub(crate) struct Scoreboard {
    _opaque: [u8; 0],
}

/// A 64-bit number in each vCPU's place (`qemu_plugin_u64`).
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Score {
    pub(crate) board: *mut Scoreboard,
    pub(crate) offset: usize,
}

/// What QEMU says of itself (`qemu_info_t`), as far as we look.
#[repr(C)]
pub(crate) struct Info {
    pub(crate) target_name: *const c_char,
    pub(crate) version_min: c_int,
    pub(crate) version_now: c_int,
    pub(crate) system_emulation: bool,
    pub(crate) cpus: c_int,
    pub(crate) cpus_max: c_int,
}

unsafe extern "C" {
    pub(crate) fn qemu_plugin_reset(id: Id, then: OnReset);
    pub(crate) fn qemu_plugin_register_atexit_cb(id: Id, then: OnExit, data: *mut c_void);
    pub(crate) fn qemu_plugin_register_vcpu_tb_trans_cb(id: Id, then: OnTranslation);
    pub(crate) fn qemu_plugin_register_vcpu_tb_exec_cb(
        block: *mut Block,
        then: OnExecution,
        flags: c_int,
        data: *mut c_void,
    );
    pub(crate) fn qemu_plugin_register_vcpu_tb_exec_cond_cb(
        block: *mut Block,
        then: OnExecution,
        flags: c_int,
        condition: c_int,
        score: Score,
        value: u64,
        data: *mut c_void,
    );
    pub(crate) fn qemu_plugin_register_vcpu_insn_exec_cb(
        instruction: *mut Instruction,
        then: OnExecution,
        flags: c_int,
        data: *mut c_void,
    );
    pub(crate) fn qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
        instruction: *mut Instruction,
        operation: c_int,
        score: Score,
        value: u64,
    );
    pub(crate) fn qemu_plugin_tb_n_insns(block: *const Block) -> usize;
    pub(crate) fn qemu_plugin_tb_vaddr(block: *const Block) -> u64;
    pub(crate) fn qemu_plugin_tb_get_insn(
        block: *const Block,
        index: usize,
    ) -> *mut Instruction;
    pub(crate) fn qemu_plugin_insn_data(
        instruction: *const Instruction,
        into: *mut c_void,
        length: usize,
    ) -> usize;
    pub(crate) fn qemu_plugin_insn_size(instruction: *const Instruction) -> usize;
    pub(crate) fn qemu_plugin_insn_vaddr(instruction: *const Instruction) -> u64;
    pub(crate) fn qemu_plugin_scoreboard_new(size: usize) -> *mut Scoreboard;
    pub(crate) fn qemu_plugin_scoreboard_find(
        board: *mut Scoreboard,
        vcpu: c_uint,
    ) -> *mut c_void;
}

// Not of the plugin interface: QEMU exports these for its own modules.
unsafe extern "C" {
    /// A CPU by its number (`include/hw/core/cpu.h`).
    pub(crate) fn qemu_get_cpu(number: c_int) -> *mut c_void;
    /// The C library's: where a symbol is for the calling thread.
    pub(crate) fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}
