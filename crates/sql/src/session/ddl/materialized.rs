//! CREATE, REFRESH and ALTER MATERIALIZED VIEW. `catalog/materialized.rs` says what the store keeps.
//!
//! ```text
//! CREATE MATERIALIZED VIEW m AS query     CREATE TABLE m AS query, and the text of the query
//! REFRESH MATERIALIZED VIEW m             all rows are replaced by those that the query has now, in one transaction
//! ```

use std::borrow::Cow;
use std::sync::Arc;

use atoll_store::database::{CatalogChange, RelationName, StoredStatement};
use atoll_store::table::TableChange;
use datafusion::common::{Constraints, ResolvedTableReference, Result, plan_err};
use datafusion::logical_expr::{
    CreateMemoryTable, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder,
};
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    AlterTable, AlterTableOperation, CreateView, ObjectName, Statement as Ast, ViewColumnDef,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

use crate::catalog::MaterializedView;
use crate::session::Session;
use crate::session::ddl::create::{distinctly_named, unchanged};
use crate::session::ddl::declared_table::DeclaredTable;
use crate::session::ddl::temporary::reads_temporary;
use crate::session::dml::change::{parsed, quoted};
use crate::session::plan::planner::StatementPlanner;
use crate::session::plan::steps::plan_physical;
use crate::session::statement::command_tag::{missing, there, with_notices};
use crate::session::transaction::StatementTransaction;
use crate::table::insert::inserted;
use crate::table::load::load;
use crate::table::{PlacedTable, StaleStatement};
use atoll_sql_common::error::{SqlState, stated_err};
use atoll_sql_common::names::{plain, relation_name};
use atoll_sql_exec::scan::ScanProgress;
use atoll_sql_parse::syntax::{offset, parser_of};

/// A statement about a materialized view that sqlparser does not know.
#[derive(Debug, PartialEq)]
pub(in crate::session) enum MaterializedStatement {
    Refresh(Refresh),
    /// With the name, as ALTER TABLE.
    Alter(Box<AlterTable>),
}

/// REFRESH MATERIALIZED VIEW.
#[derive(Debug, PartialEq)]
pub(in crate::session) struct Refresh {
    name: ObjectName,
    concurrently: bool,
    with_data: bool,
}

impl MaterializedStatement {
    /// Parses the text; `None` if it is another statement.
    ///
    /// # Errors
    /// For other clauses than those of PostgreSQL, and operations of ALTER other than RENAME TO and OWNER TO.
    pub(in crate::session) fn parse(sql: &str) -> Result<Option<Self>> {
        let Some(mut parser) = parser_of(sql, &["refresh", "alter"]) else { return Ok(None) };
        let first = parser.next_token().token;
        if !parser.parse_keywords(&[Keyword::MATERIALIZED, Keyword::VIEW]) {
            return Ok(None);
        }
        match matches!(&first, Token::Word(word) if word.keyword == Keyword::ALTER) {
            true => altered(sql, &parser).map(Some),
            false => Ok(Some(Self::Refresh(refresh(&mut parser)?))),
        }
    }
}

fn refresh(parser: &mut Parser<'_>) -> std::result::Result<Refresh, ParserError> {
    let concurrently = parser.parse_keyword(Keyword::CONCURRENTLY);
    let name = parser.parse_object_name(false)?;
    let mut with_data = true;
    if parser.parse_keyword(Keyword::WITH) {
        with_data = !parser.parse_keyword(Keyword::NO);
        parser.expect_keyword_is(Keyword::DATA)?;
    }
    parser.expect_token(&Token::EOF)?;
    Ok(Refresh { name, concurrently, with_data })
}

/// ALTER MATERIALIZED VIEW as ALTER TABLE; the parser is behind VIEW.
fn altered(sql: &str, parser: &Parser<'_>) -> Result<MaterializedStatement> {
    let Some(rest) = offset(sql, parser.peek_token().span.start) else {
        return plan_err!("expected ALTER MATERIALIZED VIEW name RENAME TO name");
    };
    match parsed(&format!("ALTER TABLE {}", &sql[rest..]))? {
        Ast::AlterTable(alter)
            if matches!(
                &alter.operations[..],
                [AlterTableOperation::RenameTable { .. } | AlterTableOperation::OwnerTo { .. }]
            ) =>
        {
            Ok(MaterializedStatement::Alter(Box::new(alter)))
        }
        _ => stated_err!(
            FEATURE_NOT_SUPPORTED,
            "this ALTER MATERIALIZED VIEW is not supported; it has RENAME TO and OWNER TO, and DROP and CREATE \
             change the rest"
        ),
    }
}

