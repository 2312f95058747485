//! PostgreSQL's names of unnamed columns (`FigureColname` in its `parse_target.c`).
//!
//! ```text
//! count(*)    a + 1       a::text    1::int    CASE … ELSE a END    (SELECT a FROM t)
//! count       ?column?    a          int4      a                    a
//! ```

use datafusion::sql::sqlparser::ast::{
    AccessExpr, DataType, Expr, ObjectName, Query, SelectItem, SetExpr, TrimWhereField,
};

use crate::dialect::columns::names::{column, folded};

/// The name of columns without one.
const UNNAMED: &str = "?column?";

/// The strength of a name: a strong inner name wins over the expression around it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Strength {
    Weak,
    Strong,
}

/// The name of an expression in a select list.
pub(in crate::dialect) fn figured(expr: &Expr) -> String {
    named(expr).map_or_else(|| UNNAMED.to_owned(), |(name, _)| name)
}

fn named(expr: &Expr) -> Option<(String, Strength)> {
    match expr {
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => named(inner),
        Expr::Cast { expr, data_type, .. } => {
            Some(strong(expr).unwrap_or_else(|| (type_name(data_type), Strength::Weak)))
        }
        Expr::Case { else_result, .. } => {
            let named = else_result.as_deref().and_then(strong);
            Some(named.unwrap_or_else(|| ("case".to_owned(), Strength::Weak)))
        }
        Expr::TypedString(typed) => Some((type_name(&typed.data_type), Strength::Weak)),
        Expr::Interval(_) => Some(("interval".to_owned(), Strength::Weak)),
        Expr::CompoundFieldAccess { root, access_chain } => {
            let field = access_chain.iter().rev().find_map(|access| match access {
                AccessExpr::Dot(Expr::Identifier(name)) => Some(folded(name)),
                _ => None,
            });
            field.map(|field| (field, Strength::Strong)).or_else(|| named(root))
        }
        other => strong_name(other).map(|name| (name, Strength::Strong)),
    }
}

/// The name of an expression, if it is a strong one.
fn strong(expr: &Expr) -> Option<(String, Strength)> {
    named(expr).filter(|(_, strength)| *strength == Strength::Strong)
}

fn strong_name(expr: &Expr) -> Option<String> {
    let name = match expr {
        Expr::Function(function) => return function_name(&function.name),
        Expr::Subquery(query) => return Some(subquery_name(query)),
        Expr::Extract { .. } => "extract",
        Expr::Substring { shorthand: true, .. } => "substr",
        Expr::Substring { .. } => "substring",
        Expr::Position { .. } => "position",
        Expr::Overlay { .. } => "overlay",
        Expr::Ceil { .. } => "ceil",
        Expr::Floor { .. } => "floor",
        Expr::Trim { trim_where: Some(TrimWhereField::Leading), .. } => "ltrim",
        Expr::Trim { trim_where: Some(TrimWhereField::Trailing), .. } => "rtrim",
        Expr::Trim { .. } => "btrim",
        Expr::AtTimeZone { .. } => "timezone",
        Expr::Exists { negated: false, .. } => "exists",
        Expr::Array(_) => "array",
        Expr::Tuple(_) => "row",
        other => return column(other).map(|(name, _)| name),
    };
    Some(name.to_owned())
}

/// The last part of a function's name; `None` for functions that only the parser sees as such.
fn function_name(name: &ObjectName) -> Option<String> {
    let name = folded(name.0.last()?.as_ident()?);
    (!name.starts_with('$')).then_some(name)
}

/// The name of the one column of a subquery.
fn subquery_name(query: &Query) -> String {
    let mut body = query.body.as_ref();
    loop {
        body = match body {
            SetExpr::Query(query) => query.body.as_ref(),
            SetExpr::SetOperation { left, .. } => left.as_ref(),
            SetExpr::Values(_) => return "column1".to_owned(),
            SetExpr::Select(select) => {
                return match select.projection.first() {
                    Some(SelectItem::ExprWithAlias { alias, .. }) => folded(alias),
                    Some(SelectItem::UnnamedExpr(expr)) => figured(expr),
                    _ => UNNAMED.to_owned(),
                };
            }
            _ => return UNNAMED.to_owned(),
        };
    }
}

