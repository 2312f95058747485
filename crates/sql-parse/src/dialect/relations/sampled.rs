//! `USING SAMPLE` at the end of a SELECT: a sample of its FROM, before WHERE.
//!
//! ```text
//! SELECT … FROM t WHERE … USING SAMPLE 10%       SELECT … FROM t TABLESAMPLE (10 PERCENT) WHERE …
//! SELECT … FROM t, u USING SAMPLE 5 ROWS         SELECT … FROM (SELECT * FROM t, u) TABLESAMPLE (5 ROWS)
//! ```
//!
//! The parser leaves it in QUALIFY; see `words`.

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, Select, SetExpr, TableFactor, TableSampleKind,
};

use crate::dialect::tree;

/// The name of the placeholder table whose sample is that of the SELECT.
const ROWS: &str = "$rows";

/// Moves the sample to FROM.
pub(in crate::dialect) fn rewrite(select: &mut Select) {
    let Some(qualify) = select.qualify.take() else { return };
    let found = match qualify {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => match sample(&right) {
            Some(found) => {
                select.qualify = Some(*left);
                Some(found)
            }
            None => {
                select.qualify = Some(Expr::BinaryOp { left, op: BinaryOperator::And, right });
                None
            }
        },
        other => {
            let found = sample(&other);
            if found.is_none() {
                select.qualify = Some(other);
            }
            found
        }
    };
    let Some(found) = found else { return };
    if let [table] = select.from.as_mut_slice()
        && table.joins.is_empty()
        && let TableFactor::Table { sample: own @ None, .. }
        | TableFactor::Derived { sample: own @ None, .. } = &mut table.relation
    {
        *own = Some(found);
        return;
    }
    let all = tree::select(tree::everything(), std::mem::take(&mut select.from));
    let mut whole = tree::derived(tree::query(SetExpr::Select(Box::new(all))), None);
    if let TableFactor::Derived { sample, .. } = &mut whole {
        *sample = Some(found);
    }
    select.from = vec![tree::alone(whole)];
}

/// The sample in an operand of QUALIFY.
fn sample(expr: &Expr) -> Option<TableSampleKind> {
    let Expr::Subquery(query) = expr else { return None };
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    match select.from.first().map(|table| &table.relation) {
        Some(TableFactor::Table { name, sample, .. }) if name.to_string() == ROWS => sample.clone(),
        _ => None,
    }
}
