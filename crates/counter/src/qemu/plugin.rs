//! The interface to QEMU: the callbacks that are registered, and their functions.
//!
//! Until the agent executes its first mark only that mark and halts are detected, so that a
//! guest boots at full speed. Then all translations are discarded, and each instruction
//! translated from there on is counted when it is executed. QEMU runs CPUs in turns, and
//! discarding translations ends a turn, which a guest of several CPUs would observe; so it is done
//! when a CPU halts, which ends its turn in any case.
//!
//! With `detail=contexts` the kernel's blocks do not all call back: see `contexts`.
//!
//! QEMU runs all CPUs of an instruction-counted guest in one thread, and exits in
//! another: the lock is needed for that, and is never contended.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::borders::Borders;
use crate::contexts::{From, Point};
use crate::decode::{Architecture, Ending, Mark};
use crate::output;
use crate::qemu::api::{self, Id, Info};
use crate::qemu::interface::{Interface, Listener};
use crate::qemu::places::{IN_KERNEL, Places, RETURNED, USER};
use crate::qemu::translation::{Instruction, Translated};
use crate::symbols::{Function, KERNEL, Symbols};
use crate::walk::Block;
use crate::watcher::{Detail, Watcher};

/// The output for `probe=on`, which the lab reads.
const PROBED: &str = "can be loaded";

/// The function in which the kernel makes a new thread runnable; its first store sets the state
/// in the thread's structure to zero (kernel/sched/core.c).
const WAKE_NEW: &str = "wake_up_new_task";
/// The longest x86 instruction.
const INSTRUCTION_MAX: usize = 15;

/// State that does not change after the start.
struct Plugin {
    id: Id,
    interface: &'static Interface,
    places: Places,
    symbols: Symbols,
    architecture: Architecture,
    output: PathBuf,
    detail: Detail,
    watcher: Mutex<Watcher>,
}

static PLUGIN: OnceLock<Plugin> = OnceLock::new();
/// Whether the agent has executed *attend*, and counting has not started yet.
static CALLED: AtomicBool = AtomicBool::new(false);

/// Called by QEMU when it loads the plugin: `symbols=FILE,output=FILE[,detail=contexts]`; or
/// `probe=on`, which
/// prints that the plugin can be loaded, and ends QEMU.
///
/// # Safety
/// To be called by QEMU only, according to its interface.
#[expect(unreachable_pub, reason = "QEMU reaches it by its name")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: Id,
    info: *const Info,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: QEMU passes a valid `info` and `argc` strings in `argv`.
    let installed = unsafe { prepare(id, &*info, &arguments(argc, argv)) };
    match installed {
        Ok(plugin) => {
            PLUGIN.get_or_init(|| plugin).interface.listen::<AtEase>(id);
            0
        }
        Err(text) => {
            eprintln!("noisefloor-counter: {text}");
            1
        }
    }
}

/// # Safety
/// `argv` must hold `argc` strings.
unsafe fn arguments(argc: c_int, argv: *const *const c_char) -> Vec<String> {
    let count = usize::try_from(argc).unwrap_or(0);
    // SAFETY: the caller guarantees that many strings, each ended by a zero.
    let string = |index| unsafe { CStr::from_ptr(*argv.add(index)) };
    (0..count).map(|index| string(index).to_string_lossy().into_owned()).collect()
}

fn prepare(id: Id, info: &Info, arguments: &[String]) -> Result<Plugin, String> {
    let value = |key: &str| arguments.iter().find_map(|given| given.strip_prefix(key));
    let interface = Interface::get()?;
    if value("probe=") == Some("on") {
        return Err(PROBED.to_owned());
    }
    let output = value("output=").ok_or("output=FILE is missing")?;
    let symbols = match value("symbols=") {
        Some(file) => {
            std::fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?
        }
        None => String::new(),
    };
    if !info.system_emulation {
        return Err("only system emulation is supported".to_owned());
    }
    // SAFETY: QEMU's own string, ended by a zero.
    let target = unsafe { CStr::from_ptr(info.target_name) }.to_string_lossy();
    let architecture = Architecture::named(&target).ok_or_else(|| {
        format!("unsupported target {target}; x86_64 and aarch64 are supported")
    })?;
    let cpus = usize::try_from(info.cpus).unwrap_or(1);
    let symbols = Symbols::parse(&symbols);
    let detail = match value("detail=") {
        Some("contexts") => Detail::Contexts,
        None => Detail::Calls,
        Some(other) => return Err(format!("unknown detail {other}")),
    };
    Ok(Plugin {
        id,
        interface,
        places: Places::new(cpus, interface)?,
        watcher: Mutex::new(Watcher::new(cpus, &symbols, detail)),
        detail,
        symbols,
        architecture,
        output: output.into(),
    })
}

