//! The part of QEMU's plugin interface that is the same in all its versions, and the types
//! of the rest (`qemu-plugin.h` of QEMU 7.2 to 11.1; `interface.rs` handles the differences). The
//! functions are QEMU's; the loader resolves them when it loads the plugin.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// QEMU's identifier of this plugin.
pub(crate) type Id = u64;
/// Called when a vCPU executes a block or an instruction.
pub(crate) type OnExecution = extern "C" fn(vcpu: c_uint, data: *mut c_void);
/// Called when an instruction has accessed memory at that virtual address.
pub(crate) type OnAccess =
    extern "C" fn(vcpu: c_uint, access: Access, address: u64, data: *mut c_void);
/// The kind of an access (`qemu_plugin_meminfo_t`); not used.
pub(crate) type Access = u32;

/// A callback does not read the guest's registers.
pub(crate) const NO_REGISTERS: c_int = 0;
/// Loads only (`QEMU_PLUGIN_MEM_R`).
pub(crate) const READS: c_int = 1;
pub(crate) const WRITES: c_int = 2;
/// A conditional callback happens if the value differs.
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

/// Memory with an entry for each vCPU (`struct qemu_plugin_scoreboard`).
#[repr(C)]
pub(crate) struct Scoreboard {
    _opaque: [u8; 0],
}

/// A 64-bit number in each vCPU's entry (`qemu_plugin_u64`).
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Score {
    pub(crate) board: *mut Scoreboard,
    pub(crate) offset: usize,
}

/// QEMU's description of itself (`qemu_info_t`), as far as the plugin reads it.
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
    pub(crate) fn qemu_plugin_register_vcpu_tb_exec_cb(
        block: *mut Block,
        then: OnExecution,
        flags: c_int,
        data: *mut c_void,
    );
    pub(crate) fn qemu_plugin_register_vcpu_insn_exec_cb(
        instruction: *mut Instruction,
        then: OnExecution,
        flags: c_int,
        data: *mut c_void,
    );
    pub(crate) fn qemu_plugin_register_vcpu_mem_cb(
        instruction: *mut Instruction,
        then: OnAccess,
        flags: c_int,
        accesses: c_int,
        data: *mut c_void,
    );
    pub(crate) fn qemu_plugin_tb_n_insns(block: *const Block) -> usize;
    pub(crate) fn qemu_plugin_tb_vaddr(block: *const Block) -> u64;
    pub(crate) fn qemu_plugin_tb_get_insn(
        block: *const Block,
        index: usize,
    ) -> *mut Instruction;
    pub(crate) fn qemu_plugin_insn_size(instruction: *const Instruction) -> usize;
    pub(crate) fn qemu_plugin_insn_vaddr(instruction: *const Instruction) -> u64;
}

// Not part of the plugin interface: QEMU exports this for its own modules.
unsafe extern "C" {
    /// A CPU by its number (`include/hw/core/cpu.h`).
    pub(crate) fn qemu_get_cpu(number: c_int) -> *mut c_void;
}
