//! Names of computed columns inside a plan.
//!
//! DataFusion 55 names a computed column after its expression, without casts, without the parentheses that
//! the expression needs, and without the contents of a subquery. A node rejects two columns of one name, so
//! these pairs fail:
//!
//! ```text
//! GROUP BY ts, ts::date                  t.ts
//! max(a - (b - c)), max(a - b - c)       max(t.a - t.b - t.c)
//! bool_or(EXISTS (…)), bool_or(EXISTS (SELECT …))
//! ```
//!
//! (<https://github.com/apache/datafusion/issues/4478>, <https://github.com/apache/datafusion/issues/13558>.)
//! Before planning, [`mark`] wraps each such part of the syntax tree in a function (`NamedPart` of
//! `atoll_functions`) that returns its argument and adds to its name in the plan what DataFusion leaves out.
//! [`unmark`] removes the function from the plan; the columns of a node keep their names, as aliases.
//!
//! The marks depend only on the structure of an expression, not on its spelling: `(a - b) - c` and
//! `a - b - c` stay one expression. The names of result columns are assigned elsewhere
//! (`dialect/columns/names.rs`).

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use atoll_functions::{is_named_part, named_part_function};
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, ScalarUDF};
use datafusion::sql::parser::{CopyToSource, Statement as Parsed};
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr as Ast, Query, Select, SetExpr, TableFactor, UnaryOperator, Value,
    VisitorMut,
};

use atoll_sql_parse::dialect::call;
use atoll_sql_parse::syntax::walk_mut;

/// The name by which the planner finds the marking function: its own, since the planner otherwise adds an alias. It
/// prints as the parentheses of an expression, in statements and in messages.
const NAMED_PART: &str = "";

/// Returns the marking function under its name.
pub(super) fn named_part(name: &str) -> Option<Arc<ScalarUDF>> {
    (name == NAMED_PART).then(named_part_function)
}

/// Marks the parts of a statement that DataFusion's names leave out; returns whether there are any.
pub(super) fn mark(statement: &mut Parsed) -> bool {
    let mut marks = Marks::default();
    let _ = match statement {
        Parsed::Statement(statement) => walk_mut(statement.as_mut(), &mut marks),
        Parsed::Explain(explain) => return mark(&mut explain.statement),
        Parsed::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => walk_mut(query.as_mut(), &mut marks),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        Parsed::CreateExternalTable(_) | Parsed::Reset(_) => ControlFlow::Continue(()),
    };
    marks.found
}

/// Removes the marks from a plan; its columns keep the names that they had with marks.
pub(super) fn unmark(plan: LogicalPlan) -> Result<LogicalPlan> {
    plan.transform_down_with_subqueries(|node| match node {
        LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Window(_) => {
            node.map_expressions(renamed)
        }
        LogicalPlan::Distinct(Distinct::On(mut on)) => {
            let all_renamed = |exprs: Vec<Expr>| -> Result<Vec<Expr>> {
                exprs.into_iter().map(|expr| Ok(renamed(expr)?.data)).collect()
            };
            on.on_expr = all_renamed(on.on_expr)?;
            on.select_expr = all_renamed(on.select_expr)?;
            // The first sort keys must be the keys of ON.
            for key in on.sort_expr.iter_mut().flatten().take(on.on_expr.len()) {
                *key = key.with_expr(renamed(key.expr.clone())?.data);
            }
            LogicalPlan::Distinct(Distinct::On(on)).map_expressions(unmarked)
        }
        node => node.map_expressions(unmarked),
    })
    .map(|plan| plan.data)
}

fn unmarked(expr: Expr) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| {
        Ok(match expr {
            Expr::ScalarFunction(mut call) if is_named_part(&call) => {
                Transformed::yes(call.args.swap_remove(0))
            }
            other => Transformed::no(other),
        })
    })
}

/// Removes the marks from a column's expression, and keeps its name.
fn renamed(expr: Expr) -> Result<Transformed<Expr>> {
    let is_marked =
        expr.exists(|part| Ok(matches!(part, Expr::ScalarFunction(call) if is_named_part(call))))?;
    match expr {
        expr if !is_marked => Ok(Transformed::no(expr)),
        // Its columns are those of the inner expressions.
        set @ Expr::GroupingSet(_) => set.map_children(renamed),
        alias @ Expr::Alias(_) => unmarked(alias),
        expr => {
            let (relation, name) = expr.qualified_name();
            let expr = match is_grouping(&expr) {
                // Its arguments must be the keys of the node, which are renamed too.
                true => expr.map_children(renamed)?,
                false => unmarked(expr)?,
            };
            Ok(expr.update_data(|expr| expr.alias_qualified(relation, name)))
        }
    }
}

