//! The command lines of QEMU and of the guest's kernel: pure functions of the request.
//!
//! QEMU is started in a folder of its own, and every path is relative to it,
//! so that nothing here depends on the machine. Sources of the exact recipe: QEMU's
//! documentation of `-icount`, `-rtc` and `-seed`; Linux,
//! Documentation/admin-guide/kernel-parameters.txt.

use agent::Task;
use experiments::{Machine, MachineKind};
use recording::{Mode, Spec};

use crate::guest::exit::Exit;
use crate::guest::request::Request;

/// The files of a boot, in its folder.
pub(crate) const KERNEL: &str = "kernel";
pub(crate) const INITRD: &str = "initrd";
pub(crate) const CONSOLE: &str = "console";
pub(crate) const ANSWER: &str = "answer";
pub(crate) const COUNTER: &str = "counter.so";
pub(crate) const SYMBOLS: &str = "symbols";
pub(crate) const COUNTS: &str = "counts.json";

/// The engine that executes a guest's instructions.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Engine {
    /// QEMU itself, one instruction per nanosecond.
    Counted,
    /// QEMU itself, at full speed.
    Emulated,
    /// The host's processor.
    Kvm,
}

/// QEMU's arguments.
pub(crate) fn qemu(
    request: &Request,
    engine: Engine,
    exit: Exit,
    with_counter: bool,
) -> Vec<String> {
    let Machine { kind, cpu, cpus, memory_mib } = &request.machine;
    let mut arguments = QemuArguments::default();
    arguments.add(
        "-machine",
        match kind {
            MachineKind::Pc => "pc",
            MachineKind::Microvm => "microvm,acpi=on",
            MachineKind::Virt => "virt,gic-version=3",
        },
    );
    match engine {
        Engine::Counted => {
            arguments.add("-accel", "tcg");
            arguments.add("-icount", "shift=0,sleep=off");
            arguments.add("-rtc", "clock=vm,base=2020-01-01");
            arguments.add("-seed", &request.seed.to_string());
        }
        Engine::Emulated => arguments.add("-accel", "tcg"),
        Engine::Kvm => arguments.add("-accel", "kvm"),
    }
    arguments.add("-cpu", cpu);
    arguments.add("-smp", &cpus.to_string());
    arguments.add("-m", &memory_mib.to_string());
    arguments.add("-display", "none");
    // No network, no disks, and only these two files of the host to write to.
    arguments.alone("-nodefaults");
    arguments.alone("-no-user-config");
    arguments.alone("-no-reboot");
    arguments.add("-serial", &format!("file:{CONSOLE}"));
    arguments.exit(exit);
    if with_counter {
        let detail = match &request.task {
            Task::Measure(Spec::Program(_)) => ",detail=contexts",
            Task::Measure(_) | Task::Symbols | Task::Program(_) => "",
        };
        let counter = format!("./{COUNTER},symbols={SYMBOLS},output={COUNTS}{detail}");
        arguments.add("-plugin", &counter);
    }
    arguments.add("-kernel", KERNEL);
    arguments.add("-initrd", INITRD);
    arguments.add("-append", &kernel(request));
    arguments.0
}

/// QEMU's arguments for an empty machine, which ends as soon as the counter has been loaded,
/// or could not be.
pub(crate) fn probe() -> Vec<String> {
    let mut arguments = QemuArguments::default();
    arguments.add("-machine", "none");
    arguments.add("-accel", "tcg");
    arguments.add("-display", "none");
    arguments.alone("-nodefaults");
    arguments.alone("-no-user-config");
    arguments.add("-plugin", &format!("./{COUNTER},probe=on"));
    arguments.0
}

/// The parameter that suppresses most messages of a kernel.
const QUIET: &str = " quiet ";
/// The parameters that print all its messages, from the moment it is unpacked.
const LOUD: &str = " ignore_loglevel earlyprintk=ttyS0,115200 ";
/// The same for arm64: the address of its first serial port (hw/arm/virt.c in QEMU).
const LOUD_ARM64: &str = " ignore_loglevel earlycon=pl011,0x9000000 ";
/// The parameter for the console of arm64 guests.
const CONSOLE_ARM64: &str = "console=ttyAMA0";

