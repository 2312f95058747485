//! The simulation counts what its model says.
//!
//! - `same`: on any machine and for any accesses it counts what a slow, readable model counts.
//! - `protocol`: a few lines moved by hand, each count followed.
//! - `calibration`: contradicting witnesses are refused, and then nothing counts.
//! - `threads`: conservation laws hold when all cpus run at once.
//! - `kiefer`: hit rates and states of the published experiment.
//! - `hostile`: malformed set-ups and accesses.

mod calibration;
mod hostile;
mod kiefer;
mod machines;
mod protocol;
mod reference;
mod same;
mod threads;