fn is_grouping(expr: &Expr) -> bool {
    matches!(expr, Expr::AggregateFunction(function) if function.func.name() == "grouping")
}

/// Marks expressions while visiting their tree.
#[derive(Default)]
struct Marks {
    /// Whether names matter in the current clauses: one flag for each enclosing query, the innermost last.
    named: Vec<bool>,
    /// Conditions of the enclosing SELECTs: no column is named after them.
    conditions: Vec<Option<Ast>>,
    /// Numbers of the subqueries, by their text.
    subqueries: HashMap<String, usize>,
    /// Whether anything was marked.
    found: bool,
}

impl Marks {
    fn wrap(&mut self, expr: &mut Ast, name: Option<String>) {
        self.found = true;
        let part = std::mem::replace(expr, Ast::Value(Value::Null.into()));
        let name = name.map(|name| Ast::Value(Value::SingleQuotedString(name).into()));
        *expr = call(NAMED_PART, [part].into_iter().chain(name).collect());
    }

    /// Marks an operand if the name of the enclosing expression would not show where it ends.
    fn operand(&mut self, expr: &mut Ast, needs_parentheses: impl Fn(&Ast) -> bool) {
        if needs_parentheses(bare(expr)) {
            self.wrap(expr, None);
        }
    }

    fn subquery(&mut self, expr: &mut Ast) {
        let next = self.subqueries.len() + 1;
        let number = *self.subqueries.entry(expr.to_string()).or_insert(next);
        self.wrap(expr, Some(format!("<subquery {number}>")));
    }
}

