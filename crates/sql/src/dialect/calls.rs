//! Calls and casts that are written in a way of their own, as calls of functions.
//!
//! | what is written | what it becomes |
//! |---|---|
//! | `struct_pack(a := 1)` | `named_struct('a', 1)` |
//! | `struct_insert(s, a := 1)`, `struct_update(…)` | `struct_insert(s, 'a', 1)` |
//! | `mod(a, b)`, `if(a, b, c)` | `a % b`, CASE |
//! | `sum_no_overflow(a)`, `first(a) OVER …` | `sum(a)`, `first_value(a) OVER …` |
//! | `try(x)` | `try(x)` with `x` as a lambda, which may fail |
//! | `x::JSON`, `CAST(x AS UUID)`, `TRY_CAST(…)` | a function that checks the text |
//! | a column of type JSON or UUID | VARCHAR with a CHECK |

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    BinaryOperator, CaseWhen, CastKind, ColumnDef, ColumnOption, ColumnOptionDef, DataType, Expr,
    Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident,
    LambdaFunction, LambdaFunctionParameter, LambdaSyntax, ObjectName, OneOrManyWithParens,
    Statement, Value,
};

use super::tree;

/// Rewrites an expression.
pub(super) fn rewrite(expr: &mut Expr) {
    if let Some(plain) = operator(expr) {
        *expr = plain;
    }
    match expr {
        Expr::Function(function) => call(function),
        Expr::Cast { kind, expr: inner, data_type, .. } => {
            let is_tried = matches!(kind, CastKind::TryCast | CastKind::SafeCast);
            if let Some(name) = checked(data_type, is_tried) {
                let inner = std::mem::replace(inner.as_mut(), Expr::value(Value::Null));
                *expr = tree::call(name, vec![inner]);
            }
        }
        Expr::TypedString(typed) => {
            if let Some(name) = checked(&typed.data_type, false) {
                *expr = tree::call(name, vec![Expr::Value(typed.value.clone())]);
            }
        }
        _ => {}
    }
}

/// Rewrites the columns of a table.
pub(super) fn rewrite_statement(statement: &mut Statement) {
    if let Statement::CreateTable(create) = statement {
        create.columns.iter_mut().for_each(column);
    }
}

/// `mod(a, b)` and its kin as operators, `if(a, b, c)` as CASE.
fn operator(expr: &Expr) -> Option<Expr> {
    let Expr::Function(function) = expr else { return None };
    let [part] = function.name.0.as_slice() else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    let argument = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    };
    let op = match part.as_ident()?.value.to_ascii_lowercase().as_str() {
        "mod" => BinaryOperator::Modulo,
        "add" => BinaryOperator::Plus,
        "subtract" => BinaryOperator::Minus,
        "multiply" => BinaryOperator::Multiply,
        "if" | "iff" => {
            let [condition, result, other] = list.args.as_slice() else { return None };
            let condition = CaseWhen { condition: argument(condition)?, result: argument(result)? };
            return Some(Expr::Case {
                case_token: AttachedToken::empty(),
                end_token: AttachedToken::empty(),
                operand: None,
                conditions: vec![condition],
                else_result: Some(Box::new(argument(other)?)),
            });
        }
        _ => return None,
    };
    let [left, right] = list.args.as_slice() else { return None };
    let (left, right) = (argument(left)?, argument(right)?);
    let (left, right) =
        (Box::new(Expr::Nested(Box::new(left))), Box::new(Expr::Nested(Box::new(right))));
    Some(Expr::Nested(Box::new(Expr::BinaryOp { left, op, right })))
}

fn call(function: &mut Function) {
    let [part] = function.name.0.as_mut_slice() else { return };
    let Some(ident) = part.as_ident() else { return };
    let name = ident.value.to_ascii_lowercase();
    let FunctionArguments::List(list) = &mut function.args else { return };
    match name.as_str() {
        "struct_pack" => {
            named_fields(list);
            function.name = ObjectName::from(vec![Ident::new("named_struct")]);
        }
        "struct_insert" | "struct_update" => named_fields(list),
        "sum_no_overflow" => function.name = ObjectName::from(vec![Ident::new("sum")]),
        "first" | "arbitrary" if function.over.is_some() => {
            function.name = ObjectName::from(vec![Ident::new("first_value")]);
        }
        "last" if function.over.is_some() => {
            function.name = ObjectName::from(vec![Ident::new("last_value")]);
        }
        "try" => {
            for argument in &mut list.args {
                if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) = argument
                    && !matches!(expr, Expr::Lambda(_))
                {
                    let body = std::mem::replace(expr, Expr::value(Value::Null));
                    *expr = lambda(body);
                }
            }
        }
        _ => {}
    }
}

/// `a := 1` as `'a', 1`.
fn named_fields(list: &mut FunctionArgumentList) {
    let arguments = std::mem::take(&mut list.args);
    for argument in arguments {
        match argument {
            FunctionArg::Named { name, arg, .. } => {
                let name = Expr::value(Value::SingleQuotedString(name.value));
                list.args.push(FunctionArg::Unnamed(FunctionArgExpr::Expr(name)));
                list.args.push(FunctionArg::Unnamed(arg));
            }
            FunctionArg::ExprNamed { name: Expr::Identifier(name), arg, .. } => {
                let name = Expr::value(Value::SingleQuotedString(name.value));
                list.args.push(FunctionArg::Unnamed(FunctionArgExpr::Expr(name)));
                list.args.push(FunctionArg::Unnamed(arg));
            }
            other => list.args.push(other),
        }
    }
}

/// An expression that is computed when it is asked for.
fn lambda(body: Expr) -> Expr {
    let name = Ident::new("row of try");
    Expr::Lambda(LambdaFunction {
        params: OneOrManyWithParens::Many(vec![LambdaFunctionParameter { name, data_type: None }]),
        body: Box::new(body),
        syntax: LambdaSyntax::Arrow,
    })
}

/// The function that a cast to this type is.
fn checked(data_type: &DataType, is_tried: bool) -> Option<&'static str> {
    Some(match (kind(data_type)?, is_tried) {
        (Checked::Json, false) => "json_checked",
        (Checked::Json, true) => "try_json_checked",
        (Checked::Uuid, false) => "uuid_checked",
        (Checked::Uuid, true) => "try_uuid_checked",
    })
}

/// Types that are texts of a form.
enum Checked {
    Json,
    Uuid,
}

fn kind(data_type: &DataType) -> Option<Checked> {
    match data_type {
        DataType::JSON | DataType::JSONB => Some(Checked::Json),
        DataType::Uuid => Some(Checked::Uuid),
        _ => None,
    }
}

fn column(column: &mut ColumnDef) {
    let Some(kind) = kind(&column.data_type) else { return };
    let value = || Expr::Identifier(column.name.clone());
    let is_right = match kind {
        Checked::Json => tree::call("json_valid", vec![value()]),
        // A UUID that is not in its canonical form is not found by the same one that is.
        Checked::Uuid => tree::call("uuid_valid", vec![value()]),
    };
    let check = datafusion::sql::sqlparser::ast::CheckConstraint {
        name: None,
        expr: Box::new(is_right),
        enforced: None,
    };
    column.options.push(ColumnOptionDef { name: None, option: ColumnOption::Check(check) });
    column.data_type = DataType::Varchar(None);
}
