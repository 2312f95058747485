//! Carries out the steps of blocks.

use datafusion::common::Result;
use datafusion::sql::sqlparser::ast::{Ident, Statement as Ast};
use futures::future::BoxFuture;

use super::condition::Condition;
use super::raise::HandledError;
use super::routine::Results;
use super::tree::{Block, Declaration, Handler, IntoClause, Source, Step};
use super::variables::{Cell, Scope, Scopes, Variable, VariableType};
use crate::session::Session;
use crate::session::dml::change::quoted;
use atoll_sql_common::error::{SqlState, stated_err};

/// How steps end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    /// EXIT, of the loop or block with a label.
    Exit(Option<String>),
    Continue(Option<String>),
    Return,
}

/// A running block.
pub(super) struct BlockRun<'a> {
    pub(super) session: &'a Session,
    pub(super) notices: Vec<String>,
    savepoints: usize,
    pub(super) scopes: Scopes,
    /// The errors that are handled, the innermost last.
    pub(super) handled: Vec<HandledError>,
    /// The rows of the last statement.
    pub(super) row_count: i64,
    /// What the routine returns; `None` for DO.
    pub(super) results: Option<Results>,
}

impl<'a> BlockRun<'a> {
    pub(super) fn new(session: &'a Session, results: Option<Results>) -> Self {
        let found = Variable {
            name: "found".to_owned(),
            of: VariableType::Cast("boolean".to_owned()),
            is_constant: false,
            is_not_null: false,
            cell: Cell::new(false.into()),
        };
        let scope = Scope { label: None, variables: vec![found] };
        let scopes = Scopes { list: vec![scope], parameters: Vec::new() };
        let (notices, handled) = Default::default();
        Self { session, notices, savepoints: 0, scopes, handled, row_count: 0, results }
    }

    pub(super) fn set_found(&mut self, is_found: bool) {
        let outer = self.scopes.list.first_mut().and_then(|scope| scope.variables.first_mut());
        if let Some(found) = outer {
            found.cell = Cell::new(is_found.into());
        }
    }

    /// Boxed, since blocks nest.
    pub(super) fn block<'b>(&'b mut self, block: &'b Block) -> BoxFuture<'b, Result<Flow>> {
        Box::pin(async move {
            let label = block.label.clone();
            self.scopes.list.push(Scope { label, variables: Vec::new() });
            let done = self.declared(block).await;
            self.scopes.list.pop();
            match done? {
                Flow::Exit(Some(label)) if Some(&label) == block.label.as_ref() => Ok(Flow::Next),
                flow => Ok(flow),
            }
        })
    }

    async fn declared(&mut self, block: &Block) -> Result<Flow> {
        for declaration in &block.declarations {
            self.declare(declaration).await?;
        }
        if block.handlers.is_empty() {
            return self.steps(&block.steps).await;
        }
        self.savepoints += 1;
        let name = quoted(&format!("block {}", self.savepoints));
        self.control(Ast::Savepoint { name: name.clone() }).await?;
        let scopes = self.scopes.list.len();
        let error = match self.steps(&block.steps).await {
            Ok(flow) => {
                self.control(Ast::ReleaseSavepoint { name }).await?;
                return Ok(flow);
            }
            Err(error) => error,
        };
        self.scopes.list.truncate(scopes);
        let state = SqlState::from_error(&error);
        let takes = |handler: &&Handler| {
            handler.conditions.iter().any(|condition: &Condition| condition.takes(state))
        };
        let Some(handler) = block.handlers.iter().find(takes) else { return Err(error) };
        self.return_to(name).await?;
        self.handle(HandledError::new(error), handler).await
    }

    async fn handle(&mut self, error: HandledError, handler: &Handler) -> Result<Flow> {
        self.scopes.list.push(error.scope());
        self.handled.push(error);
        let done = self.steps(&handler.steps).await;
        self.handled.pop();
        self.scopes.list.pop();
        done
    }

