//! Variants that use a record's query as a table: grouped, compared with itself, within a view and so on.
//!
//! The correct results follow from the rows of the record.

use std::collections::BTreeMap;

use atoll_sql::arrow::datatypes::DataType;

use super::rows::{Answer, Cell, Expected, is_written_as_shown};

/// A statement with its setup and cleanup.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps {
    pub(super) before: Option<String>,
    pub(super) sql: String,
    pub(super) after: Option<String>,
}

impl From<String> for Steps {
    fn from(sql: String) -> Self {
        Self { sql, ..Self::default() }
    }
}

/// A variant over the rows of a query.
#[derive(Clone, Debug)]
pub(super) struct Outside {
    pub(super) kind: &'static str,
    pub(super) steps: Steps,
    /// The same without casts and clashing names: if this fails too, the query cannot be used so.
    pub(super) plain: Steps,
    pub(super) expected: Expected,
}

/// Columns of the record that take part.
const COLUMNS_MAX: usize = 3;
/// Rows up to which a query is joined with itself.
const JOINED_MAX: usize = 200;

/// Names of columns that could be taken for calls or for qualified names.
const CLASHING: [&str; COLUMNS_MAX] = ["sum(q.x1)", "count(*)", "CAST(q.x1 AS Utf8)"];

/// All variants over a query that returned these rows.
pub(super) fn variants(query: &str, answer: &Answer) -> Vec<Outside> {
    if answer.types.is_empty() {
        return Vec::new();
    }
    let columns: Vec<usize> = (0..answer.types.len().min(COLUMNS_MAX)).collect();
    let keys = columns.iter().copied().filter(|&column| is_key(&answer.types[column])).collect();
    let wrapped = Wrapped { query, answer, columns, keys };
    let mut all = vec![wrapped.beside(), wrapped.renamed(), wrapped.appended()];
    if let Some(&first) = wrapped.keys.first() {
        all.extend(wrapped.of_groups());
        all.extend(wrapped.of_one_key(first));
    }
    all
}

/// Whether equal values have one text, unlike '1 day' and '24 hours'.
fn is_key(data_type: &DataType) -> bool {
    let name = data_type.to_string();
    !["Interval", "Duration", "Null"].iter().any(|part| name.contains(part))
}

fn x(column: usize) -> String {
    format!("x{}", column + 1)
}

fn cast(what: &str) -> String {
    format!("CAST({what} AS VARCHAR)")
}

fn number(count: usize) -> Cell {
    Some(count.to_string())
}

/// The number of occurrences of each row.
fn counted(rows: Vec<Vec<Cell>>) -> BTreeMap<Vec<Cell>, usize> {
    let mut counts = BTreeMap::new();
    for row in rows {
        *counts.entry(row).or_default() += 1;
    }
    counts
}

struct Wrapped<'a> {
    query: &'a str,
    answer: &'a Answer,
    /// The columns that take part, and those of them that may be keys.
    columns: Vec<usize>,
    keys: Vec<usize>,
}

