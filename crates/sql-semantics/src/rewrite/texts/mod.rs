//! Types whose values are texts in a fixed form, such as UUID and JSONB, in comparisons.
//!
//! | file | contents |
//! |---|---|
//! | `canonical` | texts next to such values, in their form |
//! | `extremes` | `greatest` and `least` by that order |
//! | `groups` | groups by the order of their keys |
//! | `items` | the items of lists as bytes in that order |
//! | `order` | comparisons, sorts and groups of types whose order is not that of their texts |

mod canonical;
mod extremes;
mod groups;
mod items;
mod order;

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan};

use atoll_functions::gives_type;
use atoll_sql_common::pg_type::Checked;

pub use canonical::{CanonicalTexts, TextForm, canonical_value};
pub use order::OrderedTexts;

/// Whether a plan reads a table with a column of such a type, or computes values of one.
fn has_forms(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            let schema = scan.source.schema();
            found |= schema.fields().iter().any(|field| Checked::of_field(field).is_some());
        }
        node.apply_expressions(|expr| {
            found = found || expr.exists(|expr| Ok(makes_one(expr)))?;
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    Ok(found)
}

/// Whether the function with this name returns such values.
fn makes_one(expr: &Expr) -> bool {
    let name = match expr {
        Expr::ScalarFunction(call) => call.func.name(),
        Expr::AggregateFunction(call) => call.func.name(),
        Expr::WindowFunction(call) => call.fun.name(),
        _ => return false,
    };
    ["jsonb", "to_jsonb", "uuid", "try_jsonb", "checked_items"]
        .iter()
        .any(|of| name.starts_with(of))
        || gives_type(name)
}

/// Whether a function compares a value with the elements of a list, by `= ANY` or similar.
fn is_quantified(name: &str) -> bool {
    ["equals", "differs_from", "less_than", "at_most", "greater_than", "at_least"]
        .iter()
        .any(|of| matches!(name.strip_prefix(of), Some("_any" | "_all")))
}
