//! Random tables: hostile values, hot keys, nulls, and a unique `id` in front.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use crate::engines::Against;

/// Types of columns, as both engines name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnType {
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    Real,
    Double,
    /// DOUBLE, but quarters of small magnitude only: their sums are exact in any order.
    Quarters,
    Decimal(u8, u8),
    Text,
    Bool,
    Date,
    Timestamp,
    /// A list of INT.
    List,
    /// An ENUM, whose labels are not in the order of their letters.
    Mood,
    /// A DOMAIN over INT.
    Small,
}

/// Classes of types that compare with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Int,
    Float,
    Decimal,
    Text,
    Bool,
    Date,
    Timestamp,
    List,
    Enum,
}

/// The types that columns may have besides those of the engines.
const TYPES: [(ColumnType, &str); 2] = [
    (ColumnType::Mood, "CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy', 'Ähm')"),
    (ColumnType::Small, "CREATE DOMAIN small AS INT CHECK (VALUE > -100)"),
];

const LABELS: [&str; 4] = ["sad", "ok", "happy", "Ähm"];

/// The statements that make the types of the tables' columns.
pub(crate) fn types_of(tables: &[TestTable]) -> Vec<String> {
    let columns = tables.iter().flat_map(|table| &table.columns);
    let used = TYPES.iter().filter(|(of, _)| columns.clone().any(|it| it.data_type == *of));
    used.map(|(_, sql)| (*sql).to_owned()).collect()
}

impl ColumnType {
    pub(crate) fn class(self) -> Class {
        match self {
            Self::TinyInt | Self::SmallInt | Self::Int | Self::BigInt | Self::Small => Class::Int,
            Self::Real | Self::Double | Self::Quarters => Class::Float,
            Self::Decimal(..) => Class::Decimal,
            Self::Text => Class::Text,
            Self::Bool => Class::Bool,
            Self::Date => Class::Date,
            Self::Timestamp => Class::Timestamp,
            Self::List => Class::List,
            Self::Mood => Class::Enum,
        }
    }

    /// Its name in SQL.
    pub(crate) fn sql(self) -> String {
        match self {
            Self::TinyInt => "TINYINT".into(),
            Self::SmallInt => "SMALLINT".into(),
            Self::Int => "INT".into(),
            Self::BigInt => "BIGINT".into(),
            Self::Real => "REAL".into(),
            Self::Double | Self::Quarters => "DOUBLE".into(),
            Self::Decimal(precision, scale) => format!("DECIMAL({precision},{scale})"),
            Self::Text => "VARCHAR".into(),
            Self::Bool => "BOOLEAN".into(),
            Self::Date => "DATE".into(),
            Self::Timestamp => "TIMESTAMP".into(),
            Self::List => "INT[]".into(),
            Self::Mood => "mood".into(),
            Self::Small => "small".into(),
        }
    }

    /// A type that columns have for a reference engine.
    fn random_for(against: Against, random: &mut StdRng) -> Self {
        if against == Against::Postgresql && random.random_bool(0.2) {
            return if random.random_bool(0.6) { Self::Mood } else { Self::Small };
        }
        Self::random(random)
    }

    fn random(random: &mut StdRng) -> Self {
        let decimals = [Self::Decimal(9, 2), Self::Decimal(18, 4), Self::Decimal(38, 3)];
        match random.random_range(0..14) {
            0 => Self::TinyInt,
            1 => Self::SmallInt,
            2 | 3 => Self::Int,
            4 => Self::BigInt,
            5 => Self::Real,
            6 => Self::Double,
            7 => Self::Quarters,
            8 => decimals[random.random_range(0..decimals.len())],
            9 | 10 => Self::Text,
            11 => Self::Bool,
            12 => {
                if random.random_bool(0.8) {
                    Self::Date
                } else {
                    Self::List
                }
            }
            _ => Self::Timestamp,
        }
    }

