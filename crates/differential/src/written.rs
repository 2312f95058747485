//! Random indexes of a table, and changes of its rows, none of which violates a unique index: rows that statements
//! add besides MERGE have negative ids, and unique indexes without `id` are of these rows alone.

use rand::Rng;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

use crate::data::{Class, Column, ColumnType, TestTable, constant};
use crate::expression::{RowValues, Scope, ScopedColumn};

/// Indexes, then changes.
pub(crate) fn changes(table: &TestTable, random: &mut StdRng) -> Vec<String> {
    let indexes = random.random_range(0..4);
    let mut statements: Vec<String> =
        (0..indexes).map(|number| index(table, number, random)).collect();
    let has_key = random.random_bool(0.5);
    if has_key {
        statements.push(format!("CREATE UNIQUE INDEX {0}_key ON {0} (id)", table.name));
    }
    for number in 0..random.random_range(0..4) {
        statements.push(match random.random_range(0..5) {
            0 => updated(table, random),
            1 => deleted(table, random),
            2 => inserted(table, has_key, number, random),
            _ => merged(table, random),
        });
    }
    statements
}

/// A column besides `id`.
fn other<'t>(table: &'t TestTable, random: &mut StdRng) -> &'t Column {
    table.columns[1..].choose(random).unwrap_or(&table.columns[0])
}

fn value(of: &Column, random: &mut StdRng) -> String {
    match random.random_bool(0.15) {
        true => "NULL".to_owned(),
        false => constant(&of.data_type.value(random), of.data_type),
    }
}

/// The columns under a qualifier, as conditions name them.
fn scope(table: &TestTable, qualifier: &str) -> Scope {
    let columns = table.columns.iter().map(|column| ScopedColumn {
        sql: format!("{qualifier}{}", column.name),
        data_type: column.data_type,
    });
    Scope(columns.collect(), RowValues::Standard)
}

fn index(table: &TestTable, number: usize, random: &mut StdRng) -> String {
    let name = &table.name;
    let is_unique = random.random_bool(0.5);
    let mut keys: Vec<String> = Vec::new();
    for _ in 0..random.random_range(1..3) {
        let column = other(table, random);
        let order = if random.random_bool(0.3) { " DESC" } else { "" };
        let key = match column.data_type {
            ColumnType::Text if random.random_bool(0.5) => format!("lower({})", column.name),
            ColumnType::Int if is_unique && random.random_bool(0.3) => {
                format!("coalesce({}, 0)", column.name)
            }
            _ => column.name.clone(),
        };
        if !keys.iter().any(|other| other.contains(&column.name)) {
            keys.push(format!("{key}{order}"));
        }
    }
    if !is_unique {
        let condition = match random.random_bool(0.3) {
            true => format!(" WHERE {}", scope(table, "").condition(1, random)),
            false => String::new(),
        };
        return format!("CREATE INDEX {name}_i{number} ON {name} ({}){condition}", keys.join(", "));
    }
    let nulls = if random.random_bool(0.3) { " NULLS NOT DISTINCT" } else { "" };
    let condition = match random.random_bool(0.5) {
        true => " WHERE id < 0".to_owned(),
        false => {
            keys.insert(random.random_range(0..=keys.len()), "id".to_owned());
            match random.random_bool(0.5) {
                true => format!(" WHERE {}", kept_condition(table, random)),
                false => String::new(),
            }
        }
    };
    format!(
        "CREATE UNIQUE INDEX {name}_i{number} ON {name} ({}){nulls}{condition}",
        keys.join(", ")
    )
}

/// A condition that a unique index can have.
fn kept_condition(table: &TestTable, random: &mut StdRng) -> String {
    let column = other(table, random);
    let of = column.data_type;
    let mut constants = || constant(&of.value(random), of);
    let [one, two] = [constants(), constants()];
    let name = &column.name;
    match random.random_range(0..6) {
        0 => format!("{name} IS NULL"),
        _ if of.class() == Class::List => format!("{name} IS NOT NULL"),
        1 => format!("{name} IN ({one}, {two})"),
        2 => format!("NOT ({name} >= {one} OR {name} IS NULL)"),
        3 => format!("{name} <> {one} AND id < 30"),
        _ => format!("{name} <= {one}"),
    }
}

fn updated(table: &TestTable, random: &mut StdRng) -> String {
    let column = other(table, random);
    let condition = scope(table, "").condition(1, random);
    let value = value(column, random);
    format!("UPDATE {} SET {} = {value} WHERE id >= 0 AND {condition}", table.name, column.name)
}

fn deleted(table: &TestTable, random: &mut StdRng) -> String {
    let least = random.random_range(0..20);
    let condition = scope(table, "").condition(1, random);
    format!("DELETE FROM {} WHERE id > {least} AND {condition}", table.name)
}

/// Rows whose keys may be there, if `id` is unique; else rows with other ids than those of each other `number`.
fn inserted(table: &TestTable, has_key: bool, number: i32, random: &mut StdRng) -> String {
    let column = other(table, random);
    let by_key = has_key && random.random_bool(0.6);
    let first = if by_key { random.random_range(-2..2) } else { -10 * (number + 1) };
    let rows: Vec<String> =
        (first..first + 4).map(|id| format!("({id}, {})", value(column, random))).collect();
    let (name, column) = (&table.name, &column.name);
    let conflict = match by_key {
        true if random.random_bool(0.7) => {
            format!("(id) DO UPDATE SET {column} = excluded.{column} WHERE {name}.id >= 0")
        }
        true => "(id) DO NOTHING".to_owned(),
        false => "DO NOTHING".to_owned(),
    };
    // Rows that are there keep to the indexes of negative ids.
    let conflict = if first < 0 && by_key { "DO NOTHING".to_owned() } else { conflict };
    format!("INSERT INTO {name} (id, {column}) VALUES {} ON CONFLICT {conflict}", rows.join(", "))
}

/// Some rows meet others by their ids.
fn merged(table: &TestTable, random: &mut StdRng) -> String {
    let column = other(table, random);
    let (name, c) = (&table.name, &column.name);
    let factor = random.random_range(1..4);
    let source = format!("SELECT id * {factor} AS id, {c} FROM {name} WHERE id >= 0 AND id < 300");
    let mut text = format!("MERGE INTO {name} AS t USING ({source}) AS s ON t.id = s.id");
    for _ in 0..random.random_range(0..3) {
        let condition = match random.random_bool(0.7) {
            true => format!(" AND {}", scope(table, "t.").condition(1, random)),
            false => String::new(),
        };
        let then = match random.random_range(0..4) {
            0 => "DELETE".to_owned(),
            1 => "DO NOTHING".to_owned(),
            2 => format!("UPDATE SET {c} = {}", value(column, random)),
            _ => format!("UPDATE SET {c} = s.{c}"),
        };
        text.push_str(&format!(" WHEN MATCHED{condition} THEN {then}"));
        if condition.is_empty() {
            break;
        }
    }
    let least = random.random_range(0..20);
    let inserted = value(column, random);
    let inserted = [format!("s.{c}"), inserted].choose(random).cloned().unwrap_or_default();
    text.push_str(&format!(
        " WHEN NOT MATCHED AND s.id > {least} THEN INSERT (id, {c}) VALUES (s.id, {inserted})"
    ));
    text
}
