//! Fleets of made-up nodes with known causes.
