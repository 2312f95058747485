//! Functions whose value differs from call to call, such as `random()`, are called where and as often
//! as the statement says.
//!
//! DataFusion 55 keeps their results in one place in projections, but moves filters about as if they
//! did not matter: HAVING `random() < 0.5` is evaluated for the rows of groups instead of groups, a
//! WHERE over a join for the rows of one side, and a filter over a column that is such a result is
//! evaluated on the result of another call. Two rules keep it from that, and [`check_ctes`] refuses what
//! cannot be kept:
//!
//! | rule | what it does |
//! |---|---|
//! | [`VolatileFilters`] | the calls of a filter over joins, groups, windows become a column below it |
//! | [`VolatileFences`] | filters on columns that are results of calls do not sink below the call |

mod ctes;
mod fence;
mod filters;

pub(crate) use ctes::check_ctes;
pub(crate) use fence::{FenceExec, VolatileFences};
pub(crate) use filters::VolatileFilters;
