//! Table 1 and figure 2 from the lab's cache counts, turned into times by the machine model.
//!
//! An access takes
//!
//! ```text
//! t = c + W / k + q
//! ```
//!
//! where W is what its line takes to come if nothing else is under way (the shares of the caches, of
//! other sockets' caches and of each memory, times the latencies of each), k the accesses that a cpu
//! has under way, c all that is the same for every access (instructions, translation), and q the wait
//! for other threads at the busiest memory controller or link. W is counted; its latencies are
//! facts or assumptions of the machine model, set once for all rows. Neither c nor k is known of the
//! paper's machine, so both are solved from two published times, those of experiment 2 for reads
//! without migrations; everything else is a prediction. q lies between nothing, where waiting is
//! hidden by the latency of the others, and the service of one access of every other thread; the
//! larger is the estimate, the smaller is given next to it (asymptotic bounds, Lazowska 1984).

mod arms;
mod calibration;
mod comparison;
mod counted;
mod figures;
mod text;

pub use calibration::{Calibration, CalibrationError, Time};
pub use comparison::{ComparedRow, PublishedComparison, Rate};
pub use counted::{Counted, Point};
pub use figures::{ByMigrations, Figures, OverTime, Reload};
pub use text::text;