impl Plugin {
    fn watcher(&self) -> MutexGuard<'_, Watcher> {
        self.watcher.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts at a border, if that is what is counted.
    fn at_border(&self, count: impl FnOnce(&mut Borders)) {
        self.watcher().borders.as_mut().map(count);
    }

    /// The nanoseconds that QEMU has skipped so far; `None` if it does not export them, or if
    /// halts are not observed.
    fn skipped(&self) -> Option<u64> {
        match self.detail {
            Detail::Calls => self.places.skipped(),
            Detail::Contexts => None,
        }
    }

    /// The watcher, when a CPU begins a block: one that was halted is not any more.
    fn watcher_of_running(&self, cpu: usize) -> MutexGuard<'_, Watcher> {
        let mut watcher = self.watcher();
        if watcher.idle.may_be_halted(cpu) {
            watcher.idle.set_skipped(self.skipped());
            watcher.idle.run(cpu, &self.places.counts());
        }
        watcher
    }
}

/// Detects the first mark and the halt after it only.
struct AtEase;

impl Listener for AtEase {
    fn translated(block: *mut api::Block) {
        let translated = Translated(block);
        if translated.address() < KERNEL {
            translated
                .instructions()
                .for_each(|instruction| instruction.call_back_at_marks());
        } else if let Some(last) = translated.instructions().next_back() {
            // A halt ends its block.
            last.call_back_at_halt(halt);
        }
    }

    fn ended() {
        write_counts();
    }
}

/// Counts everything.
struct Closely;

impl Listener for Closely {
    fn translated(block: *mut api::Block) {
        let (Some(plugin), translated) = (PLUGIN.get(), Translated(block)) else {
            return;
        };
        if translated.address() < KERNEL {
            translated.count_program(&plugin.places);
        } else {
            translated.call_back(&plugin.symbols);
            for instruction in translated.instructions() {
                plugin.places.count_kernel(&instruction);
            }
            if let Some(last) = translated.instructions().next_back() {
                // A halt ends its block.
                last.call_back_at_halt(halted);
            }
            let function = plugin.symbols.find(translated.address());
            translated.call_back_at_threads(plugin.symbols.name(function));
        }
    }

    fn ended() {
        write_counts();
    }
}

/// Counts by context: at borders only.
struct AtBorders;

impl Listener for AtBorders {
    fn translated(block: *mut api::Block) {
        let (Some(plugin), translated) = (PLUGIN.get(), Translated(block)) else {
            return;
        };
        if translated.address() < KERNEL {
            translated.count_program(&plugin.places);
            return;
        }
        let border = Border::of(&translated, &plugin.symbols);
        let Border { block: Block { function, ending, after, .. }, point } = border;
        border.call_back(&translated, &plugin.places);
        let counter = plugin.places.counter(function);
        for instruction in translated.instructions() {
            plugin.places.count_kernel_in(&instruction, counter);
        }
        let Some(last) = translated.instructions().next_back() else { return };
        if ending == Ending::InterruptReturn {
            last.call_back_with(returns, after);
        } else if point.is_some_and(Point::is_left) && ends_function(&last, plugin) {
            last.call_back_with(leaves, function.0 as u64);
        }
        translated.call_back_at_threads(plugin.symbols.name(function));
    }

    fn ended() {
        write_counts();
    }
}

/// Whether a function returns with this instruction, also through a thunk.
fn ends_function(last: &Instruction, plugin: &Plugin) -> bool {
    let bytes = last.bytes();
    match plugin.architecture.jump(bytes.as_slice()) {
        Some(displacement) => {
            let target = last.after().wrapping_add_signed(i64::from(displacement));
            plugin.symbols.name(plugin.symbols.find(target)).contains("return_thunk")
        }
        None => plugin.architecture.ending(bytes.as_slice()) == Ending::Return,
    }
}

