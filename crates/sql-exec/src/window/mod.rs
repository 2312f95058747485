//! Sorts, and window functions over all rows of a partition at once.
//!
//! [`WindowsAtOnce`] replaces a sort and DataFusion's window operator with a [`WindowExec`] if it computes all
//! functions of the operator. Others (FILTER, DISTINCT, IGNORE NULLS, EXCLUDE, RANGE with months, other functions) stay as
//! DataFusion planned them.
//!
//! | file | what |
//! |---|---|
//! | `rule` | the operators that it replaces |
//! | `exec` | the operator |
//! | `plan` | what it computes |
//! | `function` | the functions |
//! | `frame` | the frames of rows |
//! | `run` | one run: from inputs to outputs |
//! | `collect` | the rows of an input |
//! | `rows` | rows as they came, and in order |
//! | `key` | keys packed into words |
//! | `order` | rows sorted by words |
//! | `evaluate` | the results of functions |
//! | `sort_exec`, `sort_rule` | the sort of all rows: an order without functions |
//! | `distinct_on` | DISTINCT ON as numbered rows |
//! | `top` | the first rows of each partition, where a filter needs no others |
//! | `fallback` | DataFusion's operators, which spill, for rows that do not fit into memory |

mod collect;
mod distinct_on;
mod evaluate;
mod exec;
mod fallback;
mod frame;
mod function;
mod key;
mod order;
#[cfg(test)]
mod order_tests;
mod plan;
mod rows;
mod rule;
mod run;
mod sort_exec;
mod sort_rule;
mod top;

pub use distinct_on::first_of_each;
pub use exec::WindowExec;
pub(crate) use rule::WindowsAtOnce;
pub use sort_exec::GatheredSortExec;
pub(crate) use sort_rule::SortsAtOnce;
