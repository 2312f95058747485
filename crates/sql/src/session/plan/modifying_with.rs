//! Statements in WITH that change rows: `WITH moved AS (DELETE FROM a … RETURNING *) INSERT INTO b SELECT * FROM moved`.
//!
//! ```text
//! WITH q AS (UPDATE … RETURNING id), r AS (SELECT … FROM q) SELECT … FROM r
//!     1. UPDATE … RETURNING id                            runs to its end; its rows get an internal name
//!     2. WITH q AS (SELECT * FROM <that name>), r AS (…) SELECT … FROM r
//! ```
//!
//! They run in the order of the text, each once, whether its result is read or not. All find their rows in the version
//! of the statement: none sees the changes of others, except through RETURNING. For several changes of one row see
//! `store/database/transaction/parts.rs`. Queries in the same WITH that are read more than once run so too: all readers
//! have to find the same rows.
//!
//! A statement that is only described or explained runs nothing: empty tables replace the results.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use atoll_runtime::CancelToken;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::{ResolvedTableReference, Result, internal_err};
use datafusion::datasource::MemTable;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Extension, LogicalPlan};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    Cte, FromTable, Ident, Query, SetExpr, Statement as Ast, TableFactor, Visit, Visitor, With,
};
use futures::future::BoxFuture;

use crate::session::Session;
use crate::session::cache::point::{cast_types, columns_of, parameter_fields, types_of};
use crate::session::dml::change::{innermost, parsed, quoted, within};
use crate::session::dml::insert::put_before;
use crate::session::plan::planner::StatementPlanner;
use atoll_sql_common::error::{stated_err, transaction_error};
use atoll_sql_common::operator::StatementParts;
use atoll_sql_parse::dialect::shown;
use atoll_sql_parse::parse::changes_rows;
use atoll_sql_parse::syntax::walk;

/// The name of rows returned by a statement in WITH, which no table has.
const RETURNED: &str = "returned rows\u{1}";

/// A statement in WITH that runs before the outer one.
pub(in crate::session) struct PartWithin {
    /// Its name in WITH.
    name: String,
    /// With the preceding queries of the WITH.
    statement: Parsed,
    /// The name of its result for later statements; `None` if it returns nothing.
    returned: Option<String>,
}

/// Whether the WITH of a statement contains statements that change rows.
pub(in crate::session) fn are_in(ast: &Ast) -> bool {
    let Ast::Query(query) = ast else { return false };
    let mut ctes = query.with.iter().flat_map(|with| &with.cte_tables);
    ctes.any(|cte| changes_rows(&cte.query))
}

/// Takes the statements that run first out of WITH; if they return rows, a query of these replaces them.
fn take(ast: &mut Ast, normalize: &dyn Fn(&Ident) -> String) -> Result<Vec<PartWithin>> {
    let Ast::Query(query) = ast else { return Ok(Vec::new()) };
    let Some(mut with) = query.with.take() else { return Ok(Vec::new()) };
    check_names(&with, query, normalize)?;
    let mut parts = Vec::new();
    let ctes = std::mem::take(&mut with.cte_tables);
    for (at, cte) in ctes.iter().enumerate() {
        let mut cte = cte.clone();
        let (name, changes) = (normalize(&cte.alias.name), changes_rows(&cte.query));
        let later = ctes[at + 1..].iter().map(|later| times_read(&name, later, normalize));
        let times = later.sum::<isize>() + times_read(&name, query.as_ref(), normalize);
        if !changes && times < 2 {
            with.cte_tables.push(cte);
            continue;
        }
        let mut part = if changes { cte.query.clone() } else { all_of(&cte, &with)? };
        if !with.cte_tables.is_empty() {
            put_before(with.clone(), &mut part);
        }
        let has_rows = !changes || returns(&cte.query);
        let returned = has_rows.then(|| format!("{RETURNED}{}", parts.len() + 1));
        if let Some(returned) = &returned {
            cte.query = all_rows(&quoted(returned))?;
            with.cte_tables.push(cte);
        }
        let statement = Parsed::Statement(Box::new(Ast::Query(part)));
        parts.push(PartWithin { name, statement, returned });
    }
    query.with = Some(with).filter(|with| !with.cte_tables.is_empty());
    Ok(parts)
}

