//! The counter: the guest does not see it, and each count is verified in a second way.

use serde_json::Value;

use crate::repeats::Mixed;
use crate::site::{Site, named};

/// A file in place of the counter's output.
const UNCOUNTED: &str =
    r#"{"counts":{"phases":[]},"profile":{"names":[],"episodes":[]}}"#;
pub(crate) const TIMER: &str = "asm_sysvec_apic_timer_interrupt";

pub(crate) fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

pub(crate) fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

/// The frequencies of costs.
fn times(spread: &Value) -> u64 {
    list(spread).iter().map(|pair| number(&pair[1])).sum()
}

/// The counts of a CPU in each phase of a cell.
pub(crate) fn of_cpu(cell: &Value, cpu: u64) -> impl Iterator<Item = &Value> {
    let cpus =
        list(&cell["counts"]["phases"]).iter().flat_map(|phase| list(&phase["cpus"]));
    cpus.filter(move |counts| number(&counts["cpu"]) == cpu)
}

/// A count of a CPU, summed over all phases of a cell.
fn sum(cell: &Value, cpu: u64, key: &str) -> u64 {
    of_cpu(cell, cpu).map(|counts| number(&counts[key])).sum()
}

/// The number of timer interrupts of a CPU in all phases of a cell, at both privilege levels.
fn timer_entries(cell: &Value, cpu: u64) -> u64 {
    let entries = of_cpu(cell, cpu).flat_map(|counts| list(&counts["interruptions"]));
    entries.filter(|way| way["entry"] == TIMER).map(|way| times(&way["kernel"])).sum()
}

/// The number of counted phases of a cell.
pub(crate) fn phases(cell: &Value) -> u64 {
    list(&cell["counts"]["phases"]).len() as u64
}

/// Check that the guest sends the same bytes with and without the counter, on one CPU and on
/// two, with a busy loop and with calls.
#[test]
fn unseen() {
    let Some(mixed) = Mixed::get() else { return };
    let script = format!(
        r#"for word; do
  shift
  case $word in
    -plugin) left_out=next ;;
    *) [ "$left_out" != next ] && set -- "$@" "$word"; left_out=done ;;
  esac
done
case "$*" in *counter.so*) exit 9 ;; esac
[ "$left_out" ] || exit 8
echo '{UNCOUNTED}' >counts.json
exec $QEMU "$@""#
    );
    let site = Site::new().unwrap().with_qemu(&script);
    for workload in ["other", "company"] {
        let only = format!("workload={workload}");
        let cell = &site.cells(&[&mixed.file, "-s", &only], 0)[0];
        assert_eq!(cell["counts"]["phases"], Value::Array(Vec::new()));
        let name = cell["name"].as_str().unwrap();
        let answer = std::fs::read(site.kept(cell).join("answer")).unwrap();
        assert!(answer == mixed.answer(name), "{name}: the guest saw the counter");
    }
}

/// Check that the instructions of all CPUs together are the guest's own time, in which one is a
/// nanosecond: except for those between the marks and the readings of the clock.
#[test]
fn counts_are_time() {
    let Some(mixed) = Mixed::get() else { return };
    for name in ["other", "two noise"] {
        let cell = named(&mixed.cells, name);
        let (outside, most) = (beside_the_clock(cell), 100 * phases(cell));
        assert!(outside.is_some_and(|n| n < most), "{name}: {outside:?}");
    }
}

/// The number of instructions by which the counter exceeds the guest's clock in the phases of
/// `noise`.
pub(crate) fn beside_the_clock(cell: &Value) -> Option<u64> {
    let of = |cpu| sum(cell, cpu, "user") + sum(cell, cpu, "kernel");
    let counted: u64 = [0, 1].map(of).iter().sum();
    let series = &cell["series"];
    let elapsed = u128::from(number(&series["cpus"][0]["elapsed_ns"]));
    // The clock of the guest's processor runs at 1 GHz; the kernel measured that.
    let hz = u128::from(number(&series["clock_hz"]));
    counted.checked_sub(u64::try_from(elapsed * hz / 1_000_000_000).unwrap())
}

/// Check that the idle stretches of a CPU and its instructions are the time between the marks: on
/// the only CPU of a guest, all of it.
#[test]
fn idle_and_instructions_are_time() {
    let Some(mixed) = Mixed::get() else { return };
    let cell = named(&mixed.cells, "idle");
    let halted = of_cpu(cell, 0).flat_map(|counts| list(&counts["idle_ns"]));
    let halted: u64 = halted.map(|pair| number(&pair[0]) * number(&pair[1])).sum();
    let counted = halted + sum(cell, 0, "user") + sum(cell, 0, "kernel");
    let waits = list(&cell["series"]["waits"]).iter();
    let slept: u64 = waits.map(|wait| number(&wait[1])).sum();
    // The readings of the clock are outside of the marks.
    let most = counted + 5_000 * phases(cell);
    assert!((counted..=most).contains(&slept), "{slept} {counted}");
    assert!(halted > slept / 2, "{halted} {slept}");
}

/// Check that the number of timer interrupts agrees with the guest's kernel.
#[test]
fn counts_are_interrupts() {
    let Some(mixed) = Mixed::get() else { return };
    for name in ["other", "two noise"] {
        let cell = named(&mixed.cells, name);
        let seen = &cell["series"]["cpus"][0];
        let measured = number(&seen["cpu"]);
        let lines = list(&seen["proc"]["interrupts"]).iter();
        let timer = lines.filter(|line| line["timer"] == true);
        let told: u64 = timer.map(|line| number(&line["count"])).sum();
        let counted = timer_entries(cell, measured);
        // The kernel's numbers are read before each phase begins and after it ends.
        let most = counted + 2 * phases(cell);
        assert!((counted..=most).contains(&told), "{name}: {told} {counted}");
    }
    let cell = named(&mixed.cells, "idle");
    let idle = &cell["summary"]["cpus"][0];
    let (told, counted) =
        (number(&idle["timer_interrupts"]), number(&idle["timer_entries"]));
    let most = counted + 2 * phases(cell);
    assert!((counted..=most).contains(&told), "idle: {told} {counted}");
}

/// Check that the counts of two CPUs are separate: with `nohz_full=1` the tick stops on CPU 1,
/// where a program spins continuously, and not on CPU 0.
#[test]
fn each_cpu_has_its_own() {
    let Some(mixed) = Mixed::get() else { return };
    let cell = named(&mixed.cells, "two noise");
    let (housekeeping, spinning) = (0, 1);
    assert!(timer_entries(cell, spinning) * 5 < timer_entries(cell, housekeeping));
    assert!(sum(cell, spinning, "user") > 10 * sum(cell, spinning, "kernel"));
    assert!(sum(cell, housekeeping, "kernel") > sum(cell, housekeeping, "user"));
}

/// Check that the median gap is the median of the counter's kernel instructions, and the pass
/// of the loop that was interrupted.
#[test]
fn a_gap_is_the_kernel_and_a_pass() {
    let Some(mixed) = Mixed::get() else { return };
    let cell = named(&mixed.cells, "other");
    let median = |spread: &str| number(&cell["summary"][spread]["p50"]);
    let pass = number(&cell["series"]["cpus"][0]["loop_ns"]);
    assert_eq!(median("gap_instructions"), median("kernel_instructions") + pass);
}