impl VisitorMut for Marks {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        // DataFusion numbers the columns of VALUES.
        self.named.push(!matches!(*query.body, SetExpr::Values(_)));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.named.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        // Planners of functions in FROM look at the arguments as written.
        let is_call = match factor {
            TableFactor::Table { args, .. } => args.is_some(),
            TableFactor::Derived { .. } | TableFactor::NestedJoin { .. } => false,
            _ => true,
        };
        self.named.push(!is_call && self.named.last() == Some(&true));
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, _: &mut TableFactor) -> ControlFlow<()> {
        self.named.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        self.conditions.push(select.selection.take());
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        select.selection = self.conditions.pop().flatten();
        if let Some(condition) = &mut select.selection {
            self.named.push(false);
            let _ = walk_mut(condition, self);
            self.named.pop();
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Ast) -> ControlFlow<()> {
        // The subquery's number covers all of its contents.
        if is_quantified(expr) {
            self.named.push(false);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Ast) -> ControlFlow<()> {
        if is_quantified(expr) {
            self.named.pop();
        }
        if self.named.last() != Some(&true) {
            return ControlFlow::Continue(());
        }
        match expr {
            Ast::BinaryOp { left, op, right } => {
                self.operand(left, |left| match left {
                    Ast::BinaryOp { op: inner, .. } if inner == op => false,
                    Ast::BinaryOp { op: inner, .. } => !binds(inner, op) && !binds_alike(inner, op),
                    left => is_operator(left),
                });
                self.operand(right, |right| match right {
                    Ast::BinaryOp { op: inner, .. } => !binds(inner, op),
                    right => is_operator(right),
                });
            }
            Ast::IsNull(of) | Ast::IsNotNull(of) => self.operand(of, is_operator),
            Ast::IsTrue(of) | Ast::IsNotTrue(of) => self.operand(of, is_operator),
            Ast::IsFalse(of) | Ast::IsNotFalse(of) => self.operand(of, is_operator),
            Ast::IsUnknown(of) | Ast::IsNotUnknown(of) => self.operand(of, is_operator),
            Ast::IsDistinctFrom(left, right) | Ast::IsNotDistinctFrom(left, right) => {
                self.operand(left, is_operator);
                self.operand(right, is_operator);
            }
            Ast::Between { expr, low, high, .. } => {
                for operand in [expr, low, high] {
                    self.operand(operand, is_operator);
                }
            }
            Ast::Like { expr, pattern, .. }
            | Ast::ILike { expr, pattern, .. }
            | Ast::SimilarTo { expr, pattern, .. } => {
                self.operand(expr, is_operator);
                self.operand(pattern, is_operator);
            }
            Ast::InList { expr, list, .. } => {
                self.operand(expr, is_operator);
                list.iter_mut().for_each(|item| self.operand(item, is_operator));
            }
            Ast::Cast { .. } | Ast::TypedString(_) => self.wrap(expr, None),
            Ast::Subquery(_) | Ast::Exists { .. } | Ast::InSubquery { .. } => self.subquery(expr),
            expr if is_quantified(expr) => self.subquery(expr),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Whether this is `x = ANY (SELECT …)` or similar.
fn is_quantified(expr: &Ast) -> bool {
    match expr {
        Ast::AnyOp { right, .. } | Ast::AllOp { right, .. } => {
            matches!(bare(right), Ast::Subquery(_))
        }
        _ => false,
    }
}

/// Returns the expression inside parentheses.
fn bare(expr: &Ast) -> &Ast {
    match expr {
        Ast::Nested(inner) => bare(inner),
        other => other,
    }
}

/// Whether a name shows the expression as operands and an operator without parentheses.
fn is_operator(expr: &Ast) -> bool {
    matches!(
        expr,
        Ast::BinaryOp { .. }
            | Ast::UnaryOp { op: UnaryOperator::Not, .. }
            | Ast::IsNull(_)
            | Ast::IsNotNull(_)
            | Ast::IsTrue(_)
            | Ast::IsNotTrue(_)
            | Ast::IsFalse(_)
            | Ast::IsNotFalse(_)
            | Ast::IsUnknown(_)
            | Ast::IsNotUnknown(_)
            | Ast::IsDistinctFrom(..)
            | Ast::IsNotDistinctFrom(..)
            | Ast::Between { .. }
            | Ast::Like { .. }
            | Ast::ILike { .. }
            | Ast::SimilarTo { .. }
            | Ast::RLike { .. }
            | Ast::InList { .. }
            | Ast::AnyOp { .. }
            | Ast::AllOp { .. }
    )
}

/// Whether an operator binds more tightly than the one around it.
fn binds(inner: &BinaryOperator, outer: &BinaryOperator) -> bool {
    level(outer).is_some_and(|outer| level(inner).is_some_and(|inner| inner > outer))
}

fn binds_alike(inner: &BinaryOperator, outer: &BinaryOperator) -> bool {
    level(inner).is_some() && level(inner) == level(outer)
}

/// Returns how tightly an operator binds in names; None for those whose operands always get parentheses.
fn level(op: &BinaryOperator) -> Option<u8> {
    use BinaryOperator::{
        And, Divide, Eq, Gt, GtEq, Lt, LtEq, Minus, Modulo, Multiply, NotEq, Or, Plus,
    };
    Some(match op {
        Or => 1,
        And => 2,
        Eq | NotEq | Lt | LtEq | Gt | GtEq => 3,
        Plus | Minus => 4,
        Multiply | Divide | Modulo => 5,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use datafusion::sql::parser::DFParser;

    use super::*;

    fn marked(sql: &str) -> String {
        let mut statement = DFParser::parse_sql(sql).expect(sql).pop_front().expect("a statement");
        mark(&mut statement);
        statement.to_string()
    }

    #[test]
    fn parts_are_marked_where_a_name_would_leave_them_out() {
        for (sql, expected) in [
            ("SELECT max(CAST(a AS INT)), a FROM t", "SELECT max((CAST(a AS INT))), a FROM t"),
            ("SELECT a - (b - c) FROM t", "SELECT a - ((b - c)) FROM t"),
            ("SELECT (a - b) - c + d * e FROM t", "SELECT (a - b) - c + d * e FROM t"),
            ("SELECT (a + b) * c FROM t", "SELECT ((a + b)) * c FROM t"),
            ("SELECT a || b || c, a || (b || c)", "SELECT a || b || c, a || ((b || c))"),
            ("SELECT (a = b) IS NULL, NOT a AND b", "SELECT ((a = b)) IS NULL, (NOT a) AND b"),
            (
                "SELECT (SELECT 1), (SELECT 2), (SELECT 1)",
                "SELECT ((SELECT 1), '<subquery 1>'), ((SELECT 2), '<subquery 2>'), \
                 ((SELECT 1), '<subquery 1>')",
            ),
        ] {
            assert_eq!(marked(sql), expected);
        }
    }

    #[test]
    fn conditions_and_values_are_left_as_they_are() {
        for sql in [
            "SELECT a FROM t WHERE CAST(a AS INT) - (b - c) > 1",
            "VALUES (CAST('1' AS INT))",
            "INSERT INTO t VALUES (CAST('1' AS INT))",
        ] {
            assert_eq!(marked(sql), sql);
        }
        let within = "SELECT a FROM t WHERE a IN (SELECT CAST(b AS INT) FROM u)";
        let expected = "SELECT a FROM t WHERE a IN (SELECT (CAST(b AS INT)) FROM u)";
        assert_eq!(marked(within), expected);
    }
}
