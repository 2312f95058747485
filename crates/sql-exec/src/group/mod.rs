//! GROUP BY through the primitives.
//!
//! [`GroupByPrimitive`] replaces DataFusion's partial aggregation, exchange and final aggregation with a
//! [`GroupExec`], if `primitives` supports every function and key type. Other aggregations (grouping
//! sets, DISTINCT, FILTER, keys of nested types, other functions) stay as DataFusion planned them; [`finest_sets`] makes
//! the groups of many grouping sets of those of the finest one.
//!
//! | file | what |
//! |---|---|
//! | `query` | the aggregation in the primitives' terms |
//! | `rule` | the aggregations that it replaces |
//! | `exec` | the operator |
//! | `collect` | inputs collected at their homes, and the outputs' shares of them |
//! | `grouped` | input whose rows come grouped: nothing is collected |
//! | `finest_set` | ROLLUP, CUBE and GROUPING SETS over the groups of their finest set |
//! | `groups` | the number of groups, estimated on samples |
//! | `error` | conversion of the primitives' errors to DataFusion's |

mod collect;
mod error;
mod exec;
mod finest_set;
mod grouped;
mod groups;
mod query;
mod rule;

pub use exec::GroupExec;
pub use finest_set::finest_sets;
pub(crate) use rule::GroupByPrimitive;
