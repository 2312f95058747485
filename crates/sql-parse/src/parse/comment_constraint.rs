//! `COMMENT ON CONSTRAINT c ON t IS '…'`, which sqlparser 0.62 lacks: a comment on a column `t."$constraint".c`.

use datafusion::sql::sqlparser::ast::{CommentObject, Ident, ObjectNamePart, Statement};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};

/// The part of a name between a table and its constraint.
pub const CONSTRAINT: &str = "$constraint";

/// Parses one; `None` if another statement begins.
pub(super) fn parse(parser: &mut Parser) -> Option<Result<Statement, ParserError>> {
    let read = parser.maybe_parse(|parser| {
        parser.expect_keyword(Keyword::COMMENT)?;
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        parser.expect_keywords(&[Keyword::ON, Keyword::CONSTRAINT])?;
        let constraint = parser.parse_identifier()?;
        parser.expect_keyword(Keyword::ON)?;
        let mut object_name = parser.parse_object_name(false)?;
        object_name.0.extend([Ident::new(CONSTRAINT), constraint].map(ObjectNamePart::Identifier));
        parser.expect_keyword(Keyword::IS)?;
        let comment = match parser.parse_keyword(Keyword::NULL) {
            true => None,
            false => Some(parser.parse_literal_string()?),
        };
        let object_type = CommentObject::Column;
        Ok(Statement::Comment { object_type, object_name, comment, if_exists })
    });
    read.transpose()
}
