//! Functions whose value differs from call to call, such as `random()`, are called where and as often
//! as the statement says.
//!
//! DataFusion 55 keeps their results in one place in projections, but moves filters about as if they
//! did not matter: HAVING `random() < 0.5` is evaluated for the rows of groups instead of groups
//! (apache/datafusion#7876), a WHERE over a join for the rows of one side, and a filter over a column that is
//! such a result is evaluated on the result of another call (apache/datafusion#25415). It does not compute a column
//! that nothing above reads, and computes a name of WITH wherever it is read. Three rules and [`share_ctes`] keep it
//! from that:
//!
//! | rule | what it does |
//! |---|---|
//! | [`VolatileColumns`] | columns that are results of calls are computed where they stand, read or not |
//! | [`VolatileFilters`] | the calls of a filter over joins, groups, windows become a column below it |
//! | [`VolatileFences`] | filters on columns that are results of calls do not sink below the call, and `nextval('s')` is not taken for a constant |

mod called;
mod columns;
mod fence;
mod filters;
mod node;
mod once;
mod pairs;
mod shared;

pub use columns::VolatileColumns;
pub use fence::{Fence, FenceExec, VolatileFences};
pub use filters::VolatileFilters;
pub use node::{FencePlanner, barred, is_barred};
pub use shared::{SharedPlanner, is_in_recursion, is_shared, is_volatile, share_ctes, shared};
