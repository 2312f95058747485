//! Subqueries that lock their rows, as in `UPDATE t SET … WHERE id = (SELECT id FROM t … FOR UPDATE SKIP LOCKED LIMIT
//! 1)`: the rows are locked first, and the statement reads the result.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use atoll_runtime::CancelToken;
use datafusion::arrow::array::RecordBatch;
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::MemTable;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{Query, Statement as Ast, Visitor, VisitorMut};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use crate::session::Session;
use crate::session::dml::change::quoted;
use crate::session::dml::locking::LockingQuery;
use crate::session::plan::planner::StatementPlanner;
use atoll_sql_common::error::{SqlError, SqlState};
use atoll_sql_parse::syntax::{walk, walk_mut, walk_relations};

/// The name of the locked rows in the outer statement, which no table has.
const LOCKED: &str = "locked rows\u{1}";

/// Whether a subquery locks rows; `sql` is the statement's text, which mostly rules it out.
pub(in crate::session) fn is_within(statement: &Parsed, sql: &str) -> bool {
    let Parsed::Statement(ast) = statement else { return false };
    let mut words = sql.as_bytes().windows(3);
    words.any(|word| word.eq_ignore_ascii_case(b"for")) && is_in(ast)
}

/// The same without a text.
pub(in crate::session) fn is_in(ast: &Ast) -> bool {
    struct Locks {
        depth: usize,
    }

    impl Visitor for Locks {
        type Break = ();

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            self.depth += 1;
            match self.depth > 1 && !query.locks.is_empty() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }

        fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.depth -= 1;
            ControlFlow::Continue(())
        }
    }

    let depth = usize::from(!matches!(ast, Ast::Query(_)));
    match ast {
        Ast::Query(_) | Ast::Insert(_) | Ast::Update(_) | Ast::Delete(_) => {
            walk(ast, &mut Locks { depth }).is_break()
        }
        _ => false,
    }
}

/// Takes the innermost query that locks rows out of a statement, which then reads a table with this name.
fn take_within(ast: &mut Ast, name: &str) -> Result<Option<Box<Query>>> {
    struct Locks {
        depth: usize,
        instead: Box<Query>,
    }

    impl VisitorMut for Locks {
        type Break = Box<Query>;

        fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Box<Query>> {
            self.depth += 1;
            ControlFlow::Continue(())
        }

        fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Box<Query>> {
            self.depth -= 1;
            match self.depth > 0 && !query.locks.is_empty() {
                true => {
                    let instead = self.instead.as_ref().clone();
                    ControlFlow::Break(Box::new(std::mem::replace(query, instead)))
                }
                false => ControlFlow::Continue(()),
            }
        }
    }

    let sql = format!("SELECT * FROM {}", quoted(name));
    let instead = Parser::new(&GenericDialect {}).try_with_sql(&sql)?.parse_query()?;
    let depth = usize::from(!matches!(ast, Ast::Query(_)));
    Ok(walk_mut(ast, &mut Locks { depth, instead }).break_value())
}

/// Refuses a query that reads a WITH query of the outer statement: it is planned separately.
fn check_names(around: &Ast, query: &Query) -> Result<()> {
    struct Names(HashSet<String>);

    impl Visitor for Names {
        type Break = ();

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            let named = query.with.iter().flat_map(|with| &with.cte_tables);
            self.0.extend(named.map(|named| named.alias.name.value.to_lowercase()));
            ControlFlow::Continue(())
        }
    }

    let mut names = Names(HashSet::new());
    let _ = walk(around, &mut names);
    let found = walk_relations(query, &mut |name| match &name.0[..] {
        [part] if names.0.contains(&part.to_string().trim_matches('"').to_lowercase()) => {
            ControlFlow::Break(name.to_string())
        }
        _ => ControlFlow::Continue(()),
    });
    match found.break_value() {
        None => Ok(()),
        Some(name) => Err(SqlState::FEATURE_NOT_SUPPORTED.error(format!(
            "FOR UPDATE and FOR SHARE within a statement of which WITH names '{name}' are not supported; lock rows of tables"
        ))),
    }
}

/// The error of a separately planned query: a missing column may belong to the outer query.
fn told_alone(error: DataFusionError) -> DataFusionError {
    let state = SqlState::from_error(&error);
    if state != SqlState::UNDEFINED_COLUMN && state != SqlState::UNDEFINED_TABLE {
        return error;
    }
    let message = SqlError::new(error, "").message;
    state.error(format!(
        "{message}; a subquery with FOR UPDATE or FOR SHARE sees no columns of the query around it"
    ))
}

impl Session {
    /// Locks the rows of the subqueries that lock, the innermost first, and replaces them with their results.
    pub(in crate::session) async fn lock_within(
        &self,
        planner: &StatementPlanner,
        ast: &mut Ast,
    ) -> Result<()> {
        // The outer statement's token is not raised when these have ended.
        let mut own = planner.clone();
        own.state.config_mut().set_extension(Arc::new(CancelToken::new()));
        for number in 1_usize.. {
            let name = format!("{LOCKED}{number}");
            let Some(query) = take_within(ast, &name)? else { break };
            check_names(ast, &query)?;
            let Some(locking) = LockingQuery::try_from_ast(&Ast::Query(query))? else { break };
            let (schema, batches) =
                Box::pin(self.locked_rows(&own, locking)).await.map_err(told_alone)?;
            // Batches may be nullable where the plan is not.
            let batches = batches.into_iter().map(|batch| {
                let columns = batch.columns().to_vec();
                RecordBatch::try_new(Arc::clone(&schema), columns)
            });
            let batches = batches.collect::<Result<Vec<_>, _>>()?;
            let rows = MemTable::try_new(schema, vec![batches])?;
            planner.names.hide(&name, Arc::new(rows));
        }
        Ok(())
    }
}
