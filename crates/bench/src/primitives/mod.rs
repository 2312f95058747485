//! The primitives over columns of 64-bit integers: against rivals, checked, and compared with the bandwidth
//! of the machine.
//!
//! | File | Owns |
//! |---|---|
//! | `aggregate`, `join`, `sort`, `partition` | one benchmark each |
//! | `sql` | the same rows in a table of Atoll's SQL |
//! | `check` | rows and checksum, on which all engines must agree |
//! | `contest` | Atoll, rival, Atoll, rival, … in one run |
//! | `bandwidth` | read and copy bandwidth of the workers: the physical limit |
//! | `sweep` | a benchmark from its first case to its report |
//! | `report`, `text` | the results, as JSON and as text |

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
