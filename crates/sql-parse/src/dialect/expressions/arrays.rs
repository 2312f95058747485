//! Arrays of columns as calls: DataFusion plans the elements of `ARRAY[t.a, 2]` as if no query were around, and finds no
//! column of one.
//!
//! ```text
//! ARRAY[t.a, 2]      make_array(t.a, 2)
//! ```

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::Expr;

use crate::dialect::tree;
use crate::syntax::walk_expressions;

/// Rewrites an expression.
pub(in crate::dialect) fn rewrite(expr: &mut Expr) {
    let Expr::Array(array) = expr else { return };
    if walk_expressions(array, &mut is_column).is_break() {
        *expr = tree::call("make_array", std::mem::take(&mut array.elem));
    }
}

fn is_column(expr: &Expr) -> ControlFlow<()> {
    match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    }
}
