//! The catalog has all relations and columns of PostgreSQL 15.

use std::collections::BTreeMap;

use crate::common::{live, rows};

/// `schema.relation column:type …`, as a query on PostgreSQL 15 lists them; VARCHAR and CHAR are `text`.
const WANTED: &str = include_str!("postgresql15.txt");

fn columns(line: &str) -> (String, Vec<String>) {
    let mut words = line.split(' ').map(str::to_owned);
    (words.next().unwrap_or_default(), words.collect())
}

#[test]
fn all_relations_and_columns_of_postgresql_exist() {
    let session = live();
    let found = rows(
        &session,
        "SELECT n.nspname, c.relname, a.attname, t.typname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid \
         WHERE n.nspname IN ('pg_catalog', 'information_schema') ORDER BY c.oid, a.attnum",
    );
    let mut relations = BTreeMap::<String, Vec<String>>::new();
    for row in found {
        let [schema, relation, column, data_type] = &row[..] else { panic!("{row:?}") };
        let columns = relations.entry(format!("{schema}.{relation}")).or_default();
        columns.push(format!("{column}:{data_type}"));
    }
    let mut wrong = Vec::new();
    for (relation, wanted) in WANTED.lines().map(columns) {
        let as_here = |column: &String| match column.split_once(':') {
            Some((name, "inet")) => format!("{name}:text"),
            // The row type of a table.
            Some((name, "_pg_statistic")) => format!("{name}:_text"),
            _ => column.clone(),
        };
        let wanted: Vec<String> = wanted.iter().map(as_here).collect();
        let found = relations.remove(&relation).unwrap_or_default();
        if found != wanted {
            wrong.push(format!("{relation}: {found:?} instead of {wanted:?}"));
        }
        // It is declared as it is read.
        let names = wanted
            .iter()
            .map(|column| format!("\"{}\"", column.split(':').next().unwrap_or_default()));
        let names = names.collect::<Vec<_>>().join(", ");
        rows(&session, &format!("SELECT {names} FROM {relation} LIMIT 1"));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let more: Vec<&String> = relations.keys().collect();
    assert_eq!(more, ["pg_catalog.pg_keywords"], "PostgreSQL has only a function of this name");
}
