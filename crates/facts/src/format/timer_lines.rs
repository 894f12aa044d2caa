//! The lines of `/proc/interrupts` that count timer interrupts, by architecture.
//!
//! Lines without a number are printed by the architecture (`arch_show_interrupts`); lines with a
//! number have the name that the timer's driver passes to `request_irq` (`drivers/clocksource`).
//! Files are those of Linux 5.10 to 7.2. If a CPU has a timer of its own, lines of timers for the
//! whole machine are not counted.
//!
//! Not countable: Hyper-V without direct-mode timers (before Windows Server 2019) sends its timer
//! messages with all others, in the line `HYP`; timers of a KVM host's guests (`kvm guest vtimer`)
//! are not ticks of the host.

/// The label of a line, and a text that its description contains.
const LABELS: &[(&str, &str)] = &[
    // arch/x86/kernel/irq.c: the local APIC's timer. arch/powerpc/kernel/irq.c: two lines, for the
    // decrementer's events and for its other interrupts. Without a description until 2.6.2x.
    ("LOC", ""),
    // arch/x86/kernel/irq.c, since 4.18: guests of Hyper-V and Azure.
    ("HVS", "Hyper-V stimer0"),
    // arch/powerpc/kernel/irq.c, since 4.18: timer events that another CPU sends.
    ("BCT", "Broadcast timer"),
    // arch/s390/kernel/irq.c: the clock comparator has the tick; the CPU timer has CPU-time timers.
    ("CLK", "Clock Comparator"),
    ("TMR", "CPU Timer"),
];

/// Names of a CPU's own timer.
const OF_A_CPU: &[&str] = &[
    "arch_timer",                 // arm64, arm: arm_arch_timer.c
    "Hyper-V stimer0",            // arm64: hyperv_timer.c
    "riscv-timer",                // riscv: timer-riscv.c
    "clint-timer",                // riscv without an SBI: timer-clint.c
    "twd",                        // arm: arch/arm/kernel/smp_twd.c
    "gt",                         // arm: arm_global_timer.c
    "MCT",                        // arm: exynos_mct.c with per-CPU interrupts
    "armada_370_xp_per_cpu_tick", // arm: timer-armada-370-xp.c
    "gp_timer",                   // arm: timer-qcom.c
];

/// Prefixes of names of a CPU's own timer that end with the CPU's number.
const NUMBERED: &[&str] = &[
    "timer",            // x86: arch/x86/xen/time.c
    "mct_tick",         // arm: exynos_mct.c
    "bcm1480-counter-", // mips: arch/mips/kernel/cevt-bcm1480.c
    "sb1250-counter-",  // mips: arch/mips/kernel/cevt-sb1250.c
];

/// Names of a timer that is the only one of the machine, or that some architectures have for each
/// CPU.
const OF_THE_MACHINE: &[&str] = &[
    // x86 (IRQ 0), mips (cevt-r4k.c, mips-gic-timer.c), loongarch (arch/loongarch/kernel/time.c),
    // parisc, sparc, alpha, ia64, m68k, arm (timer-sp804.c, bcm2835_timer.c).
    "timer",
    "timer tick",       // m68k: arch/m68k/hp300/time.c
    "goldfish_timer",   // m68k: timer-goldfish.c
    "arch_mem_timer",   // arm: arm_arch_timer.c
    "mct_comp_irq",     // arm: exynos_mct.c
    "orion_event",      // arm: timer-orion.c
    "clockevent",       // arm: timer-ti-dm-systimer.c
    "tegra_timer",      // arm: timer-tegra.c
    "i.MX Timer Tick",  // arm: timer-imx-gpt.c
    "MXS Timer Tick",   // arm: mxs_timer.c
    "at91_tick",        // arm: timer-atmel-pit.c
    "pit64b_tick",      // arm: timer-microchip-pit64b.c
    "tc_clkevt",        // arm: timer-atmel-tcb.c
    "samsung_time_irq", // arm: samsung_pwm_timer.c
];

/// The prefix of timers that are named after their node of the device tree (`timer-of.c`).
const OF_NODE: &str = "timer@";

