//! `/proc/interrupts`: the counts of interrupts on each CPU.
//!
//! Lines of device interrupts have a number as label and end with the names of their handlers;
//! the architecture's own lines (timer, inter-processor, ...) end with a description. Which lines
//! count timer interrupts depends on the architecture (`timer_lines`).
//!
//! The times and durations of single interrupts are not available.

use units::{Cpu, CpuSet};

use crate::fact::Unknown;
use crate::format::per_cpu;
use crate::format::timer_lines::{Counts, counts};

/// One line: an interrupt and its counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptLine {
    /// The label before the colon: `36`, `LOC`.
    pub label: String,
    /// The names of the handlers (`virtio1-req.0`), or the description.
    pub name: String,
    /// Whether it counts timer interrupts.
    pub timer: bool,
    counts: Vec<u64>,
}

/// The counts of all interrupts since boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interrupts {
    cpus: Vec<Cpu>,
    lines: Vec<InterruptLine>,
}

impl Interrupts {
    /// The file's path.
    pub const FILE: &'static str = "/proc/interrupts";

    /// Parses the file; `file` is used in messages.
    ///
    /// # Errors
    /// `Why::Garbage`, with file, line and text, if the table is invalid.
    pub fn parse(text: &str, file: &str) -> Result<Self, Unknown> {
        let (cpus, rows) = per_cpu::parse(text, file)?;
        let lines = rows.into_iter().map(|row| {
            let name = name(row.label, row.text);
            let (label, counts) = (row.label.to_owned(), row.counts);
            InterruptLine { timer: false, label, name, counts }
        });
        let mut lines: Vec<InterruptLine> = lines.collect();
        lines.retain(|line| line.counted() != Counts::Sum);
        mark_timers(&mut lines);
        Ok(Self { cpus, lines })
    }

    /// The CPUs that were online.
    pub fn cpus(&self) -> CpuSet {
        per_cpu::set(&self.cpus)
    }

    /// The lines in order of the file, without sums of other lines.
    pub fn lines(&self) -> &[InterruptLine] {
        &self.lines
    }

    /// The number of timer interrupts on a CPU since boot; `None` if the CPU is offline, or the
    /// timer's lines are unknown.
    pub fn timer(&self, cpu: Cpu) -> Option<u64> {
        let timers = self.lines.iter().filter(|line| line.timer);
        let counts = timers.filter_map(|line| self.count(line, cpu));
        counts.reduce(u64::wrapping_add)
    }

    /// The number of all interrupts on a CPU since boot; `None` if the CPU is offline.
    pub fn total(&self, cpu: Cpu) -> Option<u64> {
        let counts = self.lines.iter().filter_map(|line| self.count(line, cpu));
        counts.reduce(u64::wrapping_add)
    }

    /// The count of the line with that label on a CPU; `None` without the line, or if the CPU is
    /// offline.
    pub fn labelled(&self, label: &str, cpu: Cpu) -> Option<u64> {
        let line = self.lines.iter().find(|line| line.label == label)?;
        self.count(line, cpu)
    }

    /// The increase of each line's count on a CPU since an earlier reading; `None` if the count was
    /// reset. A new line starts from zero. Lines with one count for the whole machine are skipped.
    pub fn since<'a>(
        &'a self,
        earlier: &'a Self,
        cpu: Cpu,
    ) -> impl Iterator<Item = (&'a InterruptLine, Option<u64>)> + 'a {
        self.lines.iter().filter_map(move |line| {
            let now = self.count(line, cpu)?;
            let before = earlier.same(line).and_then(|line| earlier.count(line, cpu));
            Some((line, per_cpu::growth(before.unwrap_or(0), now)))
        })
    }

    fn count(&self, line: &InterruptLine, cpu: Cpu) -> Option<u64> {
        let column = self.cpus.binary_search(&cpu).ok()?;
        line.counts.get(column).copied()
    }

    /// The line with the same label and name, since a number can be reused for another device.
    fn same(&self, line: &InterruptLine) -> Option<&InterruptLine> {
        self.lines.iter().find(|own| own.label == line.label && own.name == line.name)
    }
}

impl InterruptLine {
    fn counted(&self) -> Counts {
        counts(&self.label, &self.name)
    }
}

/// Marks the lines of the CPUs' own timers, or if there are none, those of the machine's.
fn mark_timers(lines: &mut [InterruptLine]) {
    let has_own = lines.iter().any(|line| line.counted() == Counts::OwnTimer);
    let timer = if has_own { Counts::OwnTimer } else { Counts::MachineTimer };
    lines.iter_mut().for_each(|line| line.timer = line.counted() == timer);
}

