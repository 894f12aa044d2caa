//! The version of QEMU's plugin interface: which one is declared, and the differences.
//!
//! QEMU reads `qemu_plugin_version` when it has loaded the plugin, and refuses unsupported
//! versions: 7.2 supports version 1 at most, 11.1 version 7 at least. So the version is
//! chosen while the plugin is loaded, by a constructor, from the functions that this QEMU
//! exports. Functions that a version does not have, or has with other parameters, are
//! looked up by name, because a plugin with an unknown symbol is not loaded.
//!
//! | version | QEMU | changes that affect the plugin |
//! |---|---|---|
//! | 1 | to 8.2 | QEMU adds to a number at an address; instructions are passed as a pointer to their bytes |
//! | 2 | 9.0 | QEMU adds to a number in each CPU's entry of a scoreboard |
//! | 3 | 9.1 | bytes of instructions are copied; callbacks on a condition |
//! | 4, 5 | 9.2 to 10.2 | none |
//! | 6 | 11.0 | none, but 3 to 5 may be refused |
//! | 7 | 11.1 | each callback has a data parameter, and those of the whole plugin no identifier |
//!
//! Sources: `qemu-plugin.h` and `plugins/loader.c` of these versions. 7.2, 10.0 and 11.1
//! have been tested; the others follow their headers.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::qemu::api::{Block, Id, Instruction, OnExecution, Score, Scoreboard};

/// QEMU adds to scoreboards.
const SCOREBOARDS: c_int = 2;
/// Bytes of instructions are copied, and callbacks may have a condition.
const COPIES: c_int = 3;
/// `qemu_plugin_set_pc` exists, the only difference to its predecessors.
const SETS_PC: c_int = 6;
/// All callbacks have a data parameter.
const DATA: c_int = 7;

/// The version that the plugin declares; QEMU reads it.
#[expect(unreachable_pub, reason = "QEMU reaches it by its name")]
#[unsafe(no_mangle)]
#[used]
pub static qemu_plugin_version: AtomicI32 = AtomicI32::new(DATA);

/// Makes the loader call `declare` before QEMU can read the version.
// SAFETY: the section consists of pointers to functions without required parameters.
#[unsafe(link_section = ".init_array")]
#[used]
static ON_LOAD: extern "C" fn() = declare;

extern "C" fn declare() {
    qemu_plugin_version.store(version(), Ordering::Relaxed);
}

/// The version whose functions this QEMU has, as far as they differ.
fn version() -> c_int {
    if find(c"qemu_plugin_scoreboard_new").is_none() {
        return 1;
    }
    if find(c"qemu_plugin_register_vcpu_tb_exec_cond_cb").is_none() {
        return SCOREBOARDS;
    }
    if find(c"qemu_plugin_set_pc").is_none() {
        return COPIES;
    }
    // The same functions exist, with other parameters.
    if release().is_none_or(|release| release >= (11, 0, 50)) { DATA } else { SETS_PC }
}

/// The version of QEMU itself: 11.0.50 is the development version of 11.1.
fn release() -> Option<(i64, i64, i64)> {
    /// `VersionInfo` and `VersionTriple` of QEMU's machine protocol (qapi/control.json).
    #[repr(C)]
    struct Version {
        triple: *const [i64; 3],
        package: *const c_char,
    }
    type Query = unsafe extern "C" fn(*mut *mut c_void) -> *const Version;
    let query = find(c"qmp_query_version")?;
    // SAFETY: this is the function's type; null requests no errors, and there are none. The
    // result is allocated for the caller, which never frees it: once, and a few bytes.
    let [major, minor, micro] = unsafe {
        let query: Query = std::mem::transmute(query);
        (*query(null_mut())).triple.read()
    };
    Some((major, minor, micro))
}

