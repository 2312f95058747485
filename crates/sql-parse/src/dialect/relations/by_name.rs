//! `a UNION [ALL] BY NAME b`: columns are paired by their names, and those that one side lacks are NULL there.
//!
//! ```text
//! SELECT 1 AS x, 2 AS y UNION ALL BY NAME SELECT 3 AS y, 4 AS z      x y z: (1, 2, NULL), (NULL, 3, 4)
//! ```
//!
//! DataFusion 55.2 has a plan for it, which loses rows if one of the sides is a constant.

use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::scalar::ScalarValue;
use datafusion::sql::sqlparser::ast::{Query, SetExpr, SetOperator, SetQuantifier};

use crate::dialect::columns::names::shown_name;
use crate::dialect::tree;

/// The relation that replaces it.
pub(in crate::dialect) const ALL: &str = "$union_all_by_name";
pub(in crate::dialect) const DISTINCT: &str = "$union_by_name";

/// Replaces each UNION BY NAME of a query's own body by a relation.
pub(in crate::dialect) fn rewrite(query: &mut Query) {
    rewrite_body(&mut query.body);
}

fn rewrite_body(body: &mut SetExpr) {
    let SetExpr::SetOperation { left, right, op, set_quantifier } = body else { return };
    let relation = match (op, set_quantifier) {
        (SetOperator::Union, SetQuantifier::AllByName) => ALL,
        (SetOperator::Union, SetQuantifier::ByName | SetQuantifier::DistinctByName) => DISTINCT,
        _ => {
            rewrite_body(left);
            return rewrite_body(right);
        }
    };
    let [left, right] = [left, right].map(|side| match side.as_ref().clone() {
        SetExpr::Query(query) => *query,
        body => tree::query(body),
    });
    let both = tree::relation_of(relation, vec![left, right]);
    *body = SetExpr::Select(Box::new(tree::all_of(both)));
}

/// The plan of the two sides.
pub(in crate::dialect) fn plan(name: &str, sides: Vec<LogicalPlan>) -> Result<LogicalPlan> {
    let mut names: Vec<String> = Vec::new();
    for side in &sides {
        let own = side.schema().fields();
        for (at, field) in own.iter().enumerate() {
            let name = shown_name(field.name());
            if own.iter().take(at).any(|other| is_same(shown_name(other.name()), name)) {
                return plan_err!(
                    "UNION BY NAME pairs columns by their names, and one side has two columns '{}'; \
                     rename one of them with AS",
                    name
                );
            }
            if !names.iter().any(|known| is_same(known, field.name())) {
                names.push(field.name().clone());
            }
        }
    }
    let mut sides = sides.into_iter().map(|side| {
        let columns = names.iter().map(|name| column(side.schema(), name));
        let columns: Vec<Expr> = columns.collect();
        LogicalPlanBuilder::from(side).project(columns)?.build()
    });
    let (Some(left), Some(right)) = (sides.next().transpose()?, sides.next().transpose()?) else {
        return plan_err!("UNION BY NAME needs two sides");
    };
    let left = LogicalPlanBuilder::from(left);
    match name {
        ALL => left.union(right)?.build(),
        _ => left.union_distinct(right)?.build(),
    }
}

fn column(schema: &DFSchema, name: &str) -> Expr {
    let found = schema.columns().into_iter().find(|column| is_same(column.name(), name));
    match found {
        Some(column) => Expr::Column(column).alias(name),
        None => lit(ScalarValue::Null).alias(name),
    }
}

/// Names are compared as DuckDB does here.
fn is_same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other)
}
