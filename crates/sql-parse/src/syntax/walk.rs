//! Walks over syntax trees.
//!
//! sqlparser's walk over a whole tree is compiled anew for each type of visitor: half a megabyte of code, and
//! seconds of a build, each time. Here all visitors go through one type, so there are only two walks.

use std::ops::ControlFlow;

use datafusion::common::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::{
    Expr, ObjectName, Query, Select, Statement, TableFactor, ValueWithSpan, Visit, VisitMut,
    Visitor, VisitorMut,
};

/// Ends a walk at an error.
pub fn flow(result: Result<()>) -> ControlFlow<DataFusionError> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

/// Makes a visitor visit all of a tree.
pub fn walk<B>(node: &impl Visit, visitor: &mut dyn Visitor<Break = B>) -> ControlFlow<B> {
    let mut kept = Kept { visitor, end: None };
    let _ = node.visit(&mut Any(&mut kept));
    kept.end.map_or(ControlFlow::Continue(()), ControlFlow::Break)
}

/// Makes a visitor visit, and change, all of a tree.
pub fn walk_mut<B>(
    node: &mut impl VisitMut,
    visitor: &mut dyn VisitorMut<Break = B>,
) -> ControlFlow<B> {
    let mut kept = KeptMut { visitor, end: None };
    let _ = node.visit(&mut AnyMut(&mut kept));
    kept.end.map_or(ControlFlow::Continue(()), ControlFlow::Break)
}

/// Visits all expressions of a tree, inner ones after outer ones.
pub fn walk_expressions<B>(
    node: &impl Visit,
    each: &mut dyn FnMut(&Expr) -> ControlFlow<B>,
) -> ControlFlow<B> {
    walk(node, &mut Expressions(each))
}

/// Visits, and changes, all expressions of a tree, inner ones before outer ones.
pub fn walk_expressions_mut<B>(
    node: &mut impl VisitMut,
    each: &mut dyn FnMut(&mut Expr) -> ControlFlow<B>,
) -> ControlFlow<B> {
    walk_mut(node, &mut ExpressionsMut(each))
}

/// Visits the expressions of a tree that are not in a query within it, inner ones after outer ones.
pub fn walk_own_expressions<B>(
    node: &impl Visit,
    each: &mut dyn FnMut(&Expr) -> ControlFlow<B>,
) -> ControlFlow<B> {
    walk(node, &mut OwnExpressions { each, queries: 0 })
}

/// Visits, and changes, the same expressions, inner ones before outer ones.
pub fn walk_own_expressions_mut<B>(
    node: &mut impl VisitMut,
    each: &mut dyn FnMut(&mut Expr) -> ControlFlow<B>,
) -> ControlFlow<B> {
    walk_mut(node, &mut OwnExpressionsMut { each, queries: 0 })
}

/// Visits the names of all relations of a tree.
pub fn walk_relations<B>(
    node: &impl Visit,
    each: &mut dyn FnMut(&ObjectName) -> ControlFlow<B>,
) -> ControlFlow<B> {
    walk(node, &mut Relations(each))
}

/// A visitor with the value that ended its walk.
struct Kept<'a, B> {
    visitor: &'a mut dyn Visitor<Break = B>,
    end: Option<B>,
}

struct KeptMut<'a, B> {
    visitor: &'a mut dyn VisitorMut<Break = B>,
    end: Option<B>,
}

/// The only visitor type that sqlparser sees.
struct Any<'a>(&'a mut dyn Visitor<Break = ()>);

/// The only visitor type that changes trees.
struct AnyMut<'a>(&'a mut dyn VisitorMut<Break = ()>);

/// All steps of a walk.
macro_rules! steps {
    ($step:ident, $($reference:tt)+) => {
        $step!(pre_visit_query, $($reference)+ Query);
        $step!(post_visit_query, $($reference)+ Query);
        $step!(pre_visit_select, $($reference)+ Select);
        $step!(post_visit_select, $($reference)+ Select);
        $step!(pre_visit_relation, $($reference)+ ObjectName);
        $step!(post_visit_relation, $($reference)+ ObjectName);
        $step!(pre_visit_table_factor, $($reference)+ TableFactor);
        $step!(post_visit_table_factor, $($reference)+ TableFactor);
        $step!(pre_visit_expr, $($reference)+ Expr);
        $step!(post_visit_expr, $($reference)+ Expr);
        $step!(pre_visit_statement, $($reference)+ Statement);
        $step!(post_visit_statement, $($reference)+ Statement);
        $step!(pre_visit_value, $($reference)+ ValueWithSpan);
        $step!(post_visit_value, $($reference)+ ValueWithSpan);
    };
}

