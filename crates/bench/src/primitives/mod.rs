//! The primitives over columns of 64-bit integers: beside rivals, checked, and held against the bandwidth
//! of the machine.
//!
//! | File | Owns |
//! |---|---|
//! | `aggregate`, `join`, `sort`, `partition` | one benchmark each |
//! | `sql` | the same rows in a table of Atoll's SQL |
//! | `check` | rows and checksum, which all engines have to agree on |
//! | `contest` | Atoll, rival, Atoll, rival, … in one run |
//! | `bandwidth` | what the workers read and copy a second: the physical limit |
//! | `sweep` | a benchmark from its first case to its report |
//! | `report`, `text` | what came out, as JSON and as text |

pub(crate) mod aggregate;
pub(crate) mod bandwidth;
mod contest;
pub(crate) mod join;
pub(crate) mod partition;
mod report;
pub(crate) mod sort;
mod sql;
mod sweep;
mod text;
