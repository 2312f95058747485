//! Random queries of forms that joins and groupings do not have: expressions next to their casts, recursive queries,
//! lists in an order.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use crate::data::{Class, ColumnType, TestTable};
use crate::expression::{ScopedColumn, shown};
use crate::query::RandomQuery;

/// Names of columns that are those of other columns and of functions.
const NAMES: [&str; 8] = ["c1", "c2", "id", "count", "lower", "max", "year", "a"];

/// A query of one of these forms over a table that is not large; None if there is no such table.
pub(crate) fn query(tables: &[TestTable], random: &mut StdRng) -> Option<RandomQuery> {
    let small: Vec<&TestTable> = tables.iter().filter(|table| !table.is_large()).collect();
    let table = *small.choose(random)?;
    let sql = match random.random_range(0..6) {
        0 => recursive(table, random),
        1 => listed(table, random),
        _ => column_and_cast(table, random),
    };
    Some(RandomQuery::Written(sql))
}

/// A column of a table, which is called `a`.
fn column(table: &TestTable, random: &mut StdRng) -> ScopedColumn {
    let column = &table.columns[random.random_range(0..table.columns.len())];
    ScopedColumn { sql: format!("a.{}", column.name), data_type: column.data_type }
}

/// Types to which any value of another type can be cast.
fn cast_type(of: ColumnType, random: &mut StdRng) -> ColumnType {
    let types: &[ColumnType] = match of.class() {
        Class::Timestamp => &[ColumnType::Date, ColumnType::Text, ColumnType::Timestamp],
        Class::Date => &[ColumnType::Timestamp, ColumnType::Text],
        Class::Int => {
            &[ColumnType::BigInt, ColumnType::Double, ColumnType::Text, ColumnType::Decimal(38, 3)]
        }
        Class::Bool => &[ColumnType::Int, ColumnType::Text],
        Class::Decimal => &[ColumnType::Double],
        Class::Float => &[ColumnType::Double],
        Class::Enum => &[ColumnType::Text],
        Class::Text | Class::List => &[],
    };
    types.choose(random).copied().unwrap_or(of)
}

/// A column next to its cast, each twice, under names that mean something else too.
fn column_and_cast(table: &TestTable, random: &mut StdRng) -> String {
    let of = column(table, random);
    let to = cast_type(of.data_type, random);
    let cast = ScopedColumn { sql: format!("CAST({} AS {})", of.sql, to.sql()), data_type: to };
    let names: Vec<&str> = NAMES.choose_multiple(random, 4).copied().collect();
    let [n0, n1, n2, n3] = [names[0], names[1], names[2], names[3]];
    let (e, c) = (&of.sql, &cast.sql);
    let (se, sc) = (shown(&of), shown(&cast));
    let named = |name: &str, of: &ScopedColumn| {
        shown(&ScopedColumn { sql: format!("q.{name}"), data_type: of.data_type })
    };
    let (qe, qc) = (named(n0, &of), named(n1, &cast));
    let t = format!("{} a", table.name);
    let q = format!("(SELECT {e} AS {n0}, {c} AS {n1}, {e} AS {n2}, {c} AS {n3} FROM {t}) q");
    match random.random_range(0..9) {
        0 => format!("SELECT {se} AS {n0}, {sc} AS {n1}, {se} AS {n2}, {sc} AS {n3} FROM {t}"),
        1 => format!(
            "SELECT {sc} AS {n0}, {se} AS {n1}, count(*) AS {n2} FROM {t} GROUP BY {c}, {e}"
        ),
        2 => format!(
            "SELECT {sc} AS {n0}, count({e}) AS {n1} FROM {t} GROUP BY {c} HAVING count({c}) > 1"
        ),
        3 => format!("SELECT DISTINCT {e} IS NULL AS {n0}, {sc} AS {n1}, {se} AS {n2} FROM {t}"),
        4 => format!(
            "SELECT {qe} AS {n2}, {qc} AS {n3} FROM {q} UNION SELECT {qe}, {qc} FROM {q} WHERE q.{n0} IS NOT NULL"
        ),
        5 => format!(
            "SELECT a.id AS {n0}, count({e}) OVER (PARTITION BY {c}) AS {n1}, row_number() OVER (ORDER BY {c}, {e}, a.id) AS {n2} FROM {t}"
        ),
        6 => format!(
            "WITH w AS (SELECT q.* FROM {q}) SELECT {qe} AS o0, {qc} AS o1, count(*) AS o2 FROM w q GROUP BY q.{n0}, q.{n1}"
        ),
        7 => format!(
            "SELECT {qe} AS {n3}, {qc} AS {n0} FROM {q} WHERE q.{n1} IS NOT DISTINCT FROM q.{n3}"
        ),
        _ => {
            let view = format!("{} q", table.view());
            let column = of.sql.trim_start_matches("a.");
            let [first, again] =
                [column.to_owned(), format!("{column}_again")].map(|name| named(&name, &of));
            format!(
                "SELECT {first} AS {n0}, {again} AS {n1}, count(*) AS {n2} FROM {view} GROUP BY q.{column}, q.{column}_again"
            )
        }
    }
}

