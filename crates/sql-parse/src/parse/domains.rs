//! CREATE and ALTER DOMAIN, whose constraints come in any order.
//!
//! ```text
//! CREATE DOMAIN positive AS INT DEFAULT 1 NOT NULL CONSTRAINT p CHECK (VALUE > 0)
//! ALTER DOMAIN positive ADD CONSTRAINT small CHECK (VALUE < 10)
//! ALTER DOMAIN positive RENAME CONSTRAINT small TO tiny
//! ```
//!
//! sqlparser has no NOT NULL of domains and no ALTER DOMAIN. NOT NULL becomes a CHECK constraint called [`NOT_NULL`],
//! and ALTER DOMAIN a CREATE DOMAIN with one of the words of [`DomainChange`] as its collation.

use datafusion::common::Result;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    CheckConstraint, CreateDomain, DataType, Expr, Ident, Statement as Ast, TableConstraint,
};
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

/// The name of the constraint that NOT NULL becomes.
pub const NOT_NULL: &str = "$not_null";

/// What ALTER DOMAIN does, as the collation of its CREATE DOMAIN.
pub struct DomainChange;

impl DomainChange {
    /// ADD CONSTRAINT.
    pub const ADD: &'static str = "$add";
    /// DROP CONSTRAINT of the constraint's name.
    pub const DROP: &'static str = "$drop";
    /// DROP CONSTRAINT IF EXISTS.
    pub const DROP_IF_EXISTS: &'static str = "$drop_if_exists";
    /// DROP NOT NULL.
    pub const DROP_NOT_NULL: &'static str = "$drop_not_null";
    /// SET DEFAULT, or DROP DEFAULT without a default.
    pub const DEFAULT: &'static str = "$default";
    /// RENAME TO the constraint's name.
    pub const RENAME: &'static str = "$rename";
    /// RENAME CONSTRAINT of the first constraint's name to the second's.
    pub const RENAME_CONSTRAINT: &'static str = "$rename_constraint";
}

/// Parses CREATE or ALTER DOMAIN; `None` if the next statement is another.
pub(super) fn parse(parser: &mut Parser<'_>) -> Result<Option<Parsed>> {
    let verb = match parser.peek_tokens() {
        [Token::Word(verb), Token::Word(object)] if object.keyword == Keyword::DOMAIN => {
            verb.keyword
        }
        _ => return Ok(None),
    };
    if !matches!(verb, Keyword::CREATE | Keyword::ALTER) {
        return Ok(None);
    }
    parser.expect_keywords(&[verb, Keyword::DOMAIN])?;
    let ast = if verb == Keyword::CREATE { create(parser)? } else { alter(parser)? };
    let _ = parser.consume_token(&Token::SemiColon);
    if parser.peek_token_ref().token != Token::EOF {
        let found = parser.peek_token();
        return Ok(parser.expected("a constraint of a domain or the end of the statement", found)?);
    }
    Ok(Some(Parsed::Statement(Box::new(Ast::CreateDomain(ast)))))
}

fn create(parser: &mut Parser<'_>) -> Result<CreateDomain, ParserError> {
    let name = parser.parse_object_name(false)?;
    let _ = parser.parse_keyword(Keyword::AS);
    let data_type = parser.parse_data_type()?;
    let (mut default, mut constraints) = (None, Vec::new());
    loop {
        if default.is_none() && parser.parse_keyword(Keyword::DEFAULT) {
            default = Some(value(parser)?);
        } else if parser.parse_keyword(Keyword::NULL) {
            // The default: NULL is a value.
        } else if let Some(constraint) = constraint(parser)? {
            constraints.push(constraint);
        } else {
            break;
        }
    }
    Ok(CreateDomain { name, data_type, collation: None, default, constraints })
}

/// A default. `1 NOT NULL` is one and a constraint, not a test.
fn value(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    let above_tests = GenericDialect {}.prec_value(Precedence::Is);
    parser.parse_subexpr(above_tests)
}

