//! Rewrites the catalog queries of PostgreSQL's clients.
//!
//! ```text
//! 't'::regclass                     regclass('t'), a number
//! typinput::text                    regprocout(typinput), a name
//! nextval('s'::regclass)            nextval('s')
//! SELECT oid::regclass, …::text     regclassout(regclass(oid)), a name
//! ARRAY(SELECT a FROM t)            coalesce((SELECT array_agg(a) FROM t), [])
//! i.indkey[0]                       i.indkey[1]: PostgreSQL counts the items of these columns from 0
//! generate_subscripts(l, 1)         unnest(generate_series(1, array_length(l, 1))); from 0 for `indkey` and its like
//! _pg_expandarray(l)                unnest(pg_expanded(l))
//! pg_sequence_last_value(oid)        (SELECT last_value FROM pg_sequences WHERE its OID = oid)
//! format('%I.%I', a, b)             concat('', quote_ident(a), '.', quote_ident(b), '')
//! FROM pg_get_keywords()            FROM pg_keywords
//! FROM pg_options_to_table(l)       no rows: no column or server has options
//! pg_partition_ancestors(t)         NULL: no table is a partition
//! ```

use datafusion::sql::sqlparser::ast::{
    AccessExpr, Array, ArrayElemTypeDef, BinaryOperator, CaseWhen, DataType, Expr, Function,
    FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments, Ident, ObjectName,
    OrderByKind, Query, Select, SelectItem, SetExpr, Subscript, TableFactor, Value,
};

use super::object_names;
use crate::dialect::tree;
use crate::syntax::walk_expressions;

/// Types whose values are numbers that are shown as names, with the functions that make them.
const NAMED: [&str; 5] = ["regclass", "regtype", "regproc", "regnamespace", "regrole"];

/// Columns that hold functions by their numbers.
const FUNCTIONS: [&str; 9] = [
    "amhandler",
    "oprcode",
    "typanalyze",
    "typinput",
    "typmodin",
    "typmodout",
    "typoutput",
    "typreceive",
    "typsend",
];

/// Columns whose items PostgreSQL counts from 0.
const VECTORS: [&str; 6] =
    ["indkey", "indclass", "indoption", "indcollation", "proargtypes", "partattrs"];

/// Rewrites an expression.
pub(in crate::dialect) fn rewrite(expr: &mut Expr) {
    match expr {
        Expr::Cast { expr: inner, data_type, .. } => {
            if let Some(name) = named(data_type) {
                let inner = std::mem::replace(inner.as_mut(), Expr::value(Value::Null));
                *expr = tree::call(name, vec![inner]);
            } else if is_text(data_type) {
                match shown(inner).or_else(|| shown_function(inner)) {
                    Some(shown) => *expr = shown,
                    None => show_items(inner),
                }
            }
        }
        Expr::Function(function) => {
            plain_sequence(function);
            if let Some(array) = array_of_query(function) {
                *expr = array;
            } else if let Some(rows) = expanded(function) {
                *expr = rows;
            } else if let Some(numbers) = subscripts(function) {
                *expr = numbers;
            } else if let Some(text) = formatted(function) {
                *expr = text;
            } else if let Some(last) = last_value(function) {
                *expr = last;
            }
        }
        Expr::CompoundFieldAccess { root, access_chain } => vector_index(root, access_chain),
        Expr::Case { operand: None, conditions, .. } => {
            for when in conditions {
                let data_type = asked_of_types(when).or_else(|| asked_of_partitions(when));
                if let Some(data_type) = data_type {
                    when.result = tree::cast(Expr::value(Value::Null), data_type);
                }
            }
        }
        _ => {}
    }
}

/// Makes an array of such a type one of the names that its items are shown as.
fn show_items(array: &mut Expr) {
    match array {
        Expr::Nested(array) => show_items(array),
        Expr::Cast {
            expr: items,
            data_type:
                DataType::Array(
                    ArrayElemTypeDef::SquareBracket(of, None) | ArrayElemTypeDef::AngleBracket(of),
                ),
            ..
        } => {
            if let Some(function) = named(of) {
                let items = std::mem::replace(items.as_mut(), Expr::value(Value::Null));
                *array = object_names::names(function, items);
            }
        }
        _ => {}
    }
}

/// The name of the function in a column of the catalog.
fn shown_function(column: &Expr) -> Option<Expr> {
    let name = last_name(column)?;
    let is_function = FUNCTIONS.iter().any(|known| name.eq_ignore_ascii_case(known));
    is_function.then(|| tree::call("regprocout", vec![column.clone()]))
}

