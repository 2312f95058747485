//! The dialect that statements are parsed in: one of sqlparser's, with what Atoll mends in all of
//! them.
//!
//! - `IS [NOT] DISTINCT FROM` ends before AND and OR; sqlparser 0.62 takes everything that follows as
//!   its right side (apache/datafusion-sqlparser-rs#2436).
//! - `a AND b AND …` and OR chains of any length become balanced trees, whose depth is the logarithm
//!   of their length; other chains have a limit. sqlparser's are as deep as they are long, and
//!   planning, running or dropping such a tree overflows the stack (apache/datafusion#22936).
//! - In the default dialect and DuckDB's there is ORDER BY ALL, `^` is power as in PostgreSQL, `#` is the exclusive or of
//!   bits, and `||`, `->`, `@>`, `?` and the operators of bits bind as tightly as one another, less tightly than
//!   arithmetic and more tightly than comparisons.

use std::cell::Cell;

use datafusion::common::config::Dialect as DialectName;
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};
use datafusion::sql::sqlparser::dialect::{
    Dialect, DuckDbDialect, GenericDialect, PostgreSqlDialect, Precedence, dialect_from_str,
};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Location, Token};

use super::depth::{DEPTH_MAX, left_depth};

/// The number of operators on the left side of an expression from which its chain is parsed here.
const LONG_CHAIN: usize = 16;

/// Binding strengths that are added between those of sqlparser: comparisons have 20, `+` 30, `*` 40, `::`
/// 50.
const POWER: u8 = 45;
const OTHER_OPERATORS: u8 = 25;

/// A corrected dialect of sqlparser; see the module.
#[derive(Debug)]
pub(crate) struct AtollDialect {
    pub(super) inner: Box<dyn Dialect>,
    /// Whether the dialect inside parses the next infix operator.
    passing: Cell<bool>,
    /// The position of a chain that is too long.
    pub(super) too_deep: Cell<Option<Location>>,
}

impl AtollDialect {
    /// The dialect that `SET datafusion.sql_parser.dialect` names.
    pub(crate) fn named(name: DialectName) -> Self {
        let inner = dialect_from_str(name).unwrap_or_else(|| Box::new(GenericDialect {}));
        Self { inner, passing: Cell::new(false), too_deep: Cell::new(None) }
    }

    /// Whether it has PostgreSQL's operators and DuckDB's short forms, which sqlparser leaves out.
    pub(super) fn is_mended(&self) -> bool {
        self.inner.is::<GenericDialect>() || self.inner.is::<DuckDbDialect>()
    }

    /// The precedence of `^` as power.
    fn power(&self) -> Option<u8> {
        if self.is_mended() {
            Some(POWER)
        } else if self.inner.is::<PostgreSqlDialect>() {
            Some(self.inner.prec_value(Precedence::Caret))
        } else {
            None
        }
    }

