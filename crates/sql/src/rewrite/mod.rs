//! Queries that DataFusion plans wrongly, written otherwise before it plans them.
//!
//! | rule | what it does | where it stands |
//! |---|---|---|
//! | [`CountedCopies`] | INTERSECT ALL and EXCEPT ALL that count copies | behind the coercion of types, before floats get their form |
//! | [`NamedQuantified`] | ANY and ALL over a table that the query around reads too | behind the coercion of types |
//! | [`EmptySubqueries`] | scalar subqueries that are NULL where they have no row | before the coercion of types |
//! | [`NestedOrder`] | lists, structs and maps compared in the order in which they are sorted | first |
//! | [`DependentJoins`] | correlated subqueries that DataFusion refuses or joins wrongly | last among the analyzer's rules |
//! | `SubqueriesInValues` | subqueries among the rows of VALUES, above them | first |
//! | [`EmbeddedSubqueries`] | IN and EXISTS inside of expressions, with NULL as SQL has it | before subqueries become joins |
//! | `NullSafeKeys`, `NullSafeJoins` | joins on IS NOT DISTINCT FROM apart from those on `=` | where DataFusion makes keys of conditions, and orders joins |
//! | `Contradictions` | filters that no row passes, as an empty relation; those that name no column, above aggregates without keys | where filters sink |
//! | `DistinctTypes` | sums beside a DISTINCT aggregate, of the type they were planned with | where DataFusion groups twice for DISTINCT |
//! | [`ComputedKeys`] | sort keys that are computed, as columns | last among the logical rules that DataFusion has |

mod contradictions;
mod copies;
mod dependent;
mod distinct_types;
mod empty_subqueries;
mod keys;
mod membership;
mod nested_order;
mod null_safe;
mod quantified;
mod subqueries;
mod values;

use std::sync::Arc;

use datafusion::optimizer::{Optimizer, OptimizerRule};

use contradictions::Contradictions;
pub(crate) use copies::CountedCopies;
pub(crate) use dependent::DependentJoins;
use distinct_types::DistinctTypes;
pub(crate) use empty_subqueries::EmptySubqueries;
pub(crate) use keys::ComputedKeys;
pub(crate) use nested_order::NestedOrder;
use null_safe::{NullSafeJoins, NullSafeKeys};
pub(crate) use quantified::NamedQuantified;
pub(crate) use subqueries::EmbeddedSubqueries;
use values::SubqueriesInValues;
pub(crate) use values::has_any_subquery;

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
pub(crate) fn optimizer_rules() -> Vec<Arc<dyn OptimizerRule + Send + Sync>> {
    let mut rules = Optimizer::new().rules;
    let at = rules.iter().position(|rule| rule.name() == DECORRELATE).unwrap_or(0);
    rules.insert(at, Arc::new(EmbeddedSubqueries));
    for rule in &mut rules {
        match rule.name() {
            SINK_FILTERS => *rule = Arc::new(Contradictions::before(Arc::clone(rule))),
            MAKE_KEYS => *rule = Arc::new(NullSafeKeys(Arc::clone(rule))),
            ORDER_JOINS => *rule = Arc::new(NullSafeJoins(Arc::clone(rule))),
            GROUP_DISTINCT => *rule = Arc::new(DistinctTypes::kept_by(Arc::clone(rule))),
            _ => {}
        }
    }
    rules.push(Arc::new(ComputedKeys));
    rules.insert(0, Arc::new(NestedOrder));
    rules.insert(0, Arc::new(SubqueriesInValues));
    rules
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