/// The name of a sequence without its cast, which PostgreSQL writes: `nextval('s'::regclass)`.
fn plain_sequence(function: &mut Function) {
    let name = function.name.to_string();
    let is_of_sequence =
        ["nextval", "currval", "setval"].iter().any(|known| name.eq_ignore_ascii_case(known));
    let FunctionArguments::List(list) = &mut function.args else { return };
    if let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(sequence))) = list.args.first_mut()
        && is_of_sequence
        && let Expr::Cast { expr: text, data_type, .. } = sequence
        && named(data_type) == Some("regclass")
        && matches!(text.as_ref(), Expr::Value(_))
    {
        *sequence = std::mem::replace(text.as_mut(), Expr::value(Value::Null));
    }
}

/// Rewrites the select list of a SELECT.
pub(in crate::dialect) fn rewrite_select(select: &mut Select) {
    for item in &mut select.projection {
        let (SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) = item else {
            continue;
        };
        if let Some(shown) = shown(expr) {
            *expr = shown;
        } else if matches!(expr, Expr::Function(function) if is_of_partitions(function)) {
            *expr = tree::cast(Expr::value(Value::Null), DataType::BigInt(None));
        }
    }
}

/// Whether a call asks for the tables that a table is a partition of.
fn is_of_partitions(function: &Function) -> bool {
    let last = function.name.0.last().and_then(|part| part.as_ident());
    last.is_some_and(|name| name.value.eq_ignore_ascii_case("pg_partition_ancestors"))
}

/// The type in psql's query for triggers of partitions: the name of the table that a trigger comes from.
fn asked_of_partitions(when: &CaseWhen) -> Option<DataType> {
    let Expr::Subquery(query) = &when.result else { return None };
    query.to_string().contains("pg_partition_ancestors(").then_some(DataType::Text)
}

/// Replaces a table function of the catalog by its table, or its rows.
pub(in crate::dialect) fn rewrite_table(factor: &mut TableFactor) {
    let TableFactor::Table { name, args, alias, .. } = factor else { return };
    let Some(given) = args else { return };
    let called = name.to_string().to_lowercase();
    if called == "pg_get_keywords" && given.args.is_empty() {
        *name = Ident::new("pg_keywords").into();
        *args = None;
    } else if called == "pg_options_to_table" {
        let option =
            |name: &str| tree::item(tree::cast(Expr::value(Value::Null), DataType::Text), name);
        let mut options = tree::select(vec![option("option_name"), option("option_value")], vec![]);
        options.selection = Some(Expr::value(Value::Boolean(false)));
        *factor = tree::derived(tree::query(SetExpr::Select(Box::new(options))), alias.take());
    }
}

/// The function of a type.
pub(super) fn named(data_type: &DataType) -> Option<&'static str> {
    let name = match data_type {
        DataType::Regclass => "regclass".to_owned(),
        DataType::Custom(name, modifiers) if modifiers.is_empty() => {
            name.to_string().to_lowercase()
        }
        _ => return None,
    };
    let name = match name.as_str() {
        "regprocedure" => "regproc",
        name => name,
    };
    NAMED.into_iter().find(|known| *known == name)
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Text | DataType::Varchar(_) | DataType::String(_) => true,
        DataType::Custom(name, _) => name.to_string().eq_ignore_ascii_case("name"),
        _ => false,
    }
}

/// A cast to such a type, as the name that it is shown as.
pub(super) fn shown(expr: &Expr) -> Option<Expr> {
    match expr {
        Expr::Nested(inner) => shown(inner),
        Expr::Cast { expr, data_type, .. } => {
            let name = named(data_type)?;
            let number = tree::call(name, vec![expr.as_ref().clone()]);
            Some(tree::call(&format!("{name}out"), vec![number]))
        }
        _ => None,
    }
}

fn is_call(function: &Function, name: &str) -> bool {
    let [part] = function.name.0.as_slice() else { return false };
    part.as_ident().is_some_and(|ident| ident.value.eq_ignore_ascii_case(name))
}

