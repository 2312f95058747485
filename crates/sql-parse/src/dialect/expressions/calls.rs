//! Rewrites calls and casts with special syntax as calls of functions.
//!
//! | SQL | rewritten as |
//! |---|---|
//! | `struct_pack(a := 1)` | `named_struct('a', 1)` |
//! | `struct_insert(s, a := 1)`, `struct_update(…)` | `struct_insert(s, 'a', 1)` |
//! | `mod(a, b)`, `if(a, b, c)` | `a % b`, CASE |
//! | `sum_no_overflow(a)`, `first(a) OVER …` | `sum(a)`, `first_value(a) OVER …` |
//! | `normalize(x, NFC)`, `x IS NFC NORMALIZED` | `normalize(x, 'NFC')`, and a comparison of x with that |
//! | `try(x)` | `try(x)` with `x` as a lambda, which may fail |
//! | `x::JSON`, `CAST(x AS UUID)`, `TRY_CAST(…)` | a function that checks the text |
//! | `INET '10.0.0.1'` | `'10.0.0.1'::INET`, likewise CIDR, MACADDR, and types of ranges |
//! | `x::UUID[]` | `checked_items(x::TEXT[], 'uuid')` |
//! | `x::VARCHAR(3)`, `x::CHAR(3)` | `left(x::VARCHAR, 3)`, `rtrim(left(x::VARCHAR, 3))`, with that type |
//! | a column of type JSON, UUID, INET, INT4RANGE or VARCHAR(3), or of lists of them | VARCHAR with a CHECK |

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    AlterColumnOperation, AlterTableOperation, ArrayElemTypeDef, BinaryOperator, CaseWhen,
    CastKind, CharacterLength, ColumnDef, ColumnOption, ColumnOptionDef, DataType, Expr, Function,
    FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Ident, LambdaFunction,
    LambdaFunctionParameter, LambdaSyntax, ObjectName, OneOrManyWithParens, Query, SetExpr,
    Statement, TimezoneInfo, TypedString, Value,
};

use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;

use super::types::column_varchar;
use crate::dialect::tree;
use atoll_functions::NetworkType;
use atoll_sql_common::pg_type::Checked;

/// Rewrites an expression.
pub(in crate::dialect) fn rewrite(expr: &mut Expr) {
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
            } else if let Some(item) = item_kind(data_type).filter(|_| !is_tried) {
                let inner = std::mem::replace(inner.as_mut(), Expr::value(Value::Null));
                *expr = checked_items(inner, item);
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

/// Values of a column of VALUES may show no type but VARCHAR: DataFusion (55.2) refuses some that do
/// next to others that do not. Where one is cast to such a type, all are, as in PostgreSQL.
pub(in crate::dialect) fn rewrite_values(query: &mut Query) {
    let SetExpr::Values(values) = query.body.as_mut() else { return };
    if values.rows.len() < 2 {
        return;
    }
    let columns = values.rows.iter().map(|row| row.content.len()).min().unwrap_or(0);
    for column in 0..columns {
        let common = common_cast(values.rows.iter().map(|row| &row.content[column]));
        for value in values.rows.iter_mut().map(|row| &mut row.content[column]) {
            let to = match &common {
                Some(common) => common.clone(),
                None if tells(value) => DataType::Varchar(None),
                None => continue,
            };
            let own = std::mem::replace(value, Expr::value(Value::Null));
            *value = tree::cast(own, to);
        }
    }
}

/// The type that a value is cast to, if it is.
fn type_of_cast(value: &Expr) -> Option<Checked> {
    match value {
        Expr::Cast { data_type, .. } => kind(data_type),
        Expr::TypedString(typed) => kind(&typed.data_type),
        Expr::Function(call) => named(&call.name).filter(|of| matches!(of, Checked::Range(_))),
        _ => None,
    }
}

/// The type that is stored as text to which values of a column are cast, if the others are literals; JSONB next to any.
fn common_cast<'a>(values: impl Iterator<Item = &'a Expr> + Clone) -> Option<DataType> {
    let typed = values.clone().find(|value| type_of_cast(value).is_some_and(|of| !of.is_length()));
    let data_type = match typed? {
        Expr::Cast { data_type, .. } | Expr::TypedString(TypedString { data_type, .. }) => {
            data_type.clone()
        }
        Expr::Function(call) => DataType::Custom(call.name.clone(), Vec::new()),
        _ => return None,
    };
    let of = kind(&data_type);
    let fits = |value: &Expr| match value {
        Expr::Value(value) => {
            matches!(
                value.value,
                Value::SingleQuotedString(_) | Value::Null | Value::Placeholder(_)
            )
        }
        other => type_of_cast(other) == of,
    };
    (of == Some(Checked::Jsonb) || values.into_iter().all(fits)).then_some(data_type)
}

