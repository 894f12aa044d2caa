//! The cost of calls depends on the kernel, and not on what the agent did before.

use crate::site::{Site, named};

/// The second kernel writes a message for each function that initialises a part of it.
const FORKS: &str = "name = \"forks\"\nkernels = [\"debian:6.1-cloud\"]\nvariations = 1\n\
     [[boot]]\n\
     [[boot]]\nname = \"messages\"\nappend = \"initcall_debug\"\n\
     [[workload]]\nname = \"fork\"\n\
     calls = { cpu = 0, calls = [\"fork\"], repeats = 20 }\n";

/// Check that a fork does not copy the memory that was used to read the kernel's messages: it costs the
/// same within 2 % with thousands of them, and 5 % more if free memory is not released.
#[test]
fn forks_copy_no_free_memory() {
    let Some(site) = Site::new() else { return };
    let cells = site.cells(&[&site.file("forks.toml", FORKS)], 0);
    let cost = |name: &str| {
        let metrics = &named(&cells, name)["metrics"];
        metrics["fork_instructions"].as_f64().unwrap()
    };
    let [few, many] = ["fork", "messages fork"].map(cost);
    assert!((many / few - 1.0).abs() < 0.02, "{few} and {many} instructions");
}