/// Labels on s390 of sums of further lines (`arch/s390/kernel/irq.c`).
const SUMS: &[&str] = &["EXT", "I/O", "AIO"];

/// What a line counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counts {
    /// Interrupts of a CPU's own timer.
    OwnTimer,
    /// Interrupts of a timer for the whole machine.
    MachineTimer,
    /// Interrupts that other lines count, too.
    Sum,
    /// Other interrupts.
    Other,
}

/// What the line with this label and name counts.
pub(crate) fn counts(label: &str, name: &str) -> Counts {
    if !label.bytes().all(|byte| byte.is_ascii_digit()) {
        let is_timer =
            LABELS.iter().any(|(known, text)| *known == label && name.contains(text));
        let is_sum = SUMS.contains(&label) && name.is_empty();
        return match (is_timer, is_sum) {
            (true, _) => Counts::OwnTimer,
            (false, true) => Counts::Sum,
            (false, false) => Counts::Other,
        };
    }
    let is_numbered = NUMBERED.iter().any(|prefix| {
        name.strip_prefix(prefix).is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        })
    });
    // A line of several handlers names all of them.
    let mut names = name.split(", ");
    if is_numbered || OF_A_CPU.contains(&name) {
        Counts::OwnTimer
    } else if names.any(|one| OF_THE_MACHINE.contains(&one) || one.starts_with(OF_NODE)) {
        Counts::MachineTimer
    } else {
        Counts::Other
    }
}

#[cfg(test)]
mod tests {
    use units::Cpu;

    use crate::format::interrupts::Interrupts;

