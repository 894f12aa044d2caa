//! noisefloor.
fn main() {}