unsafe extern "C" {
    /// Of the C library: the address of a symbol for the calling thread.
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// A symbol of QEMU or of a library that it has loaded.
pub(crate) fn find(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name is a string; null means the whole program's symbols.
    let found = unsafe { dlsym(null_mut(), name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// A function of QEMU.
///
/// # Safety
/// `F` must be the type of a pointer to that function.
unsafe fn function<F: Copy>(name: &CStr) -> Result<F, String> {
    let found = find(name);
    let found =
        found.ok_or_else(|| format!("this QEMU has no {}", name.to_string_lossy()))?;
    // SAFETY: the caller guarantees the type; the pointer is not null.
    Ok(unsafe { std::mem::transmute_copy(&found) })
}

/// The callbacks of the whole plugin.
pub(crate) trait Listener {
    /// QEMU translates a block.
    fn translated(block: *mut Block);
    /// QEMU ends.
    fn ended();
}

/// The functions that differ between versions.
pub(crate) struct Interface {
    whole: Whole,
    data: Data,
    /// How QEMU itself counts.
    pub(crate) adding: Adding,
}

/// Registration of the callbacks of the whole plugin.
enum Whole {
    /// Until version 6.
    WithId {
        translation: unsafe extern "C" fn(Id, extern "C" fn(Id, *mut Block)),
        exit: unsafe extern "C" fn(Id, extern "C" fn(Id, *mut c_void), *mut c_void),
        reset: unsafe extern "C" fn(Id, extern "C" fn(Id)),
    },
    /// Since version 7.
    WithData {
        translation:
            unsafe extern "C" fn(Id, extern "C" fn(*mut Block, *mut c_void), *mut c_void),
        exit: unsafe extern "C" fn(Id, extern "C" fn(*mut c_void), *mut c_void),
        reset: unsafe extern "C" fn(Id, extern "C" fn(*mut c_void), *mut c_void),
    },
}

/// The bytes of an instruction.
enum Data {
    /// Until version 2: a pointer to them, valid during QEMU's callback.
    Lent(unsafe extern "C" fn(*const Instruction) -> *const u8),
    /// Since version 3.
    Copied(unsafe extern "C" fn(*const Instruction, *mut u8, usize) -> usize),
}

/// How QEMU adds a number whenever an instruction is executed.
pub(crate) enum Adding {
    /// Version 1: to the number at an address, for every CPU.
    ToAddress(unsafe extern "C" fn(*mut Instruction, c_int, *mut u64, u64)),
    /// Since version 2: in a scoreboard.
    PerCpu(PerCpu),
}

/// QEMU's functions for scoreboards.
#[derive(Clone, Copy)]
pub(crate) struct PerCpu {
    pub(crate) new: unsafe extern "C" fn(usize) -> *mut Scoreboard,
    pub(crate) find: unsafe extern "C" fn(*mut Scoreboard, c_uint) -> *mut c_void,
    pub(crate) add: unsafe extern "C" fn(*mut Instruction, c_int, Score, u64),
    /// Since version 3: calls back if a number compares so.
    pub(crate) call_if: Option<CallIf>,
}

type CallIf =
    unsafe extern "C" fn(*mut Block, OnExecution, c_int, c_int, Score, u64, *mut c_void);

impl Interface {
    /// The interface of this QEMU, which has accepted the declared version.
    pub(crate) fn get() -> Result<&'static Self, String> {
        static INTERFACE: OnceLock<Result<Interface, String>> = OnceLock::new();
        let version = qemu_plugin_version.load(Ordering::Relaxed);
        let found = INTERFACE.get_or_init(|| Self::find(version));
        found.as_ref().map_err(Clone::clone)
    }

    fn find(version: c_int) -> Result<Self, String> {
        let adding = if version < SCOREBOARDS {
            let name = c"qemu_plugin_register_vcpu_insn_exec_inline";
            // SAFETY: the type in version 1.
            Adding::ToAddress(unsafe { function(name) }?)
        } else {
            Adding::PerCpu(PerCpu::find(version)?)
        };
        let name = c"qemu_plugin_insn_data";
        // SAFETY: the types before version 3, and since.
        let data = unsafe {
            match version < COPIES {
                true => Data::Lent(function(name)?),
                false => Data::Copied(function(name)?),
            }
        };
        Ok(Self { whole: Whole::find(version)?, data, adding })
    }

    /// Registers the callbacks of a listener.
    pub(crate) fn listen<L: Listener>(&self, id: Id) {
        // SAFETY: `id` is QEMU's identifier of the plugin; the functions live as long as it.
        unsafe {
            match self.whole {
                Whole::WithId { translation, exit, .. } => {
                    translation(id, translated_with_id::<L>);
                    exit(id, ended_with_id::<L>, null_mut());
                }
                Whole::WithData { translation, exit, .. } => {
                    translation(id, translated_with_data::<L>, null_mut());
                    exit(id, ended_with_data::<L>, null_mut());
                }
            }
        }
    }

    /// Makes QEMU discard all callbacks and translations, and then registers again.
    pub(crate) fn listen_anew<L: Listener>(&self, id: Id) {
        // SAFETY: as above; an address is as long as an identity.
        unsafe {
            match self.whole {
                Whole::WithId { reset, .. } => reset(id, listen_with_id::<L>),
                Whole::WithData { reset, .. } => {
                    reset(
                        id,
                        listen_with_data::<L>,
                        without_provenance_mut(usize::from_ne_bytes(id.to_ne_bytes())),
                    );
                }
            }
        }
    }

    /// Copies the bytes of an instruction, as far as they fit; returns their number.
    ///
    /// # Safety
    /// To be called in QEMU's callback for this instruction.
    pub(crate) unsafe fn bytes(
        &self,
        instruction: *const Instruction,
        into: &mut [u8],
    ) -> usize {
        // SAFETY: the caller guarantees the instruction; `into` has the requested length, and
        // the pointer is to as many bytes as the instruction has.
        unsafe {
            match self.data {
                Data::Copied(copy) => copy(instruction, into.as_mut_ptr(), into.len()),
                Data::Lent(lend) => {
                    let size = crate::qemu::api::qemu_plugin_insn_size(instruction);
                    let length = size.min(into.len());
                    lend(instruction).copy_to(into.as_mut_ptr(), length);
                    length
                }
            }
        }
    }
}

impl Whole {
    fn find(version: c_int) -> Result<Self, String> {
        let translation = c"qemu_plugin_register_vcpu_tb_trans_cb";
        let exit = c"qemu_plugin_register_atexit_cb";
        let reset = c"qemu_plugin_reset";
        // SAFETY: the types before version 7, and since.
        unsafe {
            Ok(match version < DATA {
                true => Self::WithId {
                    translation: function(translation)?,
                    exit: function(exit)?,
                    reset: function(reset)?,
                },
                false => Self::WithData {
                    translation: function(translation)?,
                    exit: function(exit)?,
                    reset: function(reset)?,
                },
            })
        }
    }
}

impl PerCpu {
    fn find(version: c_int) -> Result<Self, String> {
        let call_if = c"qemu_plugin_register_vcpu_tb_exec_cond_cb";
        // SAFETY: the types since version 2, and 3.
        unsafe {
            Ok(Self {
                new: function(c"qemu_plugin_scoreboard_new")?,
                find: function(c"qemu_plugin_scoreboard_find")?,
                add: function(c"qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu")?,
                call_if: match version >= COPIES {
                    true => Some(function(call_if)?),
                    false => None,
                },
            })
        }
    }
}

extern "C" fn translated_with_id<L: Listener>(_: Id, block: *mut Block) {
    L::translated(block);
}

extern "C" fn translated_with_data<L: Listener>(block: *mut Block, _: *mut c_void) {
    L::translated(block);
}

extern "C" fn ended_with_id<L: Listener>(_: Id, _: *mut c_void) {
    L::ended();
}

extern "C" fn ended_with_data<L: Listener>(_: *mut c_void) {
    L::ended();
}

extern "C" fn listen_with_id<L: Listener>(id: Id) {
    if let Ok(interface) = Interface::get() {
        interface.listen::<L>(id);
    }
}

extern "C" fn listen_with_data<L: Listener>(id: *mut c_void) {
    listen_with_id::<L>(Id::from_ne_bytes(id.addr().to_ne_bytes()));
}