/// The type in asyncpg's recursive query for domains and composite types, of which there are none.
fn asked_of_types(when: &CaseWhen) -> Option<DataType> {
    let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = &when.condition else {
        return None;
    };
    let (Expr::CompoundIdentifier(names), Expr::Value(kind)) = (left.as_ref(), right.as_ref())
    else {
        return None;
    };
    let (Value::SingleQuotedString(kind), Expr::Subquery(query)) = (&kind.value, &when.result)
    else {
        return None;
    };
    if !names.last()?.value.eq_ignore_ascii_case("typtype") {
        return None;
    }
    let oid = || DataType::Custom(Ident::new("oid").into(), vec![]);
    let array = |of| DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(of), None));
    let text = query.to_string();
    match kind.as_str() {
        "d" if text.contains("typbasetype") => Some(oid()),
        "c" if text.contains("reltype") && text.contains("atttypid") => Some(array(oid())),
        "c" if text.contains("reltype") && text.contains("attname") => Some(array(DataType::Text)),
        _ => None,
    }
}

/// `ARRAY(SELECT a FROM t ORDER BY b)`
fn array_of_query(function: &mut Function) -> Option<Expr> {
    if !is_call(function, "array") {
        return None;
    }
    let FunctionArguments::Subquery(query) = &mut function.args else { return None };
    let query = std::mem::replace(query.as_mut(), tree::query_of(Expr::value(Value::Null)));
    let query = match gathered(&query) {
        Some(gathered) => gathered,
        None => {
            let of = tree::derived(query, Some(tree::alias("$rows", &["value"])));
            let value = Expr::Identifier(tree::quoted("value"));
            let gathered = tree::item(tree::call("array_agg", vec![value]), "array");
            let select = tree::select(vec![gathered], vec![tree::alone(of)]);
            tree::query(SetExpr::Select(Box::new(select)))
        }
    };
    let none = Expr::Array(Array { elem: vec![], named: false });
    Some(tree::call("coalesce", vec![Expr::Subquery(Box::new(query)), none]))
}

/// A query without DISTINCT and the like, with an array in place of its one column.
fn gathered(query: &Query) -> Option<Query> {
    let mut query = query.clone();
    let order = query.order_by.take();
    let is_plain = query.limit_clause.is_none() && query.fetch.is_none() && query.with.is_none();
    let SetExpr::Select(select) = query.body.as_mut() else { return None };
    let is_plain = is_plain
        && select.distinct.is_none()
        && select.having.is_none()
        && select.qualify.is_none()
        && select.group_by == tree::select(vec![], vec![]).group_by;
    let [SelectItem::UnnamedExpr(value) | SelectItem::ExprWithAlias { expr: value, .. }] =
        select.projection.as_slice()
    else {
        return None;
    };
    // References to the column by position or name become the column itself.
    if !is_plain || has_call(value) {
        return None;
    }
    let mut array = tree::call("array_agg", vec![value.clone()]);
    if let Some(order) = order {
        let OrderByKind::Expressions(mut by) = order.kind else { return None };
        for by in &mut by {
            if let Expr::Value(place) = &by.expr {
                // The first column is the only one.
                let is_first = matches!(&place.value, Value::Number(number, _) if number == "1");
                by.expr = is_first.then(|| value.clone())?;
            }
        }
        if let Expr::Function(function) = &mut array
            && let FunctionArguments::List(list) = &mut function.args
        {
            list.clauses.push(FunctionArgumentClause::OrderBy(by));
        }
    }
    select.projection = vec![tree::item(array, "array")];
    Some(query)
}

/// Whether it may be an aggregate, or return several rows.
fn has_call(expr: &Expr) -> bool {
    let visited = walk_expressions(expr, &mut |expr| match expr {
        Expr::Function(_) => std::ops::ControlFlow::Break(()),
        _ => std::ops::ControlFlow::Continue(()),
    });
    visited.is_break()
}

/// A row for each item of a list: `x` is the item, `n` its position.
fn expanded(function: &Function) -> Option<Expr> {
    if !is_call(function, "_pg_expandarray") {
        return None;
    }
    let FunctionArguments::List(list) = &function.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(of))] = list.args.as_slice() else {
        return None;
    };
    Some(tree::call("unnest", vec![tree::call("pg_expanded", vec![of.clone()])]))
}

