//! What the benchmarks of the primitives share: seeded data, rival engines, paired runs, reports.
//!
//! | File | Owns |
//! |---|---|
//! | `args` | the flags that all of them have |
//! | `rig` | workers, memory and tuning under which Atoll runs |
//! | `draw` | seeded numbers, permutations, and how keys are spread |
//! | `columns` | the data, in Atoll's memory and as files for the rivals |
//! | `check` | rows and checksum, which all engines have to agree on |
//! | `bandwidth` | what the workers read and copy a second: the physical limit |
//! | `python`, `process`, `driver` | rivals: Python packages, each in a process of its own |
//! | `paired` | Atoll, rival, Atoll, rival, … in one run |
//! | `sweep` | a benchmark from its first case to its report |
//! | `report`, `table` | what came out, as JSON and as text |

pub(crate) mod args;
pub(crate) mod bandwidth;
pub(crate) mod check;
pub(crate) mod columns;
pub(crate) mod draw;
pub(crate) mod driver;
pub(crate) mod paired;
mod process;
mod python;
pub(crate) mod report;
pub(crate) mod rig;
pub(crate) mod sweep;
mod table;