/// The query in the text of CREATE MATERIALIZED VIEW.
struct QueryText<'a> {
    sql: &'a str,
    with_data: bool,
}

impl<'a> QueryText<'a> {
    fn find(sql: &'a str) -> Option<Self> {
        let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize_with_location().ok()?;
        let is_kept = |at: &usize| {
            !matches!(tokens[*at].token, Token::Whitespace(_) | Token::SemiColon | Token::EOF)
        };
        let kept: Vec<usize> = (0..tokens.len()).filter(is_kept).collect();
        let is = |at: usize, keyword: Keyword| matches!(&tokens[kept[at]].token, Token::Word(word) if word.keyword == keyword);
        let begins = (0..kept.len()).find(|at| is(*at, Keyword::AS))? + 1;
        let mut ends = kept.len();
        let mut with_data = true;
        if ends > begins + 2 && is(ends - 1, Keyword::DATA) {
            let has_no = is(ends - 2, Keyword::NO);
            let with = ends - 2 - usize::from(has_no);
            if is(with, Keyword::WITH) {
                (ends, with_data) = (with, !has_no);
            }
        }
        let begin = offset(sql, tokens[*kept.get(begins)?].span.start)?;
        // Up to what follows its last token: a comment would take in what is appended to the text.
        let next = tokens.get(kept.get(ends.checked_sub(1)?)? + 1);
        let end = next.and_then(|token| offset(sql, token.span.start)).unwrap_or(sql.len());
        Some(Self { sql: sql.get(begin..end)?, with_data })
    }
}

