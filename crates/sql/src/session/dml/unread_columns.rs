//! Columns of a table that a DELETE or UPDATE does not read.
//!
//! The changed table has an alias in its query, and DataFusion 55 takes a column of any schema's table of
//! that name for one of it (`TableReference::resolved_eq`): `DELETE FROM s1.t WHERE s2.t.id = 1` would
//! delete rows of `s1.t`.

use atoll_sql_common::error::stated_err;
use atoll_sql_parse::syntax::walk;
use std::ops::ControlFlow;

use datafusion::common::{ResolvedTableReference, Result};
use datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName, Statement as Ast, Visitor};

/// Refuses columns of a table with the same name in another schema, unless the statement reads it.
pub(in crate::session) fn check(statement: &Ast, changed: &ResolvedTableReference) -> Result<()> {
    let mut found = ForeignColumns { changed, namesakes: 0, column: None };
    let _: ControlFlow<()> = walk(statement, &mut found);
    match found.column {
        Some(column) if found.namesakes < 2 => {
            stated_err!(
                UNDEFINED_TABLE,
                "column '{column}' is of a table that the statement does not read"
            )
        }
        _ => Ok(()),
    }
}

struct ForeignColumns<'a> {
    changed: &'a ResolvedTableReference,
    /// Number of tables with the same last name as the changed one, which is among them.
    namesakes: usize,
    column: Option<String>,
}

impl ForeignColumns<'_> {
    fn is_foreign(&self, parts: &[Ident]) -> bool {
        let same = |ident: &Ident, name: &str| ident.value.eq_ignore_ascii_case(name);
        let ResolvedTableReference { catalog, schema, table } = self.changed;
        match parts {
            [of_schema, of_table, _] if same(of_table, table) => {
                !same(of_schema, schema) && !same(of_schema, table)
            }
            [of_catalog, of_schema, of_table, _] if same(of_table, table) => {
                !same(of_schema, schema) || !same(of_catalog, catalog)
            }
            _ => false,
        }
    }
}

impl Visitor for ForeignColumns<'_> {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
        let last = relation.0.last().and_then(|part| part.as_ident());
        let is_namesake = |last: &Ident| last.value.eq_ignore_ascii_case(&self.changed.table);
        self.namesakes += usize::from(last.is_some_and(is_namesake));
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && self.is_foreign(parts)
        {
            self.column.get_or_insert_with(|| expr.to_string());
        }
        ControlFlow::Continue(())
    }
}