/// Whether a value shows a type that is stored as text.
fn tells(value: &Expr) -> bool {
    match value {
        Expr::Function(call) => {
            let name = call.name.to_string().to_ascii_lowercase();
            if type_of_cast(value).is_some() {
                return true;
            }
            let starts =
                ["json", "row_to_json", "to_json", "uuid", "inet_", "cidr_", "macaddr_", "timetz_"];
            starts.iter().any(|start| name.starts_with(start))
        }
        other => type_of_cast(other).is_some(),
    }
}

/// Rewrites the columns of a table.
pub(in crate::dialect) fn rewrite_statement(statement: &mut Statement) {
    match statement {
        Statement::CreateTable(create) => create.columns.iter_mut().for_each(column),
        Statement::AlterTable(alter) => {
            for operation in &mut alter.operations {
                match operation {
                    AlterTableOperation::AddColumn { column_def, .. } => column(column_def),
                    AlterTableOperation::AlterColumn {
                        op: AlterColumnOperation::SetDataType { data_type, .. },
                        ..
                    } => plain_varchar(items_or_self(data_type)),
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// `mod(a, b)` and its kin as operators, `if(a, b, c)` as CASE, `a IS NFC NORMALIZED` as a comparison.
fn operator(expr: &Expr) -> Option<Expr> {
    if let Expr::IsNormalized { expr, form, negated } = expr {
        let form = form.as_ref().map_or_else(|| "NFC".to_owned(), ToString::to_string);
        let normal = tree::call("normalize", vec![expr.as_ref().clone(), tree::text(form)]);
        let op = if *negated { BinaryOperator::NotEq } else { BinaryOperator::Eq };
        let compared = Expr::BinaryOp { left: expr.clone(), op, right: Box::new(normal) };
        return Some(Expr::Nested(Box::new(compared)));
    }
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
    json_parameters(&name, list);
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
        // The names of the forms of Unicode.
        "normalize" => {
            if let [_, FunctionArg::Unnamed(FunctionArgExpr::Expr(form))] = list.args.as_mut_slice()
                && let Expr::Identifier(name) = form
                && name.quote_style.is_none()
            {
                *form = tree::text(name.value.to_uppercase());
            }
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

/// Functions of JSON, without `json_` or `jsonb_`, and which of their arguments are JSON.
const OF_JSON: &[(&str, &[usize])] = &[
    ("array_length", &[0]),
    ("extract_path", &[0]),
    ("extract_path_text", &[0]),
    ("insert", &[0, 2]),
    ("path_exists", &[0, 2]),
    ("path_match", &[0, 2]),
    ("path_query", &[0, 2]),
    ("path_query_array", &[0, 2]),
    ("path_query_first", &[0, 2]),
    ("pretty", &[0]),
    ("set", &[0, 2]),
    ("set_lax", &[0, 2]),
    ("strip_nulls", &[0]),
    ("typeof", &[0]),
];

/// Casts parameters that are JSON because of their function.
fn json_parameters(name: &str, list: &mut FunctionArgumentList) {
    let (cast, short) = match (name.strip_prefix("jsonb_"), name.strip_prefix("json_")) {
        (Some(short), _) => ("jsonb_checked", short),
        (None, Some(short)) => ("json_checked", short),
        (None, None) => return,
    };
    let Some((_, places)) = OF_JSON.iter().find(|(known, _)| *known == short) else { return };
    for place in *places {
        if let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(value))) = list.args.get_mut(*place)
            && tree::is_parameter(value)
        {
            let parameter = std::mem::replace(value, Expr::value(Value::Null));
            *value = tree::call(cast, vec![parameter]);
        }
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

/// An expression that is computed lazily.
fn lambda(body: Expr) -> Expr {
    let name = Ident::new("row of try");
    Expr::Lambda(LambdaFunction {
        params: OneOrManyWithParens::Many(vec![LambdaFunctionParameter { name, data_type: None }]),
        body: Box::new(body),
        syntax: LambdaSyntax::Arrow,
    })
}

/// The function for a cast to this type.
fn checked(data_type: &DataType, is_tried: bool) -> Option<&'static str> {
    Some(match (kind(data_type)?, is_tried) {
        (Checked::Json, false) => "json_checked",
        (Checked::Json, true) => "try_json_checked",
        (Checked::Jsonb, false) => "jsonb_checked",
        (Checked::Jsonb, true) => "try_jsonb_checked",
        (Checked::Uuid, false) => "uuid_checked",
        (Checked::Uuid, true) => "try_uuid_checked",
        (Checked::Timetz, false) => "timetz_checked",
        (Checked::Timetz, true) => "try_timetz_checked",
        (Checked::Network(NetworkType::Inet), false) => "inet_checked",
        (Checked::Network(NetworkType::Inet), true) => "try_inet_checked",
        (Checked::Network(NetworkType::Cidr), false) => "cidr_checked",
        (Checked::Network(NetworkType::Cidr), true) => "try_cidr_checked",
        (Checked::Network(NetworkType::Macaddr), false) => "macaddr_checked",
        (Checked::Network(NetworkType::Macaddr), true) => "try_macaddr_checked",
        (Checked::Range(of), is_tried) => of.cast(is_tried),
        (Checked::Varchar(_) | Checked::Char(_), _) => return None,
    })
}

/// The form of the texts of an array type.
fn item_kind(data_type: &DataType) -> Option<Checked> {
    match data_type {
        DataType::Array(
            ArrayElemTypeDef::AngleBracket(item) | ArrayElemTypeDef::SquareBracket(item, None),
        ) => kind(item).filter(|kind| !kind.is_length()),
        _ => None,
    }
}

/// The cast to an array of texts of a form.
fn checked_items(value: Expr, item: Checked) -> Expr {
    let texts = ArrayElemTypeDef::SquareBracket(Box::new(DataType::Text), None);
    let texts = tree::cast(value, DataType::Array(texts));
    tree::call("checked_items", vec![texts, tree::text(item.to_string().to_lowercase())])
}

/// A column that becomes one of a type whose values are texts of a form: the texts of a value, the type in which they are
/// kept, and the CHECK of the column. None for other types.
pub fn as_texts(
    data_type: &DataType,
    value: &Expr,
    column: &Ident,
) -> Option<(Expr, DataType, Expr)> {
    let kind = kind(data_type)?;
    let texts = match checked(data_type, false) {
        Some(name) => tree::call(name, vec![value.clone()]),
        None => value.clone(),
    };
    Some((texts, DataType::Varchar(None), check_of_type(kind, column)))
}

/// Returns the CHECK of a column of a type whose values are texts of a form.
pub fn check_of_type(kind: Checked, column: &Ident) -> Expr {
    let mut arguments = vec![Expr::Identifier(column.clone())];
    arguments.extend(kind.length().map(number));
    tree::call(kind.test(), arguments)
}

fn number(length: u32) -> Expr {
    Expr::value(Value::Number(length.to_string(), false))
}

/// Takes the length out of a cast, which cuts longer texts: [`cut`] does so.
pub(in crate::dialect) fn take_length(expr: &mut Expr) -> Option<Checked> {
    let (Expr::Cast { data_type, .. } | Expr::TypedString(TypedString { data_type, .. })) = expr
    else {
        return None;
    };
    let length = kind(data_type).filter(|kind| kind.is_length())?;
    *data_type = DataType::Varchar(None);
    Some(length)
}

/// Cuts the texts of a cast to a type of a limited length.
pub fn cut_to_length(cast: &mut Expr) {
    if let Some(length) = take_length(cast) {
        cut(cast, length);
    }
}

/// Cuts a text as a cast to a type of this length does.
pub(in crate::dialect) fn cut(text: &mut Expr, of: Checked) {
    let Some(length) = of.length() else { return };
    let whole = std::mem::replace(text, Expr::value(Value::Null));
    let cut = tree::call("left", vec![whole, number(length)]);
    let (cut, name) = match of {
        Checked::Char(_) => (tree::call("rtrim", vec![cut]), "bpchar"),
        _ => (cut, "varchar"),
    };
    let name = tree::text(format!("{name}({length})"));
    *text = tree::call("with_type", vec![cut, name]);
}

fn kind(data_type: &DataType) -> Option<Checked> {
    match data_type {
        DataType::JSON => Some(Checked::Json),
        DataType::JSONB => Some(Checked::Jsonb),
        DataType::Uuid => Some(Checked::Uuid),
        DataType::Time(None | Some(6), TimezoneInfo::Tz | TimezoneInfo::WithTimeZone) => {
            Some(Checked::Timetz)
        }
        DataType::Custom(name, modifiers) if modifiers.is_empty() => named(name),
        DataType::Varchar(Some(length))
        | DataType::CharacterVarying(Some(length))
        | DataType::CharVarying(Some(length))
        | DataType::Nvarchar(Some(length)) => Some(Checked::Varchar(characters(length)?)),
        DataType::Char(Some(length)) | DataType::Character(Some(length)) => {
            Some(Checked::Char(characters(length)?))
        }
        _ => None,
    }
}

/// Reads a text of a type of addresses or ranges, whose name is not a keyword.
pub(in crate::dialect) fn prefix(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let [Token::Word(word), Token::SingleQuotedString(text)] = parser.peek_tokens() else {
        return None;
    };
    let name = ObjectName::from(vec![Ident::new(&word.value)]);
    if word.quote_style.is_some() || named(&name).is_none() {
        return None;
    }
    parser.next_token();
    parser.next_token();
    let text = Expr::Value(Value::SingleQuotedString(text).into());
    Some(Ok(tree::cast(text, DataType::Custom(name, Vec::new()))))
}

/// The type of addresses or ranges with this name.
fn named(name: &ObjectName) -> Option<Checked> {
    let name = name.to_string().to_ascii_lowercase();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
    Checked::named(name).filter(|of| matches!(of, Checked::Network(_) | Checked::Range(_)))
}

/// The number of characters of a declared length.
fn characters(length: &CharacterLength) -> Option<u32> {
    match length {
        CharacterLength::IntegerLength { length, .. } => u32::try_from(*length).ok(),
        CharacterLength::Max => None,
    }
}

/// The type of the values of a column, or of the items of its arrays.
fn items_or_self(data_type: &mut DataType) -> &mut DataType {
    match data_type {
        DataType::Array(
            ArrayElemTypeDef::AngleBracket(item) | ArrayElemTypeDef::SquareBracket(item, None),
        ) => item.as_mut(),
        other => other,
    }
}

/// Tells VARCHAR from TEXT in the type of a column.
fn plain_varchar(data_type: &mut DataType) {
    if matches!(
        data_type,
        DataType::Varchar(None)
            | DataType::CharacterVarying(None)
            | DataType::CharVarying(None)
            | DataType::Nvarchar(None)
    ) {
        *data_type = column_varchar();
    }
}

fn column(column: &mut ColumnDef) {
    let of_values = items_or_self(&mut column.data_type);
    let Some(kind) = kind(of_values) else { return plain_varchar(of_values) };
    *of_values = DataType::Varchar(None);
    let is_right = check_of_type(kind, &column.name);
    let check = datafusion::sql::sqlparser::ast::CheckConstraint {
        name: None,
        expr: Box::new(is_right),
        enforced: None,
    };
    column.options.push(ColumnOptionDef { name: None, option: ColumnOption::Check(check) });
}
