//! Sums and averages with exact totals, checked against the result type.
//!
//! | file | contents |
//! |---|---|
//! | `overflow` | the error, with advice on casts |
//! | `total` | the exact total of a set of values |
//! | `summand` | what can be summed |
//! | `headroom` | whether values can be added without checking for wraps |
//! | `target` | the type a total must fit, and its check |
//! | `groups` | one total per group |
//! | `accumulator`, `grouped` | accumulators for one group, and for many |
//! | `finish`, `mean` | from totals to results: sums, averages |
//! | `distinct` | totals over distinct values, also in a moving window frame |
//! | `distinct_measured` | distinct intervals as a list |
//! | `sum`, `avg` | the two functions |

pub(crate) mod accumulator;
pub(crate) mod avg;
pub(crate) mod distinct;
pub(crate) mod distinct_measured;
pub(crate) mod finish;
pub(crate) mod grouped;
pub(crate) mod groups;
pub(crate) mod headroom;
pub(crate) mod mean;
pub(crate) mod overflow;
pub(crate) mod sum;
pub(crate) mod summand;
pub(crate) mod target;
pub(crate) mod total;