/// All rows of a query in WITH.
fn all_of(cte: &Cte, with: &With) -> Result<Box<Query>> {
    let mut query = all_rows(&cte.alias.name)?;
    query.with = Some(With { cte_tables: vec![cte.clone()], ..with.clone() });
    Ok(query)
}

fn all_rows(relation: &Ident) -> Result<Box<Query>> {
    match parsed(&format!("SELECT * FROM {relation}"))? {
        Ast::Query(query) => Ok(query),
        _ => internal_err!("a query was parsed as another statement"),
    }
}

/// Whether a statement that changes rows returns them.
fn returns(query: &Query) -> bool {
    match query.body.as_ref() {
        SetExpr::Insert(Ast::Insert(insert)) => insert.returning.is_some(),
        SetExpr::Update(Ast::Update(update)) => update.returning.is_some(),
        SetExpr::Delete(Ast::Delete(delete)) => delete.returning.is_some(),
        _ => false,
    }
}

/// Refuses references to statements without RETURNING, and under RECURSIVE references to statements that run later.
fn check_names(with: &With, main: &Query, normalize: &dyn Fn(&Ident) -> String) -> Result<()> {
    let ctes = &with.cte_tables;
    for (at, cte) in ctes.iter().enumerate().filter(|(_, cte)| changes_rows(&cte.query)) {
        let name = normalize(&cte.alias.name);
        if matches!(*cte.query.body, SetExpr::Merge(_)) {
            return stated_err!(
                FEATURE_NOT_SUPPORTED,
                "MERGE not supported in WITH query; a WITH may stand before it: WITH … MERGE INTO …"
            );
        }
        let reads = |reader: &Cte| times_read(&name, reader, normalize) > 0;
        let is_same = |other: &Cte| normalize(&other.alias.name) == name;
        if ctes.iter().filter(|other| is_same(other)).count() > 1 {
            return stated_err!(
                DUPLICATE_ALIAS,
                "WITH query name \"{name}\" specified more than once"
            );
        }
        if with.recursive && reads(cte) {
            return stated_err!(
                INVALID_RECURSION,
                "recursive query \"{name}\" must not contain data-modifying statements"
            );
        }
        if with.recursive && ctes[..at].iter().any(reads) {
            return stated_err!(
                FEATURE_NOT_SUPPORTED,
                "WITH query \"{name}\" changes rows and is read before its definition in WITH; put it first"
            );
        }
        let is_read = || ctes[at + 1..].iter().any(reads) || times_read(&name, main, normalize) > 0;
        if !returns(&cte.query) && is_read() {
            return stated_err!(
                FEATURE_NOT_SUPPORTED,
                "WITH query \"{name}\" does not have a RETURNING clause"
            );
        }
    }
    Ok(())
}

/// The number of places in which a part of a statement reads a relation with a name. A nested WITH that redefines the
/// name is ignored: the name counts as read.
fn times_read(name: &str, part: &impl Visit, normalize: &dyn Fn(&Ident) -> String) -> isize {
    let mut reads = Reads { name, normalize, count: 0 };
    let _ = walk(part, &mut reads);
    reads.count
}

/// Counts the places that read a relation with a name.
struct Reads<'a> {
    name: &'a str,
    normalize: &'a dyn Fn(&Ident) -> String,
    count: isize,
}

impl Reads<'_> {
    fn is_meant(&self, factor: &TableFactor) -> bool {
        let TableFactor::Table { name, args: None, .. } = factor else { return false };
        let [part] = &name.0[..] else { return false };
        part.as_ident().is_some_and(|ident| (self.normalize)(ident) == self.name)
    }
}

impl Visitor for Reads<'_> {
    type Break = ();

    fn pre_visit_statement(&mut self, statement: &Ast) -> ControlFlow<()> {
        // The changed relation is a table, whatever WITH names.
        let changed = match statement {
            Ast::Update(update) => Some(&update.table.relation),
            Ast::Delete(delete) => {
                let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) =
                    &delete.from;
                from.first().map(|from| &from.relation)
            }
            Ast::Merge(merge) => Some(&merge.table),
            _ => None,
        };
        self.count -= isize::from(changed.is_some_and(|changed| self.is_meant(changed)));
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        self.count += isize::from(self.is_meant(factor));
        ControlFlow::Continue(())
    }
}

