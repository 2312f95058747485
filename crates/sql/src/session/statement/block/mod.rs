//! `DO $$ BEGIN … END $$`: statements that run one after the other, as one transaction.
//!
//! ```text
//! DO $$ BEGIN
//!     IF NOT EXISTS (SELECT 1 FROM pg_type WHERE typname = 'mood') THEN
//!         CREATE TYPE mood AS ENUM ('sad', 'glad');
//!     END IF;
//!     ALTER TABLE t ADD CONSTRAINT t_a CHECK (a > 0);
//! EXCEPTION WHEN duplicate_object THEN NULL;
//! END $$
//! ```
//!
//! Migrations contain such blocks. They are the part of PL/pgSQL without variables, loops and dynamic SQL. A block with
//! EXCEPTION begins with a savepoint, to which a handled error returns.

mod condition;
mod parse;

use datafusion::arrow::array::AsArray;
use datafusion::common::{DataFusionError, Result, not_impl_err};
use datafusion::sql::sqlparser::ast::{Ident, Statement as Ast};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::Token;
use futures::future::BoxFuture;

pub(in crate::session) use parse::Block;

use parse::{Message, Step};

use crate::session::Session;
use crate::session::dml::change::quoted;
use crate::session::statement::command_tag::with_notices;
use atoll_sql_common::error::{SqlError, SqlState};
use atoll_sql_parse::syntax::{is_at_end, next_word, parser_of};

impl Block {
    /// Parses `DO 'code'`; `None` for other statements.
    ///
    /// # Errors
    /// For other languages than plpgsql, and code that cannot be parsed.
    pub(in crate::session) fn parse_do(sql: &str) -> Result<Option<Self>> {
        let Some(mut parser) = parser_of(sql, &["do"]) else { return Ok(None) };
        parser.advance_token();
        let mut code = None;
        while !is_at_end(&parser) {
            if parser.parse_keyword(Keyword::LANGUAGE) {
                let language = next_word(&mut parser);
                if language != "plpgsql" {
                    return not_impl_err!("DO in another language than plpgsql is not supported");
                }
                continue;
            }
            code = match parser.next_token().token {
                Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => Some(text),
                Token::DollarQuotedString(text) => Some(text.value),
                other => {
                    let message = format!("DO: expected its code as a text, found '{other}'");
                    return Err(SqlState::SYNTAX_ERROR.error(message));
                }
            };
        }
        match code {
            Some(code) => Self::parse(&code).map(Some),
            None => Err(SqlState::SYNTAX_ERROR.error("DO: expected its code as a text")),
        }
    }
}

impl Session {
    /// Runs a block, in a transaction of its own unless one is open; the tag with its notices.
    pub(in crate::session) async fn run_do(&self, block: &Block) -> Result<String> {
        let unfinished = self.begin_block()?;
        let mut run = BlockRun { session: self, notices: vec![], savepoints: 0 };
        let done = run.block(block).await;
        self.end_block(unfinished, done.is_ok()).await?;
        done.map(|()| with_notices("DO", &run.notices).into_owned())
    }
}

/// A running block.
struct BlockRun<'a> {
    session: &'a Session,
    notices: Vec<String>,
    savepoints: usize,
}

impl BlockRun<'_> {
    /// Boxed, since blocks nest.
    fn block<'a>(&'a mut self, block: &'a Block) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            if block.handlers.is_empty() {
                return self.steps(&block.steps).await;
            }
            self.savepoints += 1;
            let name = quoted(&format!("block {}", self.savepoints));
            self.control(Ast::Savepoint { name: name.clone() }).await?;
            let error = match self.steps(&block.steps).await {
                Ok(()) => return self.control(Ast::ReleaseSavepoint { name }).await,
                Err(error) => error,
            };
            let state = SqlState::from_error(&error);
            let mut handlers = block.handlers.iter();
            let takes = |condition: &condition::Condition| condition.takes(state);
            match handlers.find(|handler| handler.conditions.iter().any(takes)) {
                Some(handler) => {
                    self.return_to(name).await?;
                    self.steps(&handler.steps).await
                }
                None => Err(error),
            }
        })
    }

    async fn return_to(&self, name: Ident) -> Result<()> {
        let savepoint = Some(name.clone());
        self.control(Ast::Rollback { chain: false, savepoint }).await?;
        self.control(Ast::ReleaseSavepoint { name }).await
    }

    async fn control(&self, ast: Ast) -> Result<()> {
        self.session.control(&ast, "").await.map(drop)
    }

    async fn steps(&mut self, steps: &[Step]) -> Result<()> {
        for step in steps {
            match step {
                Step::Null => {}
                Step::Sql(sql) => self.run(sql, false).await?,
                Step::Perform(sql) => self.run(sql, true).await?,
                Step::Block(block) => self.block(block).await?,
                Step::Raise(message) => self.raise(message).await?,
                Step::If { branches, otherwise } => {
                    let mut taken = otherwise;
                    for (condition, steps) in branches {
                        if self.value(&format!("({condition})::boolean")).await?.as_deref()
                            == Some("true")
                        {
                            taken = steps;
                            break;
                        }
                    }
                    // Boxed, since they nest.
                    Box::pin(self.steps(taken)).await?;
                }
            }
        }
        Ok(())
    }

    async fn run(&mut self, sql: &str, discards_rows: bool) -> Result<()> {
        let result = self.session.run_nested(sql).await?;
        if !discards_rows && !result.is_told_by_tag() {
            let message = "DO: a query has no destination for its rows; PERFORM discards them";
            return Err(SqlState::SYNTAX_ERROR.error(message));
        }
        let batches = result.collect().await;
        batches.map(drop).map_err(stated)
    }

    /// The value of an expression, as a text.
    async fn value(&self, expression: &str) -> Result<Option<String>> {
        let sql = format!("SELECT ({expression})::text");
        let batches = self.session.run_nested(&sql).await?.collect().await.map_err(stated)?;
        let batch = batches.into_iter().find(|batch| batch.num_rows() > 0);
        Ok(batch.and_then(|batch| match batch.column(0).as_string_view_opt() {
            Some(column) => column.iter().next().flatten().map(str::to_owned),
            None => batch.column(0).as_string_opt::<i32>()?.iter().next()?.map(str::to_owned),
        }))
    }

    async fn raise(&mut self, message: &Message) -> Result<()> {
        let mut parts = message.parts.iter();
        let mut text = parts.next().cloned().unwrap_or_default();
        for (argument, part) in message.arguments.iter().zip(parts) {
            let value = self.value(argument).await?;
            text.push_str(value.as_deref().unwrap_or("<NULL>"));
            text.push_str(part);
        }
        if message.is_error {
            return Err(SqlState::RAISE_EXCEPTION.error(text));
        }
        if message.is_shown {
            self.notices.push(text);
        }
        Ok(())
    }
}

/// The error of a statement of the block.
fn stated(error: SqlError) -> DataFusionError {
    error.state.error(error.message)
}
