//! Casts of parameters to the types that clients declare, where nothing else determines or keeps them.
//!
//! ```text
//! at - $1            at - CAST($1 AS INTERVAL)           where $1 is declared as one
//! unnest($1)         unnest(CAST($1 AS INTEGER[]))
//! '{1,2}' = $1       '{1,2}' = CAST($1 AS INTEGER[])
//! r @> $1            r @> CAST($1 AS INTEGER)            a value, not a range
//! SELECT $1          SELECT json_checked($1)             where $1 is declared as JSON, whose values are texts
//! f($1), $1::TEXT    f(json_checked($1)), json_checked($1)::TEXT
//! ```
//!
//! Elsewhere a parameter has the type of what it is compared with, so that a number finds its row by a key in any
//! width.

use std::ops::ControlFlow;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::sql::parser::Statement as Parsed;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CastKind, DataType as SqlType, Expr, FunctionArg, FunctionArgExpr,
    FunctionArguments, Ident, SelectItem, SetExpr, Statement as Ast, Value,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use atoll_sql_common::pg_type::{PgType, format_type, is_of_users, type_oid};
use atoll_sql_common::user_type::UserTypes;
use atoll_sql_parse::dialect::{column_type, rewritten};
use atoll_sql_parse::syntax::walk_expressions_mut;

/// The type of a parameter that a client declares.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DeclaredType {
    /// The type of its values; None if the client leaves it to the statement.
    pub data_type: Option<DataType>,
    /// Its OID, or 0 without one: types whose values are texts differ by it.
    pub oid: u32,
}

impl From<Option<DataType>> for DeclaredType {
    fn from(data_type: Option<DataType>) -> Self {
        Self { data_type, oid: 0 }
    }
}

/// The declared types of a statement's parameters.
struct DeclaredTypes<'a> {
    declared: &'a [DeclaredType],
    user_types: Option<&'a UserTypes>,
}

/// Casts parameters to their declared types.
pub(in crate::session) fn cast_operands(
    statement: &mut Parsed,
    declared: &[DeclaredType],
    user_types: Option<&UserTypes>,
) -> Result<()> {
    let types = DeclaredTypes { declared, user_types };
    let is_told = |of: &DeclaredType| {
        of.data_type.as_ref().is_some_and(|of| is_bound(of) || is_list(of)) || is_answered(of.oid)
    };
    let (Parsed::Statement(ast), true) = (statement, declared.iter().any(is_told)) else {
        return Ok(());
    };
    let visited = walk_expressions_mut(ast.as_mut(), &mut |expr| match types.operands(expr) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    });
    if let ControlFlow::Break(error) = visited {
        return Err(error);
    }
    match ast.as_mut() {
        Ast::Query(query) => types.selected(&mut query.body),
        _ => Ok(()),
    }
}

/// Whether a value is a text that becomes one of the type of the other operand.
fn is_text(value: &Expr) -> bool {
    matches!(value, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)))
}

impl DeclaredTypes<'_> {
    fn operands(&self, expr: &mut Expr) -> Result<()> {
        use BinaryOperator::{
            ArrowAt, AtArrow, Divide, Eq, Gt, GtEq, Lt, LtEq, Minus, Multiply, NotEq, Plus,
        };
        match expr {
            Expr::BinaryOp { left, op: Plus | Minus | Multiply | Divide, right } => {
                self.cast(left, is_time)?;
                self.cast(right, is_time)
            }
            Expr::BinaryOp { left, op: Eq | NotEq | Lt | LtEq | Gt | GtEq, right } => {
                match (is_text(left), is_text(right)) {
                    (true, false) => self.cast(right, is_list),
                    (false, true) => self.cast(left, is_list),
                    _ => Ok(()),
                }
            }
            Expr::BinaryOp { left, op: AtArrow | ArrowAt, right } => {
                self.cast(left, is_bound)?;
                self.cast(right, is_bound)
            }
            Expr::Function(call) => {
                // These casts are functions.
                let is_cast = call.name.to_string().ends_with(CHECKED);
                let FunctionArguments::List(list) = &mut call.args else { return Ok(()) };
                list.args.iter_mut().try_for_each(|argument| match argument {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) if !is_cast => {
                        self.cast(value, is_list)?;
                        self.mark(value, is_marked).map(drop)
                    }
                    _ => Ok(()),
                })
            }
            Expr::Cast { expr: value, data_type, .. }
                if !matches!(data_type, SqlType::Array(_)) =>
            {
                self.mark(value, is_marked).map(drop)
            }
            Expr::Array(array) => {
                array.elem.iter_mut().try_for_each(|item| self.mark(item, is_marked).map(drop))
            }
            _ => Ok(()),
        }
    }

    /// Casts parameters that are columns of a query, which keep their names.
    fn selected(&self, body: &mut SetExpr) -> Result<()> {
        match body {
            SetExpr::Select(select) => select.projection.iter_mut().try_for_each(|item| {
                match item {
                    SelectItem::ExprWithAlias { expr, .. } => {
                        self.mark(expr, is_answered)?;
                    }
                    SelectItem::UnnamedExpr(expr) => {
                        let name = expr.to_string();
                        if self.mark(expr, is_answered)? {
                            let expr = expr.clone();
                            let alias = Ident::with_quote('"', name);
                            *item = SelectItem::ExprWithAlias { expr, alias };
                        }
                    }
                    _ => {}
                }
                Ok(())
            }),
            SetExpr::Query(query) => self.selected(&mut query.body),
            SetExpr::SetOperation { left, right, .. } => {
                self.selected(left)?;
                self.selected(right)
            }
            _ => Ok(()),
        }
    }

    /// Casts an operand that is a parameter of such a type.
    fn cast(&self, operand: &mut Expr, is_cast: fn(&DataType) -> bool) -> Result<()> {
        let Some(of) = self.declared(operand) else { return Ok(()) };
        let Some(of) = of.data_type.as_ref().filter(|of| is_cast(of)) else { return Ok(()) };
        if !is_marked(self.declared(operand).map_or(0, |of| of.oid)) {
            *operand = cast_to(operand, &name_of(of))?;
        }
        Ok(())
    }

    /// Casts a parameter whose declared type is one of these and not told by that of its values; whether it is one.
    fn mark(&self, operand: &mut Expr, is_cast: fn(u32) -> bool) -> Result<bool> {
        let Some(of) = self.declared(operand).filter(|of| is_cast(of.oid)) else {
            return Ok(false);
        };
        let Some(name) = self.type_name(of.oid) else { return Ok(false) };
        *operand = rewritten(cast_to(operand, &name)?)?;
        Ok(true)
    }

    fn declared(&self, operand: &Expr) -> Option<&DeclaredType> {
        let Expr::Value(value) = operand else { return None };
        let Value::Placeholder(name) = &value.value else { return None };
        let number = name.strip_prefix('$')?.parse::<usize>().ok()?;
        self.declared.get(number.checked_sub(1)?)
    }

    /// The name of a type; `None` for unknown types.
    fn type_name(&self, oid: u32) -> Option<String> {
        match self.user_types.and_then(|types| types.format_type(oid.into())) {
            Some(name) => Some(name),
            None if is_users(oid) => None,
            None => Some(format_type(oid.into(), -1)),
        }
    }
}