/// `[CONSTRAINT name] CHECK (…)` or NOT NULL.
fn constraint(parser: &mut Parser<'_>) -> Result<Option<TableConstraint>, ParserError> {
    let named = parser.parse_keyword(Keyword::CONSTRAINT);
    let name = if named { Some(parser.parse_identifier()?) } else { None };
    if parser.parse_keywords(&[Keyword::NOT, Keyword::NULL]) {
        return Ok(Some(check(Some(Ident::new(NOT_NULL)), value_is_not_null())));
    }
    if !named && !parser.peek_keyword(Keyword::CHECK) {
        return Ok(None);
    }
    parser.expect_keyword(Keyword::CHECK)?;
    parser.expect_token(&Token::LParen)?;
    let condition = parser.parse_expr()?;
    parser.expect_token(&Token::RParen)?;
    Ok(Some(check(name, condition)))
}

fn alter(parser: &mut Parser<'_>) -> Result<CreateDomain, ParserError> {
    let name = parser.parse_object_name(false)?;
    let (mut default, mut constraints) = (None, Vec::new());
    let change = if parser.parse_keyword(Keyword::ADD) {
        let Some(constraint) = constraint(parser)? else {
            let found = parser.peek_token();
            return parser.expected("CHECK", found);
        };
        constraints.push(constraint);
        DomainChange::ADD
    } else if parser.parse_keywords(&[Keyword::SET, Keyword::NOT, Keyword::NULL]) {
        constraints.push(check(Some(Ident::new(NOT_NULL)), value_is_not_null()));
        DomainChange::ADD
    } else if parser.parse_keywords(&[Keyword::SET, Keyword::DEFAULT]) {
        default = Some(value(parser)?);
        DomainChange::DEFAULT
    } else if parser.parse_keywords(&[Keyword::DROP, Keyword::DEFAULT]) {
        DomainChange::DEFAULT
    } else if parser.parse_keywords(&[Keyword::DROP, Keyword::NOT, Keyword::NULL]) {
        DomainChange::DROP_NOT_NULL
    } else if parser.parse_keywords(&[Keyword::DROP, Keyword::CONSTRAINT]) {
        let if_exists = parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS]);
        constraints.push(named_only(parser)?);
        let _ = parser.parse_one_of_keywords(&[Keyword::CASCADE, Keyword::RESTRICT]);
        if if_exists { DomainChange::DROP_IF_EXISTS } else { DomainChange::DROP }
    } else if parser.parse_keywords(&[Keyword::RENAME, Keyword::TO]) {
        constraints.push(named_only(parser)?);
        DomainChange::RENAME
    } else if parser.parse_keywords(&[Keyword::RENAME, Keyword::CONSTRAINT]) {
        constraints.push(named_only(parser)?);
        parser.expect_keyword(Keyword::TO)?;
        constraints.push(named_only(parser)?);
        DomainChange::RENAME_CONSTRAINT
    } else {
        let found = parser.peek_token();
        return parser.expected(
            "ADD, DROP or RENAME CONSTRAINT, SET or DROP NOT NULL, SET or DROP DEFAULT, or RENAME TO",
            found,
        );
    };
    let collation = Some(Ident::new(change));
    Ok(CreateDomain { name, data_type: DataType::Unspecified, collation, default, constraints })
}

/// A constraint of which only the name matters.
fn named_only(parser: &mut Parser<'_>) -> Result<TableConstraint, ParserError> {
    Ok(check(Some(parser.parse_identifier()?), value_is_not_null()))
}

fn check(name: Option<Ident>, condition: Expr) -> TableConstraint {
    let expr = Box::new(condition);
    TableConstraint::Check(CheckConstraint { name, expr, enforced: None })
}

fn value_is_not_null() -> Expr {
    Expr::IsNotNull(Box::new(Expr::Identifier(Ident::new("VALUE"))))
}
