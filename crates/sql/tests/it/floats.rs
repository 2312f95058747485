//! Special float values in files of other programs: each answer equals that of a table.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use atoll_sql::arrow::array::{ArrayRef, Float32Array, Float64Array, Int64Array, RecordBatch};
use atoll_sql::datafusion::parquet::arrow::ArrowWriter;

use crate::common::{live, rows};

/// The NaN that x86 computes for 0.0 / 0.0, and one of yet other bits.
const SIGNED_NAN: f64 = f64::from_bits(0xfff8_0000_0000_0000);
const OTHER_NAN: f64 = f64::from_bits(0x7ff8_0000_0000_0001);

/// Values by row group, so that each has different statistics.
const ROW_GROUPS: [&[Option<f64>]; 6] = [
    &[Some(-0.0), Some(-0.0)],
    &[Some(0.0), None],
    &[Some(SIGNED_NAN), Some(1.0)],
    &[Some(OTHER_NAN), Some(f64::NAN)],
    &[Some(f64::NEG_INFINITY), Some(-2.5)],
    &[Some(f64::INFINITY), Some(7.0), Some(-0.0)],
];

const QUERIES: [&str; 20] = [
    "SELECT count(*) FROM $t WHERE d = 0",
    "SELECT count(*) FROM $t WHERE r = 0 AND d = CAST('-0.0' AS DOUBLE)",
    "SELECT count(*) FROM $t WHERE d = CAST('NaN' AS DOUBLE)",
    "SELECT count(*) FROM $t WHERE d > CAST('inf' AS DOUBLE)",
    "SELECT count(*) FROM $t WHERE d >= 7",
    "SELECT count(*) FROM $t WHERE d < 0",
    "SELECT count(*) FROM $t WHERE d <> 0",
    "SELECT count(*) FROM $t WHERE d BETWEEN 0 AND 0",
    "SELECT count(*) FROM $t WHERE d IN (0, 1, 2)",
    "SELECT count(*), count(d) FROM $t WHERE d IS NOT NULL OR r IS NULL",
    "SELECT min(d), max(d), min(r), max(r), count(DISTINCT d), count(DISTINCT r) FROM $t",
    "SELECT min(d), max(d) FROM $t WHERE d < 7",
    "SELECT d, count(*) FROM $t GROUP BY d ORDER BY d",
    "SELECT d, r, k FROM $t ORDER BY d, k LIMIT 7",
    "SELECT k FROM $t ORDER BY d DESC NULLS LAST, k LIMIT 3",
    "SELECT DISTINCT d, rank() OVER (ORDER BY d) FROM $t ORDER BY d",
    "SELECT count(*) FROM $t a JOIN t b ON a.d = b.d",
    "SELECT count(*) FROM $t a JOIN small b ON a.d = b.d",
    "SELECT count(*) FROM t WHERE d IN (SELECT d FROM $t WHERE d <= 0)",
    "SELECT count(*) FROM (SELECT d FROM $t INTERSECT SELECT -d FROM t)",
];

fn batches() -> Vec<RecordBatch> {
    let mut rows = 0;
    let mut batch = |values: &&[Option<f64>]| {
        let keys = (rows..).take(values.len()).collect::<Int64Array>();
        rows += values.len() as i64;
        let singles: Float32Array = values.iter().map(|v| v.map(|v| v as f32)).collect();
        let doubles: Float64Array = values.iter().copied().collect();
        let columns: [(&str, ArrayRef); 3] =
            [("k", Arc::new(keys)), ("d", Arc::new(doubles)), ("r", Arc::new(singles))];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))
            .expect("the columns are of one length")
    };
    ROW_GROUPS.iter().map(&mut batch).collect()
}

fn write_parquet(path: &Path) {
    let batches = batches();
    let file = File::create(path).expect("the file can be made");
    let mut writer = ArrowWriter::try_new(file, batches[0].schema(), None).expect("it is writable");
    for batch in &batches {
        writer.write(batch).expect("the rows can be written");
        writer.flush().expect("a row group ends");
    }
    writer.close().expect("the file is complete");
}

fn write_csv(path: &Path) {
    let mut text = "k,d,r\n".to_owned();
    for (key, value) in ROW_GROUPS.iter().flat_map(|group| group.iter()).enumerate() {
        let value = value.map_or_else(String::new, |value| format!("{value:?}"));
        text.push_str(&format!("{key},{value},{value}\n"));
    }
    std::fs::write(path, text).expect("the file can be written");
}

#[test]
fn a_file_with_two_zeros_and_many_nans_answers_as_a_table_does() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let (parquet, csv) = (directory.path().join("f.parquet"), directory.path().join("f.csv"));
    write_parquet(&parquet);
    write_csv(&csv);
    let session = live();
    rows(
        &session,
        "CREATE TABLE t AS SELECT column1 AS k, CAST(column2 AS DOUBLE) AS d, \
         CAST(column2 AS REAL) AS r FROM (VALUES (0, '-0.0'), (1, '-0.0'), (2, '0.0'), (3, NULL), \
         (4, 'NaN'), (5, '1.0'), (6, 'NaN'), (7, 'NaN'), (8, '-inf'), (9, '-2.5'), (10, 'inf'), \
         (11, '7.0'), (12, '-0.0'))",
    );
    rows(&session, "CREATE TABLE small AS SELECT 0.0::DOUBLE AS d UNION ALL SELECT 0::DOUBLE / 0");
    rows(&session, &format!("CREATE VIEW p AS SELECT * FROM '{}'", parquet.display()));
    rows(
        &session,
        &format!(
            "CREATE EXTERNAL TABLE c (k BIGINT, d DOUBLE, r REAL) STORED AS CSV LOCATION '{}' \
             OPTIONS ('format.has_header' 'true')",
            csv.display()
        ),
    );
    for query in QUERIES {
        let expected = rows(&session, &query.replace("$t", "t"));
        for file in ["p", "c"] {
            assert_eq!(rows(&session, &query.replace("$t", file)), expected, "{file}: {query}");
        }
    }
}

#[test]
fn a_prepared_statement_over_a_file_answers_as_the_statement_does() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let parquet = directory.path().join("f.parquet");
    write_parquet(&parquet);
    let session = live();
    let query = format!("SELECT count(*) FROM '{}' WHERE d = $1", parquet.display());
    rows(&session, &format!("PREPARE q (DOUBLE) AS {query}"));
    assert_eq!(rows(&session, "EXECUTE q(0.0)"), [["4"]]);
    assert_eq!(rows(&session, "EXECUTE q('NaN')"), [["3"]]);
    let query = format!("SELECT count(*) FROM '{}' WHERE d = 0", parquet.display());
    rows(&session, &format!("PREPARE z AS {query}"));
    assert_eq!(rows(&session, "EXECUTE z"), [["4"]]);
}

#[test]
fn columns_of_tables_are_read_as_they_are_stored_and_those_of_files_are_looked_at() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let parquet = directory.path().join("f.parquet");
    write_parquet(&parquet);
    let session = live();
    rows(&session, &format!("CREATE TABLE t AS SELECT * FROM '{}'", parquet.display()));
    let plan = |from: &str| {
        let sql =
            format!("EXPLAIN SELECT d, k, avg(k), max(r) FROM {from} WHERE r > 1 GROUP BY d, k");
        rows(&session, &sql).concat().concat()
    };
    assert!(!plan("t").contains("canonical"), "{}", plan("t"));
    let file = plan(&format!("'{}'", parquet.display()));
    assert!(file.contains("canonical(d") && file.contains("canonical(r"), "{file}");
    assert!(!file.contains("canonical(k"), "{file}");
}