    pub(super) fn precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        if !self.is_mended() {
            return self.inner.get_next_precedence(parser);
        }
        match parser.peek_token_ref().token {
            Token::Caret => Some(Ok(POWER)),
            Token::Mul if parser.peek_nth_token_ref(1).token == Token::Mul => Some(Ok(POWER)),
            Token::StringConcat
            | Token::Arrow
            | Token::LongArrow
            | Token::HashArrow
            | Token::HashLongArrow
            | Token::HashMinus
            | Token::Sharp
            | Token::Ampersand
            | Token::Pipe
            | Token::ShiftLeft
            | Token::ShiftRight
            | Token::AtArrow
            | Token::ArrowAt => Some(Ok(OTHER_OPERATORS)),
            Token::Placeholder(ref mark) if mark == "?" => Some(Ok(OTHER_OPERATORS)),
            Token::Minus if parser.peek_tokens() == crate::dialect::ADJACENT => {
                Some(Ok(OTHER_OPERATORS))
            }
            _ => self.inner.get_next_precedence(parser),
        }
    }

    /// A sign binds more tightly than `^`, so that `-2 ^ 2` is 4 as in PostgreSQL and DuckDB. `@` binds as other
    /// operators do: `@ -5 + 1` is 4.
    pub(super) fn prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        if self.is_mended()
            && let Some(named) = crate::dialect::prefix(parser)
        {
            return Some(named);
        }
        let (op, strength) = match parser.peek_token_ref().token {
            Token::Minus => (UnaryOperator::Minus, self.power()),
            Token::Plus => (UnaryOperator::Plus, self.power()),
            Token::AtSign if self.is_mended() => (UnaryOperator::PGAbs, Some(OTHER_OPERATORS)),
            _ => return self.inner.parse_prefix(parser),
        };
        let Some(strength) = strength else { return self.inner.parse_prefix(parser) };
        parser.next_token();
        let expr = parser.parse_subexpr(strength).map(Box::new);
        Some(expr.map(|expr| Expr::UnaryOp { op, expr }))
    }

    pub(super) fn infix(
        &self,
        parser: &mut Parser,
        expr: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        if !self.passing.take() && left_depth(expr, LONG_CHAIN) == LONG_CHAIN {
            return Some(self.chain(parser, expr, precedence));
        }
        if self.is_mended() && parser.consume_token(&Token::Caret) {
            return Some(binary(expr, BinaryOperator::PGExp, parser.parse_subexpr(precedence)));
        }
        if self.is_mended()
            && let Some(power) = crate::dialect::infix(parser, expr, precedence)
        {
            return Some(power);
        }
        if parser.parse_keywords(&[Keyword::IS, Keyword::DISTINCT, Keyword::FROM]) {
            let right = parser.parse_subexpr(precedence).map(Box::new);
            return Some(right.map(|right| Expr::IsDistinctFrom(Box::new(expr.clone()), right)));
        }
        if parser.parse_keywords(&[Keyword::IS, Keyword::NOT, Keyword::DISTINCT, Keyword::FROM]) {
            let right = parser.parse_subexpr(precedence).map(Box::new);
            return Some(right.map(|right| Expr::IsNotDistinctFrom(Box::new(expr.clone()), right)));
        }
        self.inner.parse_infix(parser, expr, precedence)
    }

    /// The operators that follow and bind as tightly as the next one.
    fn chain(&self, parser: &mut Parser, expr: &Expr, precedence: u8) -> Result<Expr, ParserError> {
        for (keyword, op) in
            [(Keyword::AND, BinaryOperator::And), (Keyword::OR, BinaryOperator::Or)]
        {
            if parser.peek_keyword(keyword) {
                let mut operands = vec![expr.clone()];
                while parser.parse_keyword(keyword) {
                    operands.push(parser.parse_subexpr(precedence)?);
                }
                return Ok(balanced(operands, &op));
            }
        }
        let mut left = expr.clone();
        for _ in LONG_CHAIN..DEPTH_MAX {
            self.passing.set(true);
            left = parser.parse_infix(left, precedence)?;
            let ends = parser.get_next_precedence()? != precedence;
            if ends || parser.peek_token_ref().token == Token::Period {
                return Ok(left);
            }
        }
        self.too_deep.set(Some(parser.peek_token_ref().span.start));
        // The only error after which the parser does not try another alternative.
        Err(ParserError::RecursionLimitExceeded)
    }
}

fn binary(
    left: &Expr,
    op: BinaryOperator,
    right: Result<Expr, ParserError>,
) -> Result<Expr, ParserError> {
    let (left, right) = (Box::new(left.clone()), Box::new(right?));
    Ok(Expr::BinaryOp { left, op, right })
}

/// Operands joined by an associative operator, in their order, as a tree of the least depth.
fn balanced(mut operands: Vec<Expr>, op: &BinaryOperator) -> Expr {
    loop {
        if operands.len() == 1 {
            return operands.swap_remove(0);
        }
        let mut pairs = operands.into_iter();
        let mut joined = Vec::with_capacity(pairs.len().div_ceil(2));
        while let Some(left) = pairs.next() {
            joined.push(match pairs.next() {
                Some(right) => {
                    let (left, right) = (Box::new(left), Box::new(right));
                    Expr::BinaryOp { left, op: op.clone(), right }
                }
                None => left,
            });
        }
        operands = joined;
    }
}