/// An argument of QEMU; in the kernel's command line all messages are enabled.
pub(crate) fn loud(argument: &str) -> String {
    let is_arm64 = argument.starts_with(CONSOLE_ARM64);
    argument.replacen(QUIET, if is_arm64 { LOUD_ARM64 } else { LOUD }, 1)
}

/// The kernel's command line.
fn kernel(request: &Request) -> String {
    // Panic at once instead of waiting, print little, load at the addresses of the symbols, and
    // trust the only clock.
    let own = "console=ttyS0 panic=-1 quiet nokaslr tsc=reliable";
    let own_arm64 = format!("{CONSOLE_ARM64} panic=-1 quiet nokaslr");
    let is_arm64 = request.machine.kind == MachineKind::Virt;
    // No randomness, and no tests of ciphers for a second after boot.
    let exact = "random.trust_cpu=off norandmaps cryptomgr.notests";
    // The test counts ticks while the CPU is busy for ten of them. If a busy host delays an
    // emulated CPU, there are too few, and the kernel panics ("IO-APIC + timer doesn't work").
    // Under KVM it omits the test by itself.
    let timed = "no_timer_check";
    let of_mode = match request.mode {
        Mode::Exact => exact,
        Mode::Timed if is_arm64 => "",
        Mode::Timed => timed,
    };
    let own = if is_arm64 { &own_arm64 } else { own };
    let words = [own, of_mode, &request.params];
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[derive(Default)]
struct QemuArguments(Vec<String>);

impl QemuArguments {
    fn alone(&mut self, option: &str) {
        self.0.push(option.to_owned());
    }

    fn add(&mut self, option: &str, value: &str) {
        self.alone(option);
        self.alone(value);
    }

    /// The devices of the answer's channel. If there are two, both append to one file.
    fn exit(&mut self, exit: Exit) {
        match exit {
            Exit::Port => self.add("-debugcon", &format!("file:{ANSWER}")),
            // The board has a second port if there is a second one of these.
            Exit::SecondPl011 => self.add("-serial", &format!("file:{ANSWER}")),
            Exit::Serial => {
                for (name, device) in [
                    ("port", "isa-debugcon,iobase=0xe9"),
                    ("serial", "isa-serial,index=1"),
                ] {
                    let file = format!("file,id={name},path={ANSWER},append=on");
                    self.add("-chardev", &file);
                    self.add("-device", &format!("{device},chardev={name}"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;

    /// An option and its value to a line; the kernel's command line one word per line.
    fn text(request: &Request, engine: Engine, with_counter: bool) -> String {
        let words = qemu(request, engine, Exit::Port, with_counter);
        let add = |text: String, word: &String| match word.split_once(' ') {
            None if word.starts_with('-') => text + "\n" + word,
            None => text + " " + word,
            Some(_) => text + "\n  " + &word.replace(' ', "\n  "),
        };
        words.iter().fold(String::new(), add)
    }

    /// Check the whole command line of an exact cell.
    #[test]
    fn exact() {
        let params = "nohz=off".to_owned();
        let request = Request { params, ..Request::new(Task::Symbols) };
        assert_snapshot!(text(&request, Engine::Counted, true), @r"
        -machine pc
        -accel tcg
        -icount shift=0,sleep=off
        -rtc clock=vm,base=2020-01-01
        -seed 1
        -cpu qemu64,-rdrand
        -smp 1
        -m 256
        -display none
        -nodefaults
        -no-user-config
        -no-reboot
        -serial file:console
        -debugcon file:answer
        -plugin ./counter.so,symbols=symbols,output=counts.json
        -kernel kernel
        -initrd initrd
        -append
          console=ttyS0
          panic=-1
          quiet
          nokaslr
          tsc=reliable
          random.trust_cpu=off
          norandmaps
          cryptomgr.notests
          nohz=off
        ");
    }

    /// Check the whole command line of a timed cell with another machine.
    #[test]
    fn timed() {
        let machine = Machine {
            kind: MachineKind::Microvm,
            cpu: "host".to_owned(),
            cpus: 2,
            memory_mib: 512,
        };
        let mode = Mode::Timed;
        let request = Request { machine, mode, ..Request::new(Task::Symbols) };
        assert_snapshot!(text(&request, Engine::Kvm, false), @r"
        -machine microvm,acpi=on
        -accel kvm
        -cpu host
        -smp 2
        -m 512
        -display none
        -nodefaults
        -no-user-config
        -no-reboot
        -serial file:console
        -debugcon file:answer
        -kernel kernel
        -initrd initrd
        -append
          console=ttyS0
          panic=-1
          quiet
          nokaslr
          tsc=reliable
          no_timer_check
        ");
    }

    /// Check the whole command line of an exact arm64 cell, whatever board and CPU an experiment has for x86-64.
    #[test]
    fn arm64() {
        let machine = Machine {
            kind: MachineKind::Microvm,
            cpu: "max,-rdrand".to_owned(),
            cpus: 2,
            memory_mib: 512,
        };
        let machine = machine.of_arm64();
        let request = Request { machine, ..Request::new(Task::Symbols) };
        let words = qemu(&request, Engine::Counted, Exit::SecondPl011, true);
        let text = words.join(" ").replace(" -", "\n-");
        assert_snapshot!(text, @r"
        -machine virt,gic-version=3
        -accel tcg
        -icount shift=0,sleep=off
        -rtc clock=vm,base=2020-01-01
        -seed 1
        -cpu neoverse-n1,cntfrq=1000000000
        -smp 2
        -m 512
        -display none
        -nodefaults
        -no-user-config
        -no-reboot
        -serial file:console
        -serial file:answer
        -plugin ./counter.so,symbols=symbols,output=counts.json
        -kernel kernel
        -initrd initrd
        -append console=ttyAMA0 panic=-1 quiet nokaslr random.trust_cpu=off norandmaps cryptomgr.notests
        ");
        let line = loud(words.last().unwrap());
        assert!(line.contains(" ignore_loglevel earlycon=pl011,0x9000000 "), "{line}");
    }

    /// Check that only the kernel's command line changes for a kernel with all messages.
    #[test]
    fn loud_kernels() {
        let words =
            qemu(&Request::new(Task::Symbols), Engine::Counted, Exit::Port, false);
        let others = words.iter().filter(|word| loud(word) != **word);
        let [line] = others.collect::<Vec<_>>()[..] else { panic!("{words:?}") };
        assert!(loud(line).starts_with(
            "console=ttyS0 panic=-1 ignore_loglevel earlyprintk=ttyS0,115200 nokaslr"
        ));
    }

    /// Check that a second channel adds devices, changes nothing else, and writes to the same file
    /// as the first.
    #[test]
    fn second_channel() {
        let request = Request::new(Task::Symbols);
        let [one, two] = [Exit::Port, Exit::Serial]
            .map(|exit| qemu(&request, Engine::Counted, exit, false).join(" "));
        let devices = "-chardev file,id=port,path=answer,append=on \
                       -device isa-debugcon,iobase=0xe9,chardev=port \
                       -chardev file,id=serial,path=answer,append=on \
                       -device isa-serial,index=1,chardev=serial";
        assert_eq!(one.replace("-debugcon file:answer", devices), two);
    }

    /// Check that emulation differs from KVM only in the accelerator, and is not counted.
    #[test]
    fn emulated() {
        let request = Request { mode: Mode::Timed, ..Request::new(Task::Symbols) };
        let kvm = text(&request, Engine::Kvm, false);
        let emulated = text(&request, Engine::Emulated, false);
        assert_eq!(emulated, kvm.replace("-accel kvm", "-accel tcg"));
        assert!(!emulated.contains("icount"));
    }
}
