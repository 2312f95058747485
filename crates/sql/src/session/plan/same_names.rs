//! Tables with the same name in several schemas, joined without aliases.
//!
//! DataFusion 55 confuses `tbl` and `s1.tbl` when it looks a column up (`TableReference::resolved_eq`,
//! apache/datafusion#6012): it takes the first match, so `SELECT * FROM tbl, s1.tbl` shows the columns of one of them
//! twice. An ambiguous name requires an alias.

use atoll_sql_common::error::stated_err;
use atoll_sql_parse::syntax::walk;
use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DFSchema, Result, TableReference};
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::{CopyToSource, Statement as Parsed};
use datafusion::sql::sqlparser::ast::{Expr, Ident, Visitor};

/// The unqualified table names that qualify columns in a statement: `tbl.x`.
#[derive(Debug, Default)]
pub(in crate::session) struct BareQualifiers(HashSet<String>);

impl BareQualifiers {
    /// The qualifiers of a statement; `None` if no table is named with its schema, since then no two of them can be
    /// confused.
    pub(in crate::session) fn from_statement(
        statement: &Parsed,
        tables: &[TableReference],
    ) -> Option<Self> {
        if tables.iter().all(|table| table.schema().is_none()) {
            return None;
        }
        let mut qualifiers = Self::default();
        let _ = qualifiers.collect(statement);
        Some(qualifiers)
    }

    fn collect(&mut self, statement: &Parsed) -> ControlFlow<()> {
        match statement {
            Parsed::Statement(ast) => walk(ast, self),
            Parsed::Explain(explain) => self.collect(&explain.statement),
            Parsed::CopyTo(copy) => match &copy.source {
                CopyToSource::Query(query) => walk(query, self),
                CopyToSource::Relation(_) => ControlFlow::Continue(()),
            },
            _ => ControlFlow::Continue(()),
        }
    }

    fn add(&mut self, name: &Ident) {
        let is_quoted = name.quote_style.is_some();
        self.0.insert(if is_quoted { name.value.clone() } else { name.value.to_lowercase() });
    }

    /// Refuses a plan in which a name could mean either of two joined tables.
    pub(in crate::session) fn check(&self, plan: &LogicalPlan) -> Result<()> {
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::Join(join) = node {
                let right = tables(join.right.schema());
                for left in tables(join.left.schema()) {
                    if let Some(right) = right.iter().find(|right| self.confuses(left, right)) {
                        return stated_err!(
                            DUPLICATE_ALIAS,
                            "'{left}' and '{right}' are joined, and '{}' could be either of them; \
                             give one an alias, as in FROM {right} AS other",
                            left.table()
                        );
                    }
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(())
    }

    fn confuses(&self, left: &TableReference, right: &TableReference) -> bool {
        left != right
            && left.table() == right.table()
            && (left.resolved_eq(right) || self.0.contains(left.table()))
    }
}

impl Visitor for BareQualifiers {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && let [table, _] = parts.as_slice()
        {
            self.add(table);
        }
        ControlFlow::Continue(())
    }
}

/// The tables of these columns.
fn tables(schema: &DFSchema) -> Vec<&TableReference> {
    let mut tables: Vec<&TableReference> = schema.iter().filter_map(|(table, _)| table).collect();
    tables.dedup();
    tables
}