    /// Tables in the format of each architecture, and the timer interrupts of each CPU.
    const TABLES: &[(&str, &[u64], &str)] = &[
        (
            "x86: arch/x86/kernel/irq.c, on Hyper-V",
            &[120_931, 98_277],
            "\
\x20          CPU0       CPU1
  4:          0        871   IO-APIC   4-edge      ttyS0
NMI:          0          0   Non-maskable interrupts
LOC:          0          0   Local timer interrupts
HYP:         61         15   Hypervisor callback interrupts
HRE:          0          0   Hyper-V reenlightenment interrupts
HVS:     120931      98277   Hyper-V stimer0 interrupts
ERR:          0
",
        ),
        (
            "x86: arch/x86/xen/time.c",
            &[4410, 5121],
            "\
\x20          CPU0       CPU1
 48:       4410          0  xen-percpu    -virq      timer0
 55:          0       5121  xen-percpu    -virq      timer1
LOC:          0          0   Local timer interrupts
",
        ),
        (
            "arm64: drivers/clocksource/arm_arch_timer.c",
            &[9031, 7112],
            "\
\x20          CPU0       CPU1
 11:       9031       7112     GICv3  27 Level     arch_timer
 14:          5          6     GICv3  26 Level     kvm guest vtimer
IPI0:        112        301       Rescheduling interrupts
Err:          0
",
        ),
        (
            "arm64: drivers/clocksource/hyperv_timer.c",
            &[300, 201],
            "\
\x20          CPU0       CPU1
 12:        300        201     GICv3  31 Edge      Hyper-V stimer0
 13:          0          0     GICv3  27 Level     arch_timer
",
        ),
        (
            "armhf: arch/arm/kernel/smp_twd.c, beside a timer of the machine",
            &[887, 78],
            "\
\x20          CPU0       CPU1
 16:        810          0     GIC-0  27 Edge      gt
 17:         77         78     GIC-0  29 Edge      twd
 24:          9          0     GIC-0  34 Level     timer
IPI0:          0          1  CPU wakeup interrupts
Err:          0
",
        ),
        (
            "armhf: drivers/clocksource/exynos_mct.c",
            &[4242, 4141],
            "\
\x20          CPU0       CPU1
 60:          0          0     GIC-0  89 Edge      mct_comp_irq
 61:       4242          0     GIC-0 152 Edge      mct_tick0
 62:          0       4141     GIC-0 153 Edge      mct_tick1
",
        ),
        (
            "armel: drivers/clocksource/timer-orion.c",
            &[5150],
            "\
\x20          CPU0
 16:       5150  bridge-interrupt-ctrl   1 Edge      orion_event
 22:          3  orion_irq  33 Level     ttyS0
",
        ),
        (
            "armhf: drivers/clocksource/timer-of.c",
            &[404],
            "\
\x20          CPU0
 18:        404  sun4i_irq  22 Level     timer@1c20c00
",
        ),
        (
            "ppc64el: arch/powerpc/kernel/irq.c",
            &[2243, 1824],
            "\
\x20          CPU0       CPU1
 16:          0         15      XICS   2 Edge      IPI
LOC:       2230       1800   Local timer interrupts for timer event device
BCT:         10         20   Broadcast timer interrupts for timer event device
LOC:          3          4   Local timer interrupts for others
SPU:          1          1   Spurious interrupts
",
        ),
        (
            "s390x: arch/s390/kernel/irq.c",
            &[511, 460],
            "\
\x20          CPU0       CPU1
EXT:        711        690
I/O:         90         80
AIO:          4          4
CLK:        500        450   [EXT] Clock Comparator
EXC:        200        230   [EXT] External Call
EMS:          0          0   [EXT] Emergency Signal
TMR:         11         10   [EXT] CPU Timer
TAL:          0          0   [EXT] Timing Alert
CIO:         90         80   [I/O] Common I/O Layer Interrupt
RST:          0          1   [CPU] CPU Restart
",
        ),
        (
            "riscv64: drivers/clocksource/timer-riscv.c",
            &[6001, 5002],
            "\
\x20          CPU0       CPU1
 10:       6001       5002  RISC-V INTC   5 Edge      riscv-timer
 12:         40          0  SiFive PLIC  10 Edge      ttyS0
IPI0:          9          8  Rescheduling interrupts
",
        ),
        (
            "mips64el: arch/mips/kernel/cevt-r4k.c",
            &[8123, 8002],
            "\
\x20          CPU0       CPU1
 23:       8123       8002      MIPS   7  timer
 36:          2          0   INT_PCH   4  hpet
ERR:          0
",
        ),
        (
            "loong64: arch/loongarch/kernel/time.c",
            &[1717, 1616],
            "\
\x20          CPU0       CPU1
 19:        700        650   PCH PIC   2  ttyS0
 29:       1717       1616   CPUINTC  11  timer
IPI0:          1          2  LoongArch  1  Rescheduling interrupts
",
        ),
        (
            "hppa: arch/parisc/kernel/irq.c",
            &[321, 322],
            "\
\x20          CPU0       CPU1
 65:        321        322             CPU  timer
RES:          1          2   Rescheduling interrupts
",
        ),
        (
            "m68k: drivers/clocksource/timer-goldfish.c",
            &[99],
            "\
\x20          CPU0
 14:         99  goldfish      goldfish_timer
",
        ),
        (
            "x86: arch/x86/kernel/irq.c of Linux 7.2",
            &[5033, 5718],
            "\
\x20           CPU0       CPU1
  36:          0      30314  PCI-MSIX-0000:00:02.0    1-edge      virtio1-req.0
 LOC:       5032       5716   Local timer interrupts
 HVS:          1          2   Hyper-V stimer0 interrupts
",
        ),
    ];

    /// Check that the timer interrupts of every architecture that Debian has are counted.
    #[test]
    fn every_architecture() {
        for (source, expected, text) in TABLES {
            let read = Interrupts::parse(text, "f").unwrap();
            let timers: Vec<Option<u64>> =
                read.cpus().iter().map(|cpu| read.timer(cpu)).collect();
            let expected: Vec<_> = expected.iter().copied().map(Some).collect();
            assert_eq!(timers, expected, "{source}");
        }
    }

    /// Check that lines of s390 that are sums of others are not counted twice.
    #[test]
    fn sums_are_no_lines() {
        let s390 = TABLES.iter().find(|(source, ..)| source.starts_with("s390x"));
        let read = Interrupts::parse(s390.unwrap().2, "f").unwrap();
        assert_eq!(read.total(Cpu::new(0)), Some(500 + 200 + 11 + 90));
    }
}
