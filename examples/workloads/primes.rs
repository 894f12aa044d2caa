//! A custom workload for `noisefloor jitter`, in Rust: counts the primes below 20,000 each time,
//! so that only its run time varies.
//!
//! ```text
//! rustc --edition 2024 -O -C panic=abort --crate-type cdylib -o primes.so primes.rs
//! noisefloor jitter --workload exec:./primes.so
//! ```

use std::hint::black_box;

const BELOW: usize = 20_000;

/// Called once per loop, always by the same thread. It must not panic.
#[unsafe(no_mangle)]
pub extern "C" fn nf_workload() {
    let mut is_composite = black_box([false; BELOW]);
    let mut primes = 0_u32;
    for number in 2..BELOW {
        if !is_composite[number] {
            primes += 1;
            (number * number..BELOW)
                .step_by(number)
                .for_each(|at| is_composite[at] = true);
        }
    }
    // The result is not used; `black_box` keeps the optimiser from removing the loop.
    black_box(primes);
}