    /// A value as the text that both engines read.
    pub(crate) fn value(self, random: &mut StdRng) -> String {
        match self {
            Self::TinyInt => integer(random, i64::from(i8::MIN), i64::from(i8::MAX)),
            Self::SmallInt => integer(random, i64::from(i16::MIN), i64::from(i16::MAX)),
            Self::Int => integer(random, i64::from(i32::MIN), i64::from(i32::MAX)),
            Self::BigInt => integer(random, i64::MIN, i64::MAX),
            Self::Real | Self::Double => float(self, random),
            Self::Quarters => format!("{:?}", f64::from(random.random_range(-4000..4000)) / 4.0),
            Self::Decimal(precision, scale) => decimal(precision, scale, random),
            Self::Text => text(random),
            Self::Bool => random.random_bool(0.5).to_string(),
            Self::Date => pick(random, &DATES).unwrap_or_else(|| {
                let day = random.random_range(1..28);
                format!("{}-{:02}-{day:02}", random.random_range(1990..2030), day % 12 + 1)
            }),
            Self::Timestamp => pick(random, &TIMESTAMPS).unwrap_or_else(|| {
                let day = random.random_range(1..28);
                format!("2024-{:02}-{day:02} {:02}:59:01", day % 12 + 1, day % 24)
            }),
            Self::List => {
                let items: Vec<String> = (0..random.random_range(0..4))
                    .map(|_| match random.random_range(0..4) {
                        0 => "NULL".to_owned(),
                        n => n.to_string(),
                    })
                    .collect();
                format!("[{}]", items.join(", "))
            }
            Self::Mood => LABELS.choose(random).map_or("ok", |label| label).to_owned(),
            Self::Small => random.random_range(-5..20).to_string(),
        }
    }
}

const DATES: [&str; 6] =
    ["1970-01-01", "2024-02-29", "0001-01-01", "9999-12-31", "infinity", "-infinity"];
const TIMESTAMPS: [&str; 5] =
    ["1970-01-01 00:00:00", "1677-09-22 00:00:00", "2262-04-11 00:00:00", "infinity", "-infinity"];

/// One of the values, half of the times.
fn pick(random: &mut StdRng, values: &[&str]) -> Option<String> {
    let wanted = random.random_bool(0.5);
    values.choose(random).filter(|_| wanted).map(|value| (*value).to_owned())
}

fn integer(random: &mut StdRng, least: i64, most: i64) -> String {
    match random.random_range(0..10) {
        0 => least.to_string(),
        1 => most.to_string(),
        2 => "0".to_owned(),
        3 => random.random_range(least..=most).to_string(),
        _ => random.random_range(-5..20).to_string(),
    }
}

fn float(data_type: ColumnType, random: &mut StdRng) -> String {
    let wide = ["NaN", "Infinity", "-Infinity", "-0.0", "0.0", "1e308", "-1e308", "5e-324", "1.5"];
    let narrow = ["NaN", "Infinity", "-Infinity", "-0.0", "0.0", "1e38", "-1e38", "1.5"];
    let special = if data_type == ColumnType::Real { &narrow[..] } else { &wide[..] };
    pick(random, special)
        .unwrap_or_else(|| format!("{:?}", f64::from(random.random_range(-8..8)) / 4.0))
}

fn decimal(precision: u8, scale: u8, random: &mut StdRng) -> String {
    let whole = usize::from(precision - scale);
    let nines = format!("{}.{}", "9".repeat(whole), "9".repeat(usize::from(scale)));
    match random.random_range(0..8) {
        0 => nines,
        1 => format!("-{nines}"),
        _ => format!("{}.{:02}", random.random_range(-50..50), random.random_range(0..4) * 25),
    }
}

fn text(random: &mut StdRng) -> String {
    match random.random_range(0..8) {
        0 => String::new(),
        1 => " a".to_owned(),
        2 => "Zürich 東京 %_".to_owned(),
        3 => "it's".to_owned(),
        4 => format!("{}{}", "long ".repeat(random.random_range(3..40)), random.random_range(0..3)),
        _ => ["a", "b", "ab", "B", "NaN", "1"].choose(random).map_or("a", |text| text).to_owned(),
    }
}

/// A column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) data_type: ColumnType,
}

/// A table and its rows.
#[derive(Clone, Debug)]
pub(crate) struct TestTable {
    pub(crate) name: String,
    pub(crate) columns: Vec<Column>,
    /// Texts of values by row; none is NULL.
    pub(crate) rows: Vec<Vec<Option<String>>>,
    /// How often the rows are there, each time with their own ids.
    pub(crate) copies: usize,
    /// Statements that follow: indexes, and changes of rows.
    pub(crate) changes: Vec<String>,
}

/// Rows from which on a table is cut between workers, and a few more.
const LARGE_ROWS: usize = 20_000;

