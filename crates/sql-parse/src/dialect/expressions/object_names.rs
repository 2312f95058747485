//! Objects of the catalog in arrays and in texts: PostgreSQL reads and shows them by their names.
//!
//! ```text
//! '{int,text}'::regtype[]        [regtype('int'), regtype('text')]
//! '{23}'::oid[]                  with_type('{23}'::bigint[], '_oid')
//! l::regclass[]                  list_transform(l::text[], name -> regclass(name)); as text with `regclassout(regclass(name))`
//! 'x' || oid::regclass           'x' || regclassout(regclass(oid))
//! format('%s', oid::regclass)    format('%s', regclassout(regclass(oid)))
//! ```

use datafusion::sql::sqlparser::ast::{
    Array, ArrayElemTypeDef, BinaryOperator, DataType, Expr, FunctionArg, FunctionArgExpr,
    FunctionArguments, Ident, LambdaFunction, LambdaFunctionParameter, LambdaSyntax,
    OneOrManyWithParens, Value,
};

use super::catalog::{named, shown};
use super::types::is_oid;
use crate::dialect::tree;

/// Functions that return texts of their arguments.
const SHOWS: [&str; 12] = [
    "concat",
    "concat_ws",
    "format",
    "json_build_array",
    "json_build_object",
    "jsonb_build_array",
    "jsonb_build_object",
    "quote_ident",
    "quote_literal",
    "quote_nullable",
    "to_json",
    "to_jsonb",
];

/// Rewrites an expression.
pub(in crate::dialect) fn rewrite(expr: &mut Expr) {
    match expr {
        Expr::Cast { expr: items, data_type: DataType::Array(of), .. } => {
            let (ArrayElemTypeDef::SquareBracket(of, None) | ArrayElemTypeDef::AngleBracket(of)) =
                of
            else {
                return;
            };
            let function = named(of);
            // A constant of the cast loses the type of its items.
            if function.is_some() || is_oid(of) && matches!(items.as_ref(), Expr::Array(_)) {
                let items = std::mem::replace(items.as_mut(), Expr::value(Value::Null));
                *expr = match function {
                    Some(function) => numbers(function, items),
                    None => with_type(cast_items(items, DataType::BigInt(None)), "_oid"),
                };
            }
        }
        Expr::BinaryOp { left, op: BinaryOperator::StringConcat, right } => {
            show(left);
            show(right);
        }
        Expr::Function(function) => {
            let name = function.name.to_string();
            let FunctionArguments::List(list) = &mut function.args else { return };
            if !SHOWS.iter().any(|known| name.eq_ignore_ascii_case(known)) {
                return;
            }
            for arg in &mut list.args {
                if let FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) = arg {
                    show(value);
                }
            }
        }
        _ => {}
    }
}

fn show(value: &mut Expr) {
    if let Some(shown) = shown(value) {
        *value = shown;
    }
}

/// The numbers of objects that are given by their names.
fn numbers(function: &str, items: Expr) -> Expr {
    mapped(items, &|item| tree::call(function, vec![item]))
}

/// The names of objects that are given by their names or numbers.
pub(super) fn names(function: &str, items: Expr) -> Expr {
    let out = format!("{function}out");
    mapped(items, &|item| tree::call(&out, vec![tree::call(function, vec![item])]))
}

/// The array with a function of each of its items.
fn mapped(items: Expr, of_item: &dyn Fn(Expr) -> Expr) -> Expr {
    match items {
        Expr::Nested(items) => mapped(*items, of_item),
        Expr::Array(Array { elem, named }) => {
            let elem = elem.into_iter().map(of_item).collect();
            Expr::Array(Array { elem, named })
        }
        items => {
            let texts = cast_items(items, DataType::Text);
            let name = tree::quoted("name");
            let value = of_item(Expr::Identifier(name.clone()));
            tree::call("list_transform", vec![texts, lambda(name, value)])
        }
    }
}

fn cast_items(items: Expr, to: DataType) -> Expr {
    let list = ArrayElemTypeDef::SquareBracket(Box::new(to), None);
    tree::cast(items, DataType::Array(list))
}

/// The value as one of a type that Arrow lacks, by its name in `pg_type`.
pub(super) fn with_type(value: Expr, name: &str) -> Expr {
    tree::call("with_type", vec![value, tree::text(name.to_owned())])
}

fn lambda(name: Ident, body: Expr) -> Expr {
    Expr::Lambda(LambdaFunction {
        params: OneOrManyWithParens::Many(vec![LambdaFunctionParameter { name, data_type: None }]),
        body: Box::new(body),
        syntax: LambdaSyntax::Arrow,
    })
}
