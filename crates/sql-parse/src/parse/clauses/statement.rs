//! Statements: tables, views, schemas and indexes.

use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::{
    CreateView, Expr, FromTable, Merge, MergeAction, MergeClauseKind, MergeInsertKind, Query,
    SelectInto, SetExpr, Statement, UpdateTableFromKind,
};

use super::{joins, refuse};
use crate::dialect::{OVERRIDING_SYSTEM, OVERRIDING_USER};

pub(super) fn check(statement: &mut Statement) -> Result<()> {
    match statement {
        Statement::CreateView(create) => view(create),
        Statement::CreateTable(create) => refuse(
            create.partition_by.is_some(),
            "PARTITION BY of a table",
            "rows are spread over the nodes as WITH (placement = '…') says",
        ),
        Statement::CreateSchema { with, options, default_collate_spec, clone, .. } => {
            let has_options = with.is_some() || options.is_some();
            refuse(has_options, "an option of CREATE SCHEMA", "leave it out")?;
            refuse(default_collate_spec.is_some(), "DEFAULT COLLATE of a schema", "")?;
            refuse(clone.is_some(), "CLONE of a schema", "")
        }
        Statement::CreateDatabase { or_replace, transient, clone, location, comment, .. } => {
            let has_options = *or_replace
                || *transient
                || clone.is_some()
                || location.is_some()
                || comment.is_some();
            refuse(has_options, "an option of CREATE DATABASE", "leave it out")
        }
        Statement::Drop { purge, temporary, table, .. } => {
            refuse(*purge, "PURGE", "leave it out")?;
            refuse(*temporary, "DROP TEMPORARY", "write DROP TABLE or DROP VIEW")?;
            refuse(table.is_some(), "ON after DROP", "")
        }
        Statement::Update(update) => {
            joins::check(&mut update.table)?;
            match &mut update.from {
                Some(
                    UpdateTableFromKind::BeforeSet(from) | UpdateTableFromKind::AfterSet(from),
                ) => from.iter_mut().try_for_each(joins::check),
                None => Ok(()),
            }
        }
        Statement::Delete(delete) => {
            let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) =
                &mut delete.from;
            from.iter_mut().try_for_each(joins::check)?;
            delete.using.iter_mut().flatten().try_for_each(joins::check)
        }
        Statement::Merge(merge) => check_merge(merge),
        _ => Ok(()),
    }
}

/// Refuses clauses of other databases' MERGE.
fn check_merge(merge: &Merge) -> Result<()> {
    refuse(
        merge.output.is_some(),
        "RETURNING of MERGE",
        "use INSERT … ON CONFLICT, UPDATE or DELETE, which return the rows that they write",
    )?;
    for clause in &merge.clauses {
        refuse(
            clause.clause_kind == MergeClauseKind::NotMatchedBySource,
            "WHEN NOT MATCHED BY SOURCE",
            "write DELETE or UPDATE … WHERE NOT EXISTS (SELECT …) as a statement of its own",
        )?;
        let has_where = match &clause.action {
            MergeAction::Insert(insert) => {
                let is_row = matches!(insert.kind, MergeInsertKind::Row);
                refuse(is_row, "INSERT ROW of MERGE", "write INSERT VALUES (…)")?;
                insert.insert_predicate.as_ref().is_some_and(|predicate| !is_overriding(predicate))
            }
            MergeAction::Update(update) => {
                update.update_predicate.is_some() || update.delete_predicate.is_some()
            }
            MergeAction::Delete { .. } => false,
        };
        refuse(has_where, "WHERE of an action of MERGE", "write WHEN MATCHED AND (condition)")?;
    }
    Ok(())
}

/// Whether a condition is the OVERRIDING clause, which `dialect::words` puts there.
fn is_overriding(predicate: &Expr) -> bool {
    matches!(predicate, Expr::Identifier(name)
        if [OVERRIDING_SYSTEM, OVERRIDING_USER].contains(&name.value.as_str()))
}

fn view(create: &CreateView) -> Result<()> {
    refuse(create.or_alter, "CREATE OR ALTER VIEW", "write CREATE OR REPLACE VIEW")?;
    refuse(create.secure, "CREATE SECURE VIEW", "leave SECURE out")?;
    refuse(
        create.materialized && (create.or_replace || create.temporary),
        "OR REPLACE or TEMPORARY of a materialized view",
        "DROP MATERIALIZED VIEW before CREATE MATERIALIZED VIEW",
    )?;
    refuse(create.params.is_some(), "ALGORITHM, DEFINER or SQL SECURITY of a view", "")
}

/// Takes out the INTO of a query that is a statement, the only place where the planner supports it.
pub(super) fn take_into(statement: &mut Statement) -> Result<Option<SelectInto>> {
    let Some(into) = into_of(statement).and_then(Option::take) else { return Ok(None) };
    refuse(into.temporary, "INTO TEMPORARY", "write CREATE TEMP TABLE … AS")?;
    refuse(into.unlogged, "INTO UNLOGGED", "leave UNLOGGED out")?;
    Ok(Some(into))
}

/// The INTO of a statement that is a query.
pub(super) fn into_of(statement: &mut Statement) -> Option<&mut Option<SelectInto>> {
    let Statement::Query(query) = statement else { return None };
    let Query { body, .. } = query.as_mut();
    match body.as_mut() {
        SetExpr::Select(select) => Some(&mut select.into),
        _ => None,
    }
}
