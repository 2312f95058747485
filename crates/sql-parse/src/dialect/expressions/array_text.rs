//! Arrays that are written as texts.

use atoll_functions::{ArrayItem, nested_array_items};
use datafusion::sql::sqlparser::ast::{
    Array, ArrayElemTypeDef, BinaryOperator, DataType, Expr, Function, FunctionArg,
    FunctionArgExpr, FunctionArguments, Value,
};

use crate::dialect::tree;

/// Rewrites a text that is cast to an array, or is a path, as an array.
pub(in crate::dialect) fn rewrite(expr: &mut Expr) {
    match expr {
        Expr::Cast { expr: text, data_type, .. } if matches!(data_type, DataType::Array(_)) => {
            if let Some(array) = array(text) {
                **text = array;
            }
            if let Some(dimensions) = dimensions(text) {
                set_dimensions(data_type, dimensions);
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

/// The array of a text in PostgreSQL's form.
pub(super) fn array(text: &Expr) -> Option<Expr> {
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
    Some(array_of(nested_array_items(text)?))
}

fn array_of(items: Vec<ArrayItem>) -> Expr {
    let items = items.into_iter().map(|item| match item {
        ArrayItem::Text(text) => tree::text(text),
        ArrayItem::Null => Expr::value(Value::Null),
        ArrayItem::Items(items) => array_of(items),
    });
    Expr::Array(Array { elem: items.collect(), named: true })
}

/// The number of dimensions of an array constructor; None for other expressions, and without items.
fn dimensions(array: &Expr) -> Option<usize> {
    match array {
        Expr::Nested(inner) => dimensions(inner),
        Expr::Array(Array { elem, .. }) => match elem.first()? {
            inner @ (Expr::Array(_) | Expr::Nested(_)) => dimensions(inner).map(|inner| inner + 1),
            _ => Some(1),
        },
        _ => None,
    }
}

/// Gives an array type a number of dimensions: as in PostgreSQL those of a type mean nothing.
fn set_dimensions(data_type: &mut DataType, dimensions: usize) {
    let mut of = std::mem::replace(data_type, DataType::Unspecified);
    let mut is_list = false;
    while let DataType::Array(
        ArrayElemTypeDef::SquareBracket(item, _) | ArrayElemTypeDef::AngleBracket(item),
    ) = of
    {
        of = *item;
        is_list = true;
    }
    for _ in 0..if is_list { dimensions } else { 0 } {
        of = DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(of), None));
    }
    *data_type = of;
}