/// The name of a line. The text of a device line is chip, number, trigger, two spaces and the
/// handlers: `IO-APIC   5-edge      ACPI:Ged`. The text of other lines is their description.
fn name(label: &str, text: &str) -> String {
    if !label.bytes().all(|b| b.is_ascii_digit()) {
        return text.to_owned();
    }
    let last = text.rsplit_once("  ").map_or("", |(_, handlers)| handlers.trim());
    let trigger = |word: &str| {
        let word = word.to_ascii_lowercase();
        ["edge", "level", "fasteoi"].iter().any(|end| word.ends_with(end))
    };
    if last.is_empty() || trigger(last) { text.to_owned() } else { last.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const X86: &str = "\
           CPU0       CPU1
 24:          1          0  IO-APIC   5-edge      ACPI:Ged
 36:          0      30314 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
 50:          3          4  IR-PCI-MSI 524288-edge      nvme0q0, nvme0q1
LOC:       5032       5716   Local timer interrupts
RES:       2725       2244   Rescheduling interrupts
ERR:          0
";

    const RHEL5: &str = "\
           CPU0       CPU1
  0:    2893127          0    IO-APIC-edge  timer
169:       1234          5   IO-APIC-level  uhci_hcd:usb1, eth0
NMI:          0          0
LOC:    2893001    2892999
";

    fn names(text: &str) -> Vec<(String, String)> {
        let read = Interrupts::parse(text, "f").unwrap();
        let both = |line: &InterruptLine| (line.label.clone(), line.name.clone());
        read.lines().iter().map(both).collect()
    }

    /// Check that device lines are named by their handlers, and others by their description.
    #[test]
    fn lines_are_named() {
        let names = names(X86);
        assert_eq!(names[1].1, "virtio1-req.0");
        assert_eq!(names[2].1, "nvme0q0, nvme0q1");
        assert_eq!(names[3], ("LOC".to_owned(), "Local timer interrupts".to_owned()));
    }

    /// Check that the local timer takes precedence on old machines, and that machines have one.
    #[test]
    fn the_timer_is_found() {
        let timer =
            |text: &str, cpu| Interrupts::parse(text, "f").unwrap().timer(Cpu::new(cpu));
        assert_eq!(timer(X86, 1), Some(5716));
        assert_eq!(timer(RHEL5, 0), Some(2_893_001));
        assert_eq!(timer(X86, 2), None);
        assert_eq!(timer("CPU0\n  0:  7  IO-APIC-edge  timer\n", 0), Some(7));
        assert_eq!(timer("CPU0\n  8:  9  IO-APIC-edge  rtc\n", 0), None);
        assert_eq!(timer("CPU0\n  9:  3  chip  timers\nHYP: 4 Hypervisor\n", 0), None);
    }

    /// Check increases with wrap-arounds, resets, new lines, and CPUs that were offline.
    #[test]
    fn growth_by_line() {
        let read = |text: &str| Interrupts::parse(text, "f").unwrap();
        let earlier = read("CPU0\nLOC: 4294967290 Local\nRES: 50 x\n 9: 3  chip  a\n");
        let later = read("CPU0 CPU1\nLOC: 4 8 Local\nRES: 20 1 x\n 9: 5 0  chip  b\n");
        let grown = |cpu| -> Vec<_> {
            later.since(&earlier, Cpu::new(cpu)).map(|(_, grown)| grown).collect()
        };
        assert_eq!(grown(0), [Some(10), None, Some(5)]);
        assert_eq!(grown(1), [Some(8), Some(1), Some(0)]);
        assert_eq!(grown(2), []);
    }

    /// Check 256 columns, without those of offline CPUs.
    #[test]
    fn many_cpus() {
        let online: Vec<u32> = (0..256).filter(|cpu| cpu % 5 != 3).collect();
        let header =
            online.iter().fold(String::new(), |row, cpu| row + &format!("  CPU{cpu}"));
        let counts =
            online.iter().fold(String::new(), |row, cpu| row + &format!(" {}", cpu * 10));
        let text = format!("{header}\n LOC:{counts}   Local timer interrupts\n");
        let read = Interrupts::parse(&text, "f").unwrap();
        assert_eq!(read.timer(Cpu::new(255)), Some(2550));
        assert_eq!(read.timer(Cpu::new(253)), None);
        assert_eq!(read.cpus().len(), online.len());
    }

    proptest! {
        /// Check that parsing never panics.
        #[test]
        fn never_panics(text in "(CPU0 CPU1\n)?[ A-Z0-9:\n]{0,80}") {
            let _ = Interrupts::parse(&text, "f");
        }
    }
}
