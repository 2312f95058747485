//! Placement: strategies, threads bound to cpus, memory with a home, and proof of both.
//!
//! This crate owns the decision where threads and memory go and the calls that carry it out:
//! [`Strategy`] says what should be where, [`Kernel`] does it ([`LiveKernel`] by Linux), [`Arena`]
//! provides [`NodeBuffer`]s on a node and counts every [`Fallback`], [`Budget`] bounds them,
//! [`CountedHeap`] counts memory without a home, and
//! [`verify_pages`] and [`verify_thread`] report the placement achieved according to the kernel.
//!
//! It is a crate of its own because it encapsulates the kernel's placement calls, so
//! that everything above runs on a simulated kernel as well, and because database engineers use it
//! without anything above it. It knows nothing of Arrow, SQL or thread pools.

mod arena;
mod budget;
mod error;
mod heap;
mod kernel;
mod live;
mod strategy;
mod verify;

pub use arena::{Arena, ArenaOptions, Fallback, FallbackReason, NodeBuffer};
pub use budget::{Budget, BudgetExceeded, FixedBudget};
pub use error::{KernelError, PlacementError};
pub use heap::{CountedHeap, heap_allocated};
pub use kernel::{Kernel, Mapping, Policy};
pub use live::LiveKernel;
pub use strategy::{ChunkHome, Homes, MemoryHome, Strategy, StrategyError, StrategyParseError};
pub use verify::{
    PAGES_SEEN_MAX, PageRange, PagesReport, ThreadReport, verify_pages, verify_pages_sampled,
    verify_thread,
};
