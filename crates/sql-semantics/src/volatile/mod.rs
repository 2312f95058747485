//! Volatile functions, such as `random()`, are called where and as often
//! as the statement says.
//!
//! DataFusion 55 evaluates their results once in projections, but moves filters as if they
//! did not matter: HAVING `random() < 0.5` is evaluated for input rows instead of groups
//! (apache/datafusion#7876), a WHERE over a join for the rows of one side, and a filter on a column that is
//! such a result calls the function again (apache/datafusion#25415). It does not compute unused
//! columns, and evaluates a CTE again for each reference. Three rules and [`share_ctes`] prevent
//! this:
//!
//! | rule | what it does |
//! |---|---|
//! | [`VolatileColumns`] | columns with volatile calls are computed where they are written, even if unused |
//! | [`VolatileFilters`] | the calls of a filter over joins, groups or windows become a column below it |
//! | [`VolatileFences`] | filters on columns with volatile calls are not pushed below the call, and `nextval('s')` is not taken for a constant |

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