/// How the names of the functions end that check a text's form.
const CHECKED: &str = "_checked";

fn cast_to(operand: &Expr, type_name: &str) -> Result<Expr> {
    let data_type = Parser::new(&GenericDialect {}).try_with_sql(type_name)?.parse_data_type()?;
    let expr = Box::new(operand.clone());
    Ok(Expr::Cast { kind: CastKind::Cast, expr, data_type, array: false, format: None })
}

/// Whether one of these types is a user's.
pub(in crate::session) fn are_users(declared: &[DeclaredType]) -> bool {
    declared.iter().any(|of| is_users(of.oid))
}

/// Whether a type is a user's, or an array of them.
fn is_users(oid: u32) -> bool {
    is_of_users(oid) || PgType::item_of(oid).is_some_and(is_of_users)
}

/// Whether the values of a type, or of the items of an array, are texts of a form, or labels.
fn is_marked(oid: u32) -> bool {
    use type_oid::{CIDR, INET, JSON, JSONB, MACADDR, TIMETZ, UUID};
    let of = PgType::item_of(oid).unwrap_or(oid);
    matches!(of, CIDR | INET | JSON | JSONB | MACADDR | TIMETZ | UUID) || is_users(oid)
}

/// Whether an answer loses a type that is not cast.
fn is_answered(oid: u32) -> bool {
    is_marked(oid) || oid == type_oid::OID || PgType::range_of(oid).is_some()
}

fn is_time(data_type: &DataType) -> bool {
    use DataType::{Date32, Interval, Time64, Timestamp};
    matches!(data_type, Date32 | Interval(_) | Time64(_) | Timestamp(..))
}

/// Whether values of the type may be in ranges.
fn is_bound(data_type: &DataType) -> bool {
    is_time(data_type) || data_type.is_integer() || data_type.is_decimal()
}

fn is_list(data_type: &DataType) -> bool {
    matches!(data_type, DataType::List(_))
}

/// The name of a type, with microseconds for timestamps.
fn name_of(data_type: &DataType) -> String {
    match data_type {
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP(6) WITH TIME ZONE".to_owned(),
        DataType::List(item) => format!("{}[]", name_of(item.data_type())),
        other => column_type(other),
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::IntervalUnit;
    use datafusion::sql::parser::DFParser;

    use super::*;

    fn cast_in(sql: &str, declared: &[DeclaredType]) -> String {
        let mut statement = DFParser::parse_sql(sql).expect(sql).pop_front().expect(sql);
        cast_operands(&mut statement, declared, None).expect(sql);
        statement.to_string()
    }

    #[test]
    fn operands_have_their_declared_types() {
        let interval = DataType::Interval(IntervalUnit::MonthDayNano);
        let list = DataType::new_list(DataType::Int32, true);
        let declared = [Some(interval), None, Some(list)].map(DeclaredType::from);
        assert_eq!(
            cast_in("SELECT a - $1, a - $2, unnest($3), f($1)", &declared),
            "SELECT a - CAST($1 AS INTERVAL), a - $2, unnest(CAST($3 AS INTEGER[])), f($1)"
        );
        assert_eq!(
            cast_in("SELECT '{1}' = $3, a = $3", &declared),
            "SELECT '{1}' = CAST($3 AS INTEGER[]), a = $3"
        );
        let declared = [Some(DataType::Int32)].map(DeclaredType::from);
        assert_eq!(cast_in("SELECT a - $1", &declared), "SELECT a - $1");
        assert_eq!(cast_in("SELECT r @> $1", &declared), "SELECT r @> CAST($1 AS INTEGER)");
    }

    #[test]
    fn texts_of_a_form_keep_it() {
        let text = |oid| DeclaredType { data_type: Some(DataType::Utf8View), oid };
        let declared = [text(type_oid::JSONB), text(type_oid::TEXT)];
        assert_eq!(
            cast_in("SELECT $1, $2, $1 AS a, f($1), $1::TEXT WHERE b = $1", &declared),
            "SELECT jsonb_checked($1) AS \"$1\", $2, jsonb_checked($1) AS a, \
             f(jsonb_checked($1)), jsonb_checked($1)::TEXT WHERE b = $1"
        );
    }
}
