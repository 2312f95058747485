//! `unnest` of a multirange, which DataFusion (55.2) knows of lists only: its ranges as a list.
//!
//! ```text
//! unnest(m)    unnest(multirange_ranges(m)), which of a list is the list
//! ```
//!
//! The types of arguments are known to the planner alone, so the rewriting follows its refusal.

use std::ops::ControlFlow;

use datafusion::common::DataFusionError;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, TableFactor, Value, Visitor,
    VisitorMut,
};

use atoll_sql_parse::dialect::tree;
use atoll_sql_parse::syntax::{walk, walk_mut};

use super::outer_aliases::has_values;

/// The function that returns the ranges of a multirange.
const RANGES: &str = "multirange_ranges";

/// Whether planning failed since `unnest` got no list.
pub(super) fn are_meant(error: &DataFusionError) -> bool {
    const FAILURE: &str = "unnest() can only be applied to array";
    matches!(error.find_root(), DataFusionError::Plan(why) if why.starts_with(FAILURE))
}

/// Whether a statement calls `unnest`.
pub(super) fn may_have(statement: &Parsed) -> bool {
    match statement {
        Parsed::Statement(ast) => !has_values(ast) && walk(ast.as_ref(), &mut Search).is_break(),
        Parsed::Explain(explain) => may_have(&explain.statement),
        _ => false,
    }
}

/// Replaces the arguments of `unnest` by their ranges.
pub(super) fn rewrite(statement: &mut Parsed) {
    match statement {
        Parsed::Statement(ast) => {
            let _ = walk_mut(ast.as_mut(), &mut Rows);
        }
        Parsed::Explain(explain) => rewrite(&mut explain.statement),
        _ => {}
    }
}

fn wrap(list: &mut Expr) {
    let own = std::mem::replace(list, Expr::value(Value::Null));
    *list = tree::call(RANGES, vec![own]);
}

struct Search;

impl Visitor for Search {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        match table {
            TableFactor::UNNEST { .. } => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::Function(call) if is_unnest(call) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

struct Rows;

impl VisitorMut for Rows {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::UNNEST { array_exprs, .. } = table {
            array_exprs.iter_mut().for_each(wrap);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(call) = expr
            && is_unnest(call)
            && let FunctionArguments::List(list) = &mut call.args
            && let [FunctionArg::Unnamed(FunctionArgExpr::Expr(list))] = &mut list.args[..]
        {
            wrap(list);
        }
        ControlFlow::Continue(())
    }
}

fn is_unnest(call: &Function) -> bool {
    call.name.to_string().eq_ignore_ascii_case("unnest")
}