    async fn declare(&mut self, declaration: &Declaration) -> Result<()> {
        let Declaration { name, of, is_constant, is_not_null, default } = declaration;
        let of = self.variable_type(of).await?;
        let cell = match default {
            Some(default) => self.converted(default, &of).await?,
            None => self.null_of(&of).await?,
        };
        if *is_not_null && cell.value.is_null() {
            return stated_err!(
                NULL_VALUE_NOT_ALLOWED,
                "variable \"{name}\" must have a default value, since it's declared NOT NULL"
            );
        }
        let (is_constant, is_not_null) = (*is_constant, *is_not_null);
        let variable = Variable { name: name.clone(), of, is_constant, is_not_null, cell };
        if let Some(scope) = self.scopes.list.last_mut() {
            if scope.variables.iter().any(|other| other.name == *name) {
                return stated_err!(SYNTAX_ERROR, "duplicate declaration of \"{name}\"");
            }
            scope.variables.push(variable);
        }
        Ok(())
    }

    async fn return_to(&self, name: Ident) -> Result<()> {
        let savepoint = Some(name.clone());
        self.control(Ast::Rollback { chain: false, savepoint }).await?;
        self.control(Ast::ReleaseSavepoint { name }).await
    }

    async fn control(&self, ast: Ast) -> Result<()> {
        self.session.control(&ast, "").await.map(drop)
    }

    /// Boxed, since steps nest.
    pub(super) fn steps<'b>(&'b mut self, steps: &'b [Step]) -> BoxFuture<'b, Result<Flow>> {
        Box::pin(async move {
            for step in steps {
                let flow = self.step(step).await?;
                if flow != Flow::Next {
                    return Ok(flow);
                }
            }
            Ok(Flow::Next)
        })
    }

    async fn step(&mut self, step: &Step) -> Result<Flow> {
        match step {
            Step::Null => {}
            Step::Sql { source, into } => self.sql(source, into.as_ref()).await?,
            Step::Perform(sql) => {
                let ran = self.run(&Source::Sql(sql.clone())).await?;
                self.count(ran.count);
            }
            Step::Assign { target, value } => self.assign(target, value).await?,
            Step::Block(block) => return self.block(block).await,
            Step::Raise(message) => self.raise(message).await?,
            Step::Again => return Err(self.again()),
            Step::If { branches, otherwise } => {
                return match self.branch(branches).await? {
                    Some(steps) => self.steps(steps).await,
                    None => self.steps(otherwise).await,
                };
            }
            Step::Case { branches, otherwise } => {
                return match (self.branch(branches).await?, otherwise) {
                    (Some(steps), _) => self.steps(steps).await,
                    (None, Some(steps)) => self.steps(steps).await,
                    (None, None) => stated_err!(CASE_NOT_FOUND, "case not found"),
                };
            }
            Step::Loop { label, head, steps } => {
                return self.run_loop(label.as_deref(), head, steps).await;
            }
            Step::Leave { is_continue, label, when } => {
                let leaves = match when {
                    Some(condition) => self.holds(condition).await?,
                    None => true,
                };
                return Ok(match (leaves, is_continue) {
                    (false, _) => Flow::Next,
                    (true, true) => Flow::Continue(label.clone()),
                    (true, false) => Flow::Exit(label.clone()),
                });
            }
            Step::Return(value) => {
                self.returned(value.as_deref()).await?;
                return Ok(Flow::Return);
            }
            Step::ReturnNext(value) => self.return_next(value.as_deref()).await?,
            Step::ReturnQuery(source) => self.return_query(source).await?,
            Step::Diagnostics { is_stacked, items } => self.diagnose(*is_stacked, items).await?,
        }
        Ok(Flow::Next)
    }

    async fn sql(&mut self, source: &Source, into: Option<&IntoClause>) -> Result<()> {
        let ran = self.run(source).await?;
        self.count(ran.count);
        match into {
            Some(into) => self.into(ran, into).await,
            None if ran.has_rows && matches!(source, Source::Sql(_)) => stated_err!(
                SYNTAX_ERROR,
                "query has no destination for result data; PERFORM discards its rows, and INTO puts the first \
                 one into variables"
            ),
            None => Ok(()),
        }
    }

    /// Notes the number of rows of a statement.
    pub(super) fn count(&mut self, count: Option<i64>) {
        if let Some(count) = count {
            self.row_count = count;
            self.set_found(count > 0);
        }
    }

    /// The steps of the first branch whose condition holds.
    async fn branch<'b>(
        &mut self,
        branches: &'b [(String, Vec<Step>)],
    ) -> Result<Option<&'b [Step]>> {
        for (condition, steps) in branches {
            if self.holds(condition).await? {
                return Ok(Some(steps));
            }
        }
        Ok(None)
    }
}