impl Session {
    /// Creates a materialized view; the tag and notices.
    pub(in crate::session) async fn create_materialized(
        &self,
        planner: &StatementPlanner,
        create: &CreateView,
        sql: &str,
    ) -> Result<Cow<'static, str>> {
        const TAG: &str = "CREATE MATERIALIZED VIEW";
        let name = planner.name(&create.name)?;
        let at = planner.resolve_new(name.clone())?;
        if planner.names.table(&at)?.is_some() {
            return match create.if_not_exists {
                true => Ok(with_notices(TAG, &[there("relation", &at.table)])),
                false => stated_err!(DUPLICATE_TABLE, "relation '{}' already exists", plain(&at)),
            };
        }
        let Some(query) = QueryText::find(sql) else {
            return plan_err!("expected CREATE MATERIALIZED VIEW name AS query");
        };
        let statement = Parsed::Statement(Box::new(Ast::Query(create.query.clone())));
        if reads_temporary(&planner.plan(statement).await?)? {
            return stated_err!(
                FEATURE_NOT_SUPPORTED,
                "materialized views must not use temporary tables or views; write CREATE TEMP TABLE … AS"
            );
        }
        let text = planner.bound_view(&MaterializedView::statement(query.sql), false)?;
        let options = planner.state.config_options();
        let made = MaterializedView::new(text, options, query.with_data);
        let plan = planner.view_plan(&made.view, true, &[]).await?;
        let mut plan = with_names(planner, plan, &create.columns)?;
        if !query.with_data {
            plan = LogicalPlanBuilder::from(plan).limit(0, Some(0))?.build()?;
        }
        let table = CreateMemoryTable {
            name,
            constraints: Constraints::default(),
            input: Arc::new(plan),
            if_not_exists: false,
            or_replace: false,
            column_defaults: Vec::new(),
            temporary: false,
        };
        let declared = DeclaredTable::default();
        let rows = self.create_on_worker(planner, table, declared, self.placement()).await?;
        planner.keep_materialized(&relation_name(&at), Some(&made)).await?;
        Ok(match query.with_data {
            true => format!("SELECT {}", rows.unwrap_or_default()).into(),
            false => TAG.into(),
        })
    }

    /// Runs REFRESH or ALTER MATERIALIZED VIEW; the tag and notices.
    pub(in crate::session) async fn run_materialized(
        &self,
        statement: &MaterializedStatement,
    ) -> Result<String> {
        let transaction = self.statement_transaction()?;
        loop {
            match self.try_materialized(&transaction, statement).await {
                Ok(tag) => {
                    transaction.finish(self.database()).await?;
                    return Ok(tag.into_owned());
                }
                Err(error) if StaleStatement::ended(&error) => {
                    transaction.transaction.lock().await?.undo_parts();
                }
                Err(error) => {
                    transaction.fail_settled().await;
                    return Err(error);
                }
            }
        }
    }

    async fn try_materialized(
        &self,
        transaction: &StatementTransaction,
        statement: &MaterializedStatement,
    ) -> Result<Cow<'static, str>> {
        let planner = self.planner(transaction, true).await?;
        match statement {
            MaterializedStatement::Refresh(refresh) => {
                self.refresh(&planner, refresh).await?;
                Ok("REFRESH MATERIALIZED VIEW".into())
            }
            MaterializedStatement::Alter(alter) => {
                const TAG: &str = "ALTER MATERIALIZED VIEW";
                let at = planner.resolve(planner.name(&alter.name)?);
                if alter.if_exists && planner.names.table(&at)?.is_none() {
                    return Ok(with_notices(TAG, &[missing("relation", &at.table)]));
                }
                planner.materialized_view(&at)?;
                if planner.change_rights(&Ast::AlterTable((**alter).clone())).await?.is_none() {
                    self.alter(&planner, alter).await?;
                }
                Ok(TAG.into())
            }
        }
    }

    async fn refresh(&self, planner: &StatementPlanner, refresh: &Refresh) -> Result<()> {
        let Refresh { name, concurrently, with_data } = refresh;
        let at = planner.resolve(planner.name(name)?);
        let (table, mut made) = planner.materialized_view(&at)?;
        let relation = relation_name(&at);
        planner.check_definition(&CatalogChange::Drop { name: relation.clone() })?;
        if *concurrently {
            check_concurrently(&table, &made, *with_data)?;
        }
        unchanged(planner, &table).await?;
        let all = TableChange { truncated: true, ..TableChange::default() };
        planner.rewrite(&table, all).await?;
        if *with_data {
            let within = std::slice::from_ref(&at);
            let plan = planner.view_plan(&made.view, true, within).await?;
            self.fill(planner, &table, plan).await?;
        }
        if made.is_populated != *with_data {
            made.is_populated = *with_data;
            planner.keep_materialized(&relation, Some(&made)).await?;
        }
        Ok(())
    }

    /// Inserts the rows of the query.
    async fn fill(
        &self,
        planner: &StatementPlanner,
        table: &PlacedTable,
        plan: LogicalPlan,
    ) -> Result<()> {
        let plan = in_columns_of(table, plan)?;
        let plan = plan_physical(&planner.state, &plan).await?;
        let progress = ScanProgress::for_plan(&plan);
        self.watch.follow(&progress);
        let _admitted = self.admit(&planner.transaction, &progress).await?;
        let name = quoted(&table.at().table);
        let rules = planner.write_rules(&planner.state, table, &name, None).await?;
        let (target, context) = (Arc::new(planner.target(rules)), planner.state.task_ctx());
        let filled = table.clone();
        let change = self.on_worker(async move {
            let loaded = load(plan, context, &filled, &target, false).await?;
            inserted(&filled, loaded)
        });
        planner.write(table, change.await?).await
    }
}

impl StatementPlanner {
    /// The table and the query of a materialized view.
    ///
    /// # Errors
    /// If no materialized view has this name.
    fn materialized_view(
        &self,
        at: &ResolvedTableReference,
    ) -> Result<(PlacedTable, MaterializedView)> {
        let Some(found) = self.names.table(at)? else {
            return Err(SqlState::missing_table(&plain(at)));
        };
        let made = MaterializedView::find(&self.names.stored_version(), &relation_name(at))?;
        match (found.downcast_ref::<PlacedTable>(), made) {
            (Some(table), Some(made)) => Ok((table.clone(), made)),
            _ => stated_err!(WRONG_OBJECT_TYPE, "'{}' is not a materialized view", plain(at)),
        }
    }

    /// Stores the query of a materialized view instead of the existing one.
    async fn keep_materialized(
        &self,
        name: &RelationName,
        made: Option<&MaterializedView>,
    ) -> Result<()> {
        let stored: Option<StoredStatement> = made.map(MaterializedView::stored);
        self.keep_entry(MaterializedView::entry(name), stored).await
    }

    /// Updates the queries of materialized views after a change of definitions.
    pub(in crate::session) async fn follow_with_queries(
        &self,
        change: &CatalogChange,
    ) -> Result<()> {
        let (from, to) = match change {
            CatalogChange::Drop { name } => (name, None),
            CatalogChange::Rename { from, to } => (from, Some(to)),
            _ => return Ok(()),
        };
        let version = self.transaction.statement(true).await?;
        let Some(made) = MaterializedView::find(&version, from)? else { return Ok(()) };
        self.keep_materialized(from, None).await?;
        match to {
            Some(to) => self.keep_materialized(to, Some(&made)).await,
            None => Ok(()),
        }
    }
}

