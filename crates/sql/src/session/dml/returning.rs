//! RETURNING: the written rows as a result.
//!
//! ```text
//! INSERT INTO t … RETURNING a, b + 1     SELECT a, b + 1 FROM <the rows that were written> AS t
//! ```
//!
//! The select list is planned over an empty table with the columns of the written one, next to those of the other
//! tables of UPDATE … FROM and DELETE … USING; the scan of these then becomes the write itself. INSERT and UPDATE
//! return new rows, DELETE returns old ones.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{
    ResolvedTableReference, Result, TableReference, internal_datafusion_err, internal_err, plan_err,
};
use datafusion::datasource::empty::EmptyTable;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{DmlStatement, Extension, LogicalPlan};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    Expr as AstExpr, FromTable, Ident, Insert, ObjectName, ObjectNamePart, SelectItem, SetExpr,
    Statement as Ast, TableFactor, TableObject, TableWithJoins, UpdateTableFromKind, With,
};

use crate::session::dml::change::{innermost, parsed, quoted, within};
use crate::session::plan::planner::StatementPlanner;
use crate::table::{PlacedTable, WrittenRows};
use atoll_sql_common::error::stated_err;
use atoll_sql_common::names::plain;

/// The name under which the written rows are planned; with a number, those of other tables.
const WRITTEN: &str = "rows written";

/// The name prefix of a column of another table in the query that finds the rows.
const OTHER: &str = "column of another table";

/// The RETURNING of a statement.
pub(in crate::session) struct Returning {
    items: Vec<SelectItem>,
    /// The name of the table in the select list.
    name: Ident,
    /// The table.
    table: ObjectName,
    others: OtherTables,
}

/// The tables of a statement besides the one that it changes.
#[derive(Default)]
struct OtherTables {
    with: Option<With>,
    from: Vec<TableWithJoins>,
    /// Their columns, once known, by the names of the tables in the statement.
    tables: Vec<(TableReference, Vec<Field>)>,
}

impl Returning {
    /// The table whose rows it returns.
    pub(in crate::session) fn table(&self) -> &ObjectName {
        &self.table
    }

