//! Placement on simulated and live kernels.
//!
//! - `strategy`: the homes each strategy gives on machines of several shapes.
//! - `arena`: buffers lie where they are asked for, are recycled within bounds, charged and given
//!   back, and never overlap.
//! - `fallback`: each way placement can be denied, what is done instead, how it is counted, and the
//!   error it is when strict.
//! - `verify`: reports contain what the kernel says.
//! - `live`: the same on the Linux the tests run on.

mod arena;
mod fallback;
mod live;
mod strategy;
mod support;
mod verify;