/// A block of the kernel, and the point that its function is.
#[derive(Clone, Copy)]
struct Border {
    block: Block,
    point: Option<Point>,
}

impl Border {
    fn of(translated: &Translated, symbols: &Symbols) -> Self {
        let block = translated.known(symbols);
        Self { block, point: Point::of(symbols.name(block.function)) }
    }

    /// The point that the block begins.
    fn begins(&self) -> Option<Point> {
        self.point.filter(|_| self.block.starts_function)
    }

    /// Calls back whenever the block is executed, or only after another level or the return from
    /// an interrupt. Its description is never freed, as in `Translated::call_back`.
    fn call_back(&self, translated: &Translated, places: &Places) {
        let is_border = self.begins().is_some() || self.block.is_entry;
        let level = (!is_border).then_some(IN_KERNEL);
        let border: &'static Self = Box::leak(Box::new(*self));
        let data = std::ptr::from_ref(border).cast_mut().cast();
        places.call_back_unless(level, translated, at_border, data);
    }
}

impl Translated {
    fn address(&self) -> u64 {
        // SAFETY: QEMU's block is valid during its callback; so in all of this type.
        unsafe { api::qemu_plugin_tb_vaddr(self.0) }
    }

    fn instructions(&self) -> impl DoubleEndedIterator<Item = Instruction> + '_ {
        // SAFETY: as above.
        let count = unsafe { api::qemu_plugin_tb_n_insns(self.0) };
        (0..count).map(|index| {
            // SAFETY: as above; the index is below the count.
            Instruction(unsafe { api::qemu_plugin_tb_get_insn(self.0, index) })
        })
    }

    /// Calls back when a thread is switched to, or is created.
    fn call_back_at_threads(&self, function: &str) {
        let is_switch = |plugin: &Plugin| plugin.architecture.switch() == function;
        let call_back = match function {
            WAKE_NEW => Instruction::call_back_at_creation,
            _ if PLUGIN.get().is_some_and(is_switch) => Instruction::call_back_at_switch,
            _ => return,
        };
        self.instructions().for_each(|instruction| call_back(&instruction));
    }

    /// Counts a program's block, and calls back at its marks and when it is reached.
    fn count_program(&self, places: &Places) {
        places.call_back_unless(Some(USER), self, in_user_mode, std::ptr::null_mut());
        for instruction in self.instructions() {
            places.count_user(&instruction);
            instruction.call_back_at_marks();
        }
    }

    /// The description of a block of the kernel.
    fn known(&self, symbols: &Symbols) -> Block {
        let address = self.address();
        let (after, ending) = match self.instructions().next_back() {
            Some(last) => (last.after(), last.ending()),
            None => (address, Ending::Other),
        };
        Block {
            address,
            after,
            function: symbols.find(address),
            starts_function: symbols.is_start(address),
            is_entry: symbols.is_entry(address),
            ending,
        }
    }

    /// Calls back whenever this block of the kernel is executed. Its description is never
    /// freed: QEMU does not report when a translation is discarded.
    fn call_back(&self, symbols: &Symbols) {
        let block: &'static Block = Box::leak(Box::new(self.known(symbols)));
        let data = std::ptr::from_ref(block).cast_mut().cast();
        // SAFETY: as above; `data` is never freed and only read.
        unsafe {
            api::qemu_plugin_register_vcpu_tb_exec_cb(
                self.0,
                in_kernel,
                api::NO_REGISTERS,
                data,
            );
        }
    }
}

impl Instruction {
    fn bytes(&self) -> Bytes {
        let mut bytes = Bytes { bytes: [0; INSTRUCTION_MAX], length: 0 };
        if let Some(plugin) = PLUGIN.get() {
            // SAFETY: QEMU's instruction is valid during the callback for its block; so in all
            // of this type.
            bytes.length = unsafe { plugin.interface.bytes(self.0, &mut bytes.bytes) };
        }
        bytes
    }

    /// What the architecture's decoder finds in its bytes.
    fn decoded<T>(&self, decode: impl FnOnce(Architecture, &[u8]) -> T) -> Option<T> {
        let plugin = PLUGIN.get()?;
        Some(decode(plugin.architecture, self.bytes().as_slice()))
    }

