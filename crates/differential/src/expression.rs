//! Random expressions over the columns in scope, in the part of SQL that both engines read alike.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use crate::data::{Class, ColumnType, constant};

/// A column that an expression may name.
#[derive(Clone, Debug)]
pub(crate) struct ScopedColumn {
    pub(crate) sql: String,
    pub(crate) data_type: ColumnType,
}

/// A value as a select list has it: dates and timestamps as texts, since clients have no infinite ones.
pub(crate) fn shown(of: &ScopedColumn) -> String {
    match of.data_type.class() {
        Class::Date | Class::Timestamp | Class::Enum => format!("CAST({} AS VARCHAR)", of.sql),
        _ => of.sql.clone(),
    }
}

/// How rows of values are compared where one of these is NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowValues {
    /// As SQL has it.
    Standard,
    /// As structs: NULL is a value like others.
    Structs,
}

/// The columns in scope, and how rows of them are compared.
#[derive(Clone, Debug)]
pub(crate) struct Scope(pub(crate) Vec<ScopedColumn>, pub(crate) RowValues);

const COMPARISONS: [&str; 8] =
    ["=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"];

/// The first two hold NULL for a value.
const ROW_COMPARISONS: [&str; 10] =
    ["IS DISTINCT FROM", "IS NOT DISTINCT FROM", "=", "<>", "<", "<=", ">", ">=", "IN", "NOT IN"];