/// The last value of the sequence with an OID, which `pg_sequences` shows.
fn last_value(function: &Function) -> Option<Expr> {
    if !is_call(function, "pg_sequence_last_value") {
        return None;
    }
    let FunctionArguments::List(list) = &function.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(sequence))] = list.args.as_slice() else {
        return None;
    };
    let column =
        |name: &str| Expr::CompoundIdentifier(vec![tree::quoted("$sequences"), tree::quoted(name)]);
    let quoted = |name: &str| tree::call("quote_ident", vec![column(name)]);
    let name = tree::call(
        "concat",
        vec![quoted("schemaname"), tree::text(".".to_owned()), quoted("sequencename")],
    );
    let oid = tree::call("regclass", vec![name]);
    let sequences = ObjectName::from(vec![Ident::new("pg_catalog"), Ident::new("pg_sequences")]);
    let mut table = tree::table(sequences);
    if let TableFactor::Table { alias, .. } = &mut table {
        *alias = Some(tree::alias("$sequences", &[]));
    }
    let item = tree::item(column("last_value"), "last_value");
    let mut select = tree::select(vec![item], vec![tree::alone(table)]);
    let sequence = match sequence {
        // The name of a sequence.
        Expr::Value(_) => tree::call("regclass", vec![sequence.clone()]),
        other => other.clone(),
    };
    select.selection = Some(tree::binary(oid, BinaryOperator::Eq, sequence));
    Some(Expr::Subquery(Box::new(tree::query(SetExpr::Select(Box::new(select))))))
}

/// `format` with PostgreSQL's placeholders, in a text without those of DuckDB.
fn formatted(function: &Function) -> Option<Expr> {
    if !is_call(function, "format") {
        return None;
    }
    let FunctionArguments::List(list) = &function.args else { return None };
    let mut args = list.args.iter().map(|arg| match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    let Expr::Value(text) = args.next()?? else { return None };
    let Value::SingleQuotedString(text) = &text.value else { return None };
    if text.contains(['{', '}']) {
        return None;
    }
    let mut parts = text.split('%');
    let mut pieces = vec![tree::text(parts.next()?.to_owned())];
    while let Some(part) = parts.next() {
        let Some(place) = part.chars().next() else {
            // `%%` is a percent sign.
            pieces.push(tree::text(format!("%{}", parts.next()?)));
            continue;
        };
        let mut value = || args.next().flatten().cloned();
        pieces.push(match place {
            's' => value()?,
            'I' => tree::call("quote_ident", vec![value()?]),
            'L' => tree::call("quote_nullable", vec![value()?]),
            _ => return None,
        });
        pieces.push(tree::text(part[1..].to_owned()));
    }
    (pieces.len() > 1 && args.next().is_none()).then(|| tree::call("concat", pieces))
}

/// The numbers of a list's items, a row each.
pub(in crate::dialect) fn subscripts(function: &Function) -> Option<Expr> {
    if !is_call(function, "generate_subscripts") {
        return None;
    }
    let FunctionArguments::List(list) = &function.args else { return None };
    let is_vector = matches!(
        list.args.first(),
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(of))) if last_name(of).is_some_and(is_vector)
    );
    let mut length = function.clone();
    length.name = Ident::new("array_length").into();
    let length = Expr::Function(length);
    let (first, last) = match is_vector {
        true => (number("0"), tree::binary(length, BinaryOperator::Minus, number("1"))),
        false => (number("1"), length),
    };
    let numbers = tree::call("generate_series", vec![first, last]);
    Some(tree::call("unnest", vec![numbers]))
}

fn number(digits: &str) -> Expr {
    Expr::Value(Value::Number(digits.to_owned(), false).into())
}

/// The name of the column that an expression is.
fn last_name(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Identifier(name) => Some(&name.value),
        Expr::CompoundIdentifier(names) => names.last().map(|name| name.value.as_str()),
        _ => None,
    }
}

/// Whether PostgreSQL counts the items of a column from 0.
fn is_vector(column: &str) -> bool {
    VECTORS.iter().any(|vector| column.eq_ignore_ascii_case(vector))
}

/// Counts the items of such a column from 1.
fn vector_index(root: &Expr, access_chain: &mut [AccessExpr]) {
    let mut name = last_name(root).map(str::to_owned);
    for access in access_chain {
        match access {
            AccessExpr::Dot(Expr::Identifier(next)) => name = Some(next.value.clone()),
            AccessExpr::Subscript(Subscript::Index { index }) => {
                if name.take().is_some_and(|name| is_vector(&name)) {
                    let (left, op) = (index.clone(), BinaryOperator::Plus);
                    *index = tree::binary(Expr::Nested(Box::new(left)), op, number("1"));
                }
            }
            _ => name = None,
        }
    }
}
