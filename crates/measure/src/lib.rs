//! The loops: noise and ticks.
