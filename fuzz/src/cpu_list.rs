//! CPU lists and masks, as written by the kernel and typed by users.
//!
//! A parsed text can be printed and parsed again as the same set, and the printed form is
//! canonical: printing it again changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use units::CpuSet;

fuzz_target!(|text: &str| {
    if let Ok(cpus) = text.parse::<CpuSet>() {
        assert_printed(&cpus);
    }
    if let Ok(cpus) = CpuSet::from_mask(text) {
        let digits = text.bytes().filter(u8::is_ascii_hexdigit).count();
        assert!(cpus.len() <= 4 * digits, "more CPUs than bits");
        assert_printed(&cpus);
    }
});

fn assert_printed(cpus: &CpuSet) {
    let printed = cpus.to_string();
    let again = printed.parse::<CpuSet>();
    assert_eq!(again.as_ref(), Ok(cpus), "printed as {printed}");
    assert_eq!(cpus.iter().count(), cpus.len());
    assert!(cpus.iter().all(|cpu| cpus.contains(cpu)));
    assert!(cpus.without(cpus).is_empty() && cpus.and(cpus) == *cpus);
}
