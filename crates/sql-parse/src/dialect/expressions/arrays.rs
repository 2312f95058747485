//! Arrays of columns as calls: DataFusion plans the elements of `ARRAY[t.a, 2]` as if no query were around, and finds no
//! column of one. Arrays of several dimensions, each of which is an array of the next one.
//!
//! ```text
//! ARRAY[t.a, 2]                   make_array(t.a, 2)
//! array_fill(0, ARRAY[2, 3])      array_fill(array_fill(0, ARRAY[3]), ARRAY[2])
//! ```

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Array, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments,
};

use crate::dialect::tree;
use crate::syntax::walk_expressions;

/// Rewrites an expression.
pub(in crate::dialect) fn rewrite(expr: &mut Expr) {
    if let Expr::Function(call) = expr {
        return fill_dimensions(call);
    }
    let Expr::Array(array) = expr else { return };
    if walk_expressions(array, &mut is_column).is_break() {
        *expr = tree::call("make_array", std::mem::take(&mut array.elem));
    }
}

/// Splits the sizes of several dimensions.
fn fill_dimensions(call: &mut Function) {
    if !call.name.to_string().eq_ignore_ascii_case("array_fill") {
        return;
    }
    let FunctionArguments::List(list) = &mut call.args else { return };
    let [
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Array(sizes))),
    ] = list.args.as_mut_slice()
    else {
        return;
    };
    if sizes.elem.len() > 1 {
        let inner = Array { elem: sizes.elem.split_off(1), named: sizes.named };
        *value = tree::call("array_fill", vec![value.clone(), Expr::Array(inner)]);
    }
}

fn is_column(expr: &Expr) -> ControlFlow<()> {
    match expr {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    }
}