impl Wrapped<'_> {
    /// The query as a table whose columns are `x1`, `x2` and so on.
    fn table_as(&self, alias: &str) -> String {
        let names: Vec<String> = (0..self.answer.types.len()).map(x).collect();
        format!("(\n{}\n) AS {alias}({})", self.query, names.join(", "))
    }

    fn table(&self) -> String {
        self.table_as("q")
    }

    /// Names for all columns, with clashing ones first.
    fn clashing(&self) -> Vec<String> {
        let name = |column| match CLASHING.get(column) {
            Some(name) => format!("\"{name}\""),
            None => x(column),
        };
        (0..self.answer.types.len()).map(name).collect()
    }

    /// Each column and its cast, as items of a SELECT.
    fn pairs(columns: &[usize]) -> String {
        let pair = |&column: &usize| format!("{}, {}", x(column), cast(&x(column)));
        columns.iter().map(pair).collect::<Vec<_>>().join(", ")
    }

    fn list(columns: &[usize]) -> String {
        columns.iter().map(|&column| x(column)).collect::<Vec<_>>().join(", ")
    }

    /// The expected values of the columns of [`Self::pairs`].
    fn paired(columns: &[usize], rows: Vec<Vec<Cell>>) -> Expected {
        let known = (0..columns.len()).map(|i| 2 * i).collect();
        let casts = (0..columns.len()).map(|i| (2 * i + 1, 2 * i)).collect();
        Expected { known, rows, casts, ..Expected::default() }
    }

    fn beside(&self) -> Outside {
        let (table, columns) = (self.table(), &self.columns);
        Outside {
            kind: "columns beside their casts",
            steps: format!("SELECT {} FROM {table}", Self::pairs(columns)).into(),
            plain: format!("SELECT {} FROM {table}", Self::list(columns)).into(),
            expected: Self::paired(columns, self.answer.columns(columns)),
        }
    }

    fn renamed(&self) -> Outside {
        let table = self.table();
        let sql = format!(
            "SELECT x1 AS \"sum(q.x1)\", CAST(x1 AS VARCHAR) AS \"max(q.x1)\", x1 AS \"q.x1\", \
             CAST(x1 AS VARCHAR) AS \"CAST(q.x1 AS Utf8)\", x1 AS \"count(*)\", \
             count(*) OVER () AS \"x1\" FROM {table}"
        );
        let all = number(self.answer.rows.len());
        let rows = self
            .answer
            .rows
            .iter()
            .map(|row| vec![row[0].clone(), row[0].clone(), row[0].clone(), all.clone()]);
        let expected = Expected {
            known: vec![0, 2, 4, 5],
            rows: rows.collect(),
            casts: vec![(1, 0), (3, 2)],
            ..Expected::default()
        };
        let plain = format!("SELECT x1, count(*) OVER () FROM {table}");
        Outside {
            kind: "columns twice under clashing names",
            steps: sql.into(),
            plain: plain.into(),
            expected,
        }
    }

    fn appended(&self) -> Outside {
        let (table, columns) = (self.table(), &self.columns);
        let twice = |items: String| {
            format!("SELECT {items} FROM {table} UNION ALL SELECT {items} FROM {table}")
        };
        let mut rows = self.answer.columns(columns);
        rows.extend(rows.clone());
        Outside {
            kind: "UNION ALL with itself",
            steps: twice(Self::pairs(columns)).into(),
            plain: twice(Self::list(columns)).into(),
            expected: Self::paired(columns, rows),
        }
    }

    /// Variants that depend on which rows are equal.
    fn of_groups(&self) -> Vec<Outside> {
        let groups = counted(self.answer.columns(&self.keys));
        let distinct: Vec<Vec<Cell>> = groups.keys().cloned().collect();
        let with_counts = groups.iter().map(|(key, &count)| {
            let mut row = key.clone();
            row.push(number(count));
            row
        });
        let with_counts: Vec<Vec<Cell>> = with_counts.collect();
        vec![
            self.distinct(distinct.clone()),
            self.set_operation("UNION with itself", "UNION", distinct.clone()),
            self.set_operation("INTERSECT with itself", "INTERSECT", distinct),
            self.set_operation("EXCEPT itself", "EXCEPT", Vec::new()),
            self.grouped(with_counts.clone()),
            self.common_table(with_counts.clone()),
            self.view(with_counts),
        ]
    }

    fn distinct(&self, rows: Vec<Vec<Cell>>) -> Outside {
        let (table, keys) = (self.table(), &self.keys);
        Outside {
            kind: "DISTINCT",
            steps: format!("SELECT DISTINCT {} FROM {table}", Self::pairs(keys)).into(),
            plain: format!("SELECT DISTINCT {} FROM {table}", Self::list(keys)).into(),
            expected: Self::paired(keys, rows),
        }
    }

    fn set_operation(&self, kind: &'static str, operator: &str, rows: Vec<Vec<Cell>>) -> Outside {
        let (table, keys) = (self.table(), &self.keys);
        let both = |items: String| {
            format!("SELECT {items} FROM {table} {operator} SELECT {items} FROM {table}")
        };
        Outside {
            kind,
            steps: both(Self::pairs(keys)).into(),
            plain: both(Self::list(keys)).into(),
            expected: Self::paired(keys, rows),
        }
    }

    /// The expected pairs of columns with the count of the group after them.
    fn paired_and_counted(&self, rows: Vec<Vec<Cell>>) -> Expected {
        let mut expected = Self::paired(&self.keys, rows);
        expected.known.push(2 * self.keys.len());
        expected
    }

    fn grouped(&self, rows: Vec<Vec<Cell>>) -> Outside {
        let (table, keys) = (self.table(), &self.keys);
        let (pairs, first) = (Self::pairs(keys), x(keys[0]));
        let text = cast(&first);
        let sql = format!(
            "SELECT {pairs}, count(*), max({first}), max({text}), min({first}) AS \"max(q.{first})\", \
             min({text}) FROM {table} GROUP BY {pairs}"
        );
        let list = Self::list(keys);
        let plain = format!(
            "SELECT {list}, count(*), max({first}), min({first}) FROM {table} GROUP BY {list}"
        );
        let mut expected = self.paired_and_counted(rows);
        let after = 2 * keys.len();
        expected.casts.extend([(after + 2, after + 1), (after + 4, after + 3)]);
        Outside { kind: "GROUP BY", steps: sql.into(), plain: plain.into(), expected }
    }

    fn common_table(&self, rows: Vec<Vec<Cell>>) -> Outside {
        let names = self.clashing();
        let pair = |&key: &usize| format!("{0}, CAST({0} AS VARCHAR)", names[key]);
        let pairs = self.keys.iter().map(pair).collect::<Vec<_>>().join(", ");
        let sql = format!(
            "WITH q({}) AS (\n{}\n) SELECT {pairs}, count(*) FROM q GROUP BY {pairs}",
            names.join(", "),
            self.query
        );
        let list = Self::list(&self.keys);
        let plain = format!("SELECT {list}, count(*) FROM {} GROUP BY {list}", self.table());
        let expected = self.paired_and_counted(rows);
        Outside {
            kind: "CTE with clashing names",
            steps: sql.into(),
            plain: plain.into(),
            expected,
        }
    }

    fn view(&self, rows: Vec<Vec<Cell>>) -> Outside {
        let (table, keys) = (self.table(), &self.keys);
        let view = |items: &str| {
            format!("CREATE TEMP VIEW variant_of_record AS SELECT {items} FROM {table}")
        };
        let pair = |&key: &usize| format!("{0}, {1} AS \"q.{0}\"", x(key), cast(&x(key)));
        let pairs = keys.iter().map(pair).collect::<Vec<_>>().join(", ");
        let name = |&key: &usize| format!("{0}, \"q.{0}\"", x(key));
        let names = keys.iter().map(name).collect::<Vec<_>>().join(", ");
        let list = Self::list(keys);
        let after = Some("DROP VIEW variant_of_record".to_owned());
        Outside {
            kind: "view",
            steps: Steps {
                before: Some(view(&pairs)),
                sql: format!("SELECT {names}, count(*) FROM variant_of_record GROUP BY {names}"),
                after: after.clone(),
            },
            plain: Steps {
                before: Some(view(&list)),
                sql: format!("SELECT {list}, count(*) FROM variant_of_record GROUP BY {list}"),
                after,
            },
            expected: self.paired_and_counted(rows),
        }
    }

    /// Variants over one column.
    fn of_one_key(&self, key: usize) -> Vec<Outside> {
        let counts: BTreeMap<Cell, usize> = counted(self.answer.columns(&[key]))
            .into_iter()
            .map(|(mut row, count)| (row.remove(0), count))
            .collect();
        let one = OneKey { wrapped: self, x: x(key), text: cast(&x(key)), counts };
        let mut all = vec![
            one.totals(&self.answer.types[key]),
            one.windows(),
            one.having(),
            one.nested(),
            one.rollup(),
            one.ordered(),
            one.member(),
        ];
        if self.answer.rows.len() <= JOINED_MAX {
            all.push(one.joined());
        }
        all
    }
}

