//! Markers: instructions that do nothing on any processor and tell the lab's counter what to count.
//!
//! A marker is a NOP of seven bytes, `nopl disp32(%rax)`, whose displacement carries a [`Marker`]. On
//! hardware it costs one instruction slot; under `atoll lab run --count …` the counter sees it when
//! QEMU translates the code around it. `include/atoll_marker.h` has the same for C.
//!
//! It is a crate of its own because programs that are not Atoll may link it: it depends on nothing.

#![no_std]

mod instruction;
mod say;

pub use instruction::{LEN, Marker};
pub use say::{close, open, ready, say, tag, witness};

/// Regions that can be told apart: numbers 0 to 63.
pub const REGIONS: u8 = 64;
/// Tags that can be told apart: numbers 1 to 15; 0 means no tag.
pub const TAGS: u8 = 16;
/// Nodes that can have witnesses: numbers 0 to 63.
pub const NODES: u8 = 64;
