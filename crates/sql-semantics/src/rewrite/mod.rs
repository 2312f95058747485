//! Rewrites of queries that DataFusion plans wrongly.
//!
//! | rule | what it does | position |
//! |---|---|---|
//! | [`CountedCopies`] | INTERSECT ALL and EXCEPT ALL that count copies | after type coercion, before floats are canonicalized |
//! | [`NamedQuantified`] | ANY and ALL over a table that the outer query reads too; computed columns of subqueries that have the same name as others | after type coercion |
//! | [`OuterNames`] | outer columns whose table has the same name as a column of the subquery | first among the analyzer's rules |
//! | [`OuterAggregates`] | aggregates of the outer query inside a subquery | after `OuterNames` |
//! | [`KeptOrder`] | lists and row numbers of a subquery's rows, in its order | after `OuterAggregates` |
//! | [`EmptySubqueries`] | scalar subqueries that are NULL if they return no row | before type coercion |
//! | [`RecursiveMarks`] | terms of recursive queries whose types are not Arrow's | last among the analyzer's rules |
//! | [`CanonicalTexts`] | texts next to UUIDs and JSONB in canonical form | before type coercion |
//! | [`OrderedTexts`] | JSONB compared, sorted and grouped by its value | after `CanonicalTexts` |
//! | `nested_order` | lists, structs and maps compared in the order in which they are sorted | first |
//! | `any_text` | PostgreSQL's regular expressions, and `s ~ '.*'` with SQL's NULL | first |
//! | `in_lists` | IN over lists with NULL, and over two lists of one column, which DataFusion combines without regard to NULL | first |
//! | [`DependentJoins`] | correlated subqueries that DataFusion rejects or joins wrongly; subqueries that only some rows reach | after type coercion, before volatile calls are fenced |
//! | `subqueries_in_values` | subqueries among the rows of VALUES, above them | first |
//! | `embedded_subqueries` | IN and EXISTS inside expressions, with SQL's NULL | before subqueries become joins |
//! | `null_safe` | joins on IS NOT DISTINCT FROM, kept apart from those on `=` | where DataFusion extracts join keys and reorders joins |
//! | `contradictions` | filters that no row passes, as an empty relation; filters without columns, above aggregates without keys | where filters are pushed down |
//! | `distinct_types` | sums next to a DISTINCT aggregate, with their planned types | where DataFusion groups twice for DISTINCT |
//! | `unnested_keys` | joins with the rows of lists of groups, which are not unique by the groups' key | where DataFusion removes joins |
//! | `computed_keys` | computed sort keys, as columns | last among DataFusion's logical rules |
//!
//! `null_safe`, `contradictions`, `distinct_types` and `unnested_keys` [wrap](around) a rule of DataFusion. The other lower-case rules
//! are functions that [rewrite nodes](atoll_sql_common::logical) among the optimizer's rules.

mod any_text;
mod around;
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
mod texts;
mod unnested_keys;
mod values;

use std::sync::Arc;

use datafusion::optimizer::{Optimizer, OptimizerRule};

use atoll_sql_common::logical::{BottomUp, RewriteNode};

use any_text::any_text;
use around::Around;
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
pub use texts::{CanonicalTexts, OrderedTexts, TextForm, canonical_value};
pub use values::has_any_subquery;
use values::subqueries_in_values;

/// DataFusion's rule that decorrelates subqueries.
const DECORRELATE: &str = "decorrelate_predicate_subquery";

/// DataFusion's rule that pushes filters down.
const SINK_FILTERS: &str = "push_down_filter";

/// DataFusion's rule that extracts join keys from conditions.
const MAKE_KEYS: &str = "extract_equijoin_predicate";

/// DataFusion's rule that reorders inner joins by their keys.
const ORDER_JOINS: &str = "eliminate_cross_join";

/// DataFusion's rule that groups twice for DISTINCT.
const GROUP_DISTINCT: &str = "single_distinct_aggregation_to_group_by";

/// DataFusion's rule that removes joins.
const REMOVE_JOINS: &str = "eliminate_join";

/// DataFusion's logical rules with Atoll's among them.
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
            REMOVE_JOINS => Around::put(rule, unnested_keys::rewrite),
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
    fn datafusions_list_contains_the_rules_that_atolls_precede() {
        let rules = Optimizer::new().rules;
        assert_eq!(rules.iter().filter(|rule| rule.name() == DECORRELATE).count(), 1);
        for name in [SINK_FILTERS, MAKE_KEYS, ORDER_JOINS, GROUP_DISTINCT, REMOVE_JOINS] {
            assert!(rules.iter().any(|rule| rule.name() == name), "{name}");
        }
    }
}
