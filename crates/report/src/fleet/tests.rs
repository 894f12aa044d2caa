//! Reports of made-up fleets.
