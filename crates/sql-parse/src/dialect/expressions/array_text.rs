//! Arrays that are written as texts.

use atoll_functions::array_items;
use datafusion::sql::sqlparser::ast::{
    Array, ArrayElemTypeDef, BinaryOperator, DataType, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, Value,
};

use crate::dialect::tree;

/// Rewrites a text that is cast to an array, follows ANY or ALL, or is a path as an array.
pub(in crate::dialect) fn rewrite(expr: &mut Expr) {
    match expr {
        Expr::Cast { expr: text, data_type: DataType::Array(_), .. }
        | Expr::AnyOp { right: text, .. }
        | Expr::AllOp { right: text, .. } => {
            if let Some(array) = array(text) {
                **text = array;
            }
        }
        Expr::BinaryOp {
            op:
                BinaryOperator::HashArrow
                | BinaryOperator::HashLongArrow
                | BinaryOperator::HashMinus
                | BinaryOperator::QuestionAnd
                | BinaryOperator::QuestionPipe,
            right: text,
            ..
        } => {
            if let Some(array) = text_array(text) {
                **text = array;
            }
        }
        Expr::Function(function) => path(function),
        _ => {}
    }
}

/// Rewrites the path of `jsonb_set(a, '{b,0}', c)`.
fn path(function: &mut Function) {
    let name = function.name.to_string();
    if !["jsonb_set", "jsonb_insert", "jsonb_delete_path"]
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known))
    {
        return;
    }
    let FunctionArguments::List(list) = &mut function.args else { return };
    if let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(text))) = list.args.get_mut(1)
        && let Some(array) = text_array(text)
    {
        *text = array;
    }
}

/// An array of texts where no other type is possible; a parameter becomes one, too.
fn text_array(text: &Expr) -> Option<Expr> {
    match text {
        Expr::Nested(inner) => text_array(inner),
        Expr::Value(literal) if matches!(literal.value, Value::Placeholder(_)) => {
            let texts = ArrayElemTypeDef::SquareBracket(Box::new(DataType::Text), None);
            Some(tree::cast(text.clone(), DataType::Array(texts)))
        }
        _ => array(text),
    }
}

fn array(text: &Expr) -> Option<Expr> {
    let text = match text {
        Expr::Nested(inner) => return array(inner),
        Expr::Cast { expr, data_type: data_type @ DataType::Array(_), .. } => {
            let mut cast = tree::cast(array(expr)?, data_type.clone());
            rewrite(&mut cast);
            return Some(cast);
        }
        Expr::Value(literal) => match &literal.value {
            Value::SingleQuotedString(text) => text,
            _ => return None,
        },
        _ => return None,
    };
    let items = array_items(text)?.into_iter().map(|item| match item {
        Some(text) => tree::text(text),
        None => Expr::value(Value::Null),
    });
    Some(Expr::Array(Array { elem: items.collect(), named: true }))
}
