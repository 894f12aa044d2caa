//! Summaries, quantiles, risk; pure.
