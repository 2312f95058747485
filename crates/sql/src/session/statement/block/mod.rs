//! PL/pgSQL: `DO $$ BEGIN … END $$`, and the bodies of functions and procedures.
//!
//! ```text
//! DO $$
//! DECLARE n INT := 0;
//! BEGIN
//!     FOR r IN SELECT id FROM t LOOP
//!         UPDATE u SET a = n WHERE id = r.id RETURNING a INTO n;
//!     END LOOP;
//! EXCEPTION WHEN unique_violation THEN RAISE NOTICE '%', SQLERRM;
//! END $$
//! ```
//!
//! | file | |
//! |---|---|
//! | `code`, `parse` | the code as steps (`tree`); expressions and statements of SQL stay texts |
//! | `condition` | the names of errors |
//! | `variables` | values, and the variables that a statement names, which become its parameters |
//! | `run` | carries out the steps |
//! | `loops` | loops |
//! | `statements` | runs the SQL in them |
//! | `assign` | puts values into variables |
//! | `raise` | RAISE, and what is known about a handled error |
//! | `routine` | arguments and results of functions and procedures |
//!
//! A block with EXCEPTION begins with a savepoint, to which a handled error returns. The whole is one transaction.

mod assign;
mod code;
mod condition;
mod loops;
mod parse;
mod raise;
mod routine;
mod run;
mod statements;
mod tree;
mod variables;

use datafusion::common::{Result, not_impl_err};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::Token;

pub(in crate::session) use routine::{RoutineRows, body_of, columns_of_routine, query_of_sql};
pub(in crate::session) use tree::Block;
pub(in crate::session) use variables::Cell;

use crate::session::Session;
use crate::session::statement::command_tag::with_notices;
use atoll_sql_common::error::SqlState;
use atoll_sql_parse::syntax::{is_at_end, next_word, parser_of};
use run::BlockRun;

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
        let mut run = BlockRun::new(self, None);
        let done = run.block(block).await;
        self.end_block(unfinished, done.is_ok()).await?;
        done.map(|_| with_notices("DO", &run.notices).into_owned())
    }
}