impl Scope {
    /// Any column.
    pub(crate) fn any<'a>(&'a self, random: &mut StdRng) -> &'a ScopedColumn {
        &self.0[random.random_range(0..self.0.len())]
    }

    /// A column of that class.
    pub(crate) fn find_by_class(&self, class: Class, random: &mut StdRng) -> Option<&ScopedColumn> {
        let columns: Vec<_> = self.0.iter().filter(|c| c.data_type.class() == class).collect();
        columns.choose(random).copied()
    }

    /// A value of the class of `like`: a column or a constant.
    fn operand(&self, like: ColumnType, random: &mut StdRng) -> String {
        match self.find_by_class(like.class(), random) {
            Some(column) if random.random_bool(0.4) => column.sql.clone(),
            _ => constant(&like.value(random), like),
        }
    }

    /// A value of a column's type or made of it, and its type.
    pub(crate) fn value(&self, random: &mut StdRng) -> ScopedColumn {
        let column = self.any(random).clone();
        let sql = &column.sql;
        let of = |sql: String, data_type| ScopedColumn { sql, data_type };
        match (column.data_type.class(), random.random_range(0..10)) {
            (Class::Int, 0) => of(format!("CAST({sql} AS BIGINT) + 1"), ColumnType::BigInt),
            (Class::Int, 1) => of(format!("CAST({sql} AS BIGINT) * 3 - 2"), ColumnType::BigInt),
            (Class::Int, 2) => of(format!("CAST({sql} AS DOUBLE)"), ColumnType::Double),
            (Class::Float, 0) => of(format!("{sql} * -1"), ColumnType::Double),
            (Class::Float, 1) => of(format!("-({sql})"), column.data_type),
            (Class::Float, 2) => of(format!("{sql} - {sql}"), ColumnType::Double),
            (Class::Text, 0) => of(format!("length({sql})"), ColumnType::BigInt),
            (Class::Text, 1) => of(format!("{sql} || 'a'"), ColumnType::Text),
            (Class::Text, 2) => of(format!("substr({sql}, 1, 2)"), ColumnType::Text),
            (Class::Date, 0) => {
                let year = format!("CAST(extract(year FROM {sql}) AS BIGINT)");
                let sql = format!("CASE WHEN isfinite({sql}) THEN {year} END");
                of(sql, ColumnType::BigInt)
            }
            (_, 3) => {
                let other = self.operand(column.data_type, random);
                let condition = self.condition(1, random);
                of(format!("CASE WHEN {condition} THEN {sql} ELSE {other} END"), column.data_type)
            }
            (_, 4) => {
                let other = self.operand(column.data_type, random);
                of(format!("coalesce({sql}, {other})"), column.data_type)
            }
            (Class::Int | Class::Text | Class::Float | Class::Date, 5) => {
                let other = self.operand(column.data_type, random);
                of(format!("nullif({sql}, {other})"), column.data_type)
            }
            _ => column,
        }
    }

    /// A condition with up to `depth` levels of AND, OR and NOT.
    pub(crate) fn condition(&self, depth: usize, random: &mut StdRng) -> String {
        if depth > 0 && random.random_bool(0.5) {
            let left = self.condition(depth - 1, random);
            let right = self.condition(depth - 1, random);
            return match random.random_range(0..5) {
                0 | 1 => format!("({left} AND {right})"),
                2 | 3 => format!("({left} OR {right})"),
                _ => format!("NOT ({left})"),
            };
        }
        if random.random_bool(0.08) {
            return self.row_condition(random);
        }
        let column = self.any(random);
        let (sql, data_type) = (&column.sql, column.data_type);
        match (data_type.class(), random.random_range(0..8)) {
            (_, 0) => format!("{sql} IS NULL"),
            (_, 1) => format!("{sql} IS NOT NULL"),
            (Class::List, _) => {
                let sign = COMPARISONS[random.random_range(0..2)];
                format!("{sql} {sign} {}", self.operand(data_type, random))
            }
            (_, 2) => {
                let list: Vec<String> =
                    (0..3).map(|_| constant(&data_type.value(random), data_type)).collect();
                let not = if random.random_bool(0.3) { "NOT " } else { "" };
                let null = if random.random_bool(0.1) { ", NULL" } else { "" };
                format!("{sql} {not}IN ({}{null})", list.join(", "))
            }
            (_, 3) => {
                let [low, high] = [(), ()].map(|()| self.operand(data_type, random));
                format!("{sql} BETWEEN {low} AND {high}")
            }
            (Class::Text, 4) => {
                let pattern = ["a%", "%b", "%o%", "_", "%東%", ""].choose(random).unwrap_or(&"%");
                let not = if random.random_bool(0.3) { "NOT " } else { "" };
                format!("{sql} {not}LIKE '{pattern}'")
            }
            (Class::Bool, 4) => format!("{sql} IS NOT TRUE"),
            _ => {
                let sign = COMPARISONS[random.random_range(0..COMPARISONS.len())];
                format!("({sql} {sign} {})", self.operand(data_type, random))
            }
        }
    }

    /// Rows of two values, compared.
    fn row_condition(&self, random: &mut StdRng) -> String {
        let signs: &[&str] = match self.1 {
            RowValues::Standard => &ROW_COMPARISONS,
            RowValues::Structs => &ROW_COMPARISONS[..2],
        };
        let sign = signs.choose(random).copied().unwrap_or("IS DISTINCT FROM");
        let (left, right) = (self.any(random).clone(), self.any(random).clone());
        let mut other = || {
            format!(
                "({}, {})",
                self.operand(left.data_type, random),
                self.operand(right.data_type, random)
            )
        };
        let to = match sign {
            "IN" | "NOT IN" => format!("({}, {})", other(), other()),
            _ => other(),
        };
        format!("(({}, {}) {sign} {to})", left.sql, right.sql)
    }

    /// An aggregate over the columns, and its type.
    pub(crate) fn aggregate(&self, random: &mut StdRng) -> ScopedColumn {
        let column = self.any(random).clone();
        let (sql, data_type) = (column.sql, column.data_type);
        let (call, data_type) = match (data_type.class(), random.random_range(0..8)) {
            (_, 0) => ("count(*)".to_owned(), ColumnType::BigInt),
            (_, 1) => (format!("count({sql})"), ColumnType::BigInt),
            (class, 2) if class != Class::List => {
                (format!("count(DISTINCT {sql})"), ColumnType::BigInt)
            }
            (Class::Bool, _) => (format!("bool_or({sql})"), ColumnType::Bool),
            (Class::List, _) => (format!("count({sql})"), ColumnType::BigInt),
            (Class::Int, 3) => (format!("sum(CAST({sql} AS BIGINT))"), ColumnType::BigInt),
            (Class::Int, 4) => (format!("sum(DISTINCT {sql})"), ColumnType::BigInt),
            (Class::Decimal, 3 | 4) => (format!("sum({sql})"), ColumnType::Decimal(38, 4)),
            (Class::Float, 3 | 4) if data_type == ColumnType::Quarters => (
                format!("{}({sql})", ["sum", "avg"][random.random_range(0..2)]),
                ColumnType::Double,
            ),
            (_, 5 | 6) => (format!("min({sql})"), data_type),
            _ => (format!("max({sql})"), data_type),
        };
        let filtered = random.random_bool(0.15);
        let sql = match filtered {
            true => format!("{call} FILTER (WHERE {})", self.condition(0, random)),
            false => call,
        };
        ScopedColumn { sql, data_type }
    }
}