/// PostgreSQL's name of a type, without lengths and brackets.
fn type_name(data_type: &DataType) -> String {
    let text = data_type.to_string().to_lowercase();
    let text = text.split('[').next().unwrap_or_default();
    let name = match text.split_once('(') {
        None => text.to_owned(),
        Some((before, rest)) => {
            let after = rest.rsplit_once(')').map_or("", |(_, after)| after);
            format!("{before}{after}")
        }
    };
    let name = name.rsplit('.').next().unwrap_or_default().trim_matches('"');
    let name = match name {
        "int" | "integer" => "int4",
        "bigint" => "int8",
        "smallint" => "int2",
        "real" => "float4",
        "float" | "double" | "double precision" => "float8",
        "decimal" | "dec" => "numeric",
        "character varying" | "char varying" => "varchar",
        "char" | "character" => "bpchar",
        "boolean" => "bool",
        "timestamp without time zone" | "datetime" => "timestamp",
        "timestamp with time zone" => "timestamptz",
        "time without time zone" => "time",
        "time with time zone" => "timetz",
        "blob" => "bytea",
        other => other,
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    /// As PostgreSQL 15 names them.
    const NAMES: &[(&str, &str)] = &[
        ("count(*)", "count"),
        ("pg_catalog.lower(b)", "lower"),
        ("coalesce(a, 1)", "coalesce"),
        ("greatest(a, 1)", "greatest"),
        ("nullif(a, 1)", "nullif"),
        ("sum(a) OVER ()", "sum"),
        ("count(*) FILTER (WHERE a > 1)", "count"),
        ("extract(year FROM d)", "extract"),
        ("date_part('year', d)", "date_part"),
        ("substring(b FROM 1 FOR 2)", "substring"),
        ("substr(b, 1)", "substr"),
        ("position('a' IN b)", "position"),
        ("overlay(b PLACING 'x' FROM 1)", "overlay"),
        ("trim(b)", "btrim"),
        ("trim(LEADING 'x' FROM b)", "ltrim"),
        ("trim(TRAILING 'x' FROM b)", "rtrim"),
        ("ceil(a)", "ceil"),
        ("a::text", "a"),
        ("CAST(t.a AS text)", "a"),
        ("a::text::varchar", "a"),
        ("count(*)::int", "count"),
        ("1::int", "int4"),
        ("CAST('1' AS varchar(5))", "varchar"),
        ("'1'::char(3)", "bpchar"),
        ("'1'::decimal(5, 2)", "numeric"),
        ("'{1}'::int[]", "int4"),
        ("1::float", "float8"),
        ("'2020-01-01'::timestamptz", "timestamptz"),
        ("'2020-01-01'::timestamp with time zone", "timestamptz"),
        ("date '2020-01-01'", "date"),
        ("interval '1 day'", "interval"),
        ("true", "?column?"),
        ("true::bool", "bool"),
        ("NULL", "?column?"),
        ("-1", "?column?"),
        ("a + 1", "?column?"),
        ("(a + 1)::int", "int4"),
        ("a IS NULL", "?column?"),
        ("b || 'x'", "?column?"),
        ("CASE WHEN a > 1 THEN 1 ELSE a END", "a"),
        ("CASE WHEN a > 1 THEN 1 ELSE 0 END", "case"),
        ("CASE WHEN a > 1 THEN 'x' ELSE 1::text END", "case"),
        ("CASE WHEN a > 1 THEN 1 END", "case"),
        ("ARRAY[1, 2]", "array"),
        ("ARRAY(SELECT 1)", "array"),
        ("EXISTS (SELECT 1)", "exists"),
        ("NOT EXISTS (SELECT 1)", "?column?"),
        ("ROW(1, 2)", "row"),
        ("(1, 2)", "row"),
        ("(SELECT max(a) FROM t)", "max"),
        ("(SELECT a + 1 FROM t)", "?column?"),
        ("(SELECT 1 AS q UNION SELECT 2)", "q"),
        ("CURRENT_DATE", "current_date"),
        ("current_user", "current_user"),
        ("c[1]", "c"),
        ("c[1:2]", "c"),
        ("(ARRAY[1])[1]", "array"),
        ("(f(1)).x", "x"),
        ("b COLLATE \"C\"", "b"),
        ("s AT TIME ZONE 'UTC'", "timezone"),
    ];

    #[test]
    fn columns_have_the_names_of_postgresql() {
        for (text, name) in NAMES {
            let parser = Parser::new(&PostgreSqlDialect {}).try_with_sql(text);
            let expr = parser.expect(text).parse_expr().expect(text);
            assert_eq!(figured(&expr), *name, "{text}");
        }
    }
}
