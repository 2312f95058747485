//! Turns the text of one statement into the syntax tree for DataFusion's planner.
//!
//! ```text
//! text ─tokens─▶ parser, in an AtollDialect ─▶ syntax tree ─names─▶ with names for all columns
//!      ─Clauses─▶ the same, without what the planner would ignore or misread
//! ```
//!
//! DataFusion 55.2 plans much of what sqlparser 0.62 reads, and silently drops the rest
//! (apache/datafusion#24754). Each clause that it drops is either rewritten into one that it knows, or refused by
//! name: `clauses` goes over the tree once, with a file for each part of it.

mod alter_table;
mod clauses;
mod comment_constraint;
mod copy;
mod delegate;
mod depth;
mod dialect;
mod domains;
mod numbers;
mod postgres;
mod routines;
mod sequences;
mod standard;
mod streams;
mod with_names;

use datafusion::common::{DataFusionError, Result, plan_datafusion_err, plan_err};
use datafusion::execution::SessionState;
use datafusion::sql::parser::{DFParserBuilder, Statement as Parsed};
use datafusion::sql::sqlparser::parser::ParserError;

use crate::syntax::Tokens;
pub use alter_table::STATISTICS;
use atoll_sql_common::settings::AtollOptions;
pub use clauses::{FrameOffset, FrameParameter, changes_rows, replace_frame_parameters};
pub use comment_constraint::CONSTRAINT;
pub use copy::{
    BETWEEN, DATE_FORMAT, EMPTY_FIRST, OWN, QUOTED_COLUMNS, SINGLE, TIMESTAMP_FORMAT, is_copy,
};
pub use depth::{STACK_SHORT, check_depth, expect_bodies, on_deep_stack, stack_for};
use dialect::AtollDialect;
pub use domains::{DomainChange, NOT_NULL};
pub use routines::{Parameter, Returns, Routine};
pub use sequences::{ALTERED, NO_OWNER, OF_COLUMN, RENAMED, RESTART, SEQUENCE_NAME};
pub use standard::explain_analyzes;
pub use streams::{copies_from_stdin, copy_from_file, copy_to_file};
pub use with_names::separate_with_names;

/// Parses one statement in the session's dialect.
pub fn parse(sql: &str, state: &SessionState) -> Result<Parsed> {
    let options = &state.config_options().sql_parser;
    let dialect = AtollDialect::named(options.dialect);
    let limit = options.recursion_limit.get();
    let own = state.config_options().extensions.get::<AtollOptions>();
    let names = own.map(|own| own.column_names).unwrap_or_default();
    let mut tokens = Tokens::of(sql, &dialect)?;
    postgres::shorten(&mut tokens);
    standard::rewrite(&mut tokens);
    crate::dialect::refuse_statement(&tokens)?;
    depth::check_set_operations(&tokens)?;
    crate::dialect::read_words(&mut tokens, dialect.is_mended())?;
    let mut parser = DFParserBuilder::new(tokens.into_tokens())
        .with_dialect(&dialect)
        .with_recursion_limit(limit)
        .build()?;
    if let Some(mut copy) = copy::parse(&mut parser.parser)? {
        crate::dialect::name_columns(&mut copy, names);
        numbers::rewrite(&mut copy, sql);
        separate_with_names(&mut copy)?;
        clauses::apply(&mut copy, state)?;
        return Ok(copy);
    }
    if let Some(sequence) = sequences::parse(&mut parser.parser)? {
        return Ok(sequence);
    }
    let mut statement = match domains::parse(&mut parser.parser)? {
        Some(domain) => domain,
        None => {
            let mut statements =
                parser.parse_statements().map_err(|error| named(error, &dialect, limit))?;
            let (Some(statement), None) = (statements.pop_front(), statements.pop_front()) else {
                return plan_err!("expected a single statement");
            };
            statement
        }
    };
    crate::dialect::name_columns(&mut statement, names);
    numbers::rewrite(&mut statement, sql);
    separate_with_names(&mut statement)?;
    clauses::apply(&mut statement, state)?;
    Ok(statement)
}

/// Replaces the parser's messages for deep nesting and for another product's form of a join, which say neither
/// what is wrong nor what to do.
fn named(error: DataFusionError, dialect: &AtollDialect, limit: usize) -> DataFusionError {
    let DataFusionError::SQL(parser, _) = &error else { return error };
    match (parser.as_ref(), dialect.too_deep.get()) {
        (ParserError::RecursionLimitExceeded, None) => plan_datafusion_err!(
            "statement nested too deeply: parentheses, sub-queries and functions inside one another \
             reach {limit} levels; SET datafusion.sql_parser.recursion_limit raises the limit"
        ),
        (ParserError::RecursionLimitExceeded, location) => depth::too_deep(location),
        (ParserError::ParserError(message), _) if message.contains("MATCH_CONDITION") => {
            plan_datafusion_err!(
                "MATCH_CONDITION is not supported; write a ASOF JOIN b ON a.key = b.key AND a.at >= b.at"
            )
        }
        _ => error,
    }
}
