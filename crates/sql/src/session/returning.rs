//! RETURNING: what a statement wrote, as rows.
//!
//! ```text
//! INSERT INTO t … RETURNING a, b + 1     SELECT a, b + 1 FROM <the rows that were written> AS t
//! ```
//!
//! The select list is planned over an empty table with the columns of the one that is written, whose scan
//! then becomes the write itself. The rows of INSERT and UPDATE are as they are afterwards, those of
//! DELETE as they were.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{
    ResolvedTableReference, Result, internal_datafusion_err, internal_err, plan_err,
};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{DmlStatement, Extension, LogicalPlan};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    FromTable, Ident, Insert, ObjectName, ObjectNamePart, SelectItem, SetExpr, Statement as Ast,
    TableFactor, TableObject,
};

use super::change::{innermost, parsed, quoted, within};
use super::planner::StatementPlanner;
use crate::catalog::plain;
use crate::table::{PlacedTable, WrittenRows};

/// The name under which the rows that were written are planned.
const WRITTEN: &str = "rows written";

/// The RETURNING of a statement.
pub(super) struct Returning {
    items: Vec<SelectItem>,
    /// What the select list calls the table.
    name: Ident,
    /// The table.
    table: ObjectName,
}

impl Returning {
    /// The table whose rows it returns.
    pub(super) fn table(&self) -> &ObjectName {
        &self.table
    }

    /// Takes the clause out of an INSERT, UPDATE or DELETE, also within EXPLAIN, PREPARE and WITH.
    pub(super) fn take(statement: &mut Parsed) -> Result<Option<Self>> {
        let Some(ast) = innermost(statement) else { return Ok(None) };
        match ast {
            Ast::Query(query) => match query.body.as_mut() {
                SetExpr::Insert(inner) | SetExpr::Update(inner) | SetExpr::Delete(inner) => {
                    Self::take_from(inner)
                }
                _ => Ok(None),
            },
            ast => Self::take_from(ast),
        }
    }

    fn take_from(ast: &mut Ast) -> Result<Option<Self>> {
        match ast {
            Ast::Insert(insert) => Self::of_insert(insert),
            Ast::Update(update) => {
                let items = update.returning.take();
                Self::of_relation(items, &update.table.relation)
            }
            Ast::Delete(delete) => {
                let items = delete.returning.take();
                let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) =
                    &delete.from;
                match from.first() {
                    Some(table) => Self::of_relation(items, &table.relation),
                    None => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    fn of_insert(insert: &mut Insert) -> Result<Option<Self>> {
        let Some(items) = insert.returning.take() else { return Ok(None) };
        let TableObject::TableName(table) = &insert.table else {
            return plan_err!("RETURNING of an INSERT into a table function is not supported");
        };
        let alias = insert.table_alias.as_ref().map(|alias| alias.alias.clone());
        Ok(Some(Self { items, name: called(alias, table)?, table: table.clone() }))
    }

    fn of_relation(items: Option<Vec<SelectItem>>, table: &TableFactor) -> Result<Option<Self>> {
        let (Some(items), TableFactor::Table { name, alias, .. }) = (items, table) else {
            return Ok(None);
        };
        let alias = alias.as_ref().map(|alias| alias.name.clone());
        Ok(Some(Self { items, name: called(alias, name)?, table: name.clone() }))
    }

    /// The plan of the select list over what another plan writes, also within EXPLAIN and PREPARE.
    pub(super) async fn plan(
        &self,
        planner: &StatementPlanner,
        state: &SessionState,
        write: LogicalPlan,
    ) -> Result<LogicalPlan> {
        let at = planner.resolve_in(state, &self.table)?;
        let found = planner.names.table(&at)?;
        let Some(table) = found.as_ref().and_then(|found| found.downcast_ref::<PlacedTable>())
        else {
            return plan_err!("RETURNING of '{}', which was not made by CREATE TABLE", plain(&at));
        };
        planner.names.hide(WRITTEN, Arc::new(table.as_rows()));
        let select = planner.plan_query(state, self.query(&at)?, &[]).await?;
        within(write, |write| match &write {
            LogicalPlan::Dml(write) => over(select, write),
            other => {
                internal_err!("RETURNING of a statement that writes nothing: {}", other.display())
            }
        })
    }

    /// The select list as a query over the rows that were written; `at` is where the table is.
    fn query(&self, at: &ResolvedTableReference) -> Result<Parsed> {
        let parts = [&*at.catalog, &*at.schema, WRITTEN];
        let table = ObjectName(parts.map(|part| ObjectNamePart::Identifier(quoted(part))).to_vec());
        let mut query = parsed(&format!("SELECT 0 FROM {table} AS {}", self.name))?;
        let Ast::Query(body) = &mut query else {
            return internal_err!("a query was parsed as another statement");
        };
        let SetExpr::Select(select) = body.body.as_mut() else {
            return internal_err!("a SELECT was parsed as another query");
        };
        select.projection.clone_from(&self.items);
        Ok(Parsed::Statement(Box::new(query)))
    }
}

/// A plan of the select list over the rows that `write` writes.
fn over(select: LogicalPlan, write: &DmlStatement) -> Result<LogicalPlan> {
    let mut is_found = false;
    let plan = select.transform_down(|node| match node {
        LogicalPlan::TableScan(scan) if scan.table_name.table() == WRITTEN => {
            if scan.projection.is_some() || std::mem::replace(&mut is_found, true) {
                return internal_err!("the rows of RETURNING are read twice");
            }
            let node = WrittenRows::new(write, Arc::clone(&scan.projected_schema))?;
            Ok(Transformed::yes(LogicalPlan::Extension(Extension { node: Arc::new(node) })))
        }
        other => Ok(Transformed::no(other)),
    })?;
    match is_found {
        true => Ok(plan.data),
        false => plan_err!("RETURNING without rows"),
    }
}

fn called(alias: Option<Ident>, table: &ObjectName) -> Result<Ident> {
    let last = table.0.last().and_then(|part| part.as_ident()).cloned();
    alias.or(last).ok_or_else(|| internal_datafusion_err!("'{table}' is not the name of a table"))
}