impl TestTable {
    /// A table of random columns and rows.
    pub(crate) fn random(name: String, against: Against, random: &mut StdRng) -> Self {
        let id = Column { name: "id".to_owned(), data_type: ColumnType::Int };
        let more = (1..=random.random_range(2..6)).map(|number| Column {
            name: format!("c{number}"),
            data_type: ColumnType::random_for(against, random),
        });
        let columns: Vec<Column> = std::iter::once(id).chain(more.collect::<Vec<_>>()).collect();
        let count = match random.random_range(0..10) {
            0 => 0,
            1 => 1,
            _ => random.random_range(2..60),
        };
        let pools: Vec<Pool> = columns.iter().map(|c| Pool::random(c.data_type, random)).collect();
        let row = |id: usize, random: &mut StdRng| {
            let values = pools[1..].iter().map(|pool| pool.value(random));
            std::iter::once(Some(id.to_string())).chain(values.collect::<Vec<_>>()).collect()
        };
        let rows: Vec<Vec<Option<String>>> = (0..count).map(|id| row(id, random)).collect();
        let large = count > 0 && random.random_bool(0.12);
        let copies = if large { LARGE_ROWS / count } else { 1 };
        Self { name, columns, rows, copies, changes: Vec::new() }
    }

    /// Statements that make it.
    pub(crate) fn setup(&self) -> Vec<String> {
        let columns: Vec<String> =
            self.columns.iter().map(|c| format!("{} {}", c.name, c.data_type.sql())).collect();
        let mut statements = vec![format!("CREATE TABLE {} ({})", self.name, columns.join(", "))];
        for rows in self.rows.chunks(20) {
            let rows: Vec<String> = rows.iter().map(|row| self.literal(row)).collect();
            statements.push(format!("INSERT INTO {} VALUES {}", self.name, rows.join(", ")));
        }
        if self.copies > 1 {
            let columns: Vec<&str> = self.columns[1..].iter().map(|c| c.name.as_str()).collect();
            statements.push(format!(
                "INSERT INTO {0} SELECT CAST(id + {1} * k AS INT), {2} FROM {0}, range(1, {3}) AS r(k)",
                self.name,
                self.rows.len(),
                columns.join(", "),
                self.copies
            ));
        }
        statements.extend(self.changes.iter().cloned());
        let columns = self.columns.iter().map(|c| format!("{0}, {0} AS {0}_again", c.name));
        let columns = columns.collect::<Vec<_>>().join(", ");
        statements.push(format!(
            "CREATE VIEW {} AS SELECT {columns} FROM {}",
            self.view(),
            self.name
        ));
        statements
    }

    /// The name of its view, which has each column twice.
    pub(crate) fn view(&self) -> String {
        format!("{}_view", self.name)
    }

    fn literal(&self, row: &[Option<String>]) -> String {
        let values = row.iter().zip(&self.columns).map(|(value, column)| match value {
            Some(value) => constant(value, column.data_type),
            None => "NULL".to_owned(),
        });
        format!("({})", values.collect::<Vec<_>>().join(", "))
    }

    /// The same without a column, and without the changes that name it.
    pub(crate) fn drop_column(&mut self, at: usize) {
        let name = self.columns.remove(at).name;
        self.rows.iter_mut().for_each(|row| drop(row.remove(at)));
        self.changes.retain(|sql| !sql.contains(&name));
    }

    /// Whether it has many rows.
    pub(crate) fn is_large(&self) -> bool {
        self.copies > 1
    }
}

/// A value as a typed constant.
pub(crate) fn constant(value: &str, data_type: ColumnType) -> String {
    match data_type {
        ColumnType::List if value == "[]" => "CAST([] AS INT[])".to_owned(),
        ColumnType::List => format!("CAST({value} AS INT[])"),
        other => format!("CAST('{}' AS {})", value.replace('\'', "''"), other.sql()),
    }
}

/// The values of a column: few or many, one of them hot, with or without nulls.
struct Pool {
    data_type: ColumnType,
    values: Vec<String>,
    nulls: f64,
}

impl Pool {
    fn random(data_type: ColumnType, random: &mut StdRng) -> Self {
        let few = random.random_range(1..8);
        let values = (0..few).map(|_| data_type.value(random)).collect();
        let nulls = [0.0, 0.0, 0.1, 0.1, 0.4, 0.4, 1.0][random.random_range(0..7)];
        Self { data_type, values, nulls }
    }

    fn value(&self, random: &mut StdRng) -> Option<String> {
        if random.random_bool(self.nulls) {
            return None;
        }
        Some(match random.random_range(0..4) {
            0 => self.values[0].clone(),
            1 => self.data_type.value(random),
            _ => self.values[random.random_range(0..self.values.len())].clone(),
        })
    }
}