/// The plan with the names that the statement gives its first columns.
fn with_names(
    planner: &StatementPlanner,
    plan: LogicalPlan,
    names: &[ViewColumnDef],
) -> Result<LogicalPlan> {
    let plan = distinctly_named(plan)?;
    if names.is_empty() {
        return Ok(plan);
    }
    let columns = plan.schema().columns();
    if names.len() > columns.len() {
        return stated_err!(SYNTAX_ERROR, "too many column names were specified");
    }
    let named = columns.into_iter().enumerate().map(|(at, column)| match names.get(at) {
        Some(name) => Expr::Column(column).alias(planner.normalized(&name.name)),
        None => Expr::Column(column),
    });
    let named: Vec<Expr> = named.collect();
    LogicalPlanBuilder::from(plan).project(named)?.build()
}

/// The rows of a query in the types of a table's columns.
fn in_columns_of(table: &PlacedTable, plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = distinctly_named(plan)?;
    let (schema, fields) = (Arc::clone(plan.schema()), table.columns().fields());
    let columns = schema.columns();
    if columns.len() != fields.len() {
        return stated_err!(
            INVALID_TABLE_DEFINITION,
            "the query of materialized view '{}' has {} columns by now, and the view {}; drop it and create it again",
            table.name(),
            columns.len(),
            fields.len()
        );
    }
    let typed = columns.into_iter().zip(fields).map(|(column, field)| {
        let typed = Expr::Column(column).cast_to(field.data_type(), &schema)?;
        Ok(typed.alias(field.name()))
    });
    let typed = typed.collect::<Result<Vec<Expr>>>()?;
    LogicalPlanBuilder::from(plan).project(typed)?.build()
}

/// PostgreSQL's conditions of CONCURRENTLY.
fn check_concurrently(table: &PlacedTable, made: &MaterializedView, with_data: bool) -> Result<()> {
    if !with_data {
        return stated_err!(
            SYNTAX_ERROR,
            "CONCURRENTLY and WITH NO DATA options cannot be used together"
        );
    }
    if !made.is_populated {
        return stated_err!(
            FEATURE_NOT_SUPPORTED,
            "CONCURRENTLY cannot be used when the materialized view is not populated"
        );
    }
    match table.definition().uniques.iter().any(|unique| unique.is_plain()) {
        false => stated_err!(
            NOT_IN_PREREQUISITE_STATE,
            "cannot refresh materialized view \"{}\" concurrently; create a unique index with no WHERE clause on \
             one or more columns of the materialized view",
            table.name()
        ),
        true => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_of_a_text_is_found() {
        for (sql, query, with_data) in [
            ("CREATE MATERIALIZED VIEW m AS SELECT 1 AS a;", "SELECT 1 AS a", true),
            (
                "create materialized view \"as\" (a) as\n select 1 -- x\n with no data ;",
                "select 1",
                false,
            ),
            ("CREATE MATERIALIZED VIEW m AS TABLE t WITH DATA", "TABLE t", true),
            ("CREATE MATERIALIZED VIEW m AS SELECT data FROM no", "SELECT data FROM no", true),
        ] {
            let found = QueryText::find(sql).map(|found| (found.sql, found.with_data));
            assert_eq!(found, Some((query, with_data)), "{sql}");
        }
    }

    #[test]
    fn statements_about_materialized_views_are_told_from_others() {
        for sql in [
            "REFRESH MATERIALIZED VIEW s.m",
            "refresh materialized view concurrently m with data;",
            "ALTER MATERIALIZED VIEW IF EXISTS m RENAME TO n",
        ] {
            assert!(MaterializedStatement::parse(sql).expect(sql).is_some(), "{sql}");
        }
        for sql in ["ALTER TABLE m RENAME TO n", "SELECT 1", "REFRESH"] {
            assert_eq!(MaterializedStatement::parse(sql).expect(sql), None, "{sql}");
        }
        for sql in ["REFRESH MATERIALIZED VIEW m n", "ALTER MATERIALIZED VIEW m ADD COLUMN a INT"] {
            assert!(MaterializedStatement::parse(sql).is_err(), "{sql}");
        }
    }
}