    fn ending(&self) -> Ending {
        self.decoded(Architecture::ending).unwrap_or(Ending::Other)
    }

    fn after(&self) -> u64 {
        // SAFETY: as above.
        unsafe {
            api::qemu_plugin_insn_vaddr(self.0)
                + api::qemu_plugin_insn_size(self.0) as u64
        }
    }

    fn call_back_at_marks(&self) {
        let mark = self.decoded(Architecture::mark).flatten();
        let then: api::OnExecution = match mark {
            Some(Mark::Attend) => attend,
            Some(Mark::Begin) => begin,
            Some(Mark::Step) => step,
            Some(Mark::End) => end,
            Some(Mark::Join) => join,
            Some(Mark::Leave) => leave,
            None => return,
        };
        self.call_back(then);
    }

    fn call_back_at_halt(&self, then: api::OnExecution) {
        if self.decoded(Architecture::is_halt).unwrap_or(false) {
            self.call_back(then);
        }
    }

    fn call_back_at_switch(&self) {
        if let Some(displacement) = self.decoded(Architecture::stack_load).flatten() {
            self.call_back_on_access(switched, api::READS, displacement);
        }
    }

    fn call_back_at_creation(&self) {
        if let Some(displacement) = self.decoded(Architecture::zero_store).flatten() {
            self.call_back_on_access(created, api::WRITES, displacement);
        }
    }

    /// Calls back with the accessed address and the displacement.
    fn call_back_on_access(
        &self,
        then: api::OnAccess,
        accesses: c_int,
        displacement: i32,
    ) {
        let displacement = isize::try_from(displacement).unwrap_or(0);
        let data = usize::from_ne_bytes(displacement.to_ne_bytes());
        let data = std::ptr::without_provenance_mut(data);
        // SAFETY: as above; the data is only a number.
        unsafe {
            api::qemu_plugin_register_vcpu_mem_cb(
                self.0,
                then,
                api::NO_REGISTERS,
                accesses,
                data,
            );
        }
    }

    fn call_back(&self, then: api::OnExecution) {
        self.call_back_with(then, 0);
    }

    /// Calls back with that number.
    fn call_back_with(&self, then: api::OnExecution, number: u64) {
        let number = usize::try_from(number).unwrap_or(0);
        let data = std::ptr::without_provenance_mut(number);
        let registers = api::NO_REGISTERS;
        // SAFETY: as above.
        unsafe {
            api::qemu_plugin_register_vcpu_insn_exec_cb(self.0, then, registers, data);
        }
    }
}

/// The bytes of one instruction.
struct Bytes {
    bytes: [u8; INSTRUCTION_MAX],
    length: usize,
}

