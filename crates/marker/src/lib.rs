//! Markers: instructions that do nothing on any processor and control what the lab's counter counts.
//!
//! A marker is a NOP of seven bytes, `nopl disp32(%rax)`, whose displacement carries a [`Marker`]. On
//! hardware it costs one instruction slot; under `atoll lab run --count …` the counter sees it when
//! QEMU translates the code around it. `include/atoll_marker.h` has the same for C.
//!
//! It is a separate crate without dependencies so that programs other than Atoll can link it.

#![no_std]

mod instruction;
mod say;

pub use instruction::{LEN, Marker};
pub use say::{close, open, ready, say, tag, witness};

/// Number of regions: 0 to 63.
pub const REGIONS: u8 = 64;
/// Number of tags: 1 to 15, and 0 for no tag.
pub const TAGS: u8 = 16;
/// Number of nodes that can have witnesses: 0 to 63.
pub const NODES: u8 = 64;