/// Variants over the column `x`, with the count of each value.
struct OneKey<'a> {
    wrapped: &'a Wrapped<'a>,
    x: String,
    text: String,
    counts: BTreeMap<Cell, usize>,
}

impl OneKey<'_> {
    fn not_null(&self) -> impl Iterator<Item = (&String, usize)> {
        self.counts.iter().filter_map(|(cell, &count)| Some((cell.as_ref()?, count)))
    }

    fn rows(&self) -> usize {
        self.counts.values().sum()
    }

    fn totals(&self, data_type: &DataType) -> Outside {
        let (x, text, table) = (&self.x, &self.text, self.wrapped.table());
        let sql = format!(
            "SELECT count(*), count({x}), count({text}), count(DISTINCT {x}), \
             count(DISTINCT {text}), max({x}), max({text}), min({x}) AS \"max(q.{x})\", min({text}) \
             AS \"min(q.{x})\" FROM {table}"
        );
        let filled: usize = self.not_null().map(|(_, count)| count).sum();
        let distinct = self.not_null().count();
        let mut expected = Expected {
            known: vec![0, 1, 2, 3],
            rows: vec![vec![number(self.rows()), number(filled), number(filled), number(distinct)]],
            ..Expected::default()
        };
        if is_written_as_shown(data_type) {
            // The texts are those of the test, and texts sort by their bytes.
            expected.known.extend([4, 6, 8]);
            let texts = || self.not_null().map(|(text, _)| text.clone());
            expected.rows[0].extend([number(distinct), texts().max(), texts().min()]);
        }
        let plain =
            format!("SELECT count({x}), count(DISTINCT {x}), max({x}), min({x}) FROM {table}");
        Outside { kind: "aggregates", steps: sql.into(), plain: plain.into(), expected }
    }

    fn windows(&self) -> Outside {
        let (x, text, table) = (&self.x, &self.text, self.wrapped.table());
        let sql = format!(
            "SELECT {x}, {text}, row_number() OVER (PARTITION BY {x}, {text}), \
             count(*) OVER (PARTITION BY {text}, {x}) AS \"count(*)\", \
             lag({x}) OVER w, lag({text}) OVER w, lead({x}) OVER w AS \"lag(q.{x})\", \
             lead({text}) OVER w, first_value({x}) OVER w, first_value({text}) OVER w \
             FROM {table} WINDOW w AS (ORDER BY {x}, {text})"
        );
        let rows = self.counts.iter().flat_map(|(value, &count)| {
            (1..=count).map(move |i| vec![value.clone(), number(i), number(count)])
        });
        let expected = Expected {
            known: vec![0, 2, 3],
            rows: rows.collect(),
            casts: vec![(1, 0), (5, 4), (7, 6), (9, 8)],
            ..Expected::default()
        };
        let plain = format!(
            "SELECT {x}, count(*) OVER (PARTITION BY {x}), lag({x}) OVER w, lead({x}) OVER w, \
             first_value({x}) OVER w FROM {table} WINDOW w AS (ORDER BY {x})"
        );
        Outside { kind: "windows", steps: sql.into(), plain: plain.into(), expected }
    }

    /// The value, its count, and a cast of the value after it.
    fn counted(rows: impl Iterator<Item = (Cell, usize)>) -> Expected {
        Expected {
            known: vec![0, 2],
            rows: rows.map(|(value, count)| vec![value, number(count)]).collect(),
            casts: vec![(1, 0)],
            ..Expected::default()
        }
    }

    fn having(&self) -> Outside {
        let (x, text, table) = (&self.x, &self.text, self.wrapped.table());
        let sql = format!(
            "SELECT {x}, {text}, count(*) FROM {table} GROUP BY {x}, {text} \
             HAVING count({x}) = count(*) AND count({text}) = count(*) AND max({text}) IS NOT NULL \
             AND max({x}) IS NOT NULL"
        );
        let plain = format!(
            "SELECT {x}, count(*) FROM {table} GROUP BY {x} \
             HAVING count({x}) = count(*) AND max({x}) IS NOT NULL"
        );
        let rows = self.not_null().map(|(value, count)| (Some(value.clone()), count));
        let expected = Self::counted(rows);
        Outside { kind: "HAVING", steps: sql.into(), plain: plain.into(), expected }
    }

    fn nested(&self) -> Outside {
        let (x, text, table) = (&self.x, &self.text, self.wrapped.table());
        let sql = format!(
            "SELECT value, {x}, count(*) FROM (SELECT {x} AS value, {text} AS {x} FROM {table}) AS q \
             GROUP BY value, {x}"
        );
        let plain =
            format!("SELECT {x}, count(*) FROM (SELECT {x} FROM {table}) AS q GROUP BY {x}");
        let rows = self.counts.iter().map(|(value, &count)| (value.clone(), count));
        let expected = Self::counted(rows);
        Outside {
            kind: "subquery with changed names",
            steps: sql.into(),
            plain: plain.into(),
            expected,
        }
    }

    /// Each group occurs with its cast and without, and all rows are one more group.
    fn rollup(&self) -> Outside {
        let (x, text, table) = (&self.x, &self.text, self.wrapped.table());
        let items = format!("{x}, count(*)");
        let of_groups =
            self.counts.iter().map(|(value, &count)| vec![value.clone(), number(count)]);
        let mut rows: Vec<Vec<Cell>> = of_groups.collect();
        rows.extend(rows.clone());
        rows.push(vec![None, number(self.rows())]);
        Outside {
            kind: "ROLLUP",
            steps: format!("SELECT {items}, {text} FROM {table} GROUP BY ROLLUP ({x}, {text})")
                .into(),
            plain: format!("SELECT {items} FROM {table} GROUP BY ROLLUP ({x})").into(),
            expected: Expected { known: vec![0, 1], rows, ..Expected::default() },
        }
    }

    fn ordered(&self) -> Outside {
        let (x, text, table) = (&self.x, &self.text, self.wrapped.table());
        let sql = format!(
            "SELECT {text} AS \"q.{x}\", {x}, {x} AS \"{text}\" FROM {table} \
             ORDER BY {x}, {text} DESC, 1"
        );
        let each =
            |(value, &count): (&Cell, &usize)| vec![vec![value.clone(), value.clone()]; count];
        let expected = Expected {
            known: vec![1, 2],
            rows: self.counts.iter().flat_map(each).collect(),
            casts: vec![(0, 1)],
            ..Expected::default()
        };
        let plain = format!("SELECT {x} FROM {table} ORDER BY {x}");
        Outside { kind: "ORDER BY", steps: sql.into(), plain: plain.into(), expected }
    }

    fn member(&self) -> Outside {
        let (x, text, table) = (&self.x, &self.text, self.wrapped.table());
        let filtered = |wanted: &str, items: &str| {
            format!("SELECT {items} FROM {table} WHERE {wanted} IN (SELECT {wanted} FROM {table})")
        };
        let each = |(value, count): (&String, usize)| vec![vec![Some(value.clone())]; count];
        let expected = Expected {
            known: vec![0],
            rows: self.not_null().flat_map(each).collect(),
            casts: vec![(1, 0)],
            ..Expected::default()
        };
        Outside {
            kind: "IN",
            steps: filtered(text, &format!("{x}, {text}")).into(),
            plain: filtered(x, x).into(),
            expected,
        }
    }

    fn joined(&self) -> Outside {
        let (x, table) = (&self.x, self.wrapped.table());
        let right = self.wrapped.table_as("r");
        let sql = format!(
            "SELECT q.{x}, CAST(r.{x} AS VARCHAR), count(*) FROM {table} JOIN {right} \
             ON q.{x} = r.{x} AND CAST(q.{x} AS VARCHAR) = CAST(r.{x} AS VARCHAR) \
             GROUP BY q.{x}, CAST(r.{x} AS VARCHAR)"
        );
        let plain = format!(
            "SELECT q.{x}, count(*) FROM {table} JOIN {right} ON q.{x} = r.{x} GROUP BY q.{x}"
        );
        let squares = self.not_null().map(|(value, count)| (Some(value.clone()), count * count));
        let expected = Self::counted(squares);
        Outside { kind: "JOIN with itself", steps: sql.into(), plain: plain.into(), expected }
    }
}
