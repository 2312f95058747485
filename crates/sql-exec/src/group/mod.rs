//! GROUP BY through the primitives.
//!
//! [`GroupByPrimitive`] puts a [`GroupExec`] in the place of DataFusion's partial aggregation, exchange
//! and final aggregation, where every function and type of keys is one that `primitives` has. What
//! it lacks (grouping sets, DISTINCT, FILTER, keys of nested types, other functions) stays as DataFusion
//! planned it.
//!
//! | file | what |
//! |---|---|
//! | `query` | the aggregation in the primitives' terms |
//! | `rule` | which aggregations are taken over |
//! | `exec` | the operator |
//! | `collect` | inputs collected at their homes, and what the outputs read of them |
//! | `grouped` | input whose rows come grouped: nothing is collected |
//! | `groups` | how many groups there are, as samples tell |
//! | `error` | the primitives' errors as DataFusion's |

mod collect;
mod error;
mod exec;
mod grouped;
mod groups;
mod query;
mod rule;

pub use exec::GroupExec;
pub(crate) use rule::GroupByPrimitive;
