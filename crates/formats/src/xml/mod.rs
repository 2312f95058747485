//! hwloc XML, version 2 (and what version 3 of it shares), in and out.
//!
//! | File | Does |
//! |---|---|
//! | `scan` | text → elements, with bounds and no entities but XML's five |
//! | `parts` | objects, distances, memory attributes |
//! | `document` | elements → those parts |
//! | `read` | objects → cpus, nodes, caches: a [`Knowledge`] |
//! | `nest` | a machine's groups of cpus → the tree of objects |
//! | `write` | the tree → text |
//! | `infos` | what hwloc has no place for, as `<info name="atoll.…">` in both directions |
//! | `facts` | facts as infos, and as hwloc's memory attributes |
//!
//! A package, a node's memory and cpus, caches, cores and distances stand where hwloc has them, so
//! `lstopo -i FILE` shows the machine; figures of paths stand among its memory attributes besides.
//! Everything else is an info with a name of ours. The tree comes first: an info only adds to it, so
//! a file that lstopo restricted and wrote again is still read. [`parse`] of what [`write()`] made
//! gives the same knowledge again.

mod document;
mod facts;
mod infos;
mod nest;
mod parts;
mod read;
mod scan;
mod write;

use crate::FormatError;
use atoll_topology::Knowledge;

use document::XmlDocument;

pub use write::write;

/// Reads what `lstopo --of xml` of hwloc 2 or later writes; `file` is the name for messages.
pub fn parse(text: &str, file: &str) -> Result<Knowledge, FormatError> {
    read::knowledge(&XmlDocument::parse(text, file)?)
}
