//! Reads and writes hwloc XML, version 2 (and the common part of version 3).
//!
//! | File | Contents |
//! |---|---|
//! | `scan` | text → elements, with limits and only XML's five entities |
//! | `parts` | objects, distances, memory attributes |
//! | `document` | elements → those parts |
//! | `read` | objects → cpus, nodes, caches: a [`Knowledge`] |
//! | `nest` | a machine's groups of cpus → the tree of objects |
//! | `write` | the tree → text |
//! | `infos` | data that hwloc cannot represent, as `<info name="atoll.…">` in both directions |
//! | `facts` | facts as infos, and as hwloc's memory attributes |
//!
//! Packages, memory and cpus of nodes, caches, cores and distances are written the way hwloc writes them, so
//! `lstopo -i FILE` shows the machine; path figures are also memory attributes. Everything else is an info with an
//! `atoll.` name. The tree takes precedence: an info only adds to it, so a file that lstopo restricted and rewrote
//! can still be read. [`parse`] of the output of [`write()`] returns the same knowledge.

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

/// Parses the output of `lstopo --of xml` of hwloc 2 or later; `file` is the name for messages.
pub fn parse(text: &str, file: &str) -> Result<Knowledge, FormatError> {
    read::knowledge(&XmlDocument::parse(text, file)?)
}