/// Rows that lead to further ones.
fn recursive(table: &TestTable, random: &mut StdRng) -> String {
    let of = column(table, random);
    let name = &table.name;
    let kept = shown(&ScopedColumn { sql: "r.x".to_owned(), data_type: of.data_type });
    let union = ["UNION", "UNION ALL"].choose(random).unwrap_or(&"UNION");
    let steps = random.random_range(1..6);
    let start = format!("SELECT a.id, 0, {} FROM {name} a WHERE a.id < {steps}", of.sql);
    let next = match random.random_range(0..3) {
        0 => format!("SELECT r.i, r.n + 1, r.x FROM r WHERE r.n < {steps}"),
        1 => format!("SELECT r.i + 1, r.n, r.x FROM r WHERE r.i < {steps}"),
        _ => format!(
            "SELECT a.id, r.n + 1, {} FROM r JOIN {name} a ON a.id = r.i + 1 WHERE r.n < {steps}",
            of.sql
        ),
    };
    format!(
        "WITH RECURSIVE r(i, n, x) AS ({start} {union} {next}) SELECT r.i AS o0, r.n AS o1, {kept} AS o2 FROM r"
    )
}

/// Lists of a table's values in an order, which a subquery has.
fn listed(table: &TestTable, random: &mut StdRng) -> String {
    let name = &table.name;
    let mut key = column(table, random).sql.replacen("a.", "x.", 1);
    if random.random_bool(0.3) {
        key = format!("x.id % 3, {key}");
    }
    let direction = ["ASC", "DESC"].choose(random).unwrap_or(&"ASC");
    let nulls = ["FIRST", "LAST"].choose(random).unwrap_or(&"LAST");
    let order = format!("{key} {direction} NULLS {nulls}, x.id DESC");
    match random.random_range(0..5) {
        0 => format!("SELECT ARRAY(SELECT x.id FROM {name} x ORDER BY {order}) AS o0"),
        1 => format!(
            "SELECT ARRAY(SELECT DISTINCT x.id % 5 FROM {name} x ORDER BY 1 {direction}) AS o0"
        ),
        2 => format!(
            "SELECT array_agg(q.id) AS o0 FROM (SELECT x.id FROM {name} x ORDER BY {order}) q"
        ),
        3 => format!(
            "SELECT q.k AS o0, array_agg(q.id) AS o1 FROM (SELECT x.id, x.id % 3 AS k FROM {name} x ORDER BY {order}) q GROUP BY q.k"
        ),
        _ => format!(
            "SELECT a.id AS o0, ARRAY(SELECT x.id FROM {name} x WHERE x.id < a.id % 9 ORDER BY {order}) AS o1 FROM {name} a"
        ),
    }
}
