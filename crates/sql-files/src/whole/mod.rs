//! COPY and INSERT into files: a file gets its name when it is complete.
//!
//! ```text
//!     query ─▶ DataFusion's sink ─▶ StagedStore ─▶ files without names
//!                    │ done, no error                │
//!                    └─▶ WholeFilesExec ──────▶ synced, named, renamed over the old ones
//! ```
//!
//! DataFusion's sinks (55.2) complete their files when the rows stop coming, also when they stop
//! because of an error.

mod exec;
mod store;

pub(crate) use exec::{PlaceWholeFiles, WholeFilesExec};
