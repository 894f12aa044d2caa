//! An experiment's text: parsing any input ends in cells or in an error with its position.
//!
//! An experiment has cells, no more than the limit, each with a unique name on its kernel. An
//! error names the file.
#![no_main]

use std::collections::HashSet;

use experiments::Experiment;
use libfuzzer_sys::fuzz_target;

const FILE: &str = "fuzz.toml";
const CELLS_MAX: usize = 10_000;

fuzz_target!(|text: &str| {
    match Experiment::parse(text, FILE) {
        Ok(experiment) => {
            let cells = experiment.cells();
            assert!((1..=CELLS_MAX).contains(&cells.len()));
            let mut names = HashSet::new();
            for cell in cells {
                assert!(
                    names.insert((&cell.kernel, &cell.name, cell.repeat)),
                    "{cell:?}"
                );
            }
        }
        Err(error) => assert!(error.to_string().contains(FILE), "{error}"),
    }
});
