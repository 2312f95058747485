//! `ALTER TABLE t RENAME CONSTRAINT a TO b`, which sqlparser 0.62 parses only in its PostgreSQL dialect.

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{AlterTable, AlterTableOperation, Statement};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};

/// Parses one; `None` if another statement begins.
pub(super) fn parse(parser: &mut Parser) -> Option<Result<Statement, ParserError>> {
    let read = parser.maybe_parse(|parser| {
        parser.expect_keywords(&[Keyword::ALTER, Keyword::TABLE])?;
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        let only = parser.parse_keyword(Keyword::ONLY);
        let name = parser.parse_object_name(false)?;
        parser.expect_keywords(&[Keyword::RENAME, Keyword::CONSTRAINT])?;
        let old_name = parser.parse_identifier()?;
        parser.expect_keyword(Keyword::TO)?;
        let new_name = parser.parse_identifier()?;
        Ok(Statement::AlterTable(AlterTable {
            name,
            if_exists,
            only,
            operations: vec![AlterTableOperation::RenameConstraint { old_name, new_name }],
            location: None,
            on_cluster: None,
            table_type: None,
            end_token: AttachedToken(parser.get_current_token().clone()),
        }))
    });
    read.transpose()
}