/// A step that keeps the value that ends the walk.
macro_rules! keep_end {
    ($name:ident, $node:ty) => {
        fn $name(&mut self, node: $node) -> ControlFlow<()> {
            self.visitor.$name(node).map_break(|end| self.end = Some(end))
        }
    };
}

/// A step that calls the same step of the inner visitor.
macro_rules! hand_on {
    ($name:ident, $node:ty) => {
        fn $name(&mut self, node: $node) -> ControlFlow<()> {
            self.0.$name(node)
        }
    };
}

impl<B> Visitor for Kept<'_, B> {
    type Break = ();
    steps!(keep_end, &);
}

impl<B> VisitorMut for KeptMut<'_, B> {
    type Break = ();
    steps!(keep_end, &mut);
}

impl Visitor for Any<'_> {
    type Break = ();
    steps!(hand_on, &);
}

impl VisitorMut for AnyMut<'_> {
    type Break = ();
    steps!(hand_on, &mut);
}

struct Expressions<'a, B>(&'a mut dyn FnMut(&Expr) -> ControlFlow<B>);

impl<B> Visitor for Expressions<'_, B> {
    type Break = B;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<B> {
        self.0(expr)
    }
}

struct ExpressionsMut<'a, B>(&'a mut dyn FnMut(&mut Expr) -> ControlFlow<B>);

impl<B> VisitorMut for ExpressionsMut<'_, B> {
    type Break = B;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<B> {
        self.0(expr)
    }
}

struct OwnExpressions<'a, B> {
    each: &'a mut dyn FnMut(&Expr) -> ControlFlow<B>,
    /// Queries around the visited node.
    queries: usize,
}

struct OwnExpressionsMut<'a, B> {
    each: &'a mut dyn FnMut(&mut Expr) -> ControlFlow<B>,
    queries: usize,
}

/// The steps of a visitor of own expressions, which counts the queries around them.
macro_rules! own {
    ($visit:ident, $($reference:tt)+) => {
        type Break = B;

        fn pre_visit_query(&mut self, _: $($reference)+ Query) -> ControlFlow<B> {
            self.queries += 1;
            ControlFlow::Continue(())
        }

        fn post_visit_query(&mut self, _: $($reference)+ Query) -> ControlFlow<B> {
            self.queries -= 1;
            ControlFlow::Continue(())
        }

        fn $visit(&mut self, expr: $($reference)+ Expr) -> ControlFlow<B> {
            if self.queries == 0 { (self.each)(expr) } else { ControlFlow::Continue(()) }
        }
    };
}

impl<B> Visitor for OwnExpressions<'_, B> {
    own!(pre_visit_expr, &);
}

impl<B> VisitorMut for OwnExpressionsMut<'_, B> {
    own!(post_visit_expr, &mut);
}

struct Relations<'a, B>(&'a mut dyn FnMut(&ObjectName) -> ControlFlow<B>);

impl<B> Visitor for Relations<'_, B> {
    type Break = B;

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<B> {
        self.0(relation)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    #[test]
    fn walks_end_where_their_visitors_end_them() {
        let sql = "SELECT a + 1 FROM t WHERE b IN (SELECT c FROM u)";
        let mut parsed = Parser::parse_sql(&GenericDialect {}, sql).expect(sql);
        let mut seen = Vec::new();
        let end = walk_relations(&parsed, &mut |name| {
            seen.push(name.to_string());
            if name.to_string() == "u" { ControlFlow::Break(7) } else { ControlFlow::Continue(()) }
        });
        assert_eq!((end, seen.join(" ")), (ControlFlow::Break(7), "t u".to_owned()));
        let end: ControlFlow<()> = walk_expressions_mut(&mut parsed, &mut |expr| {
            if let Expr::Identifier(name) = expr {
                name.value.push('x');
            }
            ControlFlow::Continue(())
        });
        assert_eq!(end, ControlFlow::Continue(()));
        let mut first = None;
        let _ = walk_expressions(&parsed, &mut |expr| {
            first = Some(expr.to_string());
            ControlFlow::Break(())
        });
        assert_eq!(first.as_deref(), Some("ax + 1"));
        let Statement::Query(query) = &parsed[0] else { panic!("{sql}") };
        let mut own = Vec::new();
        let _: ControlFlow<()> = walk_own_expressions(query.body.as_ref(), &mut |expr| {
            own.push(expr.to_string());
            ControlFlow::Continue(())
        });
        assert_eq!(own.join(", "), "ax + 1, ax, 1, bx IN (SELECT cx FROM u), bx");
        assert!(parsed[0].to_string().contains("bx IN (SELECT cx FROM u)"), "{}", parsed[0]);
    }
}