impl Bytes {
    fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

extern "C" fn in_kernel(_: c_uint, data: *mut c_void) {
    let Some(plugin) = PLUGIN.get() else { return };
    // SAFETY: `data` is the `Block` that `call_back` leaked.
    let block = unsafe { *data.cast::<Block>() };
    let cpu = plugin.places.current();
    plugin.places.set_level(cpu, IN_KERNEL);
    plugin.watcher_of_running(cpu).kernel(cpu, block, plugin.places.count(cpu));
}

/// The stack pointer of the next thread is loaded from that thread's structure.
extern "C" fn switched(_: c_uint, _: api::Access, address: u64, data: *mut c_void) {
    let Some(plugin) = PLUGIN.get() else { return };
    let cpu = plugin.places.current();
    let (now, functions) = (plugin.places.count(cpu), plugin.places.functions());
    plugin.watcher().switch(cpu, thread(address, data), now, functions);
}

/// The state of a new thread is stored in that thread's structure.
extern "C" fn created(_: c_uint, _: api::Access, address: u64, data: *mut c_void) {
    let Some(plugin) = PLUGIN.get() else { return };
    let cpu = plugin.places.current();
    plugin.at_border(|borders| borders.create(cpu, thread(address, data)));
}

/// The address of a thread's structure, from that of a field and the field's displacement.
fn thread(field: u64, displacement: *mut c_void) -> u64 {
    field.wrapping_sub(displacement.addr() as u64)
}

/// A block of the kernel begins; of several CPUs every block, else only after another level or the
/// return from an interrupt, and at points and entries.
extern "C" fn at_border(_: c_uint, data: *mut c_void) {
    let Some(plugin) = PLUGIN.get() else { return };
    // SAFETY: `data` is the `Border` that `call_back` leaked.
    let border = unsafe { &*data.cast::<Border>() };
    let (block, point) = (border.block, border.begins());
    let cpu = plugin.places.current();
    let from = match plugin.places.level(cpu) {
        USER => From::User,
        RETURNED => From::Returned,
        _ if block.is_entry || point.is_some() => From::Kernel,
        _ => return,
    };
    plugin.places.set_level(cpu, IN_KERNEL);
    let now = plugin.places.count(cpu);
    plugin.at_border(|borders| borders.contexts.kernel(cpu, block, point, from, now));
}

/// An interrupt or exception returns; `data` is the address after the instruction.
extern "C" fn returns(_: c_uint, data: *mut c_void) {
    let Some(plugin) = PLUGIN.get() else { return };
    let cpu = plugin.places.current();
    plugin.places.set_level(cpu, RETURNED);
    plugin.at_border(|borders| borders.contexts.return_from(cpu, data.addr() as u64));
}

/// A function that is a point returns; `data` is its number.
extern "C" fn leaves(_: c_uint, data: *mut c_void) {
    let Some(plugin) = PLUGIN.get() else { return };
    let cpu = plugin.places.current();
    let now = plugin.places.count(cpu);
    plugin.at_border(|borders| borders.contexts.leave(cpu, Function(data.addr()), now));
}

extern "C" fn in_user_mode(_: c_uint, _: *mut c_void) {
    let Some(plugin) = PLUGIN.get() else { return };
    let cpu = plugin.places.current();
    if plugin.places.level(cpu) != USER {
        plugin.places.set_level(cpu, USER);
        plugin.watcher_of_running(cpu).user(cpu, plugin.places.count(cpu));
    }
}

extern "C" fn attend(_: c_uint, _: *mut c_void) {
    CALLED.store(true, Ordering::Relaxed);
}

extern "C" fn halt(_: c_uint, _: *mut c_void) {
    let called = CALLED.swap(false, Ordering::Relaxed);
    if let Some(plugin) = PLUGIN.get().filter(|_| called) {
        plugin.places.meet_thread();
        match plugin.detail {
            Detail::Calls => plugin.interface.listen_anew::<Closely>(plugin.id),
            Detail::Contexts => plugin.interface.listen_anew::<AtBorders>(plugin.id),
        }
    }
}

/// A CPU halts while everything is counted.
extern "C" fn halted(_: c_uint, _: *mut c_void) {
    let Some(plugin) = PLUGIN.get() else { return };
    let (cpu, mut watcher) = (plugin.places.current(), plugin.watcher());
    watcher.idle.set_skipped(plugin.skipped());
    watcher.idle.halt(cpu, &plugin.places.counts());
}

extern "C" fn begin(_: c_uint, _: *mut c_void) {
    mark(Mark::Begin);
}

extern "C" fn step(_: c_uint, _: *mut c_void) {
    mark(Mark::Step);
}

extern "C" fn end(_: c_uint, _: *mut c_void) {
    mark(Mark::End);
}

extern "C" fn join(_: c_uint, _: *mut c_void) {
    mark(Mark::Join);
}

extern "C" fn leave(_: c_uint, _: *mut c_void) {
    mark(Mark::Leave);
}

fn mark(mark: Mark) {
    let Some(plugin) = PLUGIN.get() else { return };
    let (counts, functions) = (plugin.places.counts(), plugin.places.functions());
    let mut watcher = plugin.watcher();
    watcher.idle.set_skipped(plugin.skipped());
    watcher.mark(plugin.places.current(), mark, &counts, functions);
}

/// Writes the counts.
fn write_counts() {
    let Some(plugin) = PLUGIN.get() else { return };
    let watcher = plugin.watcher();
    let text = output::json(&watcher, &plugin.places.counted(), &plugin.symbols);
    if let Err(error) = std::fs::write(&plugin.output, text) {
        eprintln!("noisefloor-counter: {}: {error}", plugin.output.display());
    }
}