impl StatementPlanner {
    /// Takes the statements that run first out of a statement whose WITH changes rows, also within EXPLAIN and PREPARE.
    pub(in crate::session) fn take_parts(&self, statement: &mut Parsed) -> Result<Vec<PartWithin>> {
        match innermost(statement) {
            Some(ast) if are_in(ast) => take(ast, &|ident: &Ident| self.normalized(ident)),
            _ => Ok(Vec::new()),
        }
    }

    /// The plan of a statement together with those of the statements taken out of its WITH.
    pub(in crate::session) fn plan_parts<'a>(
        &'a self,
        state: &'a SessionState,
        taken: Vec<PartWithin>,
        statement: Parsed,
        views: &'a [ResolvedTableReference],
    ) -> BoxFuture<'a, Result<LogicalPlan>> {
        Box::pin(async move {
            let (mut names, mut parts) = (Vec::new(), Vec::new());
            for PartWithin { name, statement, returned } in taken {
                let plan = self.plan_within(state, statement, views).await?;
                self.note_parameters(&plan)?;
                if let Some(returned) = returned {
                    let types = types_of(self, &plan, &[])?;
                    let columns = columns_of(state, &plan, &types)?;
                    self.names.hide(&returned, Arc::new(rows_of(&columns, Vec::new())?));
                }
                names.push(name);
                parts.push(plan);
            }
            let plan = self.plan_within(state, statement, views).await?;
            within(plan, |main| {
                let node = Arc::new(StatementParts::new(names, parts, main));
                Ok(LogicalPlan::Extension(Extension { node }))
            })
        })
    }

    /// Notes the parameters of a plan that is not part of the outer plan.
    fn note_parameters(&self, plan: &LogicalPlan) -> Result<()> {
        let casts = cast_types(plan)?;
        for (name, field) in parameter_fields(plan)? {
            let told = field.map(|field| field.data_type().clone());
            let data_type = told.or_else(|| casts.get(&name).cloned());
            self.rule_parameters.note(&name, data_type);
        }
        Ok(())
    }
}

impl Session {
    /// Runs the statements in WITH that change rows; the statement then reads their results.
    pub(in crate::session) async fn run_changes(
        &self,
        planner: &StatementPlanner,
        ast: &mut Ast,
    ) -> Result<()> {
        let begun = planner.transaction.transaction.lock().await?.begin_parts();
        begun.map_err(transaction_error)?;
        let parts = take(ast, &|ident: &Ident| planner.normalized(ident))?;
        for PartWithin { statement, returned, .. } in parts {
            let mut own = planner.clone();
            // The outer statement's token is not raised when these have ended.
            own.state.config_mut().set_extension(Arc::new(CancelToken::new()));
            let mut plan = own.plan_inner(statement).await?;
            if let Some(values) = &planner.values {
                plan = plan.replace_params_with_values(values)?;
            }
            let (schema, batches) = self.run_plan(&own, &plan).await?;
            if let Some(returned) = returned {
                let schema = shown(&schema).unwrap_or(schema);
                planner.names.hide(&returned, Arc::new(rows_of(&schema, batches)?));
            }
        }
        Ok(())
    }
}

/// Rows as a table; all columns are nullable, whatever their batches say. As in other subqueries, the second column `a`
/// is `a_1`.
pub(in crate::session) fn rows_of(schema: &Schema, batches: Vec<RecordBatch>) -> Result<MemTable> {
    let mut taken = HashSet::new();
    let fields = schema.fields().iter().map(|field| {
        let (shown, mut name) = (field.name(), field.name().clone());
        for number in 1_usize.. {
            if taken.insert(name.clone()) {
                break;
            }
            name = format!("{shown}_{number}");
        }
        field.as_ref().clone().with_name(name).with_nullable(true)
    });
    let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
    let batches = batches
        .into_iter()
        .map(|batch| RecordBatch::try_new(Arc::clone(&schema), batch.columns().to_vec()));
    let batches = batches.collect::<Result<Vec<_>, _>>()?;
    MemTable::try_new(schema, vec![batches])
}
