//! Queries that DataFusion plans wrongly, written otherwise before it plans them.
//!
//! | rule | what it does | where it stands |
//! |---|---|---|
//! | [`CountedCopies`] | INTERSECT ALL and EXCEPT ALL that count copies | behind the coercion of types, before floats get their form |
//! | [`NamedQuantified`] | ANY and ALL over a table that the query around reads too; computed columns of sub-queries that are called like others | behind the coercion of types |
//! | [`OuterNames`] | outer columns whose table is called like a column of the subquery | first among the analyzer's rules |
//! | [`OuterAggregates`] | aggregates of the query around that stand in a subquery | behind it |
//! | [`KeptOrder`] | lists and row numbers of the rows of a subquery, in its order | behind it |
//! | [`EmptySubqueries`] | scalar subqueries that are NULL where they have no row | before the coercion of types |
//! | [`RecursiveMarks`] | terms of recursive queries that tell of other types than Arrow's | last among the analyzer's rules |
//! | [`CanonicalTexts`] | texts beside UUIDs and JSONB in their canonical form | before the coercion of types |
//! | `nested_order` | lists, structs and maps compared in the order in which they are sorted | first |
//! | `any_text` | regular expressions of PostgreSQL's, and `s ~ '.*'` with SQL's NULL | first |
//! | `in_lists` | IN over lists with NULL, and over two lists of one column, which DataFusion combines without NULL | first |
//! | [`DependentJoins`] | correlated subqueries that DataFusion refuses or joins wrongly; subqueries that only some rows reach | behind the coercion of types, before volatile calls are fenced |
//! | `subqueries_in_values` | subqueries among the rows of VALUES, above them | first |
//! | `embedded_subqueries` | IN and EXISTS inside of expressions, with NULL as SQL has it | before subqueries become joins |
//! | `null_safe` | joins on IS NOT DISTINCT FROM apart from those on `=` | where DataFusion makes keys of conditions, and orders joins |
//! | `contradictions` | filters that no row passes, as an empty relation; those that name no column, above aggregates without keys | where filters sink |
//! | `distinct_types` | sums beside a DISTINCT aggregate, of the type they were planned with | where DataFusion groups twice for DISTINCT |
//! | `computed_keys` | sort keys that are computed, as columns | last among the logical rules that DataFusion has |
//!
//! `null_safe`, `contradictions` and `distinct_types` stand [around](around) a rule of DataFusion's. Of the rest those
//! in small letters are functions that [rewrite nodes](atoll_sql_common::logical) among the optimizer's rules.

mod any_text;
mod around;
mod canonical;
mod contradictions;
mod copies;
mod dependent;
mod distinct_types;
mod empty_subqueries;
mod in_lists;
mod kept_order;
mod keys;
mod membership;
mod nested_order;
mod null_safe;
mod outer_aggregates;
mod outer_names;
mod quantified;
mod recursive_marks;
mod subqueries;
mod values;

use std::sync::Arc;

use datafusion::optimizer::{Optimizer, OptimizerRule};

use atoll_sql_common::logical::{BottomUp, RewriteNode};

use any_text::any_text;
use around::Around;
pub use canonical::{CanonicalTexts, canonical_value};
pub use copies::CountedCopies;
pub use dependent::DependentJoins;
pub use empty_subqueries::EmptySubqueries;
use in_lists::in_lists;
pub use kept_order::KeptOrder;
use keys::computed_keys;
use nested_order::nested_order;
pub use outer_aggregates::OuterAggregates;
pub use outer_names::OuterNames;
pub use quantified::NamedQuantified;
pub use recursive_marks::RecursiveMarks;
use subqueries::embedded_subqueries;
pub use values::has_any_subquery;
use values::subqueries_in_values;

/// DataFusion's rule that makes joins of subqueries.
const DECORRELATE: &str = "decorrelate_predicate_subquery";

/// DataFusion's rule that has filters sink.
const SINK_FILTERS: &str = "push_down_filter";

/// DataFusion's rule that makes keys of joins of their conditions.
const MAKE_KEYS: &str = "extract_equijoin_predicate";

/// DataFusion's rule that orders inner joins by their keys.
const ORDER_JOINS: &str = "eliminate_cross_join";

/// DataFusion's rule that groups twice for DISTINCT.
const GROUP_DISTINCT: &str = "single_distinct_aggregation_to_group_by";

/// DataFusion's logical rules with ours among them.
pub fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules = Optimizer::new().rules;
    let at = rules.iter().position(|rule| rule.name() == DECORRELATE).unwrap_or(0);
    rules.insert(at, rule("embedded_subqueries", embedded_subqueries));
    for rule in &mut rules {
        match rule.name() {
            SINK_FILTERS => Around::put(rule, contradictions::rewrite),
            MAKE_KEYS => Around::put(rule, null_safe::keys),
            ORDER_JOINS => Around::put(rule, null_safe::joins),
            GROUP_DISTINCT => Around::put(rule, distinct_types::rewrite),
            _ => {}
        }
    }
    rules.push(rule("computed_keys", computed_keys));
    rules.insert(0, rule("any_text", any_text));
    rules.insert(0, rule("in_lists", in_lists));
    rules.insert(0, rule("nested_order", nested_order));
    rules.insert(0, rule("subqueries_in_values", subqueries_in_values));
    rules
}

fn rule(name: &'static str, rewrite: RewriteNode) -> Arc<dyn OptimizerRule + Send + Sync> {
    Arc::new(BottomUp { name, rewrite })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_before_which_ours_stand_are_in_datafusions_list() {
        let rules = Optimizer::new().rules;
        assert_eq!(rules.iter().filter(|rule| rule.name() == DECORRELATE).count(), 1);
        for name in [SINK_FILTERS, MAKE_KEYS, ORDER_JOINS, GROUP_DISTINCT] {
            assert!(rules.iter().any(|rule| rule.name() == name), "{name}");
        }
    }
}