    /// Takes the clause out of an INSERT, UPDATE or DELETE, also within EXPLAIN, PREPARE and WITH.
    pub(in crate::session) fn take(statement: &mut Parsed) -> Result<Option<Self>> {
        let Some(ast) = innermost(statement) else { return Ok(None) };
        match ast {
            Ast::Query(query) => match query.body.as_mut() {
                SetExpr::Insert(inner) | SetExpr::Update(inner) | SetExpr::Delete(inner) => {
                    let mut taken = Self::take_from(inner)?;
                    if let Some(taken) = &mut taken {
                        taken.others.with.clone_from(&query.with);
                    }
                    Ok(taken)
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
                let from = match &update.from {
                    Some(
                        UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from),
                    ) => from.as_slice(),
                    None => &[],
                };
                Self::of_relation(items, &update.table.relation, from)
            }
            Ast::Delete(delete) => {
                let items = delete.returning.take();
                let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) =
                    &delete.from;
                match from.first() {
                    Some(table) => {
                        let using = delete.using.as_deref().unwrap_or_default();
                        Self::of_relation(items, &table.relation, using)
                    }
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
        let (name, others) = (called(alias, table)?, OtherTables::default());
        Ok(Some(Self { items, name, table: table.clone(), others }))
    }

    fn of_relation(
        items: Option<Vec<SelectItem>>,
        table: &TableFactor,
        others: &[TableWithJoins],
    ) -> Result<Option<Self>> {
        let (Some(items), TableFactor::Table { name, alias, .. }) = (items, table) else {
            return Ok(None);
        };
        let alias = alias.as_ref().map(|alias| alias.name.clone());
        let others = OtherTables { from: others.to_vec(), ..OtherTables::default() };
        Ok(Some(Self { items, name: called(alias, name)?, table: name.clone(), others }))
    }

    /// Finds the columns of the other tables; the items that the query that finds the rows has to select for them.
    pub(in crate::session) async fn find_others(
        &mut self,
        planner: &StatementPlanner,
        state: &SessionState,
    ) -> Result<Vec<SelectItem>> {
        let others = &mut self.others;
        if others.from.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = parsed("SELECT 0")?;
        if let Ast::Query(query) = &mut query
            && let SetExpr::Select(select) = query.body.as_mut()
        {
            select.from = std::mem::take(&mut others.from);
            query.with = others.with.take();
        }
        let query = Parsed::Statement(Box::new(query));
        // LATERAL ones read the changed table: their columns are not returned. Other errors are reported when the rows
        // are looked for.
        let Ok(plan) = planner.plan_query(state, query, &[]).await else { return Ok(Vec::new()) };
        let [from] = plan.inputs()[..] else { return internal_err!("a SELECT without FROM") };
        for (table, field) in from.schema().iter() {
            let Some(table) = table else { continue };
            let field = field.as_ref().clone().with_nullable(true);
            match others.tables.iter_mut().find(|(other, _)| other == table) {
                Some((_, fields)) => fields.push(field),
                None => others.tables.push((table.clone(), vec![field])),
            }
        }
        Ok(others.items())
    }

    /// The plan of the select list over the rows that another plan writes, also within EXPLAIN and PREPARE.
    pub(in crate::session) async fn plan(
        &self,
        planner: &StatementPlanner,
        state: &SessionState,
        write: LogicalPlan,
    ) -> Result<LogicalPlan> {
        let at = planner.resolve_in(state, &self.table)?;
        let found = planner.names.table(&at)?;
        let Some(table) = found.as_ref().and_then(|found| found.downcast_ref::<PlacedTable>())
        else {
            return stated_err!(
                WRONG_OBJECT_TYPE,
                "RETURNING of '{}', which was not made by CREATE TABLE",
                plain(&at)
            );
        };
        planner.names.hide(WRITTEN, Arc::new(table.as_rows()));
        for (number, (_, fields)) in self.others.tables.iter().enumerate() {
            let columns = Arc::new(Schema::new(fields.clone()));
            planner.names.hide(&beside(number), Arc::new(EmptyTable::new(columns)));
        }
        let select = planner.plan_query(state, self.query(&at)?, &[]).await?;
        within(write, |write| match &write {
            LogicalPlan::Dml(write) => over(select, write),
            other => {
                internal_err!("RETURNING of a statement that writes nothing: {}", other.display())
            }
        })
    }

    /// The select list as a query over the written rows; `at` is the table's full name.
    fn query(&self, at: &ResolvedTableReference) -> Result<Parsed> {
        let source = |hidden: &str, name: &Ident| {
            let parts = [&*at.catalog, &*at.schema, hidden];
            let parts = parts.map(|part| ObjectNamePart::Identifier(quoted(part)));
            format!("{} AS {name}", ObjectName(parts.to_vec()))
        };
        let others = self.others.tables.iter().enumerate();
        let others = others.map(|(at, (table, _))| source(&beside(at), &quoted(table.table())));
        let from: Vec<String> = [source(WRITTEN, &self.name)].into_iter().chain(others).collect();
        let mut query = parsed(&format!("SELECT 0 FROM {}", from.join(", ")))?;
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
    let plan = select.transform_down(|node| {
        if !are_written(&node) {
            return Ok(Transformed::no(node));
        }
        if std::mem::replace(&mut is_found, true) {
            return internal_err!("the rows of RETURNING are read twice");
        }
        let rows = WrittenRows::new(write, Arc::clone(node.schema()))?;
        let rows = LogicalPlan::Extension(Extension { node: Arc::new(rows) });
        Ok(Transformed::new(rows, true, TreeNodeRecursion::Jump))
    })?;
    match is_found {
        true => Ok(plan.data),
        false => plan_err!("RETURNING without rows"),
    }
}

/// Whether a plan reads the written rows, possibly together with those of other tables.
fn are_written(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::TableScan(scan) => scan.table_name.table().starts_with(WRITTEN),
        LogicalPlan::SubqueryAlias(_) | LogicalPlan::Join(_) => {
            plan.inputs().into_iter().all(are_written)
        }
        _ => false,
    }
}

/// The name under which another table is planned.
fn beside(number: usize) -> String {
    format!("{WRITTEN} {number}")
}

impl OtherTables {
    /// The select items of the columns in the query that finds the rows.
    fn items(&self) -> Vec<SelectItem> {
        let columns = self.tables.iter().flat_map(|(table, fields)| {
            fields.iter().map(move |field| {
                let of = table.schema().into_iter().chain([table.table(), field.name()]);
                AstExpr::CompoundIdentifier(of.map(quoted).collect())
            })
        });
        let alias = |number: usize| quoted(&format!("{OTHER} {number}"));
        let columns = columns.enumerate();
        columns.map(|(at, expr)| SelectItem::ExprWithAlias { expr, alias: alias(at) }).collect()
    }
}

fn called(alias: Option<Ident>, table: &ObjectName) -> Result<Ident> {
    let last = table.0.last().and_then(|part| part.as_ident()).cloned();
    alias.or(last).ok_or_else(|| internal_datafusion_err!("'{table}' is not the name of a table"))
}
