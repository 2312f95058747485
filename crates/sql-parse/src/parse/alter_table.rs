//! Forms of ALTER TABLE that sqlparser 0.62 parses only in its PostgreSQL dialect, or not at all.
//!
//! ```text
//! ALTER TABLE t RENAME CONSTRAINT a TO b
//! ALTER TABLE t ALTER COLUMN a SET STATISTICS 100     a property of the table: a = $statistics
//! ```

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    AlterTable, AlterTableOperation, Expr, Ident, SqlOption, Statement,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

/// The value of a property that names a column whose statistics target is set.
pub const STATISTICS: &str = "$statistics";

/// Parses one; `None` if another statement begins.
pub(super) fn parse(parser: &mut Parser) -> Option<Result<Statement, ParserError>> {
    let read = parser.maybe_parse(|parser| {
        parser.expect_keywords(&[Keyword::ALTER, Keyword::TABLE])?;
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        let only = parser.parse_keyword(Keyword::ONLY);
        let name = parser.parse_object_name(false)?;
        let operation = match parser.parse_keyword(Keyword::ALTER) {
            true => statistics(parser)?,
            false => rename_constraint(parser)?,
        };
        Ok(Statement::AlterTable(AlterTable {
            name,
            if_exists,
            only,
            operations: vec![operation],
            location: None,
            on_cluster: None,
            table_type: None,
            end_token: AttachedToken(parser.get_current_token().clone()),
        }))
    });
    read.transpose()
}

fn rename_constraint(parser: &mut Parser) -> Result<AlterTableOperation, ParserError> {
    parser.expect_keywords(&[Keyword::RENAME, Keyword::CONSTRAINT])?;
    let old_name = parser.parse_identifier()?;
    parser.expect_keyword(Keyword::TO)?;
    let new_name = parser.parse_identifier()?;
    Ok(AlterTableOperation::RenameConstraint { old_name, new_name })
}

fn statistics(parser: &mut Parser) -> Result<AlterTableOperation, ParserError> {
    let _ = parser.parse_keyword(Keyword::COLUMN);
    let key = parser.parse_identifier()?;
    parser.expect_keyword(Keyword::SET)?;
    let next = parser.next_token();
    match &next.token {
        Token::Word(word) if word.value.eq_ignore_ascii_case("statistics") => {}
        _ => return parser.expected("STATISTICS", next),
    }
    let _ = parser.consume_token(&Token::Minus);
    parser.parse_literal_uint()?;
    let value = Expr::Identifier(Ident::new(STATISTICS));
    let table_properties = vec![SqlOption::KeyValue { key, value }];
    Ok(AlterTableOperation::SetTblProperties { table_properties })
}
